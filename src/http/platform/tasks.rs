//! Tasks (platform-rest.md §5).

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    DONE, Done, Nothing,
    parts::{Listed, Part, flag, request as request_of},
    steps::StepView,
    task_bodies::{NewTaskBody, TaskBody, TaskView},
};
use crate::{
    domain::{
        action::Action,
        platform::{
            Scope,
            page::Page,
            task::{Show, Task, TaskFilter},
        },
    },
    http::{
        ApiError, Services,
        change::{Change, scope, versioned},
        endpoint::{Endpoint, delete, get, patch, post},
        query::Query,
    },
    platform::tasks::{self, BulkMove, Created, NO_AGENTS},
    store::platform::TaskQuery,
};

pub static ROUTES: &[Endpoint] = &[
    post("/api/v1/tasks", Action::TaskWrite, || web::to(create))
        .about("Make a task")
        .body::<NewTaskBody>()
        .gives::<CreatedTask>(200)
        .versioned()
        .once(),
    post("/api/v1/tasks/bulk-move", Action::TaskWrite, || web::to(bulk_move))
        .about("Move many tasks at once, all or none")
        .body::<BulkMoveBody>()
        .gives::<Moved>(200)
        .once(),
    get("/api/v1/tasks/{id}", Action::TaskRead, || web::to(read)).about("One task").gives::<TaskView>(200).versioned(),
    patch("/api/v1/tasks/{id}", Action::TaskWrite, || web::to(update))
        .about("Change a task")
        .body::<TaskBody>()
        .gives::<TaskView>(200)
        .versioned()
        .once(),
    delete("/api/v1/tasks/{id}", Action::TaskDelete, || web::to(remove))
        .about("Delete a task with its sessions")
        .query::<Removal>()
        .gives::<Done>(200)
        .versioned()
        .once(),
    post("/api/v1/tasks/{id}/move", Action::TaskWrite, || web::to(move_to))
        .about("Move a task to a step")
        .body::<Target>()
        .gives::<MovedTask>(200)
        .versioned()
        .conditional()
        .once(),
    post("/api/v1/tasks/{id}/archive", Action::TaskWrite, || web::to(archive))
        .about("Put a task away")
        .gives::<Done>(200)
        .versioned()
        .conditional()
        .once(),
    post("/api/v1/tasks/{id}/unarchive", Action::TaskWrite, || web::to(unarchive))
        .about("Take a task out again")
        .gives::<Done>(200)
        .versioned()
        .conditional()
        .once(),
    get("/api/v1/tasks/{id}/subtask-count", Action::TaskRead, || web::to(subtask_count))
        .about("How many parts a task has")
        .gives::<Count>(200),
    get("/api/v1/workspaces/{id}/tasks", Action::TaskRead, || web::to(list))
        .about("Tasks of a workspace by page number, the newest first")
        .query::<TaskListQuery>()
        .gives::<TaskList>(200),
    get("/api/v1/workspaces/{id}/tasks/by-external-id", Action::TaskRead, || web::to(by_external_id))
        .about("The task of a workspace with an external id")
        .query::<ExternalId>()
        .gives::<TaskView>(200)
        .versioned(),
    get("/api/v1/workflows/{id}/tasks", Action::TaskRead, || web::to(list_of_workflow))
        .about("Tasks on a board, the newest first")
        .query::<Part>()
        .gives::<TaskList>(200),
];

/// Rows of a page when the caller says nothing that counts.
const DEFAULT_PAGE_SIZE: u32 = 50;

/// Most rows of a numbered page.
const MAX_PAGE_SIZE: u32 = 100;

