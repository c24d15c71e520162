//! `db backup` and `db restore` on the real binary: beside a host that writes, killed in the middle, and refused.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use sea_orm::sqlx::{self, ConnectOptions, Connection, SqliteConnection, sqlite::SqliteConnectOptions};
use serde_json::{Value, json};
use test_postgres::Server;

use crate::{
    command::{Desk, Done, finish},
    support::{Host, eventually, host::TOKEN},
};

/// A desk with a home whose database has this many tasks.
fn seeded(tasks: u32) -> (Desk, PathBuf) {
    let desk = Desk::new();
    let home = desk.path().join("home");
    seed(&desk, &home, tasks, 1);
    (desk, home)
}

fn seed(desk: &Desk, home: &Path, tasks: u32, seed: u32) {
    let (tasks, seed) = (tasks.to_string(), seed.to_string());
    let arguments = ["db", "seed", "--tasks", &tasks, "--messages", "2", "--seed", &seed, "--add", "--home"];
    desk.run(&[&arguments[..], &[home.to_str().unwrap()]].concat()).expect(0);
}

/// Runs a command of `db` on this home, killed at the failpoint when one is named.
fn db(desk: &Desk, home: &Path, arguments: &[&str], failpoint: &str) -> Done {
    let mut command = desk.command(env!("CARGO_BIN_EXE_kandev-host"));
    command.arg("db").args(arguments).arg("--home").arg(home);
    if !failpoint.is_empty() {
        command.env("KANDEV_FAILPOINT", failpoint);
    }
    finish(&mut command)
}

async fn open(file: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(file).disable_statement_logging();
    options.connect().await.expect("the database opens")
}

async fn tasks(file: &Path) -> i64 {
    let mut connection = open(file).await;
    let count = sqlx::query_scalar("SELECT count(*) FROM task").fetch_one(&mut connection).await.expect("a count");
    connection.close().await.expect("it closes");
    count
}

async fn execute(file: &Path, statement: &'static str) {
    let mut connection = open(file).await;
    sqlx::query(statement).execute(&mut connection).await.expect("the statement runs");
    connection.close().await.expect("it closes");
}

/// Names in a folder that begin or end with this.
fn names(folder: &Path, part: &str) -> Vec<String> {
    let names = fs::read_dir(folder).expect("the folder is read").map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.into_string().expect("a name"));
    let mut names: Vec<_> = names.filter(|name| name.starts_with(part) || name.ends_with(part)).collect();
    names.sort();
    names
}

