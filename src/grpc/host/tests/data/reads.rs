//! What each list shows, in which shape and order, and how it is walked.

use super::*;
use crate::{
    domain::platform::{
        message::NewMessage,
        profile::{AgentProfileFields, ExecutorFields, ExecutorProfileFields},
        repository::RepositoryFields,
        session::SessionPatch,
        stats::{CommitFields, SnapshotFields},
        task::TaskPatch,
        words::{AuthorType, ExecutorType, MessageType, Origin, SessionState, TaskState},
        workflow::WorkflowDraft,
    },
    store::db::tests::on_both_databases,
};

async fn a_task_is_shown_whole(db: db::Db) {
    let mut desk = desk(db).await;
    let draft = WorkspaceDraft {
        name: Some("one".to_owned()),
        task_prefix: Some("KAN".to_owned()),
        ..WorkspaceDraft::default()
    };
    desk.platform.workspaces.create(&By::operator(), &draft).await.unwrap();
    let parent = desk.task(titled("parent")).await;
    let new = NewTask { parent_id: parent.id.clone(), metadata: map(json!({"n": 1})), ..titled("part") };
    let part = desk.task(NewTask { description: "what".to_owned(), ..new }).await;
    let patch = |state| TaskPatch { state: Some(state), ..TaskPatch::default() };
    let by = By::operator();
    desk.platform.tasks.update(&by, &part.id, &patch(TaskState::InProgress), None).await.unwrap();
    let part = desk.platform.tasks.update(&by, &part.id, &patch(TaskState::Completed), None).await.unwrap();
    let found = desk.client.get_task(v1::GetTaskRequest { id: part.id.clone() }).await.unwrap().into_inner().task;
    let expected = v1::Task {
        id: part.id,
        workspace_id: part.workspace_id,
        workflow_id: part.workflow_id,
        title: "part".to_owned(),
        description: "what".to_owned(),
        state: "COMPLETED".to_owned(),
        priority: "medium".to_owned(),
        created_by: "manual".to_owned(),
        created_at: shown(part.created_at),
        updated_at: shown(part.updated_at),
        started_at: part.started_at.map(shown),
        completed_at: part.completed_at.map(shown),
        parent_id: Some(parent.id),
        identifier: "KAN-2".to_owned(),
        is_ephemeral: false,
        repositories: Vec::new(),
        metadata: object(json!({"n": 1})),
    };
    assert!(expected.started_at.is_some() && expected.completed_at.is_some());
    assert_eq!(found, Some(expected));
    let root = desk.client.get_task(v1::GetTaskRequest { id: found.unwrap().parent_id.unwrap() }).await.unwrap();
    let root = root.into_inner().task.unwrap();
    assert_eq!((root.parent_id, root.started_at, root.completed_at), (None, None, None));
}

