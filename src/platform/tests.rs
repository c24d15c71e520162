//! The promises of the services, on both databases: what is kept, what is refused and with which words, what is told.

mod board;
mod bytes;
mod code;
mod event_writer;
mod events;
mod git_tokens;
mod large;
mod once;
mod paging;
mod parallel;
mod placing;
mod scope;
mod seed;
mod sessions;
mod tasks;
mod trees;

use serde_json::{Value, json};

use super::{By, Platform, PlatformError};
use crate::{
    domain::{
        id::PluginId,
        platform::{
            Map, Scope,
            page::PageRequest,
            refusal::Refusal,
            task::{NewTask, Task},
            workflow::{Step, StepDraft, Workflow},
            workspace::{Workspace, WorkspaceDraft},
        },
    },
    store::{
        db::Db,
        platform::{Logged, PlatformStore},
    },
};

/// The platform on an empty database.
struct World {
    store: PlatformStore,
    platform: Platform,
}

impl World {
    fn new(db: Db) -> Self {
        let store = PlatformStore::new(db);
        Self { platform: Platform::new(&store), store }
    }

    async fn workspace(&self, name: &str) -> Workspace {
        let draft = WorkspaceDraft { name: Some(name.to_owned()), ..WorkspaceDraft::default() };
        self.platform.workspaces.create(&By::operator(), &draft).await.unwrap()
    }

    /// The board that a workspace begins with.
    async fn board(&self, workspace: &Workspace) -> (Workflow, Vec<Step>) {
        let page = PageRequest::default();
        let workflows = self.platform.workflows.list(&Scope::All, &workspace.id, &page).await.unwrap();
        let workflow = workflows.items.into_iter().next().unwrap();
        let steps = self.platform.workflows.steps(&Scope::All, &workflow.id).await.unwrap();
        (workflow, steps)
    }

    /// A task of the only workspace.
    async fn task(&self, title: &str) -> Task {
        self.made(&By::operator(), &titled(title)).await
    }

    async fn made(&self, by: &By, new: &NewTask) -> Task {
        self.platform.tasks.create(by, new).await.unwrap().task
    }

    async fn log(&self) -> Vec<Logged> {
        self.store.events_after(0, 100_000).await.unwrap().0
    }

    /// Subjects of what was told after the first `seen` events.
    async fn told(&self, seen: usize) -> Vec<String> {
        self.log().await.into_iter().skip(seen).map(|event| event.subject).collect()
    }
}

fn titled(title: &str) -> NewTask {
    NewTask { title: title.to_owned(), ..NewTask::default() }
}

fn step_named(name: &str) -> StepDraft {
    StepDraft { name: Some(name.to_owned()), ..StepDraft::default() }
}

fn plugin(id: &str) -> PluginId {
    PluginId::new(id).unwrap()
}

fn map(value: Value) -> Map {
    value.as_object().cloned().unwrap()
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, PlatformError>) -> Refusal {
    match result {
        Err(PlatformError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

#[track_caller]
fn text<T: std::fmt::Debug>(result: Result<T, PlatformError>) -> String {
    refused(result).to_string()
}

/// Futures of the services run on any thread.
#[test]
fn the_services_can_be_used_from_any_task() {
    fn send<T: Send>(_: T) {}
    fn never_called(platform: &Platform, by: &By, new: &NewTask) {
        send(platform.tasks.create(by, new));
        send(platform.tasks.update(by, "", &Default::default(), None));
        send(platform.tasks.list(&Scope::All, &Default::default(), &PageRequest::default()));
        send(platform.tasks.owned_tree(&Scope::All, &plugin("acme"), ""));
        send(platform.code.stats(&Scope::All, &Default::default(), &PageRequest::default()));
    }
    let _ = never_called;
    assert_eq!(json!({}), Value::Object(Map::new()));
}
