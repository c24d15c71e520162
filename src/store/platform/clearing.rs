//! Emptying a workspace a little at a time, so that the statement that deletes it has little to take along.

use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select,
};

use super::{PlatformError, PlatformStore, Work};
use crate::entities::{session_commit, session_message, session_snapshot, session_turn, task, task_session};

/// So many rows are reckoned for a task, and for a session.
const ROWS_OF_TASK: u64 = 20;

/// Does something with each table of which a session has many rows.
macro_rules! of_sessions {
    ($each:ident) => {
        $each!(session_message);
        $each!(session_turn);
        $each!(session_commit);
        $each!(session_snapshot);
    };
}

impl PlatformStore {
    /// Deletes the tasks of a workspace with all that belongs to them, what is in them first. Each transaction deletes
    /// some `rows` rows and has `timing.database_timeout` for itself; others write between two of them.
    pub async fn clear_workspace(&self, id: &str, rows: u64) -> Result<(), PlatformError> {
        while self.db.repeat(async || self.clear_some(id, rows).await).await? {}
        Ok(())
    }

    /// Whether there may be more.
    async fn clear_some(&self, workspace_id: &str, rows: u64) -> Result<bool, PlatformError> {
        let open = self.db.begin_write().await?;
        let some = rows.div_ceil(ROWS_OF_TASK);
        // The newest first: parts are seldom older than what they are parts of.
        let tasks = tasks_of(workspace_id).order_by_desc(task::Column::CreatedAt).limit(some);
        let tasks: Vec<String> = tasks.into_tuple().all(&open).await?;
        if tasks.is_empty() {
            return Ok(false);
        }
        let sessions = task_session::Entity::find().select_only().column(task_session::Column::Id).limit(some);
        let sessions = sessions.filter(task_session::Column::TaskId.is_in(&tasks));
        let sessions: Vec<String> = sessions.into_tuple().all(&open).await?;
        let mut left = rows;
        macro_rules! delete {
            ($table:ident) => {{
                use $table::{Column, Entity};
                let some = Entity::find().select_only().column(Column::Id).limit(left);
                let some = some.filter(Column::SessionId.is_in(&sessions)).into_query();
                left -= Entity::delete_many().filter(Column::Id.in_subquery(some)).exec(&open).await?.rows_affected;
                if left == 0 {
                    open.commit().await?;
                    return Ok(true);
                }
            }};
        }
        of_sessions!(delete);
        let were_all = (sessions.len() as u64) < some;
        task_session::Entity::delete_many().filter(task_session::Column::Id.is_in(sessions)).exec(&open).await?;
        if were_all {
            task::Entity::delete_many().filter(task::Column::Id.is_in(tasks)).exec(&open).await?;
        }
        open.commit().await?;
        Ok(true)
    }
}

impl Work {
    /// Whether a workspace has more than `rows` tasks, or its sessions more of one kind of row.
    pub async fn is_large(&self, workspace_id: &str, rows: u64) -> Result<bool, PlatformError> {
        let connection = self.transaction();
        if more_than(connection, tasks_of(workspace_id), rows).await?
            || more_than(connection, sessions_of(workspace_id), rows).await?
        {
            return Ok(true);
        }
        macro_rules! look {
            ($table:ident) => {{
                use $table::{Column, Entity};
                let found = Entity::find().select_only().column(Column::Id);
                let found = found.filter(Column::SessionId.in_subquery(sessions_of(workspace_id).into_query()));
                if more_than(connection, found, rows).await? {
                    return Ok(true);
                }
            }};
        }
        of_sessions!(look);
        Ok(false)
    }
}

fn tasks_of(workspace_id: &str) -> Select<task::Entity> {
    use task::{Column, Entity};
    Entity::find().select_only().column(Column::Id).filter(Column::WorkspaceId.eq(workspace_id))
}

fn sessions_of(workspace_id: &str) -> Select<task_session::Entity> {
    use task_session::{Column, Entity};
    Entity::find().select_only().column(Column::Id).filter(Column::WorkspaceId.eq(workspace_id))
}

/// Looks at no more than it must.
async fn more_than<E: EntityTrait>(
    connection: &impl ConnectionTrait,
    select: Select<E>,
    rows: u64,
) -> Result<bool, PlatformError>
where
    E::Model: Sync,
{
    Ok(select.limit(rows + 1).count(connection).await? > rows)
}