async fn a_task_list_leaves_out_what_the_contract_says_and_get_task_nothing(db: db::Db) {
    let mut desk = desk(db).await;
    let (one, two) = (desk.workspace("one").await, desk.workspace("two").await);
    let of = |workspace: &Workspace, title: &str| NewTask { workspace_id: workspace.id.clone(), ..titled(title) };
    let plain = desk.task(of(&one, "plain")).await;
    let part = desk.task(NewTask { parent_id: plain.id.clone(), ..of(&one, "part") }).await;
    let other = desk.task(NewTask { state: Some(TaskState::Review), ..of(&two, "other") }).await;
    let config = desk.task(NewTask { metadata: map(json!({"config_mode": true})), ..of(&one, "config") }).await;
    let run = desk.task(NewTask { origin: Some(Origin::AutomationRun), ..of(&one, "run") }).await;
    let quick = desk.task(NewTask { is_ephemeral: true, ..of(&one, "quick") }).await;
    let away = desk.task(of(&one, "away")).await;
    desk.platform.tasks.set_archived(&By::operator(), &away.id, true, None).await.unwrap();
    let any = v1::TaskFilter::default;
    let words = |values: &[&str]| values.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let cases = [
        (any(), vec!["other", "part", "plain"]),
        (v1::TaskFilter { include_ephemeral: true, ..any() }, vec!["quick", "other", "part", "plain"]),
        (v1::TaskFilter { workspace_ids: words(&[&one.id, &one.id]), ..any() }, vec!["part", "plain"]),
        (v1::TaskFilter { workspace_ids: words(&[&one.id, &two.id]), ..any() }, vec!["other", "part", "plain"]),
        (v1::TaskFilter { workspace_ids: words(&["none"]), ..any() }, vec![]),
        (v1::TaskFilter { workflow_ids: words(&[&other.workflow_id]), ..any() }, vec!["other"]),
        (v1::TaskFilter { states: words(&["REVIEW", "nonsense"]), ..any() }, vec!["other"]),
        (v1::TaskFilter { states: words(&["nonsense"]), ..any() }, vec![]),
        (v1::TaskFilter { parent_id: Some(String::new()), ..any() }, vec!["other", "plain"]),
        (v1::TaskFilter { parent_id: Some(plain.id.clone()), ..any() }, vec!["part"]),
        (v1::TaskFilter { parent_id: Some("none".to_owned()), ..any() }, vec![]),
    ];
    for (filter, expected) in cases {
        assert_eq!(desk.titles(filter.clone()).await, expected, "{filter:?}");
    }
    for task in [plain, part, other, config, run, quick, away] {
        let found = desk.client.get_task(v1::GetTaskRequest { id: task.id }).await.unwrap().into_inner();
        assert_eq!(found.task.unwrap().title, task.title);
    }
}

async fn a_list_is_walked_in_pages_each_row_once_whatever_comes_meanwhile(db: db::Db) {
    let mut desk = desk(db).await;
    desk.workspace("one").await;
    let mut old = Vec::new();
    for n in 0..30 {
        old.push(desk.task(titled(&format!("old {n}"))).await.id);
    }
    old.reverse();
    let (mut walked, mut cursor) = (Vec::new(), String::new());
    loop {
        let request = v1::ListTasksRequest { filter: None, page: page(7, &cursor) };
        let answer = desk.client.list_tasks(request).await.unwrap().into_inner();
        let info = answer.page_info.unwrap();
        assert!(answer.tasks.len() == 7 || !info.has_more);
        assert_eq!(info.has_more, !info.next_cursor.is_empty());
        walked.extend(answer.tasks.into_iter().map(|task| task.id));
        desk.task(titled("new")).await;
        if !info.has_more {
            break;
        }
        cursor = info.next_cursor;
    }
    assert_eq!(walked, old);
    for (limit, rows) in [(0, 35), (-1, 35), (1000, 35), (1, 1)] {
        let request = v1::ListTasksRequest { filter: None, page: page(limit, "") };
        assert_eq!(desk.client.list_tasks(request).await.unwrap().into_inner().tasks.len(), rows, "{limit}");
    }
}

async fn workspaces_and_boards_are_shown_in_their_order(db: db::Db) {
    let mut desk = desk(db).await;
    let (one, two) = (desk.workspace("one").await, desk.workspace("two").await);
    let answer = desk.client.list_workspaces(v1::ListWorkspacesRequest { page: None }).await.unwrap().into_inner();
    let workspace = |workspace: &Workspace| v1::Workspace {
        id: workspace.id.clone(),
        name: workspace.name.clone(),
        description: None,
        owner_id: String::new(),
        default_executor_id: None,
        default_agent_profile_id: None,
        created_at: shown(workspace.created_at),
        updated_at: shown(workspace.updated_at),
    };
    assert_eq!((answer.workspaces, answer.page_info), (vec![workspace(&two), workspace(&one)], last()));

    let hidden = WorkflowDraft { name: Some("h".to_owned()), hidden: Some(true), ..WorkflowDraft::default() };
    desk.platform.workflows.create(&By::operator(), &one.id, &hidden, None).await.unwrap();
    let (board, steps) = desk.board(&one).await;
    assert_eq!((board.workspace_id.as_str(), board.sort_order), (one.id.as_str(), 0));
    let places: Vec<_> = steps.iter().map(|step| step.position).collect();
    assert_eq!(places, [0, 1, 2, 3]);
    let stages = ["work", "review", "approval", "custom"];
    assert!(steps.iter().all(|step| stages.contains(&step.stage_type.as_str()) && step.workflow_id == board.id));
    let of = |workspace_id: &str| v1::ListWorkflowsRequest { workspace_id: workspace_id.to_owned(), page: None };
    let all = desk.client.list_workflows(of("")).await.unwrap().into_inner();
    assert_eq!((all.workflows.len(), all.page_info), (2, last()), "of all workspaces, without hidden ones");
    assert_eq!(desk.client.list_workflows(of("none")).await.unwrap().into_inner().workflows, []);
    let none = v1::ListWorkflowStepsRequest { workflow_id: "none".to_owned() };
    assert_eq!(desk.client.list_workflow_steps(none).await.unwrap().into_inner().steps, []);
}

