//! Every paged list of the Host service as a Go plugin walks it: while rows come at both ends of its order, and when
//! its rows are large (wire.md §3.2).

use std::collections::BTreeSet;

use kandev_host::{
    config::{Limits, Timing},
    domain::platform::{
        Map,
        message::NewMessage,
        profile::{AgentProfileFields, ExecutorFields, ExecutorProfileFields},
        repository::RepositoryFields,
        session::NewSession,
        task::NewTask,
        words::{AuthorType, ExecutorType, MessageType},
        workflow::WorkflowDraft,
        workspace::WorkspaceDraft,
    },
    platform::{By, Platform},
    store::{db::Db, platform::PlatformStore},
};
use sea_orm::ConnectionTrait;
use serde_json::{Value, json};

use crate::{
    on_databases,
    support::{Guest, Host, Package, host::Settings},
};

/// A walk's page: no divisor of the number of rows.
const PAGE: usize = 7;
const OLD: usize = 24;

/// A paged list: its call, the field of its answer, the field with a row's id, the table and what comes first in its
/// order.
struct Paged(&'static str, &'static str, &'static str, &'static str, &'static str);

const LISTS: [Paged; 9] = [
    Paged("ListWorkspaces", "workspaces", "id", "workspace", "created_at"),
    Paged("ListWorkflows", "workflows", "id", "workflow", "sort_order"),
    Paged("ListAgentProfiles", "profiles", "id", "agent_profile", "agent_position"),
    Paged("ListExecutorProfiles", "profiles", "id", "executor_profile", "name"),
    Paged("ListRepositories", "repositories", "id", "repository", "created_at"),
    Paged("ListTasks", "tasks", "id", "task", "created_at"),
    Paged("ListSessions", "sessions", "id", "task_session", "started_at"),
    Paged("ListSessionCodeStats", "stats", "session_id", "task_session", "started_at"),
    Paged("ListMessages", "messages", "id", "session_message", "created_at"),
];

/// A host with the Go plugin, which may read everything, and the platform in the host's database beside it.
struct Side {
    host: Host,
    db: Db,
    sql: sea_orm::DatabaseConnection,
    platform: Platform,
    workspace: String,
    executor: String,
    task: String,
    session: String,
}

async fn side(settings: Settings) -> Side {
    let url = settings.env.iter().find(|(name, _)| name == "DATABASE_URL").map(|(_, url)| url.clone());
    let host = Host::start_with(settings).await;
    let rights = "capabilities:\n  api_read: [tasks, workspaces, workflows, agent_profiles, executor_profiles, \
                  repositories, sessions, messages]";
    let package = Package::of(Guest::Go, "demo", "1.0.0").manifest(|text| text.replace("capabilities:", rights));
    host.install(&package).await;
    let url = url.unwrap_or_else(|| format!("sqlite://{}", host.home().join("kandev.db").display()));
    let sql = sea_orm::Database::connect(url.as_str()).await.expect("the host's database");
    let db = Db::connect(&url.into(), &Timing::default(), &Limits::default()).await.expect("the host's database");
    let (platform, by) = (Platform::new(&PlatformStore::new(db.clone())), By::operator());
    let draft = WorkspaceDraft { name: Some("one".to_owned()), ..WorkspaceDraft::default() };
    let workspace = platform.workspaces.create(&by, &draft).await.expect("a workspace").id;
    let new = NewTask { title: "x".to_owned(), workspace_id: workspace.clone(), ..NewTask::default() };
    let task = platform.tasks.create(&by, &new).await.expect("a task").task.id;
    let new = NewSession { task_id: task.clone(), ..NewSession::default() };
    let session = platform.sessions.create(&by, &new).await.expect("a session").id;
    platform.agents.register(&by, "codex", "Codex", 1000, true, None).await.expect("an agent");
    let fields = ExecutorFields {
        name: "here".to_owned(),
        executor_type: ExecutorType::ALL[0],
        status: "active".to_owned(),
        is_system: false,
        resumable: true,
        config: Map::new(),
    };
    let executor = platform.executors.create(&by, fields).await.expect("an executor").id;
    Side { host, db, sql, platform, workspace, executor, task, session }
}

impl Side {
    /// One more row of the list; its id.
    async fn add(&self, rpc: &str, name: &str) -> String {
        let (platform, by, name) = (&self.platform, &By::operator(), name.to_owned());
        match rpc {
            "ListWorkspaces" => {
                let draft = WorkspaceDraft { name: Some(name), ..WorkspaceDraft::default() };
                platform.workspaces.create(by, &draft).await.expect("a workspace").id
            }
            "ListWorkflows" => {
                let draft = WorkflowDraft { name: Some(name), ..WorkflowDraft::default() };
                platform.workflows.create(by, &self.workspace, &draft, None).await.expect("a workflow").id
            }
            "ListAgentProfiles" => {
                let fields = AgentProfileFields {
                    name,
                    model: String::new(),
                    mode: String::new(),
                    workspace_id: None,
                    enabled: true,
                    settings: Map::new(),
                };
                platform.agents.create_profile(by, "codex", fields).await.expect("a profile").id
            }
            "ListExecutorProfiles" => {
                let fields = ExecutorProfileFields { name, ..ExecutorProfileFields::default() };
                platform.executors.create_profile(by, &self.executor, fields).await.expect("a profile").id
            }
            "ListRepositories" => {
                let fields = RepositoryFields { name, ..RepositoryFields::default() };
                platform.repositories.create(by, &self.workspace, fields).await.expect("a repository").id
            }
            "ListTasks" => {
                let workspace_id = self.workspace.clone();
                let new = NewTask { title: name, workspace_id, ..NewTask::default() };
                platform.tasks.create(by, &new).await.expect("a task").task.id
            }
            "ListSessions" | "ListSessionCodeStats" => {
                let new = NewSession { task_id: self.task.clone(), ..NewSession::default() };
                platform.sessions.create(by, &new).await.expect("a session").id
            }
            _ => self.message(name).await,
        }
    }

    async fn message(&self, content: String) -> String {
        let new = NewMessage {
            session_id: self.session.clone(),
            author_type: AuthorType::Agent,
            author_id: String::new(),
            message_type: MessageType::Content,
            content,
            requests_input: false,
            metadata: Map::new(),
        };
        self.platform.messages.add(&By::operator(), &new).await.expect("a message").id
    }

    /// One more row at each end of the list's order.
    async fn add_at_both_ends(&self, list: &Paged, n: usize) -> [String; 2] {
        let Paged(rpc, _, _, table, column) = list;
        let mut made = Vec::new();
        for (end, number) in [("!", n), ("~", 4_000_000_000_000_000 + n)] {
            let id = self.add(rpc, &format!("{end}{n}")).await;
            // A name is at its end already.
            if *column != "name" {
                let there = format!("UPDATE {table} SET {column} = {number} WHERE id = '{id}'");
                self.sql.execute_unprepared(&there).await.expect("the row is moved");
            }
            made.push(id);
        }
        made.try_into().expect("two")
    }

    async fn page(&self, list: &Paged, limit: usize, cursor: &str) -> (Vec<Value>, String) {
        let Paged(rpc, field, ..) = list;
        let mut request = json!({"page": {"limit": limit, "cursor": cursor}});
        if *rpc == "ListRepositories" {
            request["workspace_id"] = json!(self.workspace);
        }
        let result = self.host.host_calls("demo", json!([{"rpc": rpc, "request": request}])).await.remove(0);
        assert_eq!(result["ok"], true, "{rpc}: {} {}", result["code"], result["message"]);
        let answer = &result["response"];
        let rows = answer[field].as_array().expect("rows").clone();
        let next = answer["page_info"]["next_cursor"].as_str().expect("a cursor").to_owned();
        assert_eq!(answer["page_info"]["has_more"], json!(!next.is_empty()), "{rpc}");
        (rows, next)
    }

    async fn end(self) {
        self.sql.close().await.expect("the database is closed");
        self.db.close().await.expect("the database is closed");
    }
}

fn ids(list: &Paged, rows: &[Value]) -> Vec<String> {
    rows.iter().map(|row| row[list.2].as_str().expect("an id").to_owned()).collect()
}

on_databases!(a_go_plugin_walks_every_list_and_sees_each_old_row_once_while_others_come, "", |settings| {
    if Guest::Go.executable().is_none() {
        return;
    }
    let side = side(settings).await;
    for list in &LISTS {
        for n in 0..OLD {
            side.add(list.0, &format!("old {n:02}")).await;
        }
        let (rows, next) = side.page(list, 200, "").await;
        assert_eq!(next, "", "{}", list.0);
        let old = ids(list, &rows);
        assert!(old.len() >= OLD, "{}: {} rows", list.0, old.len());
        let (mut walked, mut cursor, mut pages, mut new) = (Vec::new(), String::new(), 0, BTreeSet::new());
        loop {
            let (rows, next) = side.page(list, PAGE, &cursor).await;
            assert!(rows.len() == PAGE || next.is_empty(), "{}: {} rows", list.0, rows.len());
            walked.extend(ids(list, &rows));
            pages += 1;
            if next.is_empty() {
                break;
            }
            cursor = next;
            new.extend(side.add_at_both_ends(list, pages).await);
        }
        let seen: BTreeSet<_> = walked.iter().collect();
        assert_eq!(seen.len(), walked.len(), "{}: none twice", list.0);
        let seen_of_old: Vec<_> = walked.iter().filter(|id| old.contains(id)).cloned().collect();
        assert_eq!(seen_of_old, old, "{}: each old one once, in the order that it had", list.0);
        assert!(pages >= 4 && walked.len() > old.len(), "{}: rows came where the walk had still to go", list.0);
        let (rows, _) = side.page(list, 200, "").await;
        let all: BTreeSet<_> = ids(list, &rows).into_iter().collect();
        assert_eq!(all, old.into_iter().chain(new).collect(), "{}", list.0);
    }
    side.end().await;
});

on_databases!(a_go_plugin_has_large_rows_in_several_pages_and_one_beyond_all_bounds_alone, "", |settings| {
    if Guest::Go.executable().is_none() {
        return;
    }
    let side = side(settings).await;
    let list = LISTS.last().expect("messages");
    let mut made = Vec::new();
    for _ in 0..12 {
        made.push(side.message("x".repeat(512 << 10)).await);
    }
    let monster =
        format!("UPDATE session_message SET raw_content = '{}' WHERE id = '{}'", "y".repeat(5 << 20), made[7]);
    side.sql.execute_unprepared(&monster).await.expect("the row is changed");
    let (mut walked, mut sizes, mut cursor) = (Vec::new(), Vec::new(), String::new());
    loop {
        let (rows, next) = side.page(list, 200, &cursor).await;
        sizes.push(rows.iter().map(|row| row["content"].as_str().expect("a text").len()).collect::<Vec<_>>());
        walked.extend(ids(list, &rows));
        if next.is_empty() {
            break;
        }
        cursor = next;
    }
    assert_eq!(walked, made);
    assert!(sizes.contains(&vec![5 << 20]), "alone: {sizes:?}");
    let ordinary = sizes.iter().filter(|page| **page != [5 << 20]);
    assert!(ordinary.clone().count() >= 2 && ordinary.clone().all(|page| page.iter().sum::<usize>() <= 3 << 20));
    side.end().await;
});