async fn secrets(client: &reqwest::Client, url: &str) -> Vec<String> {
    let answer = client.get(format!("{url}/api/v1/secrets")).bearer_auth(TOKEN).send().await.expect("an answer");
    let list: Vec<Value> = answer.json().await.expect("a list");
    list.iter().map(|secret| secret["name"].as_str().expect("a name").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_beside_a_host_that_writes_is_one_moment_and_its_restore_is_that_moment() {
    let mut host = Host::start().await;
    assert_eq!(host.stop().await, Some(0));
    let desk = Desk::new();
    seed(&desk, host.home(), 1000, 1);
    host.spawn().await;
    let (client, url) = (host.client().clone(), host.url().to_owned());
    let done = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn({
        let (client, url, done) = (client.clone(), url.clone(), done.clone());
        async move {
            let mut written = 0;
            while !done.load(Ordering::SeqCst) {
                let body = json!({"name": format!("s{written:04}"), "value": "hunter2"});
                let post = client.post(format!("{url}/api/v1/secrets")).bearer_auth(TOKEN).json(&body);
                assert_eq!(post.send().await.expect("an answer").status(), 201);
                written += 1;
            }
            written
        }
    });
    eventually("the writer writes", || async { secrets(&client, &url).await.len() > 5 }).await;
    let before = secrets(&client, &url).await.len();
    let report = db(&desk, host.home(), &["backup", "copy.db", "--json"], "").expect(0).json();
    done.store(true, Ordering::SeqCst);
    let written: usize = writer.await.unwrap();
    let file = desk.path().join("copy.db");
    assert_eq!(report["file"], "copy.db");
    assert_eq!(report["bytes"], fs::metadata(&file).unwrap().len());
    assert_eq!(report["vault_key"], host.home().join("vault.key").to_str().unwrap());
    let kept = usize::try_from(report["vault_entries"].as_i64().unwrap()).unwrap();
    // Beside the secrets there is the entry that proves the key.
    assert!((before..=written).contains(&(kept - 1)), "{before} to {written}: {report}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(names(desk.path(), ".tmp-"), [""; 0]);

    let refused = db(&desk, host.home(), &["restore", "copy.db"], "").expect(1);
    assert!(refused.err.contains(&format!("another kandev-host (pid {})", host.pid())), "{}", refused.err);
    assert_eq!(host.stop().await, Some(0));
    let restored = db(&desk, host.home(), &["restore", "copy.db", "--json"], "").expect(0).json();
    assert_eq!((&restored["vault_problem"], &restored["schema"]), (&Value::Null, &report["schema"]));
    let aside = PathBuf::from(restored["kept"].as_str().unwrap());
    assert_eq!((tasks(&aside).await, fs::metadata(&aside).unwrap().permissions().mode() & 0o777), (1000, 0o600));
    host.spawn().await;
    let expected: Vec<_> = (0..kept - 1).map(|n| format!("s{n:04}")).collect();
    assert_eq!(secrets(host.client(), host.url()).await, expected);
    assert_eq!(host.stop().await, Some(0));
    assert_eq!(tasks(&host.home().join("kandev.db")).await, 1000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_without_the_key_of_its_secrets_says_so_and_what_to_do() {
    let mut host = Host::start().await;
    host.post("/api/v1/secrets", json!({"name": "a", "value": "hunter2"})).await.expect(201);
    let desk = Desk::new();
    let text = db(&desk, host.home(), &["backup", "copy.db"], "").expect(0).out;
    let key = host.home().join("vault.key");
    assert!(text.contains(&format!("need the key from {}: back that up too", key.display())), "{text}");
    assert_eq!(host.stop().await, Some(0));
    let other = desk.path().join("other");
    let done = db(&desk, &other, &["restore", "copy.db"], "").expect(0);
    let wanted = format!("and {} is missing: put your backup of the file back", other.join("vault.key").display());
    assert!(done.out.contains("\nbefore you start the host: the vault holds 1 entries"), "{}", done.out);
    assert!(done.out.contains(&wanted) && !done.out.contains("the database of before"), "{}", done.out);
    fs::copy(key, other.join("vault.key")).unwrap();
    let done = db(&desk, &other, &["restore", "copy.db"], "").expect(0);
    assert!(done.out.ends_with("next: `kandev-host serve`, which brings its schema up to date\n"), "{}", done.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_is_killed_leaves_the_database_and_an_older_file_as_they_were() {
    for failpoint in ["backup.begun", "backup.written"] {
        let (desk, home) = seeded(10);
        db(&desk, &home, &["backup", "copy.db"], "").expect(0);
        let older = fs::read(desk.path().join("copy.db")).unwrap();
        seed(&desk, &home, 5, 2);
        assert_eq!(db(&desk, &home, &["backup", "copy.db", "--overwrite"], failpoint).code, None, "{failpoint}");
        assert_eq!(db(&desk, &home, &["backup", "new.db"], failpoint).code, None, "{failpoint}");
        assert_eq!(fs::read(desk.path().join("copy.db")).unwrap(), older, "{failpoint}");
        assert_eq!(names(desk.path(), "new.db"), [""; 0], "{failpoint}");
        assert_eq!(names(desk.path(), ".tmp-").len(), 2, "{failpoint}");
        db(&desk, &home, &["backup", "copy.db", "--overwrite"], "").expect(0);
        assert_eq!((tasks(&desk.path().join("copy.db")).await, tasks(&home.join("kandev.db")).await), (15, 15));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_is_killed_leaves_the_old_or_the_new_database_whole() {
    for (failpoint, there, kept) in [("restore.copied", 15, 0), ("restore.kept", 15, 1), ("restore.placed", 10, 1)] {
        let (desk, home) = seeded(10);
        db(&desk, &home, &["backup", "copy.db"], "").expect(0);
        seed(&desk, &home, 5, 2);
        assert_eq!(db(&desk, &home, &["restore", "copy.db"], failpoint).code, None, "{failpoint}");
        assert_eq!(tasks(&home.join("kandev.db")).await, there, "{failpoint}");
        let aside = names(&home, "kandev.db.before-restore-");
        assert_eq!(aside.len(), kept, "{failpoint}");
        for name in &aside {
            assert_eq!(tasks(&home.join(name)).await, 15, "{failpoint}");
            // Opening it above has made a log of its own.
            fs::rename(home.join(name), home.join("old.db")).unwrap();
        }
        db(&desk, &home, &["restore", "copy.db"], "").expect(0);
        assert_eq!(tasks(&home.join("kandev.db")).await, 10, "{failpoint}");
        assert_eq!(names(&home, ".restoring"), [""; 0], "{failpoint}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_sound_backup_of_this_host_is_refused_and_nothing_is_changed() {
    let (desk, home) = seeded(40);
    db(&desk, &home, &["backup", "good.db"], "").expect(0);
    let (database, at) = (home.join("kandev.db"), |name: &str| desk.path().join(name));
    let before = fs::read(&database).unwrap();
    fs::write(at("text.db"), "no database at all").unwrap();
    fs::write(at("empty.db"), "").unwrap();
    let good = fs::read(at("good.db")).unwrap();
    fs::write(at("short.db"), &good[..good.len() / 2]).unwrap();
    let mut scratched = good.clone();
    scratched[8192..8192 + 4096 * 8].fill(0x5a);
    fs::write(at("scratched.db"), scratched).unwrap();
    let mut connection =
        SqliteConnectOptions::new().filename(at("other.db")).create_if_missing(true).connect().await.unwrap();
    sqlx::query("CREATE TABLE mail (id INTEGER)").execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    fs::copy(at("good.db"), at("newer.db")).unwrap();
    execute(&at("newer.db"), "INSERT INTO seaql_migrations (version, applied_at) VALUES ('m20990101_000001_x', 0)")
        .await;
    fs::copy(at("good.db"), at("bare.db")).unwrap();
    fs::write(at("bare.db-wal"), "changes").unwrap();
    fs::create_dir(at("folder.db")).unwrap();
    for (name, text) in [
        ("text.db", "text.db is not a SQLite database; name a file that"),
        ("empty.db", "empty.db is not a SQLite database; name a file that"),
        ("folder.db", "folder.db is not a SQLite database; name a file that"),
        ("short.db", "short.db is damaged: "),
        ("scratched.db", "scratched.db is damaged: "),
        ("other.db", "other.db is a database of another program; name a file that"),
        (
            "newer.db",
            "newer.db was written by a newer kandev-host (unknown schema step m20990101_000001_x); restore it",
        ),
        ("bare.db", "bare.db has changes beside it in bare.db-wal, which are not in it; make the copy with"),
        ("absent.db", "could not open absent.db: No such file or directory"),
        (database.to_str().unwrap(), "is the database itself; name another file"),
    ] {
        let refused = db(&desk, &home, &["restore", name], "").expect(1);
        assert!(refused.err.contains(text), "{name}: {}", refused.err);
    }
    let mut reader = open(&database).await;
    sqlx::query("SELECT count(*) FROM task").execute(&mut reader).await.unwrap();
    let options = SqliteConnectOptions::new().filename(&database).pragma("journal_mode", "wal");
    let mut holder = options.connect().await.unwrap();
    sqlx::query("SELECT count(*) FROM task").execute(&mut holder).await.unwrap();
    let short = desk.env("KANDEV_TIMING_DATABASE_TIMEOUT", "3s");
    let refused = db(&short, &home, &["restore", "good.db"], "").expect(1);
    assert!(refused.err.contains("another program has the database"), "{}", refused.err);
    holder.close().await.unwrap();
    reader.close().await.unwrap();
    assert_eq!(names(&home, "kandev.db"), ["kandev.db"], "nothing is left beside it");
    assert_eq!(fs::read(&database).unwrap()[100..], before[100..], "but for the mode in its head");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_database_makes_room_with_its_log_and_both_are_kept() {
    let (desk, home) = seeded(10);
    db(&desk, &home, &["backup", "copy.db"], "").expect(0);
    fs::write(home.join("kandev.db"), "what a broken disk leaves").unwrap();
    fs::write(home.join("kandev.db-wal"), "and of its log").unwrap();
    let done = db(&desk, &home, &["restore", "copy.db"], "").expect(0);
    assert!(done.err.contains("the present database cannot be read; it is kept as it is"), "{}", done.err);
    let kept = names(&home, "kandev.db.before-restore-");
    let contents: Vec<_> = kept.iter().map(|name| fs::read_to_string(home.join(name)).unwrap()).collect();
    assert_eq!(contents, ["what a broken disk leaves", "and of its log"]);
    assert_eq!(tasks(&home.join("kandev.db")).await, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_written_over_nothing_that_it_must_not() {
    let (desk, home) = seeded(3);
    let refused = db(&desk, &desk.path().join("empty"), &["backup", "copy.db"], "").expect(1);
    assert!(refused.err.contains("there is no database at "), "{}", refused.err);
    fs::write(desk.path().join("copy.db"), "precious").unwrap();
    let refused = db(&desk, &home, &["backup", "copy.db"], "").expect(1);
    let text = "kandev-host: copy.db is there already; name another file, or replace it with --overwrite\n";
    assert_eq!(refused.err, text);
    assert_eq!(fs::read_to_string(desk.path().join("copy.db")).unwrap(), "precious");
    let itself = home.join("kandev.db");
    let refused = db(&desk, &home, &["backup", itself.to_str().unwrap(), "--overwrite"], "").expect(1);
    assert!(refused.err.contains("is the database itself"), "{}", refused.err);
    std::os::unix::fs::symlink("copy.db", desk.path().join("link.db")).unwrap();
    fs::create_dir(desk.path().join("folder")).unwrap();
    assert!(Command::new("mkfifo").arg(desk.path().join("pipe")).status().unwrap().success());
    for name in ["link.db", "folder", "pipe"] {
        let refused = db(&desk, &home, &["backup", name, "--overwrite"], "").expect(1);
        assert!(refused.err.contains("is no regular file; name another one"), "{}", refused.err);
    }
    let refused = db(&desk, &home, &["restore", "pipe"], "").expect(1);
    assert!(refused.err.contains("pipe is not a SQLite database"), "{}", refused.err);
    let refused = db(&desk, &home, &["backup", "no/such/folder/copy.db"], "").expect(1);
    assert!(refused.err.contains("could not create no/such/folder/.tmp-"), "{}", refused.err);
    db(&desk, &home, &["backup", "copy.db", "--overwrite"], "").expect(0);
    assert_eq!((tasks(&desk.path().join("copy.db")).await, names(desk.path(), ".tmp-").len()), (3, 0));
}

/// What the command says to run instead.
fn told(done: &Done) -> &str {
    let line = done.err.trim().strip_prefix("kandev-host: the database is PostgreSQL, which has its own tools: ");
    line.unwrap_or_else(|| panic!("{done:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgresql_both_name_commands_that_bring_everything_back() {
    let Some(server) = Server::shared() else { return };
    let (first, second) = (server.database().await, server.database().await);
    let desk = Desk::new().env("DATABASE_URL", &first);
    desk.run(&["db", "seed", "--tasks", "20"]).expect(0);
    let shell = |desk: &Desk, script: &str| finish(desk.command("sh").args(["-c", script])).expect(0).out;
    let count = |desk: &Desk| shell(desk, "psql -qAt -c 'SELECT count(*) FROM session_message' \"$DATABASE_URL\"");
    let dump = desk.run(&["db", "backup", "kandev's.dump"]).expect(1);
    assert!(!dump.err.contains(&first), "{}", dump.err);
    shell(&desk, told(&dump));
    desk.run(&["db", "seed", "--tasks", "5", "--seed", "2", "--add"]).expect(0);
    assert_eq!(count(&desk), "250\n");
    let restore = desk.run(&["db", "restore", "kandev's.dump"]).expect(1);
    let command = told(&restore).strip_prefix("stop the host, then ").unwrap().to_owned();
    shell(&desk, &command);
    assert_eq!(count(&desk), "200\n");
    let desk = desk.env("DATABASE_URL", &second);
    shell(&desk, &command);
    assert_eq!(count(&desk), "200\n");
    assert_eq!(desk.run(&["db", "status", "--json"]).expect(0).json()["up_to_date"], true);
    desk.run(&["db", "seed", "--tasks", "5", "--seed", "2", "--add"]).expect(0);
}
