//! Bringing the schema up to date at the start of the host: refuses what a newer host wrote, applies what is missing.
//!
//! The steps themselves are the crate `migration`'s.

use std::time::Duration;

use migration::{Migrator, MigratorTrait};
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DbErr, RuntimeErr,
    sqlx::postgres::{PgConnectOptions, PgPoolOptions},
};

use super::{
    fault::{Kind, driver_error},
    open::{ConnectError, lock_wait},
};

/// Key of the advisory lock that two hosts on one PostgreSQL database take in turn; any number that is ours.
pub(super) const SCHEMA_LOCK: i64 = 0x6b61_6e64_6576;

/// Steps of any length are lawful here: only the start of the host waits for them. Another one's lock is waited for
/// like any statement.
pub(super) async fn bring_up_to_date(
    writer: &DatabaseConnection,
    server: Option<&PgConnectOptions>,
    deadline: Duration,
) -> Result<(), ConnectError> {
    let Some(server) = server else {
        return migrate(writer).await.map_err(|error| describe(error, ConnectError::ReadOnlyFile));
    };
    let on_server = |error| describe(error, ConnectError::ReadOnlyServer);
    let single = single_connection(server, lock_wait(deadline)).await.map_err(on_server)?;
    let result = migrate(&single).await.map_err(on_server);
    single.close().await.map_err(|error| on_server(error.into()))?;
    result
}

/// A connection whose statements may take long, with the lock on the schema. It is given up by closing.
async fn single_connection(server: &PgConnectOptions, lock_wait: Duration) -> Result<DatabaseConnection, StepError> {
    let pool = PgPoolOptions::new().max_connections(1).idle_timeout(None).max_lifetime(None);
    let pool =
        pool.connect_with(server.clone()).await.map_err(|error| DbErr::Conn(RuntimeErr::SqlxError(error.into())))?;
    let single = DatabaseConnection::from(pool);
    let wait = lock_wait.as_millis().max(1);
    single.execute_unprepared(&format!("SET lock_timeout = {wait}")).await?;
    single.execute_unprepared(&format!("SELECT pg_advisory_lock({SCHEMA_LOCK})")).await?;
    Ok(single)
}

enum StepError {
    Newer(String),
    Database(DbErr),
}

impl From<DbErr> for StepError {
    fn from(error: DbErr) -> Self {
        Self::Database(error)
    }
}

async fn migrate(connection: &DatabaseConnection) -> Result<(), StepError> {
    Migrator::install(connection).await?;
    let applied = Migrator::get_migration_models(connection).await?;
    let known = Migrator::migrations();
    let unknown = applied.into_iter().find(|row| !known.iter().any(|step| step.name() == row.version));
    if let Some(row) = unknown {
        return Err(StepError::Newer(row.version));
    }
    Ok(Migrator::up(connection, None).await?)
}

fn describe(error: StepError, read_only: fn(String) -> ConnectError) -> ConnectError {
    let error = match error {
        StepError::Newer(step) => return ConnectError::Newer(step),
        StepError::Database(error) => error,
    };
    match driver_error(&error).map(Kind::of) {
        Some(Kind::Locked) => ConnectError::Locked(error.to_string()),
        Some(Kind::ReadOnly) => read_only(error.to_string()),
        Some(Kind::Lost) => ConnectError::Unreachable(error.to_string()),
        _ => ConnectError::Migration(error.to_string()),
    }
}
