//! Lists of tasks, and what other tables say of them.

use std::collections::HashMap;

use sea_orm::{
    ColumnTrait, ConnectionTrait, DbBackend, EntityTrait, Order, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect,
    QueryTrait, Select,
    sea_query::{Expr, ExprTrait as _},
};

use super::{
    PlatformError, PlatformStore, Record, Work,
    listing::Listing,
    record,
    search::contains,
    work::CHUNK,
    work_rows::{task_repository, task_repository_row},
};
use crate::{
    domain::platform::{
        Scope,
        cursor::List,
        micros,
        page::{self, Page, PageRequest},
        refusal::{Kind, Refusal},
        session::{PrimarySession, SessionSummary},
        task::{Show, Task, TaskFilter, TaskRepository},
        text::may_be_id,
        words::{ReviewStatus, SessionState, TaskState},
    },
    entities::{task, task_repository as task_repository_entity, task_session},
};

/// A part of a list by its number, as boards ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskQuery {
    /// Rows that go before.
    pub offset: u64,
    /// Rows of the part at most.
    pub limit: u32,
}

/// Tasks by the time of their making, the newest first, ids in order (host-data.md §3).
pub(super) fn listing(backend: DbBackend, scope: &Scope, filter: &TaskFilter) -> Listing<task::Entity> {
    use task::Column;
    let workspaces = within(scope, page::ids(&filter.workspace_ids));
    let workflows = page::ids(&filter.workflow_ids);
    let mut select = task::Entity::find();
    let (mut leading, mut others) = (None, Vec::new());
    match filter.parent_id.as_deref() {
        None => {}
        Some("") => select = select.filter(Column::ParentId.is_null()),
        Some(parent) => others.push((Column::ParentId, Some(page::ids(&[parent.to_owned()]).unwrap_or_default()))),
    }
    others.extend([(Column::WorkflowId, workflows), (Column::WorkspaceId, workspaces)]);
    for (column, values) in others.into_iter().filter_map(|(column, values)| Some((column, values?))) {
        if leading.is_none() {
            leading = Some((column, values));
        } else {
            select = select.filter(column.is_in(values));
        }
    }
    if !filter.states.is_empty() {
        let known = page::known(&filter.states, TaskState::of, TaskState::as_str);
        select = select.filter(Column::State.is_in(known));
    }
    for (show, shown) in [
        (filter.archived, [Column::ArchivedAt.is_not_null(), Column::ArchivedAt.is_null()]),
        (filter.ephemeral, [Column::IsEphemeral.eq(true), Column::IsEphemeral.eq(false)]),
        (filter.internal, [Column::IsInternal.eq(true), Column::IsInternal.eq(false)]),
    ] {
        let [only, without] = shown;
        select = match show {
            Show::With => select,
            Show::Only => select.filter(only),
            Show::Without => select.filter(without),
        };
    }
    let select = about(backend, select, filter);
    Listing {
        list: List::Tasks,
        select,
        order: vec![(Column::CreatedAt, Order::Desc), (Column::Id, Order::Asc)],
        leading,
        long: vec![Column::Description, Column::Metadata],
    }
}

fn about(backend: DbBackend, mut select: Select<task::Entity>, filter: &TaskFilter) -> Select<task::Entity> {
    if let Some(repository) = &filter.repository_id {
        let works_on = task_repository_entity::Entity::find()
            .filter(
                task_repository_entity::Column::RepositoryId
                    .is_in(page::ids(&[repository.to_owned()]).unwrap_or_default()),
            )
            .select_only()
            .column(task_repository_entity::Column::TaskId);
        select = select.filter(task::Column::Id.in_subquery(works_on.into_query()));
    }
    if let Some(text) = filter.text.as_deref().filter(|text| !text.is_empty()) {
        let columns = [task::Column::Title, task::Column::Description, task::Column::Identifier];
        select = select.filter(contains::<task::Entity>(backend, &columns, text));
    }
    select
}

/// The wanted workspaces that the scope sees.
pub(super) fn within(scope: &Scope, wanted: Option<Vec<String>>) -> Option<Vec<String>> {
    match (scope, wanted) {
        (Scope::All, wanted) => wanted,
        (Scope::Workspaces(seen), None) => Some(page::ids(seen).unwrap_or_default()),
        (Scope::Workspaces(_), Some(wanted)) => Some(wanted.into_iter().filter(|id| scope.sees(id)).collect()),
    }
}

