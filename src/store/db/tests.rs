//! Opening and losing the database, on both kinds; and the databases that other stores' tests run on.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use sea_orm::sqlx::{self, AssertSqlSafe, ConnectOptions, Connection, sqlite::SqliteConnectOptions};
use tempfile::TempDir;
use test_postgres::Server;
use tokio::time::Instant;

use super::*;

/// Runs each promise, a function over a [`Db`], once on SQLite and once on PostgreSQL: the tests `sqlite::<promise>`
/// and `postgres::<promise>`.
macro_rules! on_both_databases {
    ($($promise:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                let (_folder, db) = $crate::store::db::tests::sqlite().await;
                super::$promise(db).await;
            })*
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                if let Some(db) = $crate::store::db::tests::postgres().await {
                    super::$promise(db).await;
                }
            })*
        }
    };
}
pub(crate) use on_both_databases;

/// A new SQLite database in a folder of its own.
pub async fn sqlite() -> (TempDir, Db) {
    let folder = tempfile::tempdir().unwrap();
    let db = connect(&address(&folder)).await.unwrap();
    (folder, db)
}

/// A new database on the tests' PostgreSQL server; none where there is no server to be had.
pub async fn postgres() -> Option<Db> {
    let server = Server::shared()?;
    Some(connect(&server.database().await).await.unwrap())
}

pub fn address(folder: &TempDir) -> String {
    format!("sqlite://{}", folder.path().join("kandev.db").display())
}

pub async fn connect(url: &str) -> Result<Db, ConnectError> {
    connect_within(url, Duration::from_secs(30)).await
}

/// Does to the database what no store does: what a disk or another program might.
pub async fn tamper(db: &Db, statement: &str) {
    db.writer.execute_unprepared(statement).await.unwrap();
}

async fn connect_within(url: &str, database_timeout: Duration) -> Result<Db, ConnectError> {
    let timing = Timing { database_timeout, ..Timing::default() };
    Db::connect(&url.to_owned().into(), &timing, &Limits::default()).await
}

async fn error(url: &str) -> String {
    connect(url).await.unwrap_err().to_string()
}

