//! Databases of earlier versions are brought forward with their rows: `tests/fixtures/db/` has a dump of each schema
//! there was, which is restored here and opened as the host does it. Its README says how a dump is made.

use std::{collections::BTreeSet, fs, path::PathBuf, process::Command, str::FromStr};

use migration::{Migrator, MigratorTrait};
use sea_orm::{
    ConnectionTrait, EntityTrait, IntoActiveModel,
    sqlx::{self, AssertSqlSafe, ConnectOptions, Connection, postgres::PgConnection, sqlite::SqliteConnectOptions},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use test_postgres::Server;
use time::macros::datetime;
use uuid::Uuid;

use super::{
    Db,
    tests::{address, connect},
};
use crate::{
    config::Limits,
    domain::{
        id::PluginId,
        inbox::{Incident, Item, News},
        marketplace::Source,
        platform::{
            event,
            workspace::{Workspace, WorkspaceDraft},
        },
        tenancy::Tenancy,
        user_state::Place,
    },
    entities::{vault_entry, vault_share},
    store::{
        inbox::{Filter, InboxStore},
        marketplace::MarketplaceStore,
        platform::{PlatformStore, Work},
        plugin_state::{Scope, StateEntry, StateStore},
        user_state::{Owner, UserStateStore},
    },
};

/// Set by `scripts/dump-schema.sh` to the name of the dumps to write.
const WRITE: &str = "KANDEV_WRITE_DUMPS";

const KINDS: [&str; 2] = ["sqlite", "postgres"];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/db")
}

/// Name and text of every dump of one kind.
fn dumps(kind: &str) -> Vec<(String, String)> {
    let end = format!(".{kind}.sql");
    let entries = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names = entries.filter_map(|name| name.strip_suffix(&end).map(str::to_owned));
    let read = |name: String| {
        let text = fs::read_to_string(folder().join(format!("{name}{end}"))).unwrap();
        (name, text)
    };
    names.map(read).collect()
}

/// Every step of this version, oldest first.
fn steps() -> Vec<String> {
    Migrator::migrations().iter().map(|step| step.name().to_owned()).collect()
}

/// What every dump holds of plugin state.
fn sample() -> [(Scope, StateEntry); 3] {
    let scope = |name: &str, id: &str| Scope { name: name.to_owned(), id: id.to_owned() };
    let entry = |key: &str, value: Value| StateEntry {
        key: key.to_owned(),
        value,
        updated_at: datetime!(2026-11-29 12:00:00 UTC),
    };
    [
        (scope("task", "t1"), entry("plain", json!({"n": 1, "list": [true, null, "x"]}))),
        (scope("", ""), entry("weird \u{1F600} 'quoted'; --", json!({"\u{0}": "line\nbreak \\ \"quote\""}))),
        (scope("instance", ""), entry("without a value", Value::Null)),
    ]
}

/// What every dump since the vault holds of it: a shared secret that the plugin may reveal. The seal is no real one.
fn sealed() -> (vault_entry::Model, vault_share::Model) {
    let at = datetime!(2026-11-29 12:00:00 UTC);
    let id = "019dd5f0-0000-7000-8000-000000000001".to_owned();
    let entry = vault_entry::Model {
        id: id.clone(),
        kind: "shared".to_owned(),
        owner: String::new(),
        name: "deploy 'key' \u{1F600}".to_owned(),
        scope: Some("workspace".to_owned()),
        workspace_id: Some("w1".to_owned()),
        key_id: "0123456789abcdef".to_owned(),
        nonce: (0..12).collect(),
        ciphertext: (0..=255).collect(),
        created_at: at,
        updated_at: at,
    };
    (entry, vault_share::Model { plugin_id: plugin().to_string(), secret_id: id })
}

fn plugin() -> PluginId {
    PluginId::new("sample").unwrap()
}

/// What every dump that has an inbox holds in it.
fn inbox_item() -> Item {
    let incident = Incident {
        version: "1.0.0".to_owned(),
        reason: Some("boom 'quoted'; --".to_owned()),
        restarting: true,
        restart_count: 2,
        at: datetime!(2026-11-29 12:00:00 UTC),
    };
    Item::new(Uuid::from_u128(0x0192_f3a0_0000_7000_8000_0000_0000_0001), &plugin(), &incident)
}

