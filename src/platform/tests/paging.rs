//! Walks through lists: the pages together are the whole list in its order, also while rows are added.

use std::collections::HashSet;

use super::*;
use crate::{
    domain::platform::{
        page::Page,
        task::{Show, TaskFilter, TaskPatch},
    },
    store::{
        db::tests::{connect, on_both_databases, tamper},
        platform::TaskQuery,
    },
};

/// Pages of seven, until the end.
async fn walk<T>(mut page: impl AsyncFnMut(PageRequest) -> Page<T>) -> Vec<T> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let part = page(PageRequest::new(7, &cursor)).await;
        assert!(part.items.len() <= 7 && (part.next_cursor.is_none() || part.items.len() == 7));
        all.extend(part.items);
        match part.next_cursor {
            None => return all,
            Some(next) => cursor = next,
        }
    }
}

async fn pages_of_tasks_are_the_whole_list_in_its_order_for_every_filter(db: Db) {
    let world = World::new(db.clone());
    let by = By::operator();
    let (one, two, three) =
        (world.workspace("one").await, world.workspace("two").await, world.workspace("three").await);
    let mut all = Vec::new();
    let mut parent = String::new();
    for n in 0..60usize {
        let workspace = [&one, &two, &three][n % 3];
        let part = n % 3 == 0 && n > 0 && n % 2 == 0;
        let new = NewTask {
            workspace_id: workspace.id.clone(),
            is_ephemeral: n % 10 == 9,
            parent_id: if part { parent.clone() } else { String::new() },
            ..titled(&format!("Task {n} {}", if n % 4 == 0 { "100%" } else { "x_y" }))
        };
        let task = world.made(&by, &new).await;
        if n == 0 {
            parent.clone_from(&task.id);
        }
        if n % 5 == 0 {
            let state =
                TaskPatch { state: crate::domain::platform::words::TaskState::of("REVIEW"), ..TaskPatch::default() };
            world.platform.tasks.update(&by, &task.id, &state, None).await.unwrap();
        }
        if n % 7 == 0 {
            world.platform.tasks.set_archived(&by, &task.id, true, None).await.unwrap();
        }
        all.push(task.id);
    }
    // Many at the same moment: the id decides.
    tamper(&db, "UPDATE task SET created_at = (created_at / 1000000) * 1000000").await;
    let whole =
        TaskFilter { ephemeral: Show::With, archived: Show::With, internal: Show::With, ..TaskFilter::default() };
    let owned = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    let list = async |filter: &TaskFilter| {
        let walked = walk(async |page| world.platform.tasks.list(&Scope::All, filter, &page).await.unwrap()).await;
        let part = TaskQuery { offset: 0, limit: 1000 };
        let (at_once, total) = world.platform.tasks.list_at(&Scope::All, filter, part).await.unwrap();
        assert_eq!((&walked, None), (&at_once.items, at_once.next_cursor), "{filter:?}");
        assert_eq!(total as usize, walked.len());
        let keys: Vec<_> = walked.iter().map(|task| (std::cmp::Reverse(task.created_at), task.id.clone())).collect();
        assert!(keys.is_sorted() && keys.iter().collect::<HashSet<_>>().len() == keys.len(), "{filter:?}");
        walked
    };
    let count = async |filter: TaskFilter| list(&filter).await.len();
    assert_eq!(count(whole.clone()).await, 60);
    assert_eq!(count(TaskFilter::default()).await, 60 - 6 - 9 + 1, "without quick chats and what was put away");
    assert_eq!(count(TaskFilter { archived: Show::Only, ..whole.clone() }).await, 9);
    assert_eq!(count(TaskFilter { ephemeral: Show::Only, ..whole.clone() }).await, 6);
    for workspaces in
        [owned(&[&one.id]), owned(&[&one.id, &two.id]), owned(&[&two.id, &one.id, &three.id, "none", &two.id])]
    {
        let known = workspaces.iter().filter(|id| *id != "none").collect::<HashSet<_>>().len();
        assert_eq!(count(TaskFilter { workspace_ids: workspaces, ..whole.clone() }).await, 20 * known);
    }
    let many: Vec<_> = (0..30).map(|n| format!("none{n}")).chain([one.id.clone()]).collect();
    assert_eq!(count(TaskFilter { workspace_ids: many, ..whole.clone() }).await, 20);
    assert_eq!(count(TaskFilter { workspace_ids: owned(&["none"]), ..whole.clone() }).await, 0);
    assert_eq!(count(TaskFilter { states: owned(&["REVIEW", "none"]), ..whole.clone() }).await, 12);
    assert_eq!(count(TaskFilter { states: owned(&["none"]), ..whole.clone() }).await, 0);
    let parts = count(TaskFilter { parent_id: Some(parent.clone()), ..whole.clone() }).await;
    assert_eq!(parts, 9);
    assert_eq!(count(TaskFilter { parent_id: Some(String::new()), ..whole.clone() }).await, 60 - parts);
    assert_eq!(count(TaskFilter { text: Some("100%".to_owned()), ..whole.clone() }).await, 15);
    assert_eq!(count(TaskFilter { text: Some("X_Y".to_owned()), ..whole.clone() }).await, 45);
    assert_eq!(count(TaskFilter { text: Some("0%x".to_owned()), ..whole.clone() }).await, 0);
    let flood = TaskFilter { workspace_ids: vec!["x".to_owned(); 5001], ..whole.clone() };
    let refusal = text(world.platform.tasks.list(&Scope::All, &flood, &PageRequest::default()).await);
    assert_eq!(refusal, "workspace_ids has 5001 entries, at most 5000 are allowed");
    let (workflow, _) = world.board(&two).await;
    let board = TaskFilter { workflow_ids: owned(&[&workflow.id]), workspace_ids: owned(&[&one.id, &two.id]), ..whole };
    assert_eq!(count(board).await, 20);
}

