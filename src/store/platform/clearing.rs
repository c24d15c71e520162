//! Emptying what holds very many rows a little at a time, so that the statement that deletes it has little to take
//! along. Which of them, and what is told, is the services' decision (`crate::platform::clearing`).
//!
//! A deletion that has begun is noted, so that one that is cut off can be finished: of a workspace in its row, of
//! anything else as a fact about this database (docs/decisions/0028-notes-of-deletions.md).

use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, ConnectionTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
    Select,
    sea_query::{ExprTrait as _, OnConflict, SelectStatement},
};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::{PlatformError, PlatformStore, Work, record};
use crate::{
    domain::platform::{micros, task::Task},
    entities::{
        instance_setting, session_commit, session_message, session_snapshot, session_turn, task, task_session,
        vault_entry, workspace,
    },
    store::db::DbFault,
};

/// So many rows are reckoned for a task, and for a session.
const ROWS_OF_TASK: u64 = 20;

/// Begins the keys of notes; the id of what is being deleted follows.
const NOTE: &str = "deleting:";

/// Does something with each table of which a session has many rows.
macro_rules! of_sessions {
    ($each:ident) => {
        $each!(session_message);
        $each!(session_turn);
        $each!(session_commit);
        $each!(session_snapshot);
    };
}

/// What is to be emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holder<'a> {
    /// The tasks of a workspace, with all that belongs to them.
    Workspace(&'a str),
    /// What is in the sessions of a task; `true`: in those of its parts too.
    Task(&'a str, bool),
    /// What is in the sessions of a task and of those of its parts that have this source.
    Owned(&'a str, &'a str),
    /// What is in a session.
    Session(&'a str),
}

impl Holder<'_> {
    /// Where its deletion is noted; none of a workspace, whose row has a mark.
    fn note(self) -> Option<String> {
        match self {
            Self::Workspace(_) => None,
            Self::Task(id, _) | Self::Owned(id, _) | Self::Session(id) => Some(format!("{NOTE}{id}")),
        }
    }
}

/// What a note says.
#[derive(Serialize, Deserialize)]
struct Note<'a> {
    /// When something was deleted last, in microseconds since 1970.
    at: i64,
    #[serde(borrow)]
    holder: Holder<'a>,
}

impl<'a> Note<'a> {
    fn read(text: &'a str) -> Result<Self, DbFault> {
        let unreadable = |error| DbFault::Statement(format!("the note of a deletion is not what was stored: {error}"));
        serde_json::from_str(text).map_err(unreadable)
    }
}

/// A deletion that was begun, as it is noted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished(String);

impl Unfinished {
    /// What is being deleted.
    pub fn holder(&self) -> Result<Holder<'_>, DbFault> {
        Note::read(&self.0).map(|note| note.holder)
    }
}

/// What one transaction did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cleared {
    /// Tasks that are gone.
    pub tasks: Vec<Task>,
    /// Whether there may be more to do.
    pub more: bool,
}

impl PlatformStore {
    /// Some workspaces whose deletion was begun.
    pub async fn workspaces_being_deleted(&self) -> Result<Vec<String>, PlatformError> {
        use workspace::{Column, Entity};
        let query = Entity::find().select_only().column(Column::Id).filter(Column::Deleting.eq(true)).limit(10);
        self.db.repeat(async || Ok(query.clone().into_tuple().all(self.db.reader()).await?)).await
    }

    /// Deletions of anything else that were begun, and in which nothing was deleted since `before`.
    pub async fn unfinished_deletions(&self, before: OffsetDateTime) -> Result<Vec<Unfinished>, PlatformError> {
        use instance_setting::{Column, Entity};
        let query = Entity::find().select_only().column(Column::Value).filter(Column::Key.starts_with(NOTE));
        let query = query.order_by_asc(Column::Key);
        let read = async || Ok::<_, PlatformError>(query.clone().into_tuple::<String>().all(self.db.reader()).await?);
        let mut notes = self.db.repeat(read).await?;
        notes.retain(|text| match Note::read(text) {
            Ok(note) => note.at < micros(before),
            Err(error) => {
                tracing::error!(%error, "a deletion that was cut off is not finished");
                false
            }
        });
        Ok(notes.into_iter().map(Unfinished).collect())
    }

    /// What is noted of the deletion of what this holder is.
    pub async fn unfinished_deletion(&self, holder: Holder<'_>) -> Result<Option<Unfinished>, PlatformError> {
        let Some(key) = holder.note() else { return Ok(None) };
        let query = instance_setting::Entity::find_by_id(key);
        let read = async || Ok::<_, PlatformError>(query.clone().one(self.db.reader()).await?);
        Ok(self.db.repeat(read).await?.map(|row| Unfinished(row.value)))
    }
}