/// What every dump that has the platform holds of it, with an event in the log.
fn workspace() -> Workspace {
    let draft = WorkspaceDraft {
        name: Some("board 'quoted'; -- \u{1F600}".to_owned()),
        task_prefix: Some("KAN".to_owned()),
        ..WorkspaceDraft::default()
    };
    let id = "019dd5f0-0000-7000-8000-000000000002".to_owned();
    Workspace::new(id, &draft, datetime!(2026-11-29 12:00:00.123456 UTC)).unwrap()
}

async fn write_platform(store: &PlatformStore) {
    let workspace = &workspace();
    let work = |work: Work| async move {
        work.insert(workspace).await?;
        work.tell(event::workspace(event::Happened::Created, workspace));
        Ok(())
    };
    store.write(&crate::domain::platform::Scope::All, None, work).await.unwrap();
}

async fn write_inbox(db: &Db) {
    let Item { id, description, created_at: at, .. } = inbox_item();
    let incident =
        Incident { version: "1.0.0".to_owned(), reason: description, restarting: true, restart_count: 2, at };
    InboxStore::new(db.clone(), &Limits::default()).apply(&plugin(), &News::Failed(incident), id).await.unwrap();
}

/// What every dump since there is a place for it holds of what plugins keep for users.
fn kept() -> (Place, Value) {
    (Place::new("task", "t1", "panel").unwrap(), json!({"\u{0}": "'quoted'; -- \u{1F600}"}))
}

async fn write_kept(db: &Db) {
    let (plugin, (place, value)) = (plugin(), kept());
    let owner = Owner { plugin: &plugin, user: "operator" };
    let store = UserStateStore::new(db.clone(), &Limits::default());
    store.put(owner, &place, &value, None, &Tenancy::default()).await.unwrap();
}

async fn read_kept(db: &Db) -> Option<Value> {
    let (plugin, (place, _)) = (plugin(), kept());
    let owner = Owner { plugin: &plugin, user: "operator" };
    let found = UserStateStore::new(db.clone(), &Limits::default()).get(owner, &place).await.unwrap();
    found.map(|(text, _)| serde_json::from_str(&text).unwrap())
}

/// What every dump holds since there are tokens of git: one of a session, with what a session needs to be there.
const GIT_TOKEN: &str = "019dd5f0-0000-7000-8000-000000000006";
const GIT_SESSION: &str = "019dd5f0-0000-7000-8000-000000000005";

async fn write_git_token(db: &Db) {
    let (workspace, workflow, task) =
        (workspace().id, "019dd5f0-0000-7000-8000-000000000003", "019dd5f0-0000-7000-8000-000000000004");
    for statement in [
        format!(
            "INSERT INTO workflow (id, workspace_id, name, prompt, sort_order, hidden, created_at, updated_at, version) \
             VALUES ('{workflow}', '{workspace}', 'w', '', 0, FALSE, 1, 1, 1)"
        ),
        format!(
            "INSERT INTO task (id, workspace_id, workflow_id, title, description, state, priority, origin, position, \
             identifier, is_ephemeral, is_internal, source, metadata, created_at, updated_at, version) VALUES ('{task}', \
             '{workspace}', '{workflow}', 't', '', 'TODO', 'medium', 'manual', 0, '', FALSE, FALSE, '', '{{}}', 1, 1, 1)"
        ),
        format!(
            "INSERT INTO task_session (id, task_id, workspace_id, name, state, error_message, agent_profile_id, \
             agent_profile_snapshot, executor_id, executor_profile_id, executor_snapshot, repository_id, base_branch, \
             metadata, is_primary, started_at, updated_at, version) VALUES ('{GIT_SESSION}', '{task}', '{workspace}', '', \
             'RUNNING', '', '', '{{}}', '', '', '{{}}', '', '', '{{}}', TRUE, 1, 1, 1)"
        ),
        format!(
            "INSERT INTO git_credential_token (id, token_hash, session_id, repository_id, created_at, expires_at) VALUES \
             ('{GIT_TOKEN}', 'hash ''quoted''', '{GIT_SESSION}', 'r', 1, {})",
            i64::MAX
        ),
    ] {
        db.writer.execute_unprepared(&statement).await.unwrap();
    }
}