/// Which tasks of a workspace.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
struct TaskListQuery {
    /// From 1; what is no such number counts as 1.
    page: Option<String>,
    /// 1 to 100; what is no such number counts as 50.
    page_size: Option<String>,
    /// `next_cursor` of an answer to the same question: what comes after it, whatever `page` says.
    cursor: Option<String>,
    /// Title, description or identifier contain it.
    query: Option<String>,
    /// Taken for the sake of existing clients; the newest task always comes first.
    sort: Option<String>,
    workflow_id: Option<String>,
    /// Works on this repository.
    repository_id: Option<String>,
    #[param(value_type = Option<bool>)]
    include_archived: Option<String>,
    #[param(value_type = Option<bool>)]
    only_archived: Option<String>,
    #[param(value_type = Option<bool>)]
    include_ephemeral: Option<String>,
    #[param(value_type = Option<bool>)]
    only_ephemeral: Option<String>,
    /// Without tasks that set the platform up and runs of automations.
    #[param(value_type = Option<bool>)]
    exclude_config: Option<String>,
}

impl TaskListQuery {
    fn filter(&self, workspace: String) -> Result<TaskFilter, ApiError> {
        let show = |with: (&str, &Option<String>), only: (&str, &Option<String>)| {
            let (with, only) = (flag(with.0, with.1.as_deref())?, flag(only.0, only.1.as_deref())?);
            Ok::<_, ApiError>(match (only, with) {
                (true, _) => Show::Only,
                (false, true) => Show::With,
                (false, false) => Show::Without,
            })
        };
        let without_internal = flag("exclude_config", self.exclude_config.as_deref())?;
        Ok(TaskFilter {
            workspace_ids: vec![workspace],
            workflow_ids: self.workflow_id.iter().filter(|id| !id.is_empty()).cloned().collect(),
            archived: show(("include_archived", &self.include_archived), ("only_archived", &self.only_archived))?,
            ephemeral: show(("include_ephemeral", &self.include_ephemeral), ("only_ephemeral", &self.only_ephemeral))?,
            internal: if without_internal { Show::Without } else { Show::With },
            repository_id: self.repository_id.clone().filter(|id| !id.is_empty()),
            text: self.query.clone().filter(|text| !text.is_empty()),
            ..TaskFilter::default()
        })
    }

    fn page_size(&self) -> u32 {
        let size = self.page_size.as_deref().and_then(|text| text.parse::<u32>().ok());
        size.filter(|size| (1..=MAX_PAGE_SIZE).contains(size)).unwrap_or(DEFAULT_PAGE_SIZE)
    }

    fn part(&self) -> TaskQuery {
        let (page, limit) = (self.page.as_deref().and_then(|text| text.parse::<u64>().ok()), self.page_size());
        let page = page.filter(|page| (1..=MAX_PAGE).contains(page)).unwrap_or(1);
        TaskQuery { offset: (page - 1) * u64::from(limit), limit }
    }
}

/// The last page that there can be: databases count rows in 63 bits.
const MAX_PAGE: u64 = 1 << 40;

/// Tasks of a board: what was put away and quick chats are not on it.
pub(super) fn on_board(workflow: &str) -> TaskFilter {
    TaskFilter { workflow_ids: vec![workflow.to_owned()], internal: Show::With, ..TaskFilter::default() }
}

/// Which task.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct ExternalId {
    external_id: String,
}

/// What goes with a task.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct Removal {
    /// Its parts too; otherwise they become tasks of their own.
    #[param(value_type = Option<bool>)]
    cascade: Option<String>,
}

/// Where to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Target {
    workflow_id: String,
    workflow_step_id: String,
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    position: i64,
}

/// From where to where.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct BulkMoveBody {
    source_workflow_id: String,
    /// Left out: all steps.
    source_step_id: Option<String>,
    target_workflow_id: String,
    target_step_id: String,
    /// Left out: all tasks there.
    #[schema(max_items = 1000)]
    task_ids: Option<Vec<String>>,
}

/// How many were moved.
#[derive(Debug, Serialize, ToSchema)]
struct Moved {
    moved_count: u64,
}

/// How many.
#[derive(Debug, Serialize, ToSchema)]
struct Count {
    count: u64,
}