impl Work {
    /// Deletes some `rows` rows of what the holder holds, what is in sessions first.
    pub async fn clear_some(&self, holder: Holder<'_>, rows: u64) -> Result<Cleared, PlatformError> {
        let Holder::Workspace(id) = holder else {
            let left = self.clear_sessions(sessions_of(holder), rows).await?;
            return Ok(Cleared { tasks: Vec::new(), more: left == 0 });
        };
        let connection = self.transaction();
        let some = rows.div_ceil(ROWS_OF_TASK);
        // The newest first: parts are seldom older than what they are parts of.
        let tasks = task::Entity::find().filter(task::Column::WorkspaceId.eq(id));
        let tasks = tasks.order_by_desc(task::Column::CreatedAt).order_by_asc(task::Column::Id).limit(some);
        let tasks = tasks.lock_exclusive().all(connection).await?;
        if tasks.is_empty() {
            return Ok(Cleared::default());
        }
        let ids: Vec<_> = tasks.iter().map(|task| task.id.as_str()).collect();
        let sessions = task_session::Entity::find().select_only().column(task_session::Column::Id).limit(some);
        let sessions = sessions.filter(task_session::Column::TaskId.is_in(ids.iter().copied()));
        let sessions: Vec<String> = sessions.into_tuple().all(connection).await?;
        let these = task_session::Entity::find().select_only().column(task_session::Column::Id);
        let these = these.filter(task_session::Column::Id.is_in(&sessions));
        let mut cleared = Cleared { tasks: Vec::new(), more: true };
        if self.clear_sessions(these, rows).await? == 0 {
            return Ok(cleared);
        }
        let were_all = (sessions.len() as u64) < some;
        task_session::Entity::delete_many().filter(task_session::Column::Id.is_in(sessions)).exec(connection).await?;
        if were_all {
            task::Entity::delete_many().filter(task::Column::Id.is_in(ids)).exec(connection).await?;
            cleared.tasks = record::all_of(tasks)?;
        }
        Ok(cleared)
    }

    /// Notes that the holder is being deleted, and that something was just now.
    pub async fn note_deletion(&self, holder: Holder<'_>) -> Result<(), PlatformError> {
        use instance_setting::{ActiveModel, Column, Entity};
        let Some(key) = holder.note() else { return Ok(()) };
        let value = record::json(&Note { at: micros(self.now()), holder });
        let row = ActiveModel { key: Set(key), value: Set(value) };
        let overwrite = OnConflict::column(Column::Key).update_column(Column::Value).to_owned();
        Entity::insert(row).on_conflict(overwrite).exec_without_returning(self.transaction()).await?;
        Ok(())
    }

    /// The holder is gone.
    pub async fn forget_deletion(&self, holder: Holder<'_>) -> Result<(), PlatformError> {
        if let Some(key) = holder.note() {
            instance_setting::Entity::delete_by_id(key).exec(self.transaction()).await?;
        }
        Ok(())
    }

    /// The vault's secrets of a workspace go, and with them who may reveal them.
    pub async fn delete_secrets_of(&self, workspace_id: &str) -> Result<(), PlatformError> {
        use vault_entry::{Column, Entity};
        Entity::delete_many().filter(Column::WorkspaceId.eq(workspace_id)).exec(self.transaction()).await?;
        Ok(())
    }

    /// Deletes at most `rows` rows of these sessions; how many more might have been.
    async fn clear_sessions(&self, sessions: Select<task_session::Entity>, rows: u64) -> Result<u64, PlatformError> {
        let (connection, sessions) = (self.transaction(), sessions.into_query());
        let mut left = rows;
        macro_rules! delete {
            ($table:ident) => {{
                use $table::{Column, Entity};
                let some = Entity::find().select_only().column(Column::Id).limit(left);
                let some = some.filter(Column::SessionId.in_subquery(sessions.clone())).into_query();
                left -=
                    Entity::delete_many().filter(Column::Id.in_subquery(some)).exec(connection).await?.rows_affected;
                if left == 0 {
                    return Ok(0);
                }
            }};
        }
        of_sessions!(delete);
        Ok(left)
    }

    /// Whether the holder's sessions have more than `rows` rows of one kind; or a workspace more tasks or sessions.
    pub async fn is_large(&self, holder: Holder<'_>, rows: u64) -> Result<bool, PlatformError> {
        let connection = self.transaction();
        if let Holder::Workspace(id) = holder {
            let tasks = task::Entity::find().select_only().column(task::Column::Id);
            let tasks = tasks.filter(task::Column::WorkspaceId.eq(id));
            if more_than(connection, tasks, rows).await? || more_than(connection, sessions_of(holder), rows).await? {
                return Ok(true);
            }
        }
        let sessions: SelectStatement = sessions_of(holder).into_query();
        macro_rules! look {
            ($table:ident) => {{
                use $table::{Column, Entity};
                let found = Entity::find().select_only().column(Column::Id);
                let found = found.filter(Column::SessionId.in_subquery(sessions.clone()));
                if more_than(connection, found, rows).await? {
                    return Ok(true);
                }
            }};
        }
        of_sessions!(look);
        Ok(false)
    }
}

fn sessions_of(holder: Holder<'_>) -> Select<task_session::Entity> {
    use task_session::{Column, Entity};
    let sessions = Entity::find().select_only().column(Column::Id);
    match holder {
        Holder::Workspace(id) => sessions.filter(Column::WorkspaceId.eq(id)),
        Holder::Session(id) => sessions.filter(Column::Id.eq(id)),
        Holder::Task(id, false) => sessions.filter(Column::TaskId.eq(id)),
        Holder::Task(id, true) => {
            sessions.filter(Column::TaskId.eq(id).or(Column::TaskId.in_subquery(parts(id, None))))
        }
        Holder::Owned(id, source) => {
            sessions.filter(Column::TaskId.eq(id).or(Column::TaskId.in_subquery(parts(id, Some(source)))))
        }
    }
}

/// Ids of the parts of a task, of all or of those with a source.
fn parts(id: &str, source: Option<&str>) -> SelectStatement {
    use task::{Column, Entity};
    let parts = Entity::find().select_only().column(Column::Id).filter(Column::ParentId.eq(id));
    match source {
        None => parts.into_query(),
        Some(source) => parts.filter(Column::Source.eq(source)).into_query(),
    }
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
