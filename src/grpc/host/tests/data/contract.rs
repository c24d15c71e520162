//! Rows of host-data.md §2 and §3 that are about every list alike: the words that are shown, and how filters combine.

use super::*;
use crate::{
    domain::platform::{
        message::NewMessage,
        profile::{ExecutorFields, ExecutorProfileFields},
        session::SessionPatch,
        task::TaskPatch,
        words::{AuthorType, ExecutorType, MessageType, Origin, Priority, SessionState, StageType, TaskState},
        workflow::StepDraft,
    },
    store::db::tests::{on_both_databases, tamper},
};

/// host-data.md §2, copied.
const TASK_STATES: [&str; 10] = [
    "TODO",
    "CREATED",
    "SCHEDULING",
    "IN_PROGRESS",
    "REVIEW",
    "BLOCKED",
    "WAITING_FOR_INPUT",
    "COMPLETED",
    "FAILED",
    "CANCELLED",
];
const SESSION_STATES: [&str; 8] =
    ["CREATED", "STARTING", "RUNNING", "IDLE", "WAITING_FOR_INPUT", "COMPLETED", "FAILED", "CANCELLED"];
const PRIORITIES: [&str; 4] = ["critical", "high", "medium", "low"];
const ORIGINS: [&str; 5] = ["manual", "agent_created", "routine", "onboarding", "automation_run"];
const STAGES: [&str; 4] = ["work", "review", "approval", "custom"];

