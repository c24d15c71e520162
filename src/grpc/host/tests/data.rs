//! The Host data API over gRPC, on both databases (host-data.md §1–§6, wire.md §3.2–§4).

mod bytes;
mod contract;
mod once;
mod orders;
mod places;
mod reads;
mod refusals;
mod rows;
mod writes;

use kandev_proto::v1::{self, Page, PageInfo};
use serde_json::Value;

use super::*;
use crate::{
    domain::platform::{
        Map, Scope,
        session::{NewSession, Session},
        task::{NewTask, Task},
        workspace::{Workspace, WorkspaceDraft},
    },
    platform::By,
};

/// The service of the plugin `acme`, with every capability and the provider `forge`, and the platform behind it.
struct Desk {
    client: HostClient<Channel>,
    platform: Platform,
    store: PlatformStore,
    world: World,
}

async fn desk(db: db::Db) -> Desk {
    desk_with(db, Limits::default()).await
}

async fn desk_with(db: db::Db, limits: Limits) -> Desk {
    let world = world_on(TempDir::new().unwrap(), db, &Timing::default(), limits, FakeBus::default()).await;
    let client = client_of(&world, "acme").await;
    let store = PlatformStore::new(world.db.clone());
    Desk { client, platform: Platform::new(&store), store, world }
}

/// What a plugin of this name calls, with every capability and the provider `forge`.
async fn client_of(world: &World, plugin: &str) -> HostClient<Channel> {
    let granted = Granted {
        capabilities: CapabilitySet::from_iter(Capability::all()),
        providers: ["forge".to_owned()].into(),
        ..Granted::default()
    };
    let pipe = serve(world.services.routes(&PluginId::new(plugin).unwrap(), &granted, &world.tenancy)).0;
    HostClient::new(channel(pipe, "http://localhost").await).max_decoding_message_size(64 << 20)
}

impl Desk {
    async fn workspace(&self, name: &str) -> Workspace {
        let draft = WorkspaceDraft { name: Some(name.to_owned()), ..WorkspaceDraft::default() };
        self.platform.workspaces.create(&By::operator(), &draft).await.unwrap()
    }

    async fn task(&self, new: NewTask) -> Task {
        self.platform.tasks.create(&By::operator(), &new).await.unwrap().task
    }

    async fn session(&self, task: &Task) -> Session {
        let new = NewSession { task_id: task.id.clone(), ..NewSession::default() };
        self.platform.sessions.create(&By::operator(), &new).await.unwrap()
    }

    async fn board(&mut self, workspace: &Workspace) -> (v1::Workflow, Vec<v1::WorkflowStep>) {
        let request = v1::ListWorkflowsRequest { workspace_id: workspace.id.clone(), page: None };
        let workflow = self.client.list_workflows(request).await.unwrap().into_inner().workflows.remove(0);
        let request = v1::ListWorkflowStepsRequest { workflow_id: workflow.id.clone() };
        let steps = self.client.list_workflow_steps(request).await.unwrap().into_inner().steps;
        (workflow, steps)
    }

    /// Titles of the tasks that a list shows.
    async fn titles(&mut self, filter: v1::TaskFilter) -> Vec<String> {
        let request = v1::ListTasksRequest { filter: Some(filter), page: None };
        let tasks = self.client.list_tasks(request).await.unwrap().into_inner().tasks;
        tasks.into_iter().map(|task| task.title).collect()
    }

    /// Subjects and payloads of everything that was told.
    async fn told(&self) -> Vec<(String, Map)> {
        let (events, _) = self.store.events_after(0, 10_000).await.unwrap();
        events.into_iter().map(|event| (event.subject, event.payload)).collect()
    }
}

fn titled(title: &str) -> NewTask {
    NewTask { title: title.to_owned(), ..NewTask::default() }
}

fn map(value: Value) -> Map {
    value.as_object().cloned().unwrap()
}

fn page(limit: i32, cursor: &str) -> Option<Page> {
    Some(Page { limit, cursor: cursor.to_owned() })
}

fn last() -> Option<PageInfo> {
    Some(PageInfo::default())
}

#[track_caller]
fn refusal<T: std::fmt::Debug>(answer: Result<T, Status>) -> (Code, String) {
    let status = answer.unwrap_err();
    (status.code(), status.message().to_owned())
}

/// As the wire has moments.
fn shown(at: time::OffsetDateTime) -> String {
    let format = time::macros::format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
    at.format(format).unwrap()
}
