//! Rows as the wire has them, with every field that can be absent once absent and once there (wire.md §3.3).

use super::*;
use crate::{
    domain::platform::{
        profile::AgentProfileFields,
        words::StageType,
        workflow::{StepDraft, WorkflowDraft},
    },
    store::db::tests::{on_both_databases, tamper},
};

async fn workspaces_and_boards_are_shown_whole(db: db::Db) {
    let mut desk = desk(db).await;
    let by = By::operator();
    let text = |text: &str| Some(text.to_owned());
    let draft = WorkspaceDraft {
        name: text("one"),
        description: text("what"),
        owner_id: text("me"),
        default_executor_id: text("e"),
        default_agent_profile_id: text("p"),
        ..WorkspaceDraft::default()
    };
    let one = desk.platform.workspaces.create(&by, &draft).await.unwrap();
    let answer = desk.client.list_workspaces(v1::ListWorkspacesRequest::default()).await.unwrap().into_inner();
    let expected = v1::Workspace {
        id: one.id.clone(),
        name: "one".to_owned(),
        description: text("what"),
        owner_id: "me".to_owned(),
        default_executor_id: text("e"),
        default_agent_profile_id: text("p"),
        created_at: shown(one.created_at),
        updated_at: shown(one.updated_at),
    };
    assert_eq!(answer.workspaces, [expected]);

    let draft = WorkflowDraft { name: text("board"), description: text("how"), ..WorkflowDraft::default() };
    let board = desk.platform.workflows.create(&by, &one.id, &draft, None).await.unwrap();
    let bare = WorkflowDraft { name: text("bare"), ..WorkflowDraft::default() };
    let bare = desk.platform.workflows.create(&by, &one.id, &bare, None).await.unwrap();
    let request = v1::ListWorkflowsRequest { workspace_id: one.id.clone(), page: None };
    let workflows = desk.client.list_workflows(request).await.unwrap().into_inner().workflows;
    let expected = [(&board, text("how"), 1), (&bare, None, 2)].map(|(made, description, sort_order)| v1::Workflow {
        id: made.id.clone(),
        workspace_id: one.id.clone(),
        name: made.name.clone(),
        description,
        sort_order,
        created_at: shown(made.created_at),
        updated_at: shown(made.updated_at),
    });
    assert_eq!(workflows[1..], expected, "after the board that a workspace begins with");

    let stage = StepDraft { name: text("last"), stage_type: StageType::of("approval"), ..StepDraft::default() };
    let last = desk.platform.workflows.create_step(&by, &board.id, &stage).await.unwrap();
    let request = v1::ListWorkflowStepsRequest { workflow_id: board.id.clone() };
    let steps = desk.client.list_workflow_steps(request).await.unwrap().into_inner().steps;
    let position = i32::try_from(steps.len()).unwrap() - 1;
    let expected = v1::WorkflowStep {
        id: last.id,
        workflow_id: board.id,
        name: "last".to_owned(),
        position,
        stage_type: "approval".to_owned(),
    };
    assert_eq!(steps.last(), Some(&expected));
    assert!(steps.iter().map(|step| step.position).eq(0..=position));
}