#[track_caller]
fn assert_text(text: &str, start: &str, end: &str) {
    assert!(text.starts_with(start) && text.ends_with(end), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

const SHORT: Duration = Duration::from_millis(1500);
const LOCKED_END: &str = "; end what holds it, a backup or another kandev-host, and start again";
const REFUSED_END: &str = "; check user, password and name of the database in its address";
const PRIMARY_END: &str = "; connect to the primary server as a user who may make tables in the database";

async fn both_roles_are_ready_and_a_close_ends_them(db: Db) {
    assert!(db.ready().await);
    let clone = db.clone();
    db.close().await.unwrap();
    assert!(!clone.ready().await);
    let refused = clone.repeat(|| clone.begin_write()).await.unwrap_err();
    assert!(matches!(refused, DbFault::Unavailable(_)), "at once, not after the deadline: {refused}");
}

async fn a_newer_database_is_refused_by_the_name_of_its_unknown_step(db: Db, url: String) {
    let insert = "INSERT INTO seaql_migrations (version, applied_at) VALUES ('m20990101_000001_future', 0)";
    db.writer.execute_unprepared(insert).await.unwrap();
    db.close().await.unwrap();
    assert_eq!(
        error(&url).await,
        "the database was written by a newer kandev-host (unknown schema step m20990101_000001_future); \
         start that version or newer"
    );
}

async fn work_is_repeated_while_its_connection_is_lost_and_no_longer_than_the_deadline(db: Db) {
    let db = Db { deadline: SHORT, pause: Duration::from_millis(10), ..db };
    let attempts = AtomicUsize::new(0);
    let work = async || match attempts.fetch_add(1, Ordering::Relaxed) {
        0..3 => Err(DbFault::Lost("gone".to_owned())),
        n => Ok(n),
    };
    assert_eq!(db.repeat(work).await, Ok(3));

    let begun = Instant::now();
    let lost = db.repeat(async || Err::<(), _>(DbFault::Lost("gone".to_owned()))).await;
    assert_eq!(lost, Err(DbFault::Unavailable("no answer within 1500 ms: gone".to_owned())));
    assert!(begun.elapsed() >= SHORT);

    let attempts = AtomicUsize::new(0);
    let wrong = db
        .repeat(async || {
            attempts.fetch_add(1, Ordering::Relaxed);
            Err::<(), _>(DbFault::Statement("wrong".to_owned()))
        })
        .await;
    assert_eq!((wrong, attempts.into_inner()), (Err(DbFault::Statement("wrong".to_owned())), 1));
}

/// Not after the deadline, as what a moment mends, and not as a broken statement.
async fn rows_that_stay_in_the_way_are_told_at_once_as_what_they_are(db: Db) {
    let dangling = "INSERT INTO vault_share (secret_id, plugin_id) VALUES ('nowhere', 'acme')";
    let key = "INSERT INTO seaql_migrations SELECT * FROM seaql_migrations";
    for statement in [dangling, key] {
        let attempts = AtomicUsize::new(0);
        let begun = Instant::now();
        let work = async || {
            attempts.fetch_add(1, Ordering::Relaxed);
            db.writer.execute_unprepared(statement).await.map_err(DbFault::from)
        };
        let told = db.repeat(work).await.unwrap_err();
        assert!(matches!(told, DbFault::Conflict(_)), "{statement}: {told}");
        assert_eq!(attempts.into_inner(), 1 + LOOKS, "{statement}");
        assert!(begun.elapsed() < Duration::from_secs(10), "the deadline is 30 s");
    }
}

async fn work_that_looks_again_finds_what_another_writer_did(db: Db) {
    let looks = AtomicUsize::new(0);
    let work = async || match looks.fetch_add(1, Ordering::Relaxed) {
        0..LOOKS => Err(DbFault::Conflict("faster".to_owned())),
        _ => Ok("what is there"),
    };
    assert_eq!(db.repeat(work).await, Ok("what is there"));
}

on_both_databases!(
    both_roles_are_ready_and_a_close_ends_them,
    work_is_repeated_while_its_connection_is_lost_and_no_longer_than_the_deadline,
    rows_that_stay_in_the_way_are_told_at_once_as_what_they_are,
    work_that_looks_again_finds_what_another_writer_did,
);

#[tokio::test]
async fn a_newer_sqlite_database_is_refused() {
    let (folder, db) = sqlite().await;
    a_newer_database_is_refused_by_the_name_of_its_unknown_step(db, address(&folder)).await;
}

#[tokio::test]
async fn a_newer_postgres_database_is_refused() {
    let Some(server) = Server::shared() else { return };
    let url = server.database().await;
    a_newer_database_is_refused_by_the_name_of_its_unknown_step(connect(&url).await.unwrap(), url).await;
}

/// `.cargo/config.toml` says why; a build that does not read it is correct and slower.
#[tokio::test]
async fn sqlite_was_compiled_to_plan_a_statement_once_and_without_shared_locks() {
    let (_folder, db) = sqlite().await;
    let rows = db
        .reader()
        .query_all_raw(sea_orm::Statement::from_string(db.reader().get_database_backend(), "PRAGMA compile_options"));
    let options: Vec<String> = rows.await.unwrap().iter().map(|row| row.try_get_by_index(0).unwrap()).collect();
    let has = |option: &str| options.iter().any(|there| there == option);
    assert!(has("ENABLE_QPSG") && has("DEFAULT_MEMSTATUS=0"), "{options:?}");
    assert!(!has("ENABLE_MEMORY_MANAGEMENT"), "{options:?}");
}

#[tokio::test]
async fn a_new_file_is_private_and_opens_again() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, db) = sqlite().await;
    let mode = std::fs::metadata(folder.path().join("kandev.db")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    db.close().await.unwrap();
    assert!(connect(&address(&folder)).await.unwrap().ready().await);
}

/// A foreign tool, a backup say, may hold the file's lock.
#[tokio::test]
async fn a_lock_of_another_process_fails_one_write_in_time_and_the_next_works() {
    let (folder, db) = sqlite().await;
    db.close().await.unwrap();
    let db = connect_within(&address(&folder), SHORT).await.unwrap();
    let mut other = SqliteConnectOptions::from_str(&address(&folder)).unwrap().connect().await.unwrap();
    sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let begun = Instant::now();
    let refused = db.repeat(|| db.begin_write()).await.unwrap_err();
    assert!(matches!(&refused, DbFault::Unavailable(cause) if cause.contains("locked")), "{refused}");
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert!(db.ready().await, "reading goes on");
    sqlx::query("ROLLBACK").execute(&mut other).await.unwrap();
    db.repeat(|| db.begin_write()).await.unwrap().rollback().await.unwrap();
}

#[tokio::test]
async fn a_locked_file_keeps_the_host_from_starting_and_says_so() {
    let (folder, db) = sqlite().await;
    db.close().await.unwrap();
    let mut other = SqliteConnectOptions::from_str(&address(&folder)).unwrap().connect().await.unwrap();
    sqlx::query("BEGIN EXCLUSIVE").execute(&mut other).await.unwrap();
    let text = connect_within(&address(&folder), SHORT).await.unwrap_err().to_string();
    assert_text(&text, "the database is locked: ", LOCKED_END);
}

#[tokio::test]
async fn a_locked_schema_keeps_the_host_from_starting_and_says_so() {
    let Some(server) = Server::shared() else { return };
    let url = server.database().await;
    let mut other = sqlx::postgres::PgConnection::connect(&url).await.unwrap();
    sqlx::query("SELECT pg_advisory_lock($1)").bind(schema::SCHEMA_LOCK).execute(&mut other).await.unwrap();
    let text = connect_within(&url, SHORT).await.unwrap_err().to_string();
    assert_text(&text, "the database is locked: ", LOCKED_END);
    other.close().await.unwrap();
    assert!(connect(&url).await.unwrap().ready().await);
}

#[tokio::test]
async fn a_locked_row_fails_one_write_in_time_and_the_server_forgets_it() {
    let Some(server) = Server::shared() else { return };
    let url = server.database().await;
    let db = connect_within(&url, SHORT).await.unwrap();
    let mut other = sqlx::postgres::PgConnection::connect(&url).await.unwrap();
    sqlx::raw_sql("BEGIN; LOCK TABLE plugin_state").execute(&mut other).await.unwrap();
    let delete = || async {
        let transaction = db.begin_write().await?;
        transaction.execute_unprepared("DELETE FROM plugin_state").await?;
        Ok::<_, DbFault>(transaction.commit().await?)
    };
    let refused = db.repeat(delete).await.unwrap_err();
    assert!(matches!(&refused, DbFault::Unavailable(cause) if cause.contains("lock")), "{refused}");
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    db.repeat(delete).await.unwrap();
}

#[tokio::test]
async fn a_sqlite_reader_cannot_write() {
    let (_folder, db) = sqlite().await;
    let error = db.reader().execute_unprepared("DELETE FROM plugin_state").await.unwrap_err();
    assert!(error.to_string().contains("readonly"), "{error}");
}

#[tokio::test]
async fn a_read_only_file_names_cause_and_next_step() {
    let (folder, db) = sqlite().await;
    db.close().await.unwrap();
    let text = error(&format!("{}?mode=ro", address(&folder))).await;
    let end = "; give the host's user write permission on the file and its folder";
    assert_text(&text, "the database cannot be written: ", end);
}

#[tokio::test]
async fn a_read_only_server_names_cause_and_next_step() {
    let Some(server) = Server::shared() else { return };
    let url = server.database().await;
    let name = url.rsplit('/').next().unwrap();
    server.execute(name, &format!("ALTER DATABASE {name} SET default_transaction_read_only = on")).await;
    assert_eq!(
        error(&url).await,
        format!("the database cannot be written: the server answers reads only{PRIMARY_END}")
    );
}

#[tokio::test]
async fn a_user_who_may_not_make_tables_is_told_so() {
    let Some(server) = Server::shared() else { return };
    let url = server.database().await;
    let name = url.rsplit('/').next().unwrap();
    let user = format!("reader_of_{name}");
    server.execute(name, &format!("CREATE ROLE {user} LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC")).await;
    let text = error(&url.replace("kandev@", &format!("{user}:hunter2@"))).await;
    assert_text(&text, "the database cannot be written: ", PRIMARY_END);
}

#[tokio::test]
async fn an_unknown_user_and_an_unknown_database_are_turned_away_without_the_password() {
    let Some(server) = Server::shared() else { return };
    for url in
        [server.address("postgres").replace("kandev@", "nobody_knows:hunter2@"), server.address("no_such_database")]
    {
        assert_text(&error(&url).await, "the database server turned the host away: ", REFUSED_END);
    }
}

#[tokio::test]
async fn a_missing_folder_and_a_dead_server_are_unreachable() {
    for url in ["sqlite:///does/not/exist/kandev.db", "postgres://user:hunter2@127.0.0.1:1/kandev"] {
        let end = "; check that its address is right, its server runs and its folder exists";
        assert_text(&error(url).await, "cannot open the database: ", end);
    }
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up_in_time() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("postgres://user:hunter2@{}/kandev", listener.local_addr().unwrap());
    let text = connect_within(&url, SHORT).await.unwrap_err().to_string();
    assert_text(&text, "the database did not answer within 1500 ms; ", "no other process locks it");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("kandev.db"), vec![b'x'; 8192]).unwrap();
    let text = error(&address(&folder)).await;
    assert!(text.contains("file is not a database"), "{text}");
}

