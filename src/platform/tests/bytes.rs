//! Pages are bounded in bytes: a walk through large rows has each of them whole, in pages that can be sent.

use serde::Serialize;

use super::*;
use crate::{
    domain::platform::{
        message::{MessageFilter, NewMessage},
        page::{MAX_BYTES, Page},
        profile::{AgentProfileFields, ExecutorFields, ExecutorProfileFields},
        repository::RepositoryFields,
        session::{NewSession, SessionFilter, SessionPatch},
        stats::{CommitFields, SnapshotFields},
        task::TaskFilter,
        text::{MAX_CONTENT_BYTES, MAX_TEXT_BYTES},
        words::{AuthorType, ExecutorType, MessageType},
        workflow::WorkflowDraft,
    },
    store::{
        db::tests::{on_both_databases, tamper},
        platform::{EventFilter, TaskQuery},
    },
};

/// Rows of each list: some pages of them.
const ROWS: usize = 14;
/// Beside the long texts a row has ids, names and times.
const ROOM: usize = 256 << 10;

fn long() -> String {
    "x".repeat(MAX_TEXT_BYTES)
}

fn object() -> Map {
    map(json!({"text": "x".repeat(MAX_TEXT_BYTES - 100)}))
}

/// Walks to the end; checks what each page weighs, and gives the rows and how many pages there were.
async fn walk<T: Serialize>(mut page: impl AsyncFnMut(PageRequest) -> Page<T>) -> (Vec<T>, usize) {
    let (mut all, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let part = page(PageRequest::new(200, &cursor)).await;
        let size = serde_json::to_string(&part.items).unwrap().len();
        assert!(size <= MAX_BYTES + ROOM || part.items.len() == 1, "{} rows of {size} bytes", part.items.len());
        assert!(!part.items.is_empty(), "a page has a row");
        pages += 1;
        all.extend(part.items);
        match part.next_cursor {
            None => return (all, pages),
            Some(next) => cursor = next,
        }
    }
}

/// The list shows these rows, whole, in more pages than one.
async fn shows<T: Serialize + PartialEq + std::fmt::Debug>(
    mut expected: Vec<T>,
    newest_first: bool,
    page: impl AsyncFnMut(PageRequest) -> Page<T>,
) {
    let (walked, pages) = walk(page).await;
    if newest_first {
        expected.reverse();
    }
    assert!(walked == expected, "{} rows of {}", walked.len(), expected.len());
    assert!(pages > 1, "{pages} pages");
}

async fn large_rows_of_the_board_come_whole_in_pages_that_can_be_sent(db: Db) {
    let world = World::new(db);
    let (platform, by, all) = (&world.platform, By::operator(), &Scope::All);
    let mut made = Vec::new();
    for n in 0..ROWS {
        let draft =
            WorkspaceDraft { name: Some(n.to_string()), description: Some(long()), ..WorkspaceDraft::default() };
        made.push(platform.workspaces.create(&by, &draft).await.unwrap());
    }
    let workspace = made[0].id.clone();
    shows(made, true, async |page| platform.workspaces.list(all, &page).await.unwrap()).await;

    let mut made = vec![world.board(&platform.workspaces.get(all, &workspace).await.unwrap()).await.0];
    for n in 1..ROWS {
        let draft = WorkflowDraft {
            name: Some(n.to_string()),
            description: Some(long()),
            prompt: Some(long()),
            ..WorkflowDraft::default()
        };
        made.push(platform.workflows.create(&by, &workspace, &draft, None).await.unwrap());
    }
    shows(made, false, async |page| platform.workflows.list(all, &workspace, &page).await.unwrap()).await;

    let mut made = Vec::new();
    for n in 0..ROWS {
        // Large and small ones by turns.
        let text = || if n % 2 == 0 { long() } else { "small".to_owned() };
        let fields = RepositoryFields {
            name: n.to_string(),
            setup_script: text(),
            cleanup_script: text(),
            dev_script: text(),
            copy_files: text(),
            ..RepositoryFields::default()
        };
        made.push(platform.repositories.create(&by, &workspace, fields).await.unwrap());
    }
    shows(made, true, async |page| platform.repositories.list(all, &workspace, &page).await.unwrap()).await;
}

async fn a_numbered_page_of_large_tasks_is_bounded_and_its_cursor_leads_on(db: Db) {
    let world = World::new(db);
    let (tasks, all) = (&world.platform.tasks, &Scope::All);
    world.workspace("one").await;
    let mut made = Vec::new();
    for n in 0..ROWS {
        let new = NewTask { description: long(), ..titled(&n.to_string()) };
        made.push(world.made(&By::operator(), &new).await);
    }
    made.reverse();
    let part = TaskQuery { offset: 1, limit: 100 };
    let (Page { mut items, mut next_cursor }, total) = tasks.list_at(all, &TaskFilter::default(), part).await.unwrap();
    let size = serde_json::to_string(&items).unwrap().len();
    assert!(size <= MAX_BYTES + ROOM, "{} rows of {size} bytes", items.len());
    assert_eq!((total, next_cursor.is_some()), (ROWS as u64, true), "{} rows", items.len());
    while let Some(cursor) = next_cursor {
        let part = tasks.list(all, &TaskFilter::default(), &PageRequest::new(200, &cursor)).await.unwrap();
        items.extend(part.items);
        next_cursor = part.next_cursor;
    }
    assert!(items == made[1..], "{} rows", items.len());
}