/// What every dump holds since there are sources of the marketplace.
fn market_source() -> Source {
    Source {
        id: "019dd5f0-0000-7000-8000-000000000007".to_owned(),
        name: "ours 'quoted'; -- \u{1F600}".to_owned(),
        url: "https://example.test/index.json".to_owned(),
        enabled: true,
        builtin: false,
        created_at: datetime!(2026-11-29 12:00:00 UTC),
    }
}

async fn write_sample(url: &str) {
    let db = connect(url).await.unwrap();
    write_kept(&db).await;
    write_inbox(&db).await;
    write_platform(&PlatformStore::new(db.clone())).await;
    write_git_token(&db).await;
    MarketplaceStore::new(db.clone(), &Limits::default()).add(&market_source()).await.unwrap();
    let store = StateStore::new(db.clone(), &Limits::default());
    for (scope, entry) in sample() {
        store.set(&plugin(), &scope, &entry.key, &entry.value, entry.updated_at).await.unwrap();
    }
    let (entry, share) = sealed();
    vault_entry::Entity::insert(entry.into_active_model()).exec_without_returning(&db.writer).await.unwrap();
    vault_share::Entity::insert(share.into_active_model()).exec_without_returning(&db.writer).await.unwrap();
    db.close().await.unwrap();
}

/// A dump as `sqlite3` and `pg_dump` write it.
fn dump(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    // Lines with a backslash are commands of psql.
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter(|line| !line.starts_with('\\')).map(|line| format!("{line}\n")).collect()
}

async fn write_dumps(name: &str) {
    let home = tempfile::tempdir().unwrap();
    write_sample(&address(&home)).await;
    let text = dump("sqlite3", &[home.path().join("kandev.db").to_str().unwrap(), ".dump"]);
    fs::write(folder().join(format!("{name}.sqlite.sql")), text).unwrap();

    let url = Server::shared().expect("dumps need PostgreSQL").database().await;
    write_sample(&url).await;
    let text = dump("pg_dump", &["--inserts", "--no-owner", "--no-privileges", "--dbname", &url]);
    fs::write(folder().join(format!("{name}.postgres.sql")), text).unwrap();
}

#[tokio::test]
async fn every_schema_step_has_a_dump_of_the_schema_it_makes() {
    if let Ok(name) = std::env::var(WRITE) {
        write_dumps(&name).await;
    }
    for kind in KINDS {
        let newest = |text: &str| steps().into_iter().rfind(|step| text.contains(&format!("'{step}'")));
        let dumped: BTreeSet<_> = dumps(kind).iter().filter_map(|(_, text)| newest(text)).collect();
        let missing: Vec<_> = steps().into_iter().filter(|step| !dumped.contains(step)).collect();
        assert_eq!(missing, [""; 0], "no {kind} dump: run scripts/dump-schema.sh (tests/fixtures/db/README.md)");
    }
    let names = |kind| dumps(kind).into_iter().map(|(name, _)| name).collect::<BTreeSet<_>>();
    assert_eq!(names("sqlite"), names("postgres"));
}

async fn restored_sqlite(text: &str) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let options = SqliteConnectOptions::from_str(&address(&home)).unwrap().create_if_missing(true);
    let mut connection = options.connect().await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(text.to_owned())).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    home
}

/// Tables, columns and indexes, without the order in which steps made them.
async fn sqlite_schema(url: &str) -> Vec<String> {
    let columns = "SELECT m.name || '.' || c.name || ' ' || c.type || ' ' || c.\"notnull\" || ' ' || c.pk || ' ' || \
                   coalesce(c.dflt_value, '') FROM sqlite_master m JOIN pragma_table_info(m.name) c \
                   WHERE m.type = 'table' UNION ALL SELECT sql FROM sqlite_master WHERE type <> 'table' AND sql <> '' \
                   ORDER BY 1";
    let mut connection = SqliteConnectOptions::from_str(url).unwrap().connect().await.unwrap();
    sqlx::query_scalar(columns).fetch_all(&mut connection).await.unwrap()
}