#[tokio::test]
async fn an_address_that_is_not_understood_is_never_repeated() {
    for url in ["mysql://user:hunter2@host/db", "postgres://user:hunter2@host:port/db", "hunter2", "sqlite::memory:"] {
        let text = error(url).await;
        assert!(text.starts_with("the database address is not usable: "), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
}

/// A network between host and server that can stop passing anything on, without a word to either side.
struct Wire {
    folder: TempDir,
    frozen: tokio::sync::watch::Sender<bool>,
}

impl Wire {
    /// Passes connections on to the server's socket, from a socket of its own.
    fn to(server: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let name = ".s.PGSQL.5432";
        let (_, host) = server.split_once('@').unwrap();
        let socket = Path::new(&host.split('/').next().unwrap().replace("%2F", "/")).join(name);
        let listener = tokio::net::UnixListener::bind(folder.path().join(name)).unwrap();
        let (frozen, watched) = tokio::sync::watch::channel(false);
        tokio::spawn(Self::pass_on(listener, socket, watched));
        Self { folder, frozen }
    }

    async fn pass_on(listener: tokio::net::UnixListener, socket: PathBuf, frozen: tokio::sync::watch::Receiver<bool>) {
        while let Ok((mut client, _)) = listener.accept().await {
            let Ok(mut server) = tokio::net::UnixStream::connect(&socket).await else { continue };
            let mut frozen = frozen.clone();
            tokio::spawn(async move {
                // The watch's own guard must not live across the wait below.
                let freeze = async { frozen.wait_for(|frozen| *frozen).await.is_ok() };
                let froze = tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut client, &mut server) => false,
                    froze = freeze => froze,
                };
                if froze {
                    // The sockets stay open: neither side learns that the other is out of reach.
                    std::future::pending::<()>().await;
                }
            });
        }
    }

    fn address(&self, url: &str) -> String {
        let place = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://kandev@{place}/{}", url.rsplit('/').next().unwrap())
    }
}