impl PlatformStore {
    /// One task with what it works on.
    pub async fn task(&self, scope: &Scope, id: &str) -> Result<Task, PlatformError> {
        let task: Task = self.find(scope, id).await?;
        let work = async || Ok::<_, PlatformError>(with_repositories(self.db.reader(), vec![task.clone()]).await?);
        let mut tasks = self.db.repeat(work).await?;
        tasks.pop().ok_or_else(|| Refusal::not_found(Kind::Task, id).into())
    }

    /// A page of tasks with what they work on: two queries, whatever its length.
    pub async fn tasks(
        &self,
        scope: &Scope,
        filter: &TaskFilter,
        page: &PageRequest,
    ) -> Result<Page<Task>, PlatformError> {
        let listing = self.task_listing(scope, filter);
        let work = async || {
            let (rows, next_cursor) = listing.page(self.db.reader(), page).await?;
            let items = with_repositories(self.db.reader(), record::all_of(rows)?).await?;
            Ok(Page { items, next_cursor })
        };
        self.db.repeat(work).await
    }

    /// A part of the list by its number, bounded in bytes as every page is, and how many tasks the whole list has.
    pub async fn tasks_at(
        &self,
        scope: &Scope,
        filter: &TaskFilter,
        part: TaskQuery,
    ) -> Result<(Page<Task>, u64), PlatformError> {
        let listing = self.task_listing(scope, filter);
        let work = async || {
            let connection = self.db.reader();
            let total = listing.count(connection).await?;
            let (rows, next_cursor) = listing.page_at(connection, part.offset, part.limit).await?;
            let items = with_repositories(connection, record::all_of(rows)?).await?;
            Ok::<_, PlatformError>((Page { items, next_cursor }, total))
        };
        self.db.repeat(work).await
    }

    /// How many tasks such a list has.
    pub async fn count_tasks(&self, scope: &Scope, filter: &TaskFilter) -> Result<u64, PlatformError> {
        self.count(&self.task_listing(scope, filter)).await
    }

    fn task_listing(&self, scope: &Scope, filter: &TaskFilter) -> Listing<task::Entity> {
        listing(self.db.reader().get_database_backend(), scope, filter)
    }

    /// The task of a workspace with this external id.
    pub async fn task_by_external_id(
        &self,
        scope: &Scope,
        workspace_id: &str,
        external_id: &str,
    ) -> Result<Task, PlatformError> {
        let not_found = || Refusal::not_found(Kind::Task, external_id);
        if !scope.sees(workspace_id) || external_id.contains('\0') || !may_be_id(workspace_id) {
            return Err(not_found().into());
        }
        let query = by_external_id(workspace_id, external_id);
        let work = async || {
            let row = query.clone().one(self.db.reader()).await?;
            let tasks = row.map(Task::of).transpose()?.into_iter().collect();
            Ok::<_, PlatformError>(with_repositories(self.db.reader(), tasks).await?.pop())
        };
        Ok(self.db.repeat(work).await?.ok_or_else(not_found)?)
    }

    /// The parts of these tasks as they are now, the oldest first for each `CHUNK` of them. Nobody waits for this.
    pub async fn children_of(&self, ids: &[&str]) -> Result<Vec<Task>, PlatformError> {
        self.db.repeat(async || children(self.db.reader(), ids, |query| query).await).await
    }

    /// How many parts a task has.
    pub async fn subtask_count(&self, id: &str) -> Result<u64, PlatformError> {
        let Some(ids) = page::ids(&[id.to_owned()]) else { return Ok(0) };
        let query = task::Entity::find().filter(task::Column::ParentId.is_in(ids));
        self.db.repeat(async || Ok::<_, PlatformError>(query.clone().count(self.db.reader()).await?)).await
    }

    /// What each of these tasks shows of its sessions: one query. Tasks without sessions are left out.
    pub async fn session_summaries(
        &self,
        scope: &Scope,
        ids: &[String],
    ) -> Result<HashMap<String, SessionSummary>, PlatformError> {
        let ids = page::ids(ids).unwrap_or_default();
        self.db.repeat(async || summaries(self.db.reader(), scope, &ids).await).await
    }
}