async fn profiles_are_those_of_the_instance_with_their_types(db: db::Db) {
    let mut desk = desk(db).await;
    let (one, by) = (desk.workspace("one").await, By::operator());
    let agents = &desk.platform.agents;
    agents.register(&by, "codex", "Codex", 2, true, None).await.unwrap();
    agents.register(&by, "claude", "Claude", 1, true, None).await.unwrap();
    let fields = |name: &str, workspace_id| AgentProfileFields {
        name: name.to_owned(),
        model: "m1".to_owned(),
        mode: "auto".to_owned(),
        workspace_id,
        enabled: true,
        settings: Map::new(),
    };
    let fast = agents.create_profile(&by, "codex", fields("fast", None)).await.unwrap();
    let deep = agents.create_profile(&by, "claude", fields("deep", None)).await.unwrap();
    agents.create_profile(&by, "claude", fields("office", Some(one.id))).await.unwrap();
    let answer = desk.client.list_agent_profiles(v1::ListAgentProfilesRequest { page: None }).await.unwrap();
    let profile = |id: &str, agent_id: &str, display_name: &str, name: &str| v1::AgentProfile {
        id: id.to_owned(),
        agent_id: agent_id.to_owned(),
        display_name: display_name.to_owned(),
        name: name.to_owned(),
        model: "m1".to_owned(),
        mode: "auto".to_owned(),
    };
    let expected = [profile(&deep.id, "claude", "Claude", "deep"), profile(&fast.id, "codex", "Codex", "fast")];
    assert_eq!(answer.into_inner().profiles, expected);

    let executors = &desk.platform.executors;
    let mut expected = Vec::new();
    for kind in ExecutorType::ALL {
        let fields = ExecutorFields {
            name: kind.as_str().to_owned(),
            executor_type: *kind,
            status: "active".to_owned(),
            is_system: false,
            resumable: true,
            config: Map::new(),
        };
        let executor = executors.create(&by, fields).await.unwrap();
        let fields = ExecutorProfileFields { name: format!("on {kind}"), ..ExecutorProfileFields::default() };
        let profile = executors.create_profile(&by, &executor.id, fields).await.unwrap();
        let executor_type = kind.as_str().to_owned();
        expected.push(v1::ExecutorProfile { id: profile.id, display_name: format!("on {kind}"), executor_type });
    }
    let answer = desk.client.list_executor_profiles(v1::ListExecutorProfilesRequest { page: None }).await.unwrap();
    assert_eq!(answer.into_inner().profiles, expected, "by executor, which have ids in the order of making");
}