/// What an agent profile was when the session was made, and which session of the agent's own protocol it is.
async fn a_session_shows_what_its_profile_was_under_the_first_key_that_says_something(db: db::Db) {
    let mut desk = desk(db).await;
    let by = By::operator();
    desk.workspace("one").await;
    let agents = &desk.platform.agents;
    agents.register(&by, "codex", "Codex", 1, true, None).await.unwrap();
    let fields = AgentProfileFields {
        name: "Fast".to_owned(),
        model: "m1".to_owned(),
        mode: String::new(),
        workspace_id: None,
        enabled: true,
        settings: Map::new(),
    };
    let profile = agents.create_profile(&by, "codex", fields).await.unwrap();
    let task = desk.task(titled("x")).await;
    let new = NewSession { task_id: task.id.clone(), agent_profile_id: profile.id.clone(), ..NewSession::default() };
    let session = desk.platform.sessions.create(&by, &new).await.unwrap();
    agents.delete_profile(&by, &profile.id, None).await.unwrap();
    let list = async |desk: &mut Desk| {
        desk.client.list_sessions(v1::ListSessionsRequest::default()).await.unwrap().into_inner().sessions.remove(0)
    };
    let expected = v1::Session {
        id: session.id.clone(),
        task_id: task.id,
        agent_profile_id: profile.id,
        agent_display_name: "Codex".to_owned(),
        model: "m1".to_owned(),
        acp_session_id: String::new(),
        state: "CREATED".to_owned(),
        started_at: shown(session.started_at),
        ended_at: None,
        agent_profile_name: "Fast".to_owned(),
    };
    assert_eq!(list(&mut desk).await, expected);

    let models = [
        (json!({"model": "a", "model_name": "b", "llm": "c"}), "a"),
        (json!({"model": "", "model_name": "b", "llm": "c"}), "b"),
        (json!({"model_name": "b", "llm": "c"}), "b"),
        (json!({"model": 7, "model_name": null, "llm": "c"}), "c"),
        (json!({"llm": "c"}), "c"),
        (json!({}), ""),
    ];
    for (snapshot, model) in models {
        tamper(&desk.world.db, &format!("UPDATE task_session SET agent_profile_snapshot = '{snapshot}'")).await;
        let found = list(&mut desk).await;
        let bare = v1::Session {
            model: model.to_owned(),
            agent_display_name: String::new(),
            agent_profile_name: String::new(),
            ..expected.clone()
        };
        assert_eq!(found, bare, "{snapshot}");
    }
    let own = [
        (json!({"acp": {"session_id": "deep"}}), "deep"),
        (json!({"acp.session_id": "flat"}), "flat"),
        (json!({"acp.session_id": "", "acp": {"session_id": "deep"}}), "deep"),
        (json!({"acp": "no object"}), ""),
        (json!({}), ""),
    ];
    for (metadata, id) in own {
        tamper(&desk.world.db, &format!("UPDATE task_session SET metadata = '{metadata}'")).await;
        assert_eq!(list(&mut desk).await.acp_session_id, id, "{metadata}");
    }
}

/// As another program might have left it.
async fn a_repositorys_address_never_shows_a_user(db: db::Db) {
    use crate::domain::platform::repository::RepositoryFields;
    let mut desk = desk(db).await;
    let workspace = desk.workspace("one").await;
    let fields = RepositoryFields { name: "app".to_owned(), ..RepositoryFields::default() };
    desk.platform.repositories.create(&By::operator(), &workspace.id, fields).await.unwrap();
    for (stored, expected) in [
        ("https://user:hunter2@forge.test/team/app.git", "https://forge.test/team/app.git"),
        ("https://hunter2@forge.test/team/app.git", "https://forge.test/team/app.git"),
        ("https://forge.test/team/app.git", "https://forge.test/team/app.git"),
        ("", ""),
    ] {
        tamper(&desk.world.db, &format!("UPDATE repository SET remote_url = '{stored}'")).await;
        let request = v1::ListRepositoriesRequest { workspace_id: workspace.id.clone(), page: None };
        let listed = desk.client.list_repositories(request).await.unwrap().into_inner().repositories;
        assert_eq!(listed[0].remote_url, expected, "{stored}");
    }
}

async fn lines_of_a_session_from_before_commits_were_recorded_are_not_available(db: db::Db) {
    let mut desk = desk(db).await;
    desk.workspace("one").await;
    let session = desk.session(&desk.task(titled("x")).await).await;
    tamper(&desk.world.db, "UPDATE task_session SET started_at = 0").await;
    let stats = desk.client.list_session_code_stats(v1::ListSessionCodeStatsRequest::default()).await.unwrap();
    let none = v1::SessionCodeStats { session_id: session.id, ..v1::SessionCodeStats::default() };
    assert_eq!(stats.into_inner().stats, [none], "no numbers, and not available");
}

on_both_databases!(
    workspaces_and_boards_are_shown_whole,
    a_session_shows_what_its_profile_was_under_the_first_key_that_says_something,
    a_repositorys_address_never_shows_a_user,
    lines_of_a_session_from_before_commits_were_recorded_are_not_available,
);