async fn a_walk_sees_each_old_row_once_while_rows_are_added_and_deleted(db: Db) {
    let world = World::new(db);
    world.workspace("one").await;
    let by = By::operator();
    let mut old = Vec::new();
    for n in 0..40 {
        old.push(world.task(&n.to_string()).await.id);
    }
    let mut round = 0;
    let walked = walk(async |page| {
        world.task(&format!("new {round}")).await;
        // One that was seen, or will be: neither moves the others.
        if round == 2 {
            world.platform.tasks.delete(&by, &old[39], false, None).await.unwrap();
        }
        round += 1;
        world.platform.tasks.list(&Scope::All, &TaskFilter::default(), &page).await.unwrap()
    })
    .await;
    let ids: Vec<_> = walked.into_iter().map(|task| task.id).collect();
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "none twice");
    let seen: Vec<_> = ids.iter().filter(|id| old.contains(id)).cloned().collect();
    assert_eq!(seen, old.iter().rev().cloned().collect::<Vec<_>>(), "each old one once, in order");
}

async fn every_list_walks_to_its_end_and_refuses_a_foreign_cursor(db: Db) {
    use crate::domain::platform::{
        message::MessageFilter,
        session::{NewSession, SessionFilter},
    };
    let world = World::new(db);
    let by = By::operator();
    let platform = &world.platform;
    for n in 0..15 {
        world.workspace(&format!("w{n}")).await;
    }
    let workspace = platform.workspaces.list(&Scope::All, &PageRequest::default()).await.unwrap().items.remove(0);
    let task = world.made(&by, &NewTask { workspace_id: workspace.id.clone(), ..titled("x") }).await;
    for n in 0..15 {
        let fields =
            crate::domain::platform::repository::RepositoryFields { name: n.to_string(), ..Default::default() };
        platform.repositories.create(&by, &workspace.id, fields).await.unwrap();
        let session = platform
            .sessions
            .create(&by, &NewSession { task_id: task.id.clone(), ..Default::default() })
            .await
            .unwrap();
        let message = crate::domain::platform::message::NewMessage {
            session_id: session.id,
            author_type: crate::domain::platform::words::AuthorType::Agent,
            author_id: String::new(),
            message_type: crate::domain::platform::words::MessageType::Content,
            content: n.to_string(),
            requests_input: false,
            metadata: Map::new(),
        };
        platform.messages.add(&by, &message).await.unwrap();
    }
    let all = &Scope::All;
    let workspaces = walk(async |page| platform.workspaces.list(all, &page).await.unwrap()).await;
    assert_eq!(workspaces.len(), 15);
    let workflows = walk(async |page| platform.workflows.list(all, "", &page).await.unwrap()).await;
    assert_eq!(workflows.len(), 15);
    let repositories = walk(async |page| platform.repositories.list(all, &workspace.id, &page).await.unwrap()).await;
    assert_eq!(
        repositories.iter().map(|each| each.fields.name.as_str()).collect::<Vec<_>>(),
        (0..15).rev().map(|n| n.to_string()).collect::<Vec<_>>()
    );
    let (any_session, any_message) = (SessionFilter::default(), MessageFilter::default());
    let sessions = walk(async |page| platform.sessions.list(all, &any_session, &page).await.unwrap()).await;
    let stats = walk(async |page| platform.code.stats(all, &any_session, &page).await.unwrap()).await;
    assert_eq!(
        sessions.iter().map(|each| &each.id).collect::<Vec<_>>(),
        stats.iter().map(|each| &each.session_id).collect::<Vec<_>>()
    );
    assert_eq!(sessions.len(), 15);
    let messages = walk(async |page| platform.messages.list(all, &any_message, false, &page).await.unwrap()).await;
    let mut reversed = walk(async |page| platform.messages.list(all, &any_message, true, &page).await.unwrap()).await;
    reversed.reverse();
    assert_eq!((messages.len(), &messages), (15, &reversed));

    let foreign = platform.workspaces.list(all, &PageRequest::new(1, "")).await.unwrap().next_cursor.unwrap();
    for cursor in [foreign.as_str(), "7", "garbage"] {
        let page = PageRequest::new(7, cursor);
        let refusals = [
            refused(platform.tasks.list(all, &TaskFilter::default(), &page).await),
            refused(platform.sessions.list(all, &any_session, &page).await),
            refused(platform.code.stats(all, &any_session, &page).await),
            refused(platform.messages.list(all, &any_message, false, &page).await),
            refused(platform.repositories.list(all, &workspace.id, &page).await),
            refused(platform.agents.profiles(&Scope::All, &page).await),
        ];
        assert!(refusals.iter().all(|refusal| *refusal == Refusal::BadCursor), "{cursor}: {refusals:?}");
    }
}