async fn repositories_are_those_of_the_workspace_that_are_not_deleted(db: db::Db) {
    let mut desk = desk(db).await;
    let (one, by) = (desk.workspace("one").await, By::operator());
    let fields = RepositoryFields {
        name: "app".to_owned(),
        source_type: "provider".to_owned(),
        provider: "forge".to_owned(),
        provider_repo_id: "7".to_owned(),
        provider_host: "forge.test".to_owned(),
        provider_scope: "s".to_owned(),
        provider_owner: "team".to_owned(),
        provider_name: "app".to_owned(),
        remote_url: "https://user:hunter2@forge.test/team/app.git".to_owned(),
        default_branch: "main".to_owned(),
        ..RepositoryFields::default()
    };
    let app = desk.platform.repositories.create(&by, &one.id, fields).await.unwrap();
    let bare = RepositoryFields { name: "bare".to_owned(), ..RepositoryFields::default() };
    let gone = desk.platform.repositories.create(&by, &one.id, bare.clone()).await.unwrap();
    let bare = desk.platform.repositories.create(&by, &one.id, bare).await.unwrap();
    desk.platform.repositories.delete(&by, &gone.id, None).await.unwrap();
    let of = |workspace_id: &str| v1::ListRepositoriesRequest { workspace_id: workspace_id.to_owned(), page: None };
    let answer = desk.client.list_repositories(of(&one.id)).await.unwrap().into_inner();
    let common = v1::Repository { workspace_id: one.id.clone(), ..v1::Repository::default() };
    let expected = [
        v1::Repository { id: bare.id, name: "bare".to_owned(), default_branch: None, ..common.clone() },
        v1::Repository {
            id: app.id,
            name: "app".to_owned(),
            default_branch: Some("main".to_owned()),
            source_type: "provider".to_owned(),
            provider_id: "forge".to_owned(),
            provider_repository_id: "7".to_owned(),
            provider_host: "forge.test".to_owned(),
            owner_or_project: "team".to_owned(),
            provider_name: "app".to_owned(),
            remote_url: "https://forge.test/team/app.git".to_owned(),
            provider_scope: "s".to_owned(),
            ..common
        },
    ];
    assert_eq!(answer.repositories, expected);
    for nothing in ["", "none"] {
        assert_eq!(desk.client.list_repositories(of(nothing)).await.unwrap().into_inner().repositories, []);
    }
}

async fn sessions_and_their_statistics_come_in_one_order(db: db::Db) {
    let mut desk = desk(db).await;
    desk.workspace("one").await;
    let by = By::operator();
    let task = desk.task(titled("x")).await;
    let away = desk.task(NewTask { is_ephemeral: true, ..titled("y") }).await;
    let config = desk.task(NewTask { metadata: map(json!({"config_mode": 1})), ..titled("z") }).await;
    let (first, second, inner) = (desk.session(&task).await, desk.session(&away).await, desk.session(&config).await);
    let patch = SessionPatch {
        state: Some(SessionState::Completed),
        metadata: Some(map(json!({"acp": {"session_id": "acp-1"}}))),
        ..SessionPatch::default()
    };
    let first = desk.platform.sessions.update(&by, &first.id, &patch, None).await.unwrap();
    let commit = CommitFields { commit_sha: "a".to_owned(), insertions: 3, deletions: 2, ..CommitFields::default() };
    desk.platform.code.record_commit(&by, &first.id, commit, None).await.unwrap();
    for files in [json!({"a": {"additions": 5, "deletions": 1}, "b": {"additions": 2}}), json!({"a": {"deletions": 9}})]
    {
        let snapshot = SnapshotFields { files: map(files), ..SnapshotFields::default() };
        desk.platform.code.record_snapshot(&by, &first.id, snapshot).await.unwrap();
    }
    let sessions = |filter| v1::ListSessionsRequest { filter, page: None };
    let all = desk.client.list_sessions(sessions(None)).await.unwrap().into_inner();
    let ids: Vec<_> = all.sessions.iter().map(|session| session.id.as_str()).collect();
    assert_eq!((ids, all.page_info), (vec![second.id.as_str(), first.id.as_str()], last()));
    let expected = v1::Session {
        id: first.id.clone(),
        task_id: task.id.clone(),
        acp_session_id: "acp-1".to_owned(),
        state: "COMPLETED".to_owned(),
        started_at: shown(first.started_at),
        ended_at: first.completed_at.map(shown),
        ..v1::Session::default()
    };
    assert!(expected.ended_at.is_some());
    assert_eq!(all.sessions[1], expected);
    let of_config = v1::SessionFilter { task_ids: vec![config.id.clone()], ..v1::SessionFilter::default() };
    let named = desk.client.list_sessions(sessions(Some(of_config))).await.unwrap().into_inner().sessions;
    assert_eq!(named.iter().map(|session| session.id.as_str()).collect::<Vec<_>>(), [inner.id.as_str()]);
    let over = v1::SessionFilter { states: vec!["COMPLETED".to_owned()], ..v1::SessionFilter::default() };
    let over = desk.client.list_sessions(sessions(Some(over))).await.unwrap().into_inner().sessions;
    assert_eq!(over, [expected]);

    let request = v1::ListSessionCodeStatsRequest { filter: None, page: None };
    let stats = desk.client.list_session_code_stats(request).await.unwrap().into_inner().stats;
    let none = v1::SessionCodeStats { session_id: second.id, committed_lines_available: true, ..Default::default() };
    let some = v1::SessionCodeStats {
        session_id: first.id,
        lines_added_committed: 3,
        lines_deleted_committed: 2,
        lines_added_peak_pending: 7,
        lines_deleted_peak_pending: 9,
        committed_lines_available: true,
    };
    assert_eq!(stats, [none, some]);
}

