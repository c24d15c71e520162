//! Lists of sessions, their turns, commits and snapshots.

use sea_orm::{
    ColumnTrait, EntityTrait, Order, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select,
    sea_query::{Expr, ExprTrait as _},
};

use super::{PlatformError, PlatformStore, Record, Work, listing::Listing, record, tasks::within};
use crate::{
    domain::platform::{
        Scope,
        cursor::List,
        page::{self, Page, PageRequest},
        session::{Session, SessionFilter, Turn},
        stats::{Commit, Snapshot},
        words::SessionState,
    },
    entities::{session_commit, session_snapshot, session_turn, task, task_session},
};

/// Sessions by the time of their making, the newest first, ids in order. `list` is what cursors belong to.
pub(super) fn listing(list: List, scope: &Scope, filter: &SessionFilter) -> Listing<task_session::Entity> {
    use task_session::Column;
    let tasks = page::ids(&filter.task_ids);
    let workspaces = within(scope, page::ids(&filter.workspace_ids));
    let mut select = task_session::Entity::find();
    let leading = match (tasks, workspaces) {
        (None, None) => None,
        (None, Some(workspaces)) => Some((Column::WorkspaceId, workspaces)),
        (Some(tasks), None) => Some((Column::TaskId, tasks)),
        (Some(tasks), Some(workspaces)) => {
            select = select.filter(Column::WorkspaceId.is_in(workspaces));
            Some((Column::TaskId, tasks))
        }
    };
    // Who names a task sees its sessions, whatever it is; its statistics only when it is shown (host-data.md §3).
    if filter.task_ids.is_empty() || list == List::CodeStats {
        select = select.filter(of_shown_task());
    }
    if !filter.states.is_empty() {
        let known = page::known(&filter.states, SessionState::of, SessionState::as_str);
        select = select.filter(Column::State.is_in(known));
    }
    Listing {
        list,
        select,
        order: vec![(Column::StartedAt, Order::Desc), (Column::Id, Order::Asc)],
        leading,
        long: vec![Column::ErrorMessage, Column::AgentProfileSnapshot, Column::ExecutorSnapshot, Column::Metadata],
    }
}

/// That the session's task neither sets the platform up nor is a run of an automation. One look by key a row.
fn of_shown_task() -> Expr {
    let shown = task::Entity::find()
        .select_only()
        .expr(Expr::value(1))
        .filter(
            Expr::col((task::Entity, task::Column::Id)).equals((task_session::Entity, task_session::Column::TaskId)),
        )
        .filter(task::Column::IsInternal.eq(false));
    Expr::exists(shown.into_query())
}

impl PlatformStore {
    /// A page of sessions.
    pub async fn sessions(
        &self,
        scope: &Scope,
        filter: &SessionFilter,
        page: &PageRequest,
    ) -> Result<Page<Session>, PlatformError> {
        self.records(&listing(List::Sessions, scope, filter), page).await
    }

    /// How many sessions the list has.
    pub async fn count_sessions(&self, scope: &Scope, filter: &SessionFilter) -> Result<u64, PlatformError> {
        self.count(&listing(List::Sessions, scope, filter)).await
    }

    /// The session that messages to a task go to.
    pub async fn primary_session(&self, scope: &Scope, task_id: &str) -> Result<Option<Session>, PlatformError> {
        let query = primary(task_id);
        let row = self.db.repeat(async || Ok::<_, PlatformError>(query.clone().one(self.db.reader()).await?)).await?;
        let session = row.map(Session::of).transpose()?;
        Ok(session.filter(|session| scope.sees(&session.workspace_id)))
    }

    /// A page of a session's turns, the oldest first.
    pub async fn turns(&self, session_id: &str, page: &PageRequest) -> Result<Page<Turn>, PlatformError> {
        self.records(&turns(session_id), page).await
    }

    /// How many turns a session has.
    pub async fn count_turns(&self, session_id: &str) -> Result<u64, PlatformError> {
        self.count(&turns(session_id)).await
    }

