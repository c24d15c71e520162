//! PostgreSQL for tests: a server that all tests of a process share, servers of their own for tests that stop them, and
//! a new database for each test.
//!
//! The server is the one at `KANDEV_TEST_POSTGRES` (as `scripts/with-postgres.sh` sets it), else one that the process
//! starts at first use. Such a server ends with the process, however that ends: a shell holds it, which waits for the
//! end of its input. Databases are not dropped: `KANDEV_TEST_POSTGRES` must name a server that is thrown away.

use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

use sqlx::{Connection, PgConnection};

/// Exit code of the scripts when there is no PostgreSQL to be had.
const NONE_TO_BE_HAD: i32 = 3;

/// A running server.
#[derive(Debug)]
pub struct Server {
    address: String,
    /// The shell that removes the server when its input ends; none for a server that somebody else started.
    holder: Option<(Child, PathBuf)>,
}

impl Server {
    /// The server that all tests of this process share; `None` when there is none to be had: the test prints
    /// `skipped: needs postgresql`, and with `CI=true` it fails instead.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Server>> = OnceLock::new();
        SHARED
            .get_or_init(|| match std::env::var("KANDEV_TEST_POSTGRES") {
                Ok(address) if !address.is_empty() => Some(Self { address, holder: None }),
                _ => Self::own(),
            })
            .as_ref()
            .or_else(skipped)
    }

    /// A server of the caller's own, which may be stopped and is removed when dropped; `None` as for [`Self::shared`].
    pub fn own() -> Option<Self> {
        let mut child = Command::new(script("with-postgres.sh"))
            .args(["sh", "-c", "echo \"$KANDEV_TEST_POSTGRES $KANDEV_TEST_POSTGRES_FOLDER\"; cat >/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("scripts/with-postgres.sh runs");
        let mut line = String::new();
        let output = child.stdout.take().expect("its output is piped");
        BufReader::new(output).read_line(&mut line).expect("its output is text");
        let Some((address, folder)) = line.trim().split_once(' ') else {
            let status = child.wait().expect("the script can be waited for");
            assert_eq!(status.code(), Some(NONE_TO_BE_HAD), "scripts/with-postgres.sh failed: see its lines above");
            return skipped();
        };
        Some(Self { address: address.to_owned(), holder: Some((child, PathBuf::from(folder))) })
    }

    /// The address of a database on this server, whether it exists or not.
    pub fn address(&self, database: &str) -> String {
        format!("{}/{database}", self.address)
    }

    /// Makes an empty database and gives its address.
    pub async fn database(&self) -> String {
        let name = format!("kandev_test_{}", uuid::Uuid::new_v4().simple());
        self.execute("postgres", &format!("CREATE DATABASE {name}")).await;
        self.address(&name)
    }

    /// Runs statements in a database of this server.
    pub async fn execute(&self, database: &str, statements: &str) {
        execute(&self.address(database), statements).await;
    }

    /// Stops a server of one's own: connections are cut, what was committed stays.
    pub fn stop(&self) {
        self.control("stop");
    }

    /// Starts a server of one's own again.
    pub fn start(&self) {
        self.control("start");
    }

    fn control(&self, command: &str) {
        let (_, folder) = self.holder.as_ref().expect("a shared server is not stopped");
        let status = Command::new(script("postgres.sh")).arg(command).arg(folder).status();
        assert!(status.expect("scripts/postgres.sh runs").success(), "scripts/postgres.sh {command} failed");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some((holder, _)) = &mut self.holder {
            drop(holder.stdin.take());
            // Nobody can be told of a failure here, and the folder is throw-away.
            let _ = holder.wait();
        }
    }
}

/// Runs statements in the database at this address, as one simple query: several, separated by semicolons, are lawful.
pub async fn execute(address: &str, statements: &str) {
    let mut connection = PgConnection::connect(address).await.expect("the test's database answers");
    let statements = sqlx::AssertSqlSafe(statements.to_owned());
    sqlx::raw_sql(statements).execute(&mut connection).await.expect("the test's statements run");
    connection.close().await.expect("the connection closes");
}

fn skipped<T>() -> Option<T> {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "CI must not leave out PostgreSQL");
    println!("skipped: needs postgresql");
    None
}

fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scripts").join(name)
}