async fn messages_come_without_what_is_for_agents_only_and_between_moments_of_any_zone(db: db::Db) {
    let mut desk = desk(db).await;
    desk.workspace("one").await;
    let task = desk.task(titled("x")).await;
    let session = desk.session(&task).await;
    let mut made = Vec::new();
    for kind in MessageType::ALL {
        let new = NewMessage {
            session_id: session.id.clone(),
            author_type: AuthorType::Agent,
            author_id: String::new(),
            message_type: *kind,
            content: format!("<kandev-system>hidden</kandev-system>\n\n {kind} "),
            requests_input: false,
            metadata: Map::new(),
        };
        made.push(desk.platform.messages.add(&By::operator(), &new).await.unwrap());
    }
    let list = async |desk: &mut Desk, filter: v1::MessageFilter| {
        let request = v1::ListMessagesRequest { filter: Some(filter), page: None };
        desk.client.list_messages(request).await.unwrap().into_inner().messages
    };
    let any = v1::MessageFilter::default;
    let expected = made.iter().map(|message| v1::Message {
        id: message.id.clone(),
        session_id: session.id.clone(),
        task_id: task.id.clone(),
        turn_id: message.turn_id.clone(),
        author_type: "agent".to_owned(),
        content: message.message_type.as_str().to_owned(),
        r#type: message.message_type.as_str().to_owned(),
        created_at: shown(message.created_at),
    });
    let expected: Vec<_> = expected.collect();
    assert_eq!(list(&mut desk, any()).await, expected);
    let thoughts = v1::MessageFilter { types: vec!["thinking".to_owned(), "none".to_owned()], ..any() };
    assert_eq!(list(&mut desk, thoughts).await.len(), 1);
    let east = made[5].created_at.to_offset(time::macros::offset!(+2));
    let text = east.format(&time::format_description::well_known::Rfc3339).unwrap();
    let since = v1::MessageFilter { since: Some(text.clone()), ..any() };
    assert_eq!(list(&mut desk, since).await, expected[5..], "the bound is in it");
    let until = v1::MessageFilter { until: Some(text), since: Some(String::new()), ..any() };
    assert_eq!(list(&mut desk, until).await, expected[..5], "the bound is not in it");
}

on_both_databases!(
    a_task_is_shown_whole,
    a_task_list_leaves_out_what_the_contract_says_and_get_task_nothing,
    a_list_is_walked_in_pages_each_row_once_whatever_comes_meanwhile,
    workspaces_and_boards_are_shown_in_their_order,
    profiles_are_those_of_the_instance_with_their_types,
    repositories_are_those_of_the_workspace_that_are_not_deleted,
    sessions_and_their_statistics_come_in_one_order,
    messages_come_without_what_is_for_agents_only_and_between_moments_of_any_zone,
);
