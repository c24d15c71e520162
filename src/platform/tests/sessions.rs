//! Sessions, turns and messages.

use std::time::Duration;

use super::*;
use crate::{
    domain::platform::{
        message::{Message, MessageFilter, MessagePatch, NewMessage},
        profile::AgentProfileFields,
        refusal::Class,
        repository::RepositoryFields,
        session::{NewSession, Session, SessionFilter, SessionPatch},
        task::{RepositoryDraft, RepositoryRef, TaskPatch},
        words::{AuthorType, MessageType, ReviewStatus, SessionState},
    },
    store::db::tests::on_both_databases,
};

pub(super) async fn session_of(world: &World, task: &str) -> Session {
    let new = NewSession { task_id: task.to_owned(), ..NewSession::default() };
    world.platform.sessions.create(&By::operator(), &new).await.unwrap()
}

pub(super) fn message_in(session: &str, content: &str) -> NewMessage {
    NewMessage {
        session_id: session.to_owned(),
        author_type: AuthorType::User,
        author_id: String::new(),
        message_type: MessageType::Message,
        content: content.to_owned(),
        requests_input: false,
        metadata: Map::new(),
    }
}

async fn a_session_remembers_its_profile_and_the_first_is_primary(db: Db) {
    let world = World::new(db);
    let (sessions, agents, by) = (&world.platform.sessions, &world.platform.agents, By::operator());
    let workspace = world.workspace("one").await;
    agents.register(&by, "codex", "Codex", 1, true, None).await.unwrap();
    let fields = AgentProfileFields {
        name: "Fast".to_owned(),
        model: "m1".to_owned(),
        mode: "auto".to_owned(),
        workspace_id: None,
        enabled: true,
        settings: Map::new(),
    };
    let profile = agents.create_profile(&by, "codex", fields).await.unwrap();
    let task = world.task("x").await;
    let seen = world.log().await.len();
    let new = NewSession { task_id: task.id.clone(), agent_profile_id: profile.id.clone(), ..NewSession::default() };
    let first = sessions.create(&by, &new).await.unwrap();
    agents.delete_profile(&by, &profile.id, None).await.unwrap();
    let found = sessions.get(&Scope::All, &first.id).await.unwrap();
    assert_eq!((found.agent_display_name(), found.agent_profile_name(), found.model()), ("Codex", "Fast", "m1"));
    assert_eq!(
        (found.is_primary, found.state, found.workspace_id.as_str()),
        (true, SessionState::Created, workspace.id.as_str())
    );
    let told = world.log().await.split_off(seen);
    assert_eq!(told[0].subject, "task_session.state_changed");
    assert!(!told[0].payload.contains_key("old_state") && told[0].payload.contains_key("workflow_step_id"));
    assert_eq!(
        (told[1].subject.as_str(), &told[1].payload["primary_session_id"]),
        ("task.updated", &first.id.as_str().into())
    );
    assert!(told.iter().take(2).all(|event| event.workspace_id == workspace.id));
    assert_eq!(text(sessions.create(&by, &new).await), "agent_profile_id is not available");
    assert_eq!(refused(sessions.create(&by, &NewSession::default()).await).class(), Class::NotFound);

    let second = session_of(&world, &task.id).await;
    assert!(!second.is_primary);
    assert_eq!(
        sessions.primary(&Scope::All, &task.id).await.unwrap().map(|session| session.id),
        Some(first.id.clone())
    );
    let crown = SessionPatch { is_primary: Some(true), ..SessionPatch::default() };
    sessions.update(&by, &second.id, &crown, Some(1)).await.unwrap();
    assert_eq!(
        sessions.primary(&Scope::All, &task.id).await.unwrap().map(|session| session.id),
        Some(second.id.clone())
    );
    assert!(!sessions.get(&Scope::All, &first.id).await.unwrap().is_primary);
    let summaries = world.platform.tasks.session_summaries(&Scope::All, std::slice::from_ref(&task.id)).await.unwrap();
    assert_eq!(
        (summaries[&task.id].count, summaries[&task.id].primary.as_ref().map(|p| p.id.clone())),
        (2, Some(second.id.clone()))
    );
    let ensured =
        sessions.ensure(&by, &NewSession { task_id: task.id.clone(), ..NewSession::default() }).await.unwrap();
    assert_eq!(ensured.id, second.id);
    let bad = NewSession { task_id: task.id.clone(), name: "\0".to_owned(), ..NewSession::default() };
    for refused in [sessions.create(&by, &bad).await, sessions.ensure(&by, &bad).await] {
        assert_eq!(text(refused), "name contains a zero byte");
    }
}