#[tokio::test]
async fn connections_that_went_silent_are_replaced_soon_and_not_when_the_kernel_gives_up() {
    let Some(server) = Server::shared() else { return };
    let url = server.database().await;
    let wire = Wire::to(&url);
    let db = &connect_within(&wire.address(&url), Duration::from_secs(4)).await.unwrap();
    let all = |statement: &'static str| {
        let work = move || async move { Ok::<_, DbFault>(db.reader().execute_unprepared(statement).await?) };
        futures_util::future::join_all((0..8).map(|_| db.repeat(work)))
    };
    let name = url.rsplit('/').next().unwrap();
    let busy =
        format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}' AND query = 'SELECT pg_sleep(60)'");
    let mut watch = sqlx::postgres::PgConnection::connect(&server.address("postgres")).await.unwrap();
    // All of them are in the middle of a statement: no test before the next use finds out about these.
    let freeze = async {
        let begun = Instant::now();
        while sqlx::query_scalar::<_, i64>(AssertSqlSafe(busy.clone())).fetch_one(&mut watch).await.unwrap() < 8 {
            assert!(begun.elapsed() < Duration::from_secs(30), "the pool does not fill");
        }
        wire.frozen.send_replace(true);
    };
    let (silent, ()) = tokio::join!(all("SELECT pg_sleep(60)"), freeze);
    assert!(silent.iter().all(|result| matches!(result, Err(DbFault::Unavailable(_)))), "{silent:?}");
    assert!(!db.ready().await);
    wire.frozen.send_replace(false);
    let begun = Instant::now();
    while !db.ready().await {
        assert!(begun.elapsed() < Duration::from_secs(30), "the silent connections are kept");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(all("SELECT 1").await.iter().all(Result::is_ok));
}

/// Every connection of the database is cut again and again, as by a restart of the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_goes_on_over_connections_that_the_server_cuts() {
    let Some(server) = Server::shared() else { return };
    let url = server.database().await;
    let db = connect(&url).await.unwrap();
    let workers = (0..8).map(|worker| {
        let db = db.clone();
        tokio::spawn(async move {
            for round in 0..40 {
                let insert =
                    format!("INSERT INTO plugin_state_usage VALUES ('{worker}-{round}', 0) ON CONFLICT DO NOTHING");
                let work = async || {
                    let transaction = db.begin_write().await?;
                    transaction.execute_unprepared(&insert).await?;
                    Ok::<_, DbFault>(transaction.commit().await?)
                };
                db.repeat(work).await.unwrap();
            }
        })
    });
    let workers: Vec<_> = workers.collect();
    let name = url.rsplit('/').next().unwrap();
    let cut = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'");
    while !workers.iter().all(|worker| worker.is_finished()) {
        server.execute("postgres", &cut).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for worker in workers {
        worker.await.unwrap();
    }
    let mut connection = sqlx::postgres::PgConnection::connect(&url).await.unwrap();
    let count = AssertSqlSafe("SELECT count(*) FROM plugin_state_usage".to_owned());
    let rows: i64 = sqlx::query_scalar(count).fetch_one(&mut connection).await.unwrap();
    assert_eq!(rows, 320);
}