/// Values of the three fields of a filter, and what it shows.
type Case<'a, T> = (&'a [&'a str], &'a [&'a str], &'a [&'a str], T);

fn words(values: &[&str]) -> Vec<String> {
    values.iter().map(|word| (*word).to_owned()).collect()
}

async fn every_word_of_a_task_is_kept_shown_and_filtered_by(db: db::Db) {
    let mut desk = desk(db).await;
    desk.workspace("one").await;
    let get = async |desk: &mut Desk, id: &str| {
        desk.client.get_task(v1::GetTaskRequest { id: id.to_owned() }).await.unwrap().into_inner().task.unwrap()
    };
    for word in PRIORITIES {
        let task = desk.task(NewTask { priority: Some(Priority::of(word).unwrap()), ..titled(word) }).await;
        assert_eq!(get(&mut desk, &task.id).await.priority, word);
    }
    for word in ORIGINS {
        let task = desk.task(NewTask { origin: Some(Origin::of(word).unwrap()), ..titled(word) }).await;
        assert_eq!(get(&mut desk, &task.id).await.created_by, word);
    }
    for word in TASK_STATES.into_iter().filter(|word| *word != "SCHEDULING") {
        let task = desk.task(titled(word)).await;
        let patch = TaskPatch { state: Some(TaskState::of(word).unwrap()), ..TaskPatch::default() };
        desk.platform.tasks.update(&By::operator(), &task.id, &patch, None).await.unwrap();
        assert_eq!(get(&mut desk, &task.id).await.state, word);
        let titles = desk.titles(v1::TaskFilter { states: words(&[word]), ..Default::default() }).await;
        assert!(titles.iter().any(|title| title == word), "{word}: {titles:?}");
    }
    // The host alone sets it.
    let task = desk.task(titled("SCHEDULING")).await;
    tamper(&desk.world.db, &format!("UPDATE task SET state = 'SCHEDULING' WHERE id = '{}'", task.id)).await;
    assert_eq!(get(&mut desk, &task.id).await.state, "SCHEDULING");
    let scheduling = v1::TaskFilter { states: words(&["SCHEDULING"]), ..Default::default() };
    assert_eq!(desk.titles(scheduling).await, ["SCHEDULING"]);
    assert_eq!(TaskState::ALL.len(), TASK_STATES.len());
    assert!(TASK_STATES.iter().all(|word| TaskState::of(word).is_some()));
    assert_eq!((Priority::ALL.len(), Origin::ALL.len()), (PRIORITIES.len(), ORIGINS.len()));
}

async fn every_stage_of_a_step_is_shown(db: db::Db) {
    let mut desk = desk(db).await;
    let workspace = desk.workspace("one").await;
    let (board, steps) = desk.board(&workspace).await;
    for word in STAGES {
        let draft = StepDraft {
            name: Some(word.to_owned()),
            stage_type: Some(StageType::of(word).unwrap()),
            ..StepDraft::default()
        };
        desk.platform.workflows.create_step(&By::operator(), &board.id, &draft).await.unwrap();
    }
    let (_, all) = desk.board(&workspace).await;
    let shown: Vec<_> = all[steps.len()..].iter().map(|step| (step.name.as_str(), step.stage_type.as_str())).collect();
    assert_eq!(shown, STAGES.map(|word| (word, word)));
    assert_eq!(StageType::ALL.len(), STAGES.len());
}

async fn every_session_state_is_shown_and_the_fields_of_a_filter_restrict_each_other(db: db::Db) {
    let mut desk = desk(db).await;
    let (one, two) = (desk.workspace("one").await, desk.workspace("two").await);
    let of = |workspace: &Workspace| NewTask { workspace_id: workspace.id.clone(), ..titled("x") };
    let (mine, theirs) = (desk.task(of(&one)).await, desk.task(of(&two)).await);
    for word in SESSION_STATES {
        let session = desk.session(&mine).await;
        let patch = SessionPatch { state: Some(SessionState::of(word).unwrap()), ..SessionPatch::default() };
        desk.platform.sessions.update(&By::operator(), &session.id, &patch, None).await.unwrap();
    }
    desk.session(&theirs).await;
    assert_eq!(SessionState::ALL.len(), SESSION_STATES.len());
    let (mine, theirs) = (mine.id.as_str(), theirs.id.as_str());
    let cases: [Case<usize>; 9] = [
        (&[], &[], &[], 9),
        (&[mine], &[], &[], 8),
        (&[mine, mine, "none"], &[], &[], 8),
        (&[mine, theirs], &[], &[], 9),
        (&[mine, theirs], &[&two.id], &[], 1),
        (&[mine], &[&two.id], &[], 0),
        (&[], &[&one.id, &one.id], &["IDLE", "RUNNING", "nonsense"], 2),
        (&[], &[], &["nonsense"], 0),
        (&[], &["none"], &[], 0),
    ];
    for (tasks, workspaces, states, expected) in cases {
        let filter =
            Some(v1::SessionFilter { task_ids: words(tasks), workspace_ids: words(workspaces), states: words(states) });
        let request = v1::ListSessionsRequest { filter: filter.clone(), page: None };
        let sessions = desk.client.list_sessions(request).await.unwrap().into_inner().sessions;
        let request = v1::ListSessionCodeStatsRequest { filter: filter.clone(), page: None };
        let stats = desk.client.list_session_code_stats(request).await.unwrap().into_inner().stats;
        assert_eq!((sessions.len(), stats.len()), (expected, expected), "{filter:?}");
        for (session, stats) in sessions.iter().zip(&stats) {
            assert_eq!(session.id, stats.session_id, "one order");
        }
    }
    let all = desk.client.list_sessions(v1::ListSessionsRequest::default()).await.unwrap().into_inner().sessions;
    let shown: Vec<_> = all.iter().rev().take(8).map(|session| session.state.as_str()).collect();
    assert_eq!(shown, SESSION_STATES);
}

async fn messages_name_their_author_and_the_fields_of_a_filter_restrict_each_other(db: db::Db) {
    let mut desk = desk(db).await;
    desk.workspace("one").await;
    let (first, second) = (desk.task(titled("x")).await, desk.task(titled("y")).await);
    let (one, two) = (desk.session(&first).await, desk.session(&second).await);
    for (session, author) in [(&one, AuthorType::User), (&one, AuthorType::Agent), (&two, AuthorType::User)] {
        let new = NewMessage {
            session_id: session.id.clone(),
            author_type: author,
            author_id: String::new(),
            message_type: if author == AuthorType::User { MessageType::Message } else { MessageType::Thinking },
            content: author.as_str().to_owned(),
            requests_input: false,
            metadata: Map::new(),
        };
        desk.platform.messages.add(&By::operator(), &new).await.unwrap();
    }
    let (one, two, first) = (one.id.as_str(), two.id.as_str(), first.id.as_str());
    let cases: [Case<&[&str]>; 8] = [
        (&[], &[], &[], &["user", "agent", "user"]),
        (&[one, one], &[], &[], &["user", "agent"]),
        (&[one, two, "none"], &[], &[], &["user", "agent", "user"]),
        (&[], &[first], &["thinking"], &["agent"]),
        (&[two], &[first], &[], &[]),
        (&[one], &[first], &["message", "nonsense"], &["user"]),
        (&["none"], &[], &[], &[]),
        (&[], &[], &["nonsense"], &[]),
    ];
    for (sessions, tasks, types, expected) in cases {
        let filter = v1::MessageFilter {
            session_ids: words(sessions),
            task_ids: words(tasks),
            types: words(types),
            ..Default::default()
        };
        let request = v1::ListMessagesRequest { filter: Some(filter.clone()), page: None };
        let messages = desk.client.list_messages(request).await.unwrap().into_inner().messages;
        let shown: Vec<_> = messages.iter().map(|message| message.author_type.as_str()).collect();
        assert_eq!(shown, expected, "{filter:?}");
        assert!(messages.iter().all(|message| message.content == message.author_type));
    }
}

/// host-data.md §3: what leaves a task out of ListTasks, and its sessions out of lists that name no task.
async fn sessions_of_tasks_of_the_host_itself_are_shown_to_who_names_the_task_and_never_counted(db: db::Db) {
    let mut desk = desk(db).await;
    let workspace = desk.workspace("one").await;
    let tasks = [
        titled("plain"),
        NewTask { is_ephemeral: true, ..titled("quick") },
        titled("away"),
        NewTask { metadata: map(json!({"config_mode": true})), ..titled("config") },
        NewTask { origin: Some(Origin::AutomationRun), ..titled("run") },
    ];
    let mut titles = std::collections::BTreeMap::new();
    for new in tasks {
        let task = desk.task(new).await;
        desk.session(&task).await;
        titles.insert(task.id, task.title);
    }
    let id = |title: &str| titles.iter().find(|(_, of)| *of == title).unwrap().0.as_str();
    desk.platform.tasks.set_archived(&By::operator(), id("away"), true, None).await.unwrap();
    let all: Vec<&str> = titles.keys().map(String::as_str).collect();
    let cases: [Case<&[&str]>; 5] = [
        (&[], &[], &[], &["away", "quick", "plain"]),
        (&[], &[&workspace.id], &["CREATED"], &["away", "quick", "plain"]),
        (&all, &[], &[], &["run", "config", "away", "quick", "plain"]),
        (&[id("config"), id("run")], &[&workspace.id], &[], &["run", "config"]),
        (&[id("config"), id("run")], &["none"], &[], &[]),
    ];
    for (tasks, workspaces, states, expected) in cases {
        let filter =
            Some(v1::SessionFilter { task_ids: words(tasks), workspace_ids: words(workspaces), states: words(states) });
        let request = v1::ListSessionsRequest { filter: filter.clone(), page: None };
        let sessions = desk.client.list_sessions(request).await.unwrap().into_inner().sessions;
        let shown: Vec<_> = sessions.iter().map(|session| titles[&session.task_id].as_str()).collect();
        assert_eq!(shown, expected, "{filter:?}");
        let request = v1::ListSessionCodeStatsRequest { filter: filter.clone(), page: None };
        let stats = desk.client.list_session_code_stats(request).await.unwrap().into_inner().stats;
        let hidden = |session: &v1::Session| ["config", "run"].contains(&titles[&session.task_id].as_str());
        let counted = sessions.into_iter().filter(|session| !hidden(session)).map(|session| session.id);
        assert!(stats.into_iter().map(|stats| stats.session_id).eq(counted), "{filter:?}");
    }
}

async fn messages_of_every_kind_of_task_are_shown(db: db::Db) {
    let mut desk = desk(db).await;
    desk.workspace("one").await;
    let tasks = [
        titled("plain"),
        NewTask { is_ephemeral: true, ..titled("quick") },
        NewTask { metadata: map(json!({"config_mode": true})), ..titled("config") },
        NewTask { origin: Some(Origin::AutomationRun), ..titled("run") },
        titled("away"),
    ];
    for new in tasks {
        let task = desk.task(new).await;
        let new = NewMessage {
            session_id: desk.session(&task).await.id,
            author_type: AuthorType::User,
            author_id: String::new(),
            message_type: MessageType::Message,
            content: task.title.clone(),
            requests_input: false,
            metadata: Map::new(),
        };
        desk.platform.messages.add(&By::operator(), &new).await.unwrap();
        if task.title == "away" {
            desk.platform.tasks.set_archived(&By::operator(), &task.id, true, None).await.unwrap();
        }
    }
    let messages = desk.client.list_messages(v1::ListMessagesRequest::default()).await.unwrap().into_inner().messages;
    let shown: Vec<_> = messages.iter().map(|message| message.content.as_str()).collect();
    assert_eq!(shown, ["plain", "quick", "config", "run", "away"]);
}

async fn a_task_is_in_config_mode_when_its_metadata_says_so_in_any_form(db: db::Db) {
    let mut desk = desk(db).await;
    desk.workspace("one").await;
    let forms = [json!(true), json!(false), json!(1), json!(0), json!("true"), json!("false"), json!(""), json!(null)];
    for form in forms {
        desk.task(NewTask { metadata: map(json!({"config_mode": form})), ..titled(&form.to_string()) }).await;
    }
    let mut shown = desk.titles(v1::TaskFilter::default()).await;
    shown.reverse();
    assert_eq!(shown, ["false", "0", "\"false\"", "\"\"", "null"]);
}

async fn the_profile_of_a_vanished_executor_has_no_type(db: db::Db) {
    let mut desk = desk(db).await;
    let fields = ExecutorFields {
        name: "here".to_owned(),
        executor_type: ExecutorType::ALL[0],
        status: "active".to_owned(),
        is_system: false,
        resumable: true,
        config: Map::new(),
    };
    let (by, executors) = (By::operator(), &desk.platform.executors);
    let executor = executors.create(&by, fields).await.unwrap();
    let fields = ExecutorProfileFields { name: "p".to_owned(), ..ExecutorProfileFields::default() };
    let profile = executors.create_profile(&by, &executor.id, fields).await.unwrap();
    executors.delete(&by, &executor.id, None).await.unwrap();
    let answer = desk.client.list_executor_profiles(v1::ListExecutorProfilesRequest { page: None }).await.unwrap();
    let expected = v1::ExecutorProfile { id: profile.id, display_name: "p".to_owned(), executor_type: String::new() };
    assert_eq!(answer.into_inner().profiles, [expected]);
}

on_both_databases!(
    every_word_of_a_task_is_kept_shown_and_filtered_by,
    every_stage_of_a_step_is_shown,
    every_session_state_is_shown_and_the_fields_of_a_filter_restrict_each_other,
    messages_name_their_author_and_the_fields_of_a_filter_restrict_each_other,
    sessions_of_tasks_of_the_host_itself_are_shown_to_who_names_the_task_and_never_counted,
    messages_of_every_kind_of_task_are_shown,
    a_task_is_in_config_mode_when_its_metadata_says_so_in_any_form,
    the_profile_of_a_vanished_executor_has_no_type,
);