/// The bound of a filter is of values for each field; all fields at their bound are one statement still.
async fn filters_at_their_bounds_are_answered(db: Db) {
    use crate::domain::platform::{
        message::{self, MessageFilter},
        session::{NewSession, SessionFilter},
        text::MAX_FILTER_VALUES,
    };
    let world = World::new(db);
    let (by, all, page, platform) = (By::operator(), &Scope::All, &PageRequest::default(), &world.platform);
    let workspace = world.workspace("one").await;
    let (board, _) = world.board(&workspace).await;
    let task = world.task("x").await;
    let session =
        platform.sessions.create(&by, &NewSession { task_id: task.id.clone(), ..Default::default() }).await.unwrap();
    let among =
        |count: usize, id: &str| (1..count).map(|n| format!("none{n}")).chain([id.to_owned()]).collect::<Vec<_>>();
    for leading in [1, 7, 16, 17, MAX_FILTER_VALUES] {
        let filter = TaskFilter {
            workflow_ids: among(leading, &board.id),
            workspace_ids: among(MAX_FILTER_VALUES, &workspace.id),
            states: vec![task.state.as_str().to_owned(); MAX_FILTER_VALUES],
            text: Some("x".to_owned()),
            ..TaskFilter::default()
        };
        let found = platform.tasks.list(all, &filter, page).await.unwrap().items;
        assert_eq!(found, std::slice::from_ref(&task), "{leading}");
        let part = TaskQuery { offset: 0, limit: 10 };
        let whole = Page { items: found, next_cursor: None };
        assert_eq!(platform.tasks.list_at(all, &filter, part).await.unwrap(), (whole, 1), "{leading}");
        let filter = SessionFilter {
            task_ids: among(leading, &task.id),
            workspace_ids: among(MAX_FILTER_VALUES, &workspace.id),
            states: vec![session.state.as_str().to_owned(); MAX_FILTER_VALUES],
        };
        let found = platform.sessions.list(all, &filter, page).await.unwrap().items;
        assert_eq!(found, std::slice::from_ref(&session), "{leading}");
        assert_eq!(platform.code.stats(all, &filter, page).await.unwrap().items.len(), 1, "{leading}");
    }
    let filter = MessageFilter {
        session_ids: among(16, &session.id),
        task_ids: among(8, &task.id),
        types: vec!["content".to_owned(); message::MAX_FILTER_VALUES - 24],
        ..MessageFilter::default()
    };
    assert_eq!(platform.messages.list(all, &filter, true, page).await.unwrap().items, []);
}

/// Only the letters a to z are the same whatever their case, also where the database's language knows more.
async fn a_text_is_found_whatever_language_the_database_has(db: Db) {
    let world = World::new(db);
    world.workspace("one").await;
    let made = world.task("\u{c4}RGER im B\u{dc}RO").await;
    for (text, count) in
        [("\u{c4}rger", 1), ("\u{c4}RGER", 1), ("b\u{dc}ro", 1), ("IM", 1), ("\u{e4}rger", 0), ("b\u{fc}ro", 0)]
    {
        let filter = TaskFilter { text: Some(text.to_owned()), ..TaskFilter::default() };
        let found = world.platform.tasks.list(&Scope::All, &filter, &PageRequest::default()).await.unwrap().items;
        assert_eq!(found, vec![made.clone(); count], "{text}");
    }
}

#[tokio::test]
async fn a_text_is_found_in_a_database_of_another_language() {
    let Some(server) = test_postgres::Server::shared() else { return };
    let name = format!("kandev_test_{}", uuid::Uuid::new_v4().simple());
    let create = format!("CREATE DATABASE {name} TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'de-DE' LOCALE 'C'");
    server.execute("postgres", &create).await;
    let db = connect(&server.address(&name)).await.unwrap();
    a_text_is_found_whatever_language_the_database_has(db).await;
}

on_both_databases!(
    filters_at_their_bounds_are_answered,
    a_text_is_found_whatever_language_the_database_has,
    pages_of_tasks_are_the_whole_list_in_its_order_for_every_filter,
    a_walk_sees_each_old_row_once_while_rows_are_added_and_deleted,
    every_list_walks_to_its_end_and_refuses_a_foreign_cursor,
);