async fn large_profiles_come_whole_in_pages_that_can_be_sent(db: Db) {
    let world = World::new(db);
    let (platform, by, all) = (&world.platform, By::operator(), &Scope::All);
    platform.agents.register(&by, "codex", "Codex", 1, true, None).await.unwrap();
    let kind = ExecutorType::ALL[0];
    let fields = ExecutorFields {
        name: "here".to_owned(),
        executor_type: kind,
        status: "active".to_owned(),
        is_system: false,
        resumable: true,
        config: Map::new(),
    };
    let executor = platform.executors.create(&by, fields).await.unwrap();
    let (mut agents, mut executors) = (Vec::new(), Vec::new());
    for n in 0..ROWS {
        let fields = AgentProfileFields {
            name: n.to_string(),
            model: String::new(),
            mode: String::new(),
            workspace_id: None,
            enabled: true,
            settings: object(),
        };
        agents.push(platform.agents.create_profile(&by, "codex", fields).await.unwrap());
        let fields = ExecutorProfileFields {
            name: format!("{n:03}"),
            config: object(),
            prepare_script: long(),
            cleanup_script: long(),
            ..ExecutorProfileFields::default()
        };
        executors.push(platform.executors.create_profile(&by, &executor.id, fields).await.unwrap());
    }
    shows(agents, false, async |page| platform.agents.profiles(all, &page).await.unwrap()).await;
    shows(executors, false, async |page| platform.executors.profiles(all, &page).await.unwrap()).await;
}

async fn large_tasks_and_their_work_come_whole_in_pages_that_can_be_sent(db: Db) {
    let world = World::new(db);
    let (platform, by, all) = (&world.platform, By::operator(), &Scope::All);
    let workspaces = [world.workspace("one").await.id, world.workspace("two").await.id];
    let (mut tasks, mut sessions) = (Vec::new(), Vec::new());
    for n in 0..ROWS {
        let workspace_id = workspaces[n % 2].clone();
        let new = NewTask { description: long(), metadata: object(), workspace_id, ..titled(&n.to_string()) };
        tasks.push(world.made(&by, &new).await);
        let new = NewSession { task_id: tasks[n].id.clone(), metadata: object(), ..NewSession::default() };
        let session = platform.sessions.create(&by, &new).await.unwrap();
        let patch = SessionPatch { error_message: Some(long()), ..SessionPatch::default() };
        sessions.push(platform.sessions.update(&by, &session.id, &patch, None).await.unwrap());
    }
    let session = sessions[0].id.clone();
    // Of one walk, and of the merge of two.
    for workspace_ids in [Vec::new(), workspaces.to_vec()] {
        let filter = TaskFilter { workspace_ids: workspace_ids.clone(), ..TaskFilter::default() };
        shows(tasks.clone(), true, async |page| platform.tasks.list(all, &filter, &page).await.unwrap()).await;
        let filter = SessionFilter { workspace_ids, ..SessionFilter::default() };
        shows(sessions.clone(), true, async |page| platform.sessions.list(all, &filter, &page).await.unwrap()).await;
    }
    let (mut messages, mut commits, mut snapshots) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..ROWS {
        let new = NewMessage {
            session_id: session.clone(),
            author_type: AuthorType::Agent,
            author_id: String::new(),
            message_type: MessageType::Content,
            content: "x".repeat(MAX_CONTENT_BYTES),
            requests_input: false,
            metadata: object(),
        };
        messages.push(platform.messages.add(&by, &new).await.unwrap());
        let fields = CommitFields { commit_sha: n.to_string(), commit_message: long(), ..CommitFields::default() };
        commits.push(platform.code.record_commit(&by, &session, fields, None).await.unwrap());
        let fields = SnapshotFields { files: object(), ..SnapshotFields::default() };
        snapshots.push(platform.code.record_snapshot(&by, &session, fields).await.unwrap());
    }
    let any = MessageFilter::default();
    for newest_first in [false, true] {
        let list = async |page| platform.messages.list(all, &any, newest_first, &page).await.unwrap();
        shows(messages.clone(), newest_first, list).await;
    }
    shows(commits, true, async |page| platform.code.commits(all, &session, &page).await.unwrap()).await;
    shows(snapshots, true, async |page| platform.code.snapshots(all, &session, &page).await.unwrap()).await;

    let logged = world.log().await;
    let any = EventFilter::default();
    let (mut listed, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = platform.events.list(all, &any, &PageRequest::new(200, &cursor)).await.unwrap();
        let bytes = page.items.iter().map(|event| serde_json::to_string(&event.payload).unwrap().len()).sum::<usize>();
        assert!(bytes <= MAX_BYTES || page.items.len() == 1, "{} events of {bytes} bytes", page.items.len());
        listed.extend(page.items);
        cursor = page.cursor.unwrap_or_default();
        if !page.has_more {
            break;
        }
    }
    assert!(listed == logged, "{} events of {}", listed.len(), logged.len());
}

async fn a_row_that_is_larger_than_a_page_is_a_page(db: Db) {
    let world = World::new(db.clone());
    for name in ["one", "two", "three"] {
        world.workspace(name).await;
    }
    let text = "x".repeat(MAX_BYTES + 1);
    tamper(&db, &format!("UPDATE workspace SET description = '{text}' WHERE name = 'two'")).await;
    let list = async |page| world.platform.workspaces.list(&Scope::All, &page).await.unwrap();
    let (walked, pages) = walk(list).await;
    let names: Vec<_> = walked.iter().map(|workspace| workspace.name.as_str()).collect();
    assert_eq!((names, pages), (vec!["three", "two", "one"], 3));
    assert!(walked[1].description.as_deref() == Some(text.as_str()));
}

on_both_databases!(
    large_rows_of_the_board_come_whole_in_pages_that_can_be_sent,
    a_numbered_page_of_large_tasks_is_bounded_and_its_cursor_leads_on,
    large_profiles_come_whole_in_pages_that_can_be_sent,
    large_tasks_and_their_work_come_whole_in_pages_that_can_be_sent,
    a_row_that_is_larger_than_a_page_is_a_page,
);