async fn a_session_works_in_the_only_repository_of_its_task_unless_another_is_named(db: Db) {
    let world = World::new(db);
    let (sessions, by) = (&world.platform.sessions, By::operator());
    let workspace = world.workspace("one").await;
    let mut repositories = Vec::new();
    for name in ["app", "lib"] {
        let fields = RepositoryFields { name: name.to_owned(), ..RepositoryFields::default() };
        repositories.push(world.platform.repositories.create(&by, &workspace.id, fields).await.unwrap().id);
    }
    let draft = |id: &String| RepositoryDraft {
        repository: RepositoryRef::Known(id.clone()),
        base_branch: "dev".to_owned(),
        checkout_branch: "fix".to_owned(),
        pull_request_number: None,
    };
    let task = async |count: usize| {
        let new = NewTask { repositories: repositories[..count].iter().map(draft).collect(), ..titled("x") };
        world.made(&By::operator(), &new).await.id
    };
    let (none, one, both, fresh) = (task(0).await, task(1).await, task(2).await, task(1).await);
    let (app, lib) = (repositories[0].as_str(), repositories[1].as_str());
    for (task, named, expected) in
        [(&none, "", ("", "")), (&one, "", (app, "dev")), (&both, "", ("", "")), (&both, lib, (lib, "dev"))]
    {
        let new = NewSession { task_id: task.clone(), repository_id: named.to_owned(), ..NewSession::default() };
        let made = sessions.create(&by, &new).await.unwrap();
        assert_eq!((made.repository_id.as_str(), made.base_branch.as_str()), expected, "{named:?}");
        assert_eq!(sessions.get(&Scope::All, &made.id).await.unwrap(), made);
    }
    let new = NewSession { task_id: fresh, base_branch: "next".to_owned(), ..NewSession::default() };
    let ensured = sessions.ensure(&by, &new).await.unwrap();
    assert_eq!((ensured.repository_id.as_str(), ensured.base_branch.as_str()), (app, "next"));
    let minted = world.platform.git_tokens.mint(&Scope::All, &ensured.id, None, Duration::from_secs(60)).await.unwrap();
    assert_eq!(minted.token.repository_id, app, "a token for git needs no repository either");
}

async fn a_sessions_changes_are_told_with_the_old_state(db: Db) {
    let world = World::new(db);
    let (sessions, by) = (&world.platform.sessions, By::operator());
    world.workspace("one").await;
    let task = world.task("x").await;
    let id = session_of(&world, &task.id).await.id;
    let seen = world.log().await.len();
    let failed = SessionPatch {
        state: Some(SessionState::Failed),
        error_message: Some("boom".to_owned()),
        metadata: Some(map(json!({"acp": {"session_id": "s1"}}))),
        ..SessionPatch::default()
    };
    let session = sessions.update(&by, &id, &failed, Some(1)).await.unwrap();
    assert!(session.completed_at.is_some());
    assert_eq!((session.acp_session_id(), session.version), ("s1", 2));
    assert_eq!(sessions.update(&by, &id, &failed, Some(2)).await.unwrap(), session, "nothing changes");
    let told = world.log().await.split_off(seen);
    assert_eq!(
        told.iter().map(|event| event.subject.as_str()).collect::<Vec<_>>(),
        ["task_session.state_changed", "task.updated"]
    );
    let payload = &told[0].payload;
    assert_eq!(
        [&payload["old_state"], &payload["new_state"], &payload["error_message"]],
        ["CREATED", "FAILED", "boom"]
    );
    for status in [Some("pending"), Some("approved"), None, Some("approved"), None] {
        let to = SessionPatch { review_status: Some(status.and_then(ReviewStatus::of)), ..SessionPatch::default() };
        sessions.update(&by, &id, &to, None).await.unwrap();
        let found = sessions.get(&Scope::All, &id).await.unwrap();
        assert_eq!(found.review_status.map(ReviewStatus::as_str), status);
    }
    let approved = SessionPatch { review_status: Some(Some(ReviewStatus::Approved)), ..SessionPatch::default() };
    assert_eq!(sessions.update(&by, &id, &approved, None).await.unwrap().review_status, Some(ReviewStatus::Approved));
    assert_eq!(refused(sessions.update(&by, &id, &approved, Some(1)).await).class(), Class::Stale);
    sessions.delete(&by, &id, None).await.unwrap();
    assert_eq!(refused(sessions.get(&Scope::All, &id).await).class(), Class::NotFound);
}

