//! Changing the platform's data: tasks, messages, and the trees of tasks that the plugin itself made.

use kandev_proto::v1;
use prost::Message as _;
use thiserror::Error as ThisError;
use tonic::{Request, Status, metadata::MetadataValue};

use super::{Host, read::task_of};
use crate::{
    Error, NewTask, Result, SentMessage, Task, TaskUpdate,
    wire::{FromWire as _, IntoWire as _},
};

/// Metadata of a call with the key under which it is done once.
const IDEMPOTENCY_KEY: &str = "kandev-idempotency-key";

impl Host {
    /// Creates a task, and tells `task.created`. Made twice it is there twice. `CreateTask`; capability
    /// `api_write: [tasks]`.
    ///
    /// ```no_run
    /// # async fn example(host: &kandev_plugin_sdk::Host) -> kandev_plugin_sdk::Result<()> {
    /// use kandev_plugin_sdk::NewTask;
    ///
    /// let task = host.create_task(NewTask { title: "Fix the door".into(), ..Default::default() }).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create_task(&self, task: NewTask) -> Result<Task> {
        let request = task.into_wire();
        task_of(self.call(|mut host| async move { host.create_task(request).await }).await?.task)
    }

    /// The same with an idempotency key, 1 to 128 visible ASCII characters: called again with the same key and the same
    /// task within 24 hours, it answers the task that was created the first time. An event's id is a good key for the
    /// task that follows from the event. A host that knows no keys creates another one.
    ///
    /// ```no_run
    /// # use kandev_plugin_sdk::{Event, Host, Result};
    /// # async fn example(host: &Host, event: Event) -> Result<()> {
    /// use kandev_plugin_sdk::NewTask;
    ///
    /// host.create_task_once(&event.id, NewTask { title: "Look at the failure".into(), ..Default::default() }).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create_task_once(&self, key: &str, task: NewTask) -> Result<Task> {
        let mut request = Request::new(task.into_wire());
        let key = MetadataValue::try_from(key)
            .map_err(|_| Status::invalid_argument("the idempotency key must be visible ASCII characters"))?;
        request.metadata_mut().insert(IDEMPOTENCY_KEY, key);
        task_of(self.call(|mut host| async move { host.create_task(request).await }).await?.task)
    }

    /// Changes a task and answers it as it is then. `UpdateTask`; capability `api_write: [tasks]`.
    ///
    /// ```no_run
    /// # async fn example(host: &kandev_plugin_sdk::Host) -> kandev_plugin_sdk::Result<()> {
    /// use kandev_plugin_sdk::TaskUpdate;
    ///
    /// let done = TaskUpdate { id: "task-7".into(), state: Some("COMPLETED".into()), ..Default::default() };
    /// host.update_task(done).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn update_task(&self, update: TaskUpdate) -> Result<Task> {
        let request = update.into_wire();
        task_of(self.call(|mut host| async move { host.update_task(request).await }).await?.task)
    }

    /// Sends a text to a task's agent, in the task's primary session unless one is named; a host without agents does
    /// not serve it. `SendMessage`; capability `api_write: [messages]`.
    ///
    /// ```no_run
    /// # async fn example(host: &kandev_plugin_sdk::Host) -> kandev_plugin_sdk::Result<()> {
    /// let sent = host.send_message("task-7", None, "the build is red").await?;
    /// println!("{} in {}", sent.status, sent.session_id);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn send_message(&self, task_id: &str, session_id: Option<&str>, text: &str) -> Result<SentMessage> {
        let request = v1::SendMessageRequest {
            task_id: task_id.to_owned(),
            session_id: session_id.unwrap_or_default().to_owned(),
            text: text.to_owned(),
        };
        let answer = self.call(|mut host| async move { host.send_message(request).await }).await?;
        Ok(SentMessage { session_id: answer.session_id, status: answer.status })
    }

    /// What [`Host::delete_task_tree`] would delete. `PreviewPluginOwnedTaskTree`; capability `api_write: [tasks]`.
    ///
    /// ```no_run
    /// # async fn example(host: &kandev_plugin_sdk::Host) -> kandev_plugin_sdk::Result<()> {
    /// let doomed = host.preview_task_tree("task-7").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn preview_task_tree(&self, root_task_id: &str) -> Result<Vec<Task>> {
        let request = v1::PreviewPluginOwnedTaskTreeRequest { root_task_id: root_task_id.to_owned() };
        let answer = self.call(|mut host| async move { host.preview_plugin_owned_task_tree(request).await }).await?;
        Ok(Vec::from_wire(answer.tasks))
    }

    /// Deletes a task that this plugin created, with everything below it; answers the ids. `DeletePluginOwnedTaskTree`;
    /// capability `api_write: [tasks]`.
    ///
    /// ```no_run
    /// # async fn example(host: &kandev_plugin_sdk::Host) -> kandev_plugin_sdk::Result<()> {
    /// match host.delete_task_tree("task-7").await {
    ///     Ok(deleted) => println!("{} tasks", deleted.len()),
    ///     Err(partial) => println!("{partial}; already gone: {:?}", partial.deleted),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete_task_tree(&self, root_task_id: &str) -> Result<Vec<String>, TreeError> {
        let request = v1::DeletePluginOwnedTaskTreeRequest { root_task_id: root_task_id.to_owned() };
        let limit = self.inner.settings.call_timeout;
        let answer =
            self.call_within(limit, |mut host| async move { host.delete_plugin_owned_task_tree(request).await });
        match answer.await {
            Ok(answer) => Ok(answer.deleted_task_ids),
            Err(status) => Err(TreeError { deleted: deleted_before(&status), error: status.into() }),
        }
    }
}

