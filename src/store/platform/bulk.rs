//! Many new rows at once, for databases that are filled rather than used: no events, no locks of single rows.
//!
//! What the rows say is the caller's part (`crate::platform::seed`); that they keep every rule of the domain is too.

use sea_orm::{ConnectionTrait, DatabaseTransaction, DbBackend, EntityTrait, IntoActiveModel, PaginatorTrait};

use super::{PlatformError, PlatformStore, Record, work_rows::task_repository_row};
use crate::{
    domain::platform::task::Task,
    entities::{agent, executor, task_repository, workspace},
};

/// Rows of one statement. Larger statements are no faster, and SQLite bounds their parameters.
const ROWS: usize = 200;

/// One transaction of new rows; dropped, none of them is kept.
pub struct Bulk(DatabaseTransaction);

impl PlatformStore {
    /// Begins a transaction for new rows.
    pub async fn bulk(&self) -> Result<Bulk, PlatformError> {
        Ok(Bulk(self.db.begin_write().await?))
    }

    /// Whether there is no workspace, agent or executor: everything else belongs to one.
    pub async fn is_empty(&self) -> Result<bool, PlatformError> {
        let reader = self.db.reader();
        let work = async || {
            let rows = workspace::Entity::find().count(reader).await?
                + agent::Entity::find().count(reader).await?
                + executor::Entity::find().count(reader).await?;
            Ok::<_, PlatformError>(rows == 0)
        };
        self.db.repeat(work).await
    }

    /// Has PostgreSQL count what its tables hold, so that its plans fit to many new rows at once; SQLite's plans need
    /// no counts.
    pub async fn count_rows(&self) -> Result<(), PlatformError> {
        let open = self.db.begin_write().await?;
        if open.get_database_backend() == DbBackend::Postgres {
            // It takes as long as there are rows.
            open.execute_unprepared("SET LOCAL statement_timeout = 0").await?;
            open.execute_unprepared("ANALYZE").await?;
        }
        Ok(open.commit().await?)
    }
}

impl Bulk {
    /// New rows. What they refer to must be there, or be earlier rows.
    pub async fn insert<R: Record>(&self, records: &[R]) -> Result<(), PlatformError> {
        for chunk in records.chunks(ROWS) {
            let rows = chunk.iter().map(|record| record.row().into_active_model());
            R::Entity::insert_many(rows).exec_without_returning(&self.0).await?;
        }
        Ok(())
    }

    /// New tasks and what they work on.
    pub async fn insert_tasks(&self, tasks: &[Task]) -> Result<(), PlatformError> {
        self.insert(tasks).await?;
        let rows = tasks.iter().flat_map(|task| {
            task.repositories.iter().map(|repository| task_repository_row(&task.id, repository).into_active_model())
        });
        let mut rows = rows.peekable();
        while rows.peek().is_some() {
            let chunk: Vec<_> = rows.by_ref().take(ROWS).collect();
            task_repository::Entity::insert_many(chunk).exec_without_returning(&self.0).await?;
        }
        Ok(())
    }

    /// Keeps them.
    pub async fn commit(self) -> Result<(), PlatformError> {
        Ok(self.0.commit().await?)
    }
}