async fn messages_share_a_turn_until_it_is_over(db: Db) {
    let world = World::new(db);
    let (sessions, messages, by) = (&world.platform.sessions, &world.platform.messages, By::operator());
    let workspace = world.workspace("one").await;
    let task = world.task("x").await;
    let session = session_of(&world, &task.id).await;
    let seen = world.log().await.len();
    let first = messages.add(&by, &message_in(&session.id, "a")).await.unwrap();
    let second = messages.add(&By::plugin(&plugin("acme")), &message_in(&session.id, "b")).await.unwrap();
    assert_eq!((&first.turn_id, &first.task_id), (&second.turn_id, &task.id));
    assert_eq!(Value::from(second.metadata.clone()), json!({"source": "plugin:acme"}));
    let turn = sessions.complete_turn(&by, &session.id).await.unwrap().unwrap();
    assert_eq!(turn.id, first.turn_id);
    assert_eq!(sessions.complete_turn(&by, &session.id).await.unwrap(), None);
    let third = messages.add(&by, &message_in(&session.id, "c")).await.unwrap();
    assert_ne!(third.turn_id, first.turn_id);
    let expected =
        ["turn.started", "message.added", "message.added", "turn.completed", "turn.started", "message.added"];
    assert_eq!(world.told(seen).await, expected);
    assert!(world.log().await.iter().all(|event| event.workspace_id == workspace.id));
    let turns = sessions.turns(&Scope::All, &session.id, &PageRequest::default()).await.unwrap().items;
    assert_eq!(turns.iter().map(|turn| turn.completed_at.is_some()).collect::<Vec<_>>(), [true, false]);

    let read = sessions.mark_read(&by, &session.id, &second.id).await.unwrap();
    assert_eq!(read.last_read_message_id, Some(second.id.clone()));
    assert_eq!(refused(sessions.mark_read(&by, &session.id, "none").await).class(), Class::NotFound);
    let edit = MessagePatch { content: Some("edited".to_owned()), ..MessagePatch::default() };
    let edited = messages.update(&by, &second.id, &edit, Some(1)).await.unwrap();
    assert_eq!((edited.content().as_str(), edited.version), ("edited", 2));
    messages.delete(&by, &second.id, Some(2)).await.unwrap();
    assert_eq!(refused(messages.get(&Scope::All, &second.id).await).class(), Class::NotFound);
    assert_eq!(world.told(seen + 6).await, ["message.updated", "message.deleted"]);
    assert_eq!(refused(messages.add(&by, &message_in("none", "x")).await).class(), Class::NotFound);
}

async fn hidden_text_is_kept_and_never_told(db: Db) {
    let world = World::new(db);
    let messages = &world.platform.messages;
    world.workspace("one").await;
    let session = session_of(&world, &world.task("x").await.id).await;
    let hidden = "<kandev-system>hunter2</kandev-system>\n\n Ship it ";
    let message = messages.add(&By::operator(), &message_in(&session.id, hidden)).await.unwrap();
    messages.delete(&By::operator(), &message.id, None).await.unwrap();
    assert_eq!((message.raw_content.as_str(), message.content().as_str()), (hidden, "Ship it"));
    for event in world.log().await {
        assert!(!Value::from(event.payload.clone()).to_string().contains("hunter2"), "{}", event.subject);
        if event.subject.starts_with("message.") {
            assert_eq!(
                (&event.payload["content"], &event.payload["metadata"]["has_hidden_prompts"]),
                (&"Ship it".into(), &true.into())
            );
        }
    }
}