/// A tree that was not deleted, or only in part.
#[derive(Debug, Clone, PartialEq, Eq, ThisError)]
#[error("{error}")]
pub struct TreeError {
    /// The tasks that are gone all the same.
    pub deleted: Vec<String>,
    /// Why.
    #[source]
    pub error: Error,
}

impl From<TreeError> for Error {
    fn from(partial: TreeError) -> Self {
        partial.error
    }
}

/// `google.rpc.Status`, which carries a status' details.
#[derive(Clone, PartialEq, prost::Message)]
struct RpcStatus {
    #[prost(message, repeated, tag = "3")]
    details: Vec<prost_types::Any>,
}

/// The progress in a status' details (wire.md §3.3); empty when there is none.
fn deleted_before(status: &Status) -> Vec<String> {
    const PROGRESS: &str = "/kandev.plugin.v1.DeletePluginOwnedTaskTreeProgress";
    let details = RpcStatus::decode(status.details()).unwrap_or_default().details;
    let progress = details.iter().find(|detail| detail.type_url.ends_with(PROGRESS));
    let progress = progress.map(|detail| v1::DeletePluginOwnedTaskTreeProgress::decode(detail.value.as_slice()));
    progress.and_then(Result::ok).unwrap_or_default().deleted_task_ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_deleted_before_a_failure_is_read_from_the_details() {
        let progress = v1::DeletePluginOwnedTaskTreeProgress { deleted_task_ids: vec!["a".into(), "b".into()] };
        let detail = prost_types::Any {
            type_url: "type.googleapis.com/kandev.plugin.v1.DeletePluginOwnedTaskTreeProgress".into(),
            value: progress.encode_to_vec(),
        };
        let details = RpcStatus { details: vec![detail] }.encode_to_vec();
        let status = Status::with_details(tonic::Code::Unknown, "failed", details.into());
        assert_eq!(deleted_before(&status), ["a", "b"]);
        assert_eq!(deleted_before(&Status::unknown("failed")), [""; 0]);
        let broken = Status::with_details(tonic::Code::Unknown, "failed", vec![0xff, 0xff].into());
        assert_eq!(deleted_before(&broken), [""; 0]);
    }
}
