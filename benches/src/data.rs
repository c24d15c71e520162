//! Databases with 100 000 tasks and a million messages, and the bare way into them: a pool of the driver and statements
//! as text.
//!
//! The SQLite file is made once below the output folder. PostgreSQL is the server at `KANDEV_TEST_POSTGRES` (as
//! `scripts/with-postgres.sh` sets it); its database is made there once too, and without a server its lines are left
//! out.

use std::{convert::Infallible, fs, path::Path};

use kandev_host::{
    config::{self, Config},
    domain::platform::{Scope, page::PageRequest},
    pace,
    platform::{
        Platform,
        seed::{Plan, UNTIL, seed},
    },
    store::{db::Db, platform::PlatformStore},
};
use sea_orm::sqlx::{
    self, Connection, FromRow, PgConnection, PgPool, Postgres, Sqlite, SqlitePool,
    postgres::{PgPoolOptions, PgRow},
    sqlite::{SqliteConnectOptions, SqlitePoolOptions, SqliteRow},
};
use tokio_util::task::AbortOnDropHandle;

use crate::{Options, Outcome};

/// Another number when the data changes, so that what is there is not taken for it.
const VERSION: u32 = 1;
const TASKS: u32 = 100_000;
/// Commits, and snapshots, of each session of the smaller part of the data, which is older than the rest.
pub const CODE: u32 = 20;

/// A filled database.
pub struct Data {
    /// `""` or `"-pg"`, the end of its rows' names.
    pub suffix: &'static str,
    pub platform: Platform,
    pub bare: Bare,
    /// A workspace whose sessions have [`CODE`] commits and snapshots.
    pub code_workspace: String,
    db: Db,
    /// As in the host: without it the deadline of each statement would wake a thread.
    _pace: AbortOnDropHandle<Infallible>,
}

/// The driver's own pool, as large as the host's.
#[derive(Clone)]
pub enum Bare {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

/// A parameter of a statement.
#[derive(Clone)]
pub enum Arg {
    Text(String),
    Int(i64),
}

/// Both databases, or SQLite alone.
pub async fn all(options: &Options) -> Outcome<Vec<Data>> {
    let mut all = vec![sqlite(options).await?];
    match std::env::var("KANDEV_TEST_POSTGRES") {
        Ok(server) if !server.is_empty() => all.push(postgres(&server).await?),
        _ => eprintln!("bench: no PostgreSQL: run it by scripts/with-postgres.sh"),
    }
    Ok(all)
}

async fn sqlite(options: &Options) -> Outcome<Data> {
    let path = fs::canonicalize(&options.output)?.join(format!("platform-{VERSION}.db"));
    let url = |path: &Path| format!("sqlite://{}?mode=rwc", path.display());
    if !path.exists() {
        let part = path.with_extension("part");
        let _ = fs::remove_file(&part);
        let config = config_of(&url(&part))?;
        let db = Db::connect(&config.database_url, &config.timing, &config.limits).await?;
        fill(&db).await?;
        db.close().await?;
        fs::rename(part, &path)?;
    }
    let config = config_of(&url(&path))?;
    let options = SqliteConnectOptions::new().filename(&path).create_if_missing(false);
    // As the host's readers.
    let options = options.pragma("query_only", "on").pragma("cache_size", "-8000");
    let pool = SqlitePoolOptions::new()
        .test_before_acquire(false)
        .max_connections(config.limits.database_connections)
        .connect_with(sqlx::ConnectOptions::disable_statement_logging(options))
        .await?;
    open(&config, Bare::Sqlite(pool), "").await
}

async fn postgres(server: &str) -> Outcome<Data> {
    let name = format!("kandev_bench_{VERSION}");
    let mut connection = PgConnection::connect(&format!("{server}/postgres")).await?;
    let exists: bool = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)")
        .bind(&name)
        .fetch_one(&mut connection)
        .await?;
    if !exists {
        sqlx::raw_sql(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut connection).await?;
    }
    connection.close().await?;
    let url = format!("{server}/{name}");
    let config = config_of(&url)?;
    if !exists {
        let db = Db::connect(&config.database_url, &config.timing, &config.limits).await?;
        fill(&db).await?;
        db.close().await?;
    }
    let pool = PgPoolOptions::new().max_connections(config.limits.database_connections).connect(&url).await?;
    open(&config, Bare::Postgres(pool), "-pg").await
}

fn config_of(url: &str) -> Outcome<Config> {
    let overrides = config::Overrides { database_url: Some(url.to_owned().into()), ..config::Overrides::default() };
    Ok(config::load(overrides, &|name| (name == "HOME").then(|| "/nonexistent".into()))?)
}

async fn fill(db: &Db) -> Outcome<()> {
    let store = PlatformStore::new(db.clone());
    for plan in [Plan::of(TASKS), code_plan()] {
        let began = tokio::time::Instant::now();
        let made = seed(&store, &plan, true, |_| {}).await?;
        eprintln!("bench: made {} tasks and {} messages in {:?}", made.tasks, made.messages, began.elapsed());
    }
    Ok(())
}

/// A year older than the rest, so that the newest tasks are those of the larger part.
fn code_plan() -> Plan {
    let until = UNTIL - time::Duration::days(365);
    Plan { messages: 0, commits: CODE, snapshots: CODE, seed: 2, until, ..Plan::of(1500) }
}

async fn open(config: &Config, bare: Bare, suffix: &'static str) -> Outcome<Data> {
    let db = Db::connect(&config.database_url, &config.timing, &config.limits).await?;
    let platform = Platform::new(&PlatformStore::new(db.clone()));
    let workspaces = platform.workspaces.list(&Scope::All, &PageRequest::default()).await?;
    let code_workspace = workspaces.items.last().ok_or("no workspace")?.id.clone();
    let pace = AbortOnDropHandle::new(tokio::spawn(pace::keep(config.timing.timer_pace)));
    Ok(Data { suffix, platform, bare, code_workspace, db, _pace: pace })
}

impl Data {
    /// Ends its connections.
    pub async fn close(self) -> Outcome<()> {
        match self.bare {
            Bare::Sqlite(pool) => pool.close().await,
            Bare::Postgres(pool) => pool.close().await,
        }
        Ok(self.db.close().await?)
    }
}

impl Bare {
    /// Runs a statement and reads its rows, as whoever asks for them must.
    pub async fn rows<T>(&self, statement: &'static str, args: &[Arg]) -> Outcome<Vec<T>>
    where
        T: Send + Unpin + for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow>,
    {
        match self {
            Self::Sqlite(pool) => {
                let query = sqlx::query_as::<Sqlite, T>(statement);
                let bound = args.iter().cloned().fold(query, |query, arg| match arg {
                    Arg::Text(text) => query.bind(text),
                    Arg::Int(number) => query.bind(number),
                });
                Ok(bound.fetch_all(pool).await?)
            }
            Self::Postgres(pool) => {
                let query = sqlx::query_as::<Postgres, T>(statement);
                let bound = args.iter().cloned().fold(query, |query, arg| match arg {
                    Arg::Text(text) => query.bind(text),
                    Arg::Int(number) => query.bind(number),
                });
                Ok(bound.fetch_all(pool).await?)
            }
        }
    }
}
