//! An action: a button or form of the plugin's user interface, called by a user whom the host has checked.

use std::collections::HashMap;

use bytes::Bytes;
use kandev_proto::v1;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use crate::{Error, Result, json};

/// An action's call.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ActionRequest {
    /// The action's key in the manifest.
    pub key: String,
    /// Who and where, checked by the host.
    pub context: ActionContext,
    /// Raw JSON from the caller, untrusted.
    pub body: Bytes,
}

/// Who calls and on what. The host has checked that these belong together; a field is empty when it does not apply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ActionContext {
    /// The user.
    pub actor_id: String,
    /// The workspace.
    pub workspace_id: String,
    /// The task.
    pub task_id: String,
    /// The repository.
    pub repository_id: String,
    /// The session.
    pub session_id: String,
    /// The branch of the session's checkout.
    pub head_branch: String,
}

impl ActionRequest {
    /// The body as JSON of your type; [`Code::InvalidArgument`](crate::Code::InvalidArgument), and so HTTP 400, when it
    /// does not fit.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T> {
        json::parse_bytes("the action's body", &self.body)
    }
}

impl From<v1::PluginActionRequest> for ActionRequest {
    fn from(wire: v1::PluginActionRequest) -> Self {
        let context = wire.context.unwrap_or_default();
        let context = ActionContext {
            actor_id: context.actor_id,
            workspace_id: context.workspace_id,
            task_id: context.task_id,
            repository_id: context.repository_id,
            session_id: context.session_id,
            head_branch: context.head_branch,
        };
        Self { key: wire.action_key, context, body: wire.body }
    }
}

/// The answer to an action: JSON, at most 1 MiB.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionResponse {
    status: u16,
    headers: HashMap<String, String>,
    body: Bytes,
}

impl ActionResponse {
    /// 200 with JSON.
    ///
    /// ```
    /// # use kandev_plugin_sdk::ActionResponse;
    /// let answer = ActionResponse::json(&serde_json::json!({"queued": true}))?.with_status(202);
    /// # Ok::<(), kandev_plugin_sdk::Error>(())
    /// ```
    pub fn json(value: &impl Serialize) -> Result<Self> {
        Ok(Self { status: 200, headers: HashMap::new(), body: serde_json::to_vec(value)?.into() })
    }

    /// The same with this status, 200 to 599; the host answers 502 to any other.
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// The same with this header.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// The answer that says `error` to the caller; gives it back when it is not the caller's business: a bug, or a
    /// failed call of the host. The host then answers 503 itself.
    pub(crate) fn of_error(error: Error) -> Result<Self> {
        match error.code().http_status() {
            Some(status) if !error.is_from_host() => {
                Ok(Self::json(&json!({"error": error.to_string()}))?.with_status(status))
            }
            _ => Err(error),
        }
    }
}

impl From<ActionResponse> for v1::PluginActionResponse {
    fn from(answer: ActionResponse) -> Self {
        Self { body: answer.body, headers: answer.headers, status: answer.status.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_own_error_is_an_http_answer_and_the_hosts_stays_an_error() {
        let answer = ActionResponse::of_error(Error::invalid_argument("title is required")).unwrap();
        let expected = ActionResponse::json(&json!({"error": "title is required"})).unwrap().with_status(400);
        assert_eq!(answer, expected);
        let bug = Error::internal("x");
        assert_eq!(ActionResponse::of_error(bug.clone()), Err(bug));
        let host = Error::from(tonic::Status::permission_denied("capability 'state' not declared"));
        assert_eq!(ActionResponse::of_error(host.clone()), Err(host));
    }
}