impl Work {
    /// One task with what it works on, locked until the work is done.
    pub async fn task(&self, id: &str) -> Result<Task, PlatformError> {
        let task = self.get(id).await?;
        let mut tasks = with_repositories(self.transaction(), vec![task]).await?;
        tasks.pop().ok_or_else(|| Refusal::not_found(Kind::Task, id).into())
    }

    /// The task of a workspace with this external id.
    pub async fn task_by_external_id(&self, workspace: &str, external: &str) -> Result<Option<Task>, PlatformError> {
        let row = by_external_id(workspace, external).one(self.transaction()).await?;
        let tasks = row.map(Task::of).transpose()?.into_iter().collect();
        Ok(with_repositories(self.transaction(), tasks).await?.pop())
    }

    /// A new task with what it works on.
    pub async fn insert_task(&self, task: &Task) -> Result<(), PlatformError> {
        self.insert(task).await?;
        self.insert_repositories(task).await
    }

    /// Replaces what a task works on.
    pub async fn replace_repositories(&self, task: &Task) -> Result<(), PlatformError> {
        use task_repository_entity::{Column, Entity};
        Entity::delete_many().filter(Column::TaskId.eq(&task.id)).exec(self.transaction()).await?;
        self.insert_repositories(task).await
    }

    async fn insert_repositories(&self, task: &Task) -> Result<(), PlatformError> {
        if task.repositories.is_empty() {
            return Ok(());
        }
        let rows = task
            .repositories
            .iter()
            .map(|repository| task_repository_entity::ActiveModel::from(task_repository_row(&task.id, repository)));
        task_repository_entity::Entity::insert_many(rows).exec_without_returning(self.transaction()).await?;
        Ok(())
    }

    /// The parts of these tasks, the oldest first for each `CHUNK` of them, locked until the work is done.
    pub async fn children_of(&self, ids: &[&str]) -> Result<Vec<Task>, PlatformError> {
        children(self.transaction(), ids, Select::lock_exclusive).await
    }

    /// These tasks are parts of nothing from now on. They must have been locked.
    pub async fn make_roots(&self, ids: &[&str]) -> Result<(), PlatformError> {
        let now = micros(self.now());
        for ids in ids.chunks(CHUNK) {
            let update = task::Entity::update_many()
                .col_expr(task::Column::ParentId, Expr::value(Option::<String>::None))
                .col_expr(task::Column::UpdatedAt, Expr::value(now))
                .col_expr(task::Column::Version, Expr::col(task::Column::Version).add(1));
            update.filter(task::Column::Id.is_in(ids.iter().copied())).exec(self.transaction()).await?;
        }
        Ok(())
    }

    /// These tasks go, and what belongs to them.
    pub async fn delete_tasks(&self, ids: &[&str]) -> Result<(), PlatformError> {
        for ids in ids.chunks(CHUNK) {
            let these = task::Entity::delete_many().filter(task::Column::Id.is_in(ids.iter().copied()));
            these.exec(self.transaction()).await?;
        }
        Ok(())
    }

    /// Whether a task has parts.
    pub async fn has_children(&self, id: &str) -> Result<bool, PlatformError> {
        self.any_task(task::Column::ParentId, id).await
    }

    /// Whether a workflow, step or the like has tasks, those put away included.
    pub(super) async fn any_task(&self, column: task::Column, id: &str) -> Result<bool, PlatformError> {
        let query = task::Entity::find().filter(column.eq(id)).select_only().column(task::Column::Id).limit(1);
        Ok(query.into_tuple::<String>().one(self.transaction()).await?.is_some())
    }

    /// At most `limit` tasks of a workflow that were not put away, of one step of it when it is given, of those with
    /// these ids when there are any given; the newest first, locked until the work is done.
    pub async fn tasks_of_workflow(
        &self,
        workflow_id: &str,
        step_id: Option<&str>,
        ids: Option<&[&str]>,
        limit: u64,
    ) -> Result<Vec<Task>, PlatformError> {
        let query = task::Entity::find()
            .filter(task::Column::WorkflowId.eq(workflow_id))
            .filter(task::Column::ArchivedAt.is_null())
            .apply_if(step_id, |query, step| query.filter(task::Column::WorkflowStepId.eq(step)))
            .apply_if(ids, |query, ids| query.filter(task::Column::Id.is_in(ids.iter().copied())))
            .limit(limit)
            .order_by_desc(task::Column::CreatedAt)
            .order_by_asc(task::Column::Id)
            .lock_exclusive();
        let rows = query.all(self.transaction()).await?;
        with_repositories(self.transaction(), record::all_of(rows)?).await
    }