/// Tasks.
#[derive(Debug, Serialize, ToSchema)]
struct TaskList {
    tasks: Vec<TaskView>,
    total: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A task that was asked for.
#[derive(Debug, Serialize, ToSchema)]
struct CreatedTask {
    #[serde(flatten)]
    task: TaskView,
    /// It was there already, by its external id.
    deduplicated: bool,
    /// Nothing of its making is left to be done.
    creation_complete: bool,
    /// What was asked for and is not done.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<&'static str>,
}

/// A task and where it is now.
#[derive(Debug, Serialize, ToSchema)]
struct MovedTask {
    task: TaskView,
    workflow_step: StepView,
}

/// Tasks with what they show of their sessions: one query for all.
pub(super) async fn views(services: &Services, scope: &Scope, tasks: Vec<Task>) -> Result<Vec<TaskView>, ApiError> {
    let ids: Vec<_> = tasks.iter().map(|task| task.id.clone()).collect();
    let mut summaries = services.platform.tasks.session_summaries(scope, &ids).await?;
    let view = |task: Task| {
        let sessions = summaries.remove(&task.id).unwrap_or_default();
        TaskView::new(task, sessions)
    };
    Ok(tasks.into_iter().map(view).collect())
}

async fn view(services: &Services, scope: &Scope, task: Task) -> Result<TaskView, ApiError> {
    let mut summaries = services.platform.tasks.session_summaries(scope, std::slice::from_ref(&task.id)).await?;
    let sessions = summaries.remove(&task.id).unwrap_or_default();
    Ok(TaskView::new(task, sessions))
}

async fn answer(services: &Services, scope: &Scope, task: Task) -> Result<HttpResponse, ApiError> {
    let version = task.version;
    Ok(versioned(StatusCode::OK, version, &view(services, scope, task).await?))
}

async fn list(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
    Query(query): Query<TaskListQuery>,
) -> Result<HttpResponse, ApiError> {
    let scope = scope(&request);
    let workspace = services.platform.workspaces.get(&scope, &id).await?;
    let (service, filter) = (&services.platform.tasks, query.filter(workspace.id)?);
    let (Page { items, next_cursor }, total) = match query.cursor.as_deref().filter(|cursor| !cursor.is_empty()) {
        None => service.list_at(&scope, &filter, query.part()).await?,
        Some(cursor) => {
            let page = request_of(query.page_size(), cursor)?;
            (service.list(&scope, &filter, &page).await?, service.count(&scope, &filter).await?)
        }
    };
    let tasks = views(&services, &scope, items).await?;
    Ok(HttpResponse::Ok().json(TaskList { tasks, total, next_cursor }))
}

async fn list_of_workflow(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
    Query(part): Query<Part>,
) -> Result<HttpResponse, ApiError> {
    let (service, scope) = (&services.platform.tasks, scope(&request));
    let workflow = services.platform.workflows.get(&scope, &id).await?;
    let filter = on_board(&workflow.id);
    let page = async |page| service.list(&scope, &filter, &page).await;
    let Listed { items, total, next_cursor } = part.read(page, async || service.count(&scope, &filter).await).await?;
    let tasks = views(&services, &scope, items).await?;
    Ok(HttpResponse::Ok().json(TaskList { tasks, total, next_cursor }))
}

async fn read(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let scope = scope(&request);
    let task = services.platform.tasks.get(&scope, &id).await?;
    answer(&services, &scope, task).await
}

async fn by_external_id(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
    Query(query): Query<ExternalId>,
) -> Result<HttpResponse, ApiError> {
    let scope = scope(&request);
    let task = services.platform.tasks.by_external_id(&scope, &id, &query.external_id).await?;
    answer(&services, &scope, task).await
}

async fn subtask_count(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let count = services.platform.tasks.subtask_count(&scope(&request), &id).await?;
    Ok(HttpResponse::Ok().json(Count { count }))
}

async fn create(services: web::Data<Services>, change: Change<NewTaskBody>) -> Result<HttpResponse, ApiError> {
    let (service, scope) = (services.platform.tasks.clone(), change.by.scope.clone());
    let new = change.body.new_task()?;
    let notice = new.launch.is_some().then_some(NO_AGENTS);
    let created = services.tasks.finish(async move { service.create(&change.by, &new).await }).await?;
    let Created { task, deduplicated } = created;
    // A new task has no sessions yet.
    let (version, task) = match deduplicated {
        true => (task.version, view(&services, &scope, task).await?),
        false => (task.version, TaskView::new(task, Default::default())),
    };
    let body = CreatedTask { task, deduplicated, creation_complete: true, notice };
    Ok(versioned(StatusCode::OK, version, &body))
}

async fn update(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<TaskBody>,
) -> Result<HttpResponse, ApiError> {
    let (service, scope) = (services.platform.tasks.clone(), change.by.scope.clone());
    let patch = change.body.patch()?;
    let work = async move { service.update(&change.by, &id, &patch, change.expected).await };
    let task = services.tasks.finish(work).await?;
    answer(&services, &scope, task).await
}

async fn remove(
    services: web::Data<Services>,
    id: web::Path<String>,
    Query(query): Query<Removal>,
    change: Change<Nothing>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.tasks.clone();
    let cascade = flag("cascade", query.cascade.as_deref())?;
    services.tasks.finish(async move { service.delete(&change.by, &id, cascade, change.expected).await }).await?;
    Ok(HttpResponse::Ok().json(DONE))
}

async fn move_to(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<Target>,
) -> Result<HttpResponse, ApiError> {
    let (service, scope) = (services.platform.tasks.clone(), change.by.scope.clone());
    let Target { workflow_id, workflow_step_id, position } = change.body;
    let work = async move {
        service.move_to(&change.by, &id, &workflow_id, &workflow_step_id, position, change.expected).await
    };
    let tasks::Moved { task, step } = services.tasks.finish(work).await?;
    let version = task.version;
    let body = MovedTask { task: view(&services, &scope, task).await?, workflow_step: step.into() };
    Ok(versioned(StatusCode::OK, version, &body))
}

async fn bulk_move(services: web::Data<Services>, change: Change<BulkMoveBody>) -> Result<HttpResponse, ApiError> {
    let service = services.platform.tasks.clone();
    let BulkMoveBody { source_workflow_id, source_step_id, target_workflow_id, target_step_id, task_ids } = change.body;
    let bulk = BulkMove {
        source_workflow_id,
        source_step_id: source_step_id.unwrap_or_default(),
        task_ids: task_ids.unwrap_or_default(),
        target_workflow_id,
        target_step_id,
    };
    let moved_count = services.tasks.finish(async move { service.bulk_move(&change.by, &bulk).await }).await?;
    Ok(HttpResponse::Ok().json(Moved { moved_count }))
}

async fn archive(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<Nothing>,
) -> Result<HttpResponse, ApiError> {
    set_archived(services, id, change, true).await
}

async fn unarchive(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<Nothing>,
) -> Result<HttpResponse, ApiError> {
    set_archived(services, id, change, false).await
}

async fn set_archived(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<Nothing>,
    archived: bool,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.tasks.clone();
    let work = async move { service.set_archived(&change.by, &id, archived, change.expected).await };
    services.tasks.finish(work).await?;
    Ok(HttpResponse::Ok().json(DONE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::query::read;

    #[test]
    fn a_numbered_page_that_is_none_counts_as_left_out() {
        for (query, offset, limit) in [
            ("", 0, 50),
            ("page=3&page_size=20", 40, 20),
            ("page=0&page_size=101", 0, 50),
            ("page=x&page_size=-1", 0, 50),
            ("page_size=100", 0, 100),
            ("page=99999999999999999999", 0, 50),
        ] {
            let query: TaskListQuery = read(query).unwrap();
            assert_eq!(query.part(), TaskQuery { offset, limit });
        }
    }

    #[test]
    fn flags_say_what_is_shown() {
        let filter = |query: &str| read::<TaskListQuery>(query).unwrap().filter("w".to_owned()).unwrap();
        let plain = filter("");
        assert_eq!((plain.archived, plain.ephemeral, plain.internal), (Show::Without, Show::Without, Show::With));
        let all = filter("include_archived=true&only_ephemeral=1&exclude_config=true&workflow_id=f&query=x");
        assert_eq!((all.archived, all.ephemeral, all.internal), (Show::With, Show::Only, Show::Without));
        assert_eq!((all.workflow_ids, all.text.as_deref()), (vec!["f".to_owned()], Some("x")));
    }
}