    /// A page of a session's commits, the newest first.
    pub async fn commits(&self, session_id: &str, page: &PageRequest) -> Result<Page<Commit>, PlatformError> {
        use session_commit::{Column, Entity};
        let listing = Listing {
            list: List::Commits,
            select: Entity::find(),
            order: vec![(Column::CreatedAt, Order::Desc), (Column::Id, Order::Asc)],
            leading: Some((Column::SessionId, vec![session_id.to_owned()])),
            long: vec![Column::CommitMessage],
        };
        self.records(&listing, page).await
    }

    /// A page of a session's snapshots, the newest first.
    pub async fn snapshots(&self, session_id: &str, page: &PageRequest) -> Result<Page<Snapshot>, PlatformError> {
        use session_snapshot::{Column, Entity};
        let listing = Listing {
            list: List::Snapshots,
            select: Entity::find(),
            order: vec![(Column::CreatedAt, Order::Desc), (Column::Id, Order::Asc)],
            leading: Some((Column::SessionId, vec![session_id.to_owned()])),
            long: vec![Column::Files],
        };
        self.records(&listing, page).await
    }

    /// How many rows a list has.
    pub(super) async fn count<E>(&self, listing: &Listing<E>) -> Result<u64, PlatformError>
    where
        E: EntityTrait,
        E::Model: sea_orm::ModelTrait<Entity = E> + Sync,
    {
        self.db.repeat(async || listing.count(self.db.reader()).await).await
    }
    /// A page of things.
    pub(super) async fn records<R: Record>(
        &self,
        listing: &Listing<R::Entity>,
        page: &PageRequest,
    ) -> Result<Page<R>, PlatformError>
    where
        R::Row: sea_orm::ModelTrait<Entity = R::Entity> + sea_orm::FromQueryResult,
    {
        let (rows, next_cursor) = self.db.repeat(async || listing.page(self.db.reader(), page).await).await?;
        Ok(Page { items: record::all_of(rows)?, next_cursor })
    }
}

fn primary(task_id: &str) -> Select<task_session::Entity> {
    use task_session::{Column, Entity};
    Entity::find()
        .filter(Column::TaskId.is_in(page::ids(&[task_id.to_owned()]).unwrap_or_default()))
        .filter(Column::IsPrimary.eq(true))
        .order_by_desc(Column::StartedAt)
        .limit(1)
}

pub(super) fn turns(session_id: &str) -> Listing<session_turn::Entity> {
    use session_turn::{Column, Entity};
    Listing {
        list: List::Turns,
        select: Entity::find(),
        order: vec![(Column::StartedAt, Order::Asc), (Column::Id, Order::Asc)],
        leading: Some((Column::SessionId, page::ids(&[session_id.to_owned()]).unwrap_or_default())),
        long: Vec::new(),
    }
}

impl Work {
    /// The primary session of a task, locked until the work is done.
    pub async fn primary_session(&self, task_id: &str) -> Result<Option<Session>, PlatformError> {
        let row = primary(task_id).lock_exclusive().one(self.transaction()).await?;
        Ok(row.map(Session::of).transpose()?)
    }

    /// The turn of a session that is not over, the newest.
    pub async fn open_turn(&self, session_id: &str) -> Result<Option<Turn>, PlatformError> {
        use session_turn::{Column, Entity};
        let query = Entity::find()
            .filter(Column::SessionId.eq(session_id))
            .filter(Column::CompletedAt.is_null())
            .order_by_desc(Column::StartedAt)
            .order_by_desc(Column::Id);
        let row = query.lock_exclusive().one(self.transaction()).await?;
        Ok(row.map(Turn::of).transpose()?)
    }

    /// The commit of a session with this hash.
    pub async fn commit_of(&self, session_id: &str, sha: &str) -> Result<Option<Commit>, PlatformError> {
        use session_commit::{Column, Entity};
        let query = Entity::find().filter(Column::SessionId.eq(session_id)).filter(Column::CommitSha.eq(sha));
        Ok(query.one(self.transaction()).await?.map(Commit::of).transpose()?)
    }
}