async fn postgres_schema(url: &str) -> Vec<String> {
    let columns = "SELECT table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable || ' ' || \
                   coalesce(column_default, '') FROM information_schema.columns WHERE table_schema = 'public' \
                   UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' \
                   UNION ALL SELECT conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint \
                   WHERE connamespace = 'public'::regnamespace ORDER BY 1";
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::query_scalar(columns).fetch_all(&mut connection).await.unwrap()
}

/// Opens the database as the host does; its rows are there and can be written.
async fn assert_comes_forward(name: &str, url: &str, text: &str) {
    let db = connect(url).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    let store = StateStore::new(db.clone(), &Limits::default());
    for (scope, entry) in sample() {
        assert_eq!(store.list(&plugin(), &scope).await.unwrap(), std::slice::from_ref(&entry), "{name}");
        store.set(&plugin(), &scope, &entry.key, &json!({}), entry.updated_at).await.unwrap();
        store.delete(&plugin(), &scope, &entry.key).await.unwrap();
    }
    let (entries, shares): (Vec<_>, Vec<_>) = text.contains(&sealed().0.id).then(sealed).into_iter().unzip();
    assert_eq!(vault_entry::Entity::find().all(&db.readers).await.unwrap(), entries, "{name}");
    assert_eq!(vault_share::Entity::find().all(&db.readers).await.unwrap(), shares, "{name}");
    assert_eq!(read_kept(&db).await, text.contains("plugin_user_state").then(|| kept().1), "{name}");
    write_kept(&db).await;
    let inbox = InboxStore::new(db.clone(), &Limits::default());
    if text.contains("inbox_item") {
        assert_eq!(inbox.list(Filter::All, None, 10).await.unwrap().items, [inbox_item()], "{name}");
    }
    let platform = PlatformStore::new(db.clone());
    if !text.contains(&workspace().id) {
        write_platform(&platform).await;
    }
    assert_eq!(
        platform.find::<Workspace>(&crate::domain::platform::Scope::All, &workspace().id).await,
        Ok(workspace()),
        "{name}"
    );
    assert_eq!(platform.events_after(0, 10).await.unwrap().0.len(), 1, "{name}");
    let tokens = platform.git_tokens(GIT_SESSION, datetime!(2026-11-29 12:00:00 UTC)).await.unwrap();
    let found: Vec<_> = tokens.iter().map(|token| token.id.as_str()).collect();
    let expected = if text.contains(GIT_TOKEN) { vec![GIT_TOKEN] } else { Vec::new() };
    assert_eq!(found, expected, "{name}");
    if found.is_empty() {
        write_git_token(&db).await;
    }
    let market = MarketplaceStore::new(db.clone(), &Limits::default());
    let sources = text.contains(&market_source().id).then(market_source);
    assert_eq!(market.list().await.unwrap(), Vec::from_iter(sources), "{name}");
    write_inbox(&db).await;
    assert_eq!(inbox.lasting().await.unwrap(), [plugin()], "{name}");
    db.close().await.unwrap();
}

#[tokio::test]
async fn every_sqlite_dump_comes_forward_with_its_rows_to_the_schema_of_a_new_database() {
    let new = tempfile::tempdir().unwrap();
    connect(&address(&new)).await.unwrap().close().await.unwrap();
    let expected = sqlite_schema(&address(&new)).await;
    assert!(expected.iter().any(|line| line.starts_with("plugin_state.value TEXT 1 ")), "{expected:?}");
    for (name, text) in dumps("sqlite") {
        let home = restored_sqlite(&text).await;
        assert_comes_forward(&name, &address(&home), &text).await;
        assert_eq!(sqlite_schema(&address(&home)).await, expected, "{name}");
    }
}

#[tokio::test]
async fn every_postgres_dump_comes_forward_with_its_rows_to_the_schema_of_a_new_database() {
    let Some(server) = Server::shared() else { return };
    let new = server.database().await;
    connect(&new).await.unwrap().close().await.unwrap();
    let expected = postgres_schema(&new).await;
    assert!(expected.iter().any(|line| line.starts_with("plugin_state.value text NO")), "{expected:?}");
    for (name, text) in dumps("postgres") {
        let url = server.database().await;
        test_postgres::execute(&url, &text).await;
        assert_comes_forward(&name, &url, &text).await;
        assert_eq!(postgres_schema(&url).await, expected, "{name}");
    }
}