async fn messages_are_chosen_by_session_task_type_and_time_in_utc(db: Db) {
    let world = World::new(db);
    let (messages, by) = (&world.platform.messages, By::operator());
    world.workspace("one").await;
    let (one, two) = (world.task("x").await, world.task("y").await);
    let (a, b) = (session_of(&world, &one.id).await, session_of(&world, &two.id).await);
    let mut all = Vec::new();
    for (session, kind) in
        [(&a, MessageType::Message), (&b, MessageType::Todo), (&a, MessageType::Error), (&b, MessageType::Message)]
    {
        let new = NewMessage { message_type: kind, ..message_in(&session.id, kind.as_str()) };
        all.push(messages.add(&by, &new).await.unwrap());
    }
    let list = async |filter: MessageFilter| {
        let page = messages.list(&Scope::All, &filter, false, &PageRequest::default()).await.unwrap();
        page.items
            .iter()
            .map(|found| all.iter().position(|message| message.id == found.id).unwrap())
            .collect::<Vec<_>>()
    };
    let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    let filter = MessageFilter::default;
    assert_eq!(list(filter()).await, [0, 1, 2, 3]);
    assert_eq!(list(MessageFilter { session_ids: ids(&[&a.id]), ..filter() }).await, [0, 2]);
    assert_eq!(
        list(MessageFilter { session_ids: ids(&[&a.id, &b.id, &a.id, "none"]), ..filter() }).await,
        [0, 1, 2, 3]
    );
    assert_eq!(list(MessageFilter { task_ids: ids(&[&two.id]), ..filter() }).await, [1, 3]);
    assert_eq!(list(MessageFilter { task_ids: ids(&[&two.id]), session_ids: ids(&[&a.id]), ..filter() }).await, [0; 0]);
    assert_eq!(list(MessageFilter { types: ids(&["message"]), ..filter() }).await, [0, 3]);
    assert_eq!(list(MessageFilter { types: ids(&["none"]), ..filter() }).await, [0; 0]);
    assert_eq!(list(MessageFilter { session_ids: ids(&["a\0b"]), ..filter() }).await, [0; 0]);
    let (since, until) = (all[1].created_at, all[3].created_at);
    assert_eq!(list(MessageFilter { since: Some(since), until: Some(until), ..filter() }).await, [1, 2]);
    let east = since.to_offset(time::macros::offset!(+2));
    let text = east.format(&time::format_description::well_known::Rfc3339).unwrap();
    let east = MessageFilter::new(Vec::new(), Vec::new(), Vec::new(), &text, "").unwrap();
    assert_eq!(list(east).await, [1, 2, 3]);
    let just_after = since + time::Duration::nanoseconds(1);
    assert_eq!(list(MessageFilter { since: Some(just_after), ..filter() }).await, [2, 3]);
    let newest = messages.list(&Scope::All, &filter(), true, &PageRequest::new(1, "")).await.unwrap();
    assert_eq!(newest.items.iter().map(|message: &Message| &message.id).collect::<Vec<_>>(), [&all[3].id]);
}

async fn sessions_of_hidden_tasks_are_shown_by_task_id_only_and_never_counted(db: Db) {
    let world = World::new(db);
    let (sessions, by) = (&world.platform.sessions, By::operator());
    let workspace = world.workspace("one").await;
    let config = world.made(&by, &NewTask { metadata: map(json!({"config_mode": true})), ..titled("config") }).await;
    let archived = world.task("archived").await;
    let (hidden, shown) = (session_of(&world, &config.id).await, session_of(&world, &archived.id).await);
    world.platform.tasks.set_archived(&by, &archived.id, true, None).await.unwrap();
    let list = async |filter: SessionFilter| {
        let page = sessions.list(&Scope::All, &filter, &PageRequest::default()).await.unwrap();
        let stats = world.platform.code.stats(&Scope::All, &filter, &PageRequest::default()).await.unwrap();
        let ids: Vec<_> = page.items.into_iter().map(|session| session.id).collect();
        let counted = ids.iter().filter(|id| **id != hidden.id).cloned();
        assert!(stats.items.into_iter().map(|stats| stats.session_id).eq(counted), "one order");
        ids
    };
    let filter = SessionFilter::default;
    assert_eq!(list(filter()).await, std::slice::from_ref(&shown.id));
    assert_eq!(
        list(SessionFilter { workspace_ids: vec![workspace.id.clone()], ..filter() }).await,
        std::slice::from_ref(&shown.id)
    );
    let both = vec![archived.id.clone(), config.id.clone(), archived.id.clone()];
    assert_eq!(list(SessionFilter { task_ids: both, ..filter() }).await, [shown.id.clone(), hidden.id.clone()]);
    assert_eq!(
        list(SessionFilter { task_ids: vec![config.id.clone()], workspace_ids: vec!["other".to_owned()], ..filter() })
            .await,
        [""; 0]
    );
    assert_eq!(
        list(SessionFilter { states: vec!["CREATED".to_owned()], ..filter() }).await,
        std::slice::from_ref(&shown.id)
    );
    assert_eq!(list(SessionFilter { states: vec!["RUNNING".to_owned()], ..filter() }).await, [""; 0]);
    // A task that is no longer for the platform itself is shown again.
    let plain = TaskPatch { metadata: Some(Map::new()), ..TaskPatch::default() };
    world.platform.tasks.update(&by, &config.id, &plain, None).await.unwrap();
    let page = PageRequest::default();
    let shown = sessions.list(&Scope::All, &filter(), &page).await.unwrap().items.len();
    let counted = world.platform.code.stats(&Scope::All, &filter(), &page).await.unwrap().items.len();
    assert_eq!((shown, counted), (2, 2));
}