    /// What each of these tasks shows of its sessions: one query. Tasks without sessions are left out.
    pub async fn session_summaries(&self, ids: &[String]) -> Result<HashMap<String, SessionSummary>, PlatformError> {
        summaries(self.transaction(), self.scope(), ids).await
    }

    /// What a task shows of its sessions.
    pub async fn session_summary(&self, id: &str) -> Result<SessionSummary, PlatformError> {
        Ok(summaries(self.transaction(), self.scope(), &[id.to_owned()]).await?.remove(id).unwrap_or_default())
    }
}

async fn children(
    connection: &impl ConnectionTrait,
    ids: &[&str],
    locked: fn(Select<task::Entity>) -> Select<task::Entity>,
) -> Result<Vec<Task>, PlatformError> {
    let mut rows = Vec::new();
    for ids in ids.chunks(CHUNK) {
        let query = task::Entity::find()
            .filter(task::Column::ParentId.is_in(ids.iter().copied()))
            .order_by_asc(task::Column::CreatedAt)
            .order_by_asc(task::Column::Id);
        rows.extend(locked(query).all(connection).await?);
    }
    with_repositories(connection, record::all_of(rows)?).await
}

fn by_external_id(workspace_id: &str, external_id: &str) -> Select<task::Entity> {
    task::Entity::find()
        .filter(task::Column::WorkspaceId.eq(workspace_id))
        .filter(task::Column::ExternalId.eq(external_id))
}

/// Fills in what the tasks work on, by one query for all of them (for each [`CHUNK`] of a long list).
async fn with_repositories(
    connection: &impl ConnectionTrait,
    mut tasks: Vec<Task>,
) -> Result<Vec<Task>, PlatformError> {
    use task_repository_entity::{Column, Entity};
    if tasks.is_empty() {
        return Ok(tasks);
    }
    let mut found: HashMap<String, Vec<TaskRepository>> = HashMap::new();
    for chunk in tasks.chunks(CHUNK) {
        let rows = Entity::find()
            .filter(Column::TaskId.is_in(chunk.iter().map(|task| task.id.as_str())))
            .order_by_asc(Column::TaskId)
            .order_by_asc(Column::Position)
            .order_by_asc(Column::Id)
            .all(connection)
            .await?;
        for row in rows {
            found.entry(row.task_id.clone()).or_default().push(task_repository(row));
        }
    }
    for task in &mut tasks {
        task.repositories = found.remove(&task.id).unwrap_or_default();
    }
    Ok(tasks)
}

async fn summaries(
    connection: &impl ConnectionTrait,
    scope: &Scope,
    ids: &[String],
) -> Result<HashMap<String, SessionSummary>, PlatformError> {
    use task_session::Column;
    let mut found: HashMap<String, SessionSummary> = HashMap::new();
    if ids.is_empty() {
        return Ok(found);
    }
    let select = match within(scope, None) {
        None => task_session::Entity::find(),
        Some(workspaces) => task_session::Entity::find().filter(Column::WorkspaceId.is_in(workspaces)),
    };
    let select = select.select_only().columns([
        Column::TaskId,
        Column::Id,
        Column::State,
        Column::ReviewStatus,
        Column::ExecutorId,
        Column::IsPrimary,
    ]);
    let mut rows: Vec<(String, String, String, Option<String>, String, bool)> = Vec::new();
    for ids in ids.chunks(CHUNK) {
        rows.extend(select.clone().filter(Column::TaskId.is_in(ids)).into_tuple().all(connection).await?);
    }
    for (task, id, state, review, executor_id, is_primary) in rows {
        let summary = found.entry(task).or_default();
        summary.count += 1;
        if is_primary {
            let state = record::word("the state of a session", &state, SessionState::of)?;
            let of = |text: &str| record::word("the review of a session", text, ReviewStatus::of);
            let review_status = review.as_deref().map(of).transpose()?;
            summary.primary = Some(PrimarySession { id, state, review_status, executor_id });
        }
    }
    Ok(found)
}