async fn a_search_finds_what_its_session_says_the_newest_first_and_a_to_z_in_any_case(db: Db) {
    let world = World::new(db);
    world.workspace("one").await;
    let task = world.task("x").await;
    let (session, elsewhere) = (session_of(&world, &task.id).await, session_of(&world, &task.id).await);
    let mut said = Vec::new();
    let large = format!("{}-SHED", "x".repeat(20_000));
    for (session, content) in [
        (&session, "Shed 100% ÄRGER"),
        (&session, r"a\b_c"),
        (&elsewhere, "the other shed"),
        (&session, large.as_str()),
    ] {
        let message = message_in(&session.id, content);
        said.push(world.platform.messages.add(&By::operator(), &message).await.unwrap());
    }
    let search = async |scope: &Scope, text: &str, page: &PageRequest| {
        let found = world.platform.messages.search(scope, &session.id, text, page).await;
        found.map(|(page, total)| (page.items, page.next_cursor, total))
    };
    let all = PageRequest::default();
    let (first, odd, large) = (&said[0], &said[1], &said[3]);
    for (text, expected) in [
        ("shed", vec![large, first]),
        ("SHED", vec![large, first]),
        ("0% Ä", vec![first]),
        ("Ärger", vec![first]),
        ("ärger", vec![]),
        (r"\", vec![odd]),
        ("_", vec![odd]),
        ("%", vec![first]),
        ("none", vec![]),
    ] {
        let (found, cursor, total) = search(&Scope::All, text, &all).await.unwrap();
        assert_eq!((found.iter().collect::<Vec<_>>(), cursor), (expected.clone(), None), "{text}");
        assert_eq!(total, expected.len() as u64, "{text}");
    }
    let (found, cursor, total) = search(&Scope::All, "shed", &PageRequest::new(1, "")).await.unwrap();
    assert_eq!((found, total), (vec![large.clone()], 2));
    let rest = PageRequest::new(1, &cursor.unwrap());
    assert_eq!(search(&Scope::All, "shed", &rest).await.unwrap(), (vec![first.clone()], None, 2));
    let nowhere = Scope::Workspaces(Vec::new());
    assert_eq!(search(&nowhere, "shed", &all).await.unwrap(), (Vec::new(), None, 0));
    assert_eq!(refused(search(&Scope::All, "", &all).await), Refusal::Required("query"));
    assert_eq!(refused(search(&Scope::All, "a\0", &all).await), Refusal::ZeroByte("query"));
    assert_eq!(refused(search(&Scope::All, &"x".repeat(2049), &all).await).class(), Class::Invalid);
}

on_both_databases!(
    a_session_remembers_its_profile_and_the_first_is_primary,
    a_session_works_in_the_only_repository_of_its_task_unless_another_is_named,
    a_sessions_changes_are_told_with_the_old_state,
    messages_share_a_turn_until_it_is_over,
    hidden_text_is_kept_and_never_told,
    messages_are_chosen_by_session_task_type_and_time_in_utc,
    sessions_of_hidden_tasks_are_shown_by_task_id_only_and_never_counted,
    a_search_finds_what_its_session_says_the_newest_first_and_a_to_z_in_any_case,
);
