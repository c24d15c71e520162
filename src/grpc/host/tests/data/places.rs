//! Where a new task goes, what it takes over, and in which order its request is looked at (host-data.md §6.1).

use super::*;
use crate::{
    domain::platform::{
        profile::AgentProfileFields,
        repository::RepositoryFields,
        task::{RepositoryDraft, RepositoryRef},
        workflow::{StepDraft, WorkflowDraft},
    },
    store::db::tests::on_both_databases,
};

fn create(title: &str) -> v1::CreateTaskRequest {
    v1::CreateTaskRequest { title: title.to_owned(), ..v1::CreateTaskRequest::default() }
}

fn plan(mode: &str) -> Option<v1::PluginTaskLaunchOptions> {
    Some(v1::PluginTaskLaunchOptions { plan_mode: Some(mode.to_owned()), ..v1::PluginTaskLaunchOptions::default() })
}

impl Desk {
    async fn created(&mut self, request: v1::CreateTaskRequest) -> v1::Task {
        self.client.create_task(request).await.unwrap().into_inner().task.unwrap()
    }

    /// The wire does not tell a task's step.
    async fn step_of_new(&mut self, request: v1::CreateTaskRequest) -> Option<String> {
        let id = self.created(request).await.id;
        self.platform.tasks.get(&Scope::All, &id).await.unwrap().workflow_step_id
    }
}

async fn a_task_goes_to_the_start_step_a_planned_one_to_the_first_and_a_named_step_goes_before_both(db: db::Db) {
    let mut desk = desk(db).await;
    let (workspace, by) = (desk.workspace("one").await, By::operator());
    let (board, steps) = desk.board(&workspace).await;
    let start = |is: bool| StepDraft { is_start_step: Some(is), ..StepDraft::default() };
    desk.platform.workflows.update_step(&by, &steps[2].id, &start(true), None).await.unwrap();
    let named = |step: usize| Some(steps[step].id.clone());
    let options = v1::PluginTaskLaunchOptions::default;
    let cases = [
        (create("x"), 2),
        (v1::CreateTaskRequest { launch: Some(options()), ..create("x") }, 2),
        (v1::CreateTaskRequest { launch: plan(""), ..create("x") }, 2),
        (v1::CreateTaskRequest { launch: plan("off"), ..create("x") }, 2),
        (v1::CreateTaskRequest { launch: plan("on"), ..create("x") }, 0),
        (v1::CreateTaskRequest { launch: plan("replace"), ..create("x") }, 0),
        (v1::CreateTaskRequest { launch: plan("on"), start_agent: true, ..create("x") }, 0),
        (v1::CreateTaskRequest { launch: plan("on"), workflow_step_id: named(3), ..create("x") }, 3),
        (v1::CreateTaskRequest { workflow_step_id: named(1), ..create("x") }, 1),
        (v1::CreateTaskRequest { workflow_step_id: Some(String::new()), ..create("x") }, 2),
    ];
    for (request, expected) in cases {
        assert_eq!(desk.step_of_new(request.clone()).await, named(expected), "{request:?}");
    }
    desk.platform.workflows.update_step(&by, &steps[2].id, &start(false), None).await.unwrap();
    assert_eq!(desk.step_of_new(create("x")).await, named(0), "no start step: the first");

    let bare = WorkflowDraft { name: Some("bare".to_owned()), ..WorkflowDraft::default() };
    let bare = desk.platform.workflows.create(&by, &workspace.id, &bare, None).await.unwrap();
    for step in desk.platform.workflows.steps(&Scope::All, &bare.id).await.unwrap() {
        desk.platform.workflows.delete_step(&by, &step.id, None).await.unwrap();
    }
    for launch in [None, plan("on")] {
        let request = v1::CreateTaskRequest { workflow_id: bare.id.clone(), launch, ..create("x") };
        assert_eq!(desk.step_of_new(request).await, None, "no steps: none");
    }
    assert_eq!(desk.created(create("x")).await.workflow_id, board.id);
}

async fn a_task_goes_to_the_only_workspace_and_its_first_workflow_that_is_not_hidden(db: db::Db) {
    let mut desk = desk(db).await;
    let (workspace, by) = (desk.workspace("one").await, By::operator());
    let (board, _) = desk.board(&workspace).await;
    let second = WorkflowDraft { name: Some("second".to_owned()), ..WorkflowDraft::default() };
    let second = desk.platform.workflows.create(&by, &workspace.id, &second, None).await.unwrap();
    let place = |task: v1::Task| (task.workspace_id, task.workflow_id);
    let at = |workflow: &str| (workspace.id.clone(), workflow.to_owned());
    assert_eq!(place(desk.created(create("x")).await), at(&board.id));
    desk.platform.workflows.reorder(&by, &workspace.id, std::slice::from_ref(&second.id)).await.unwrap();
    assert_eq!(place(desk.created(create("x")).await), at(&second.id), "by sort order");
    let hidden = WorkflowDraft { hidden: Some(true), ..WorkflowDraft::default() };
    desk.platform.workflows.update(&by, &second.id, &hidden, None).await.unwrap();
    assert_eq!(place(desk.created(create("x")).await), at(&board.id));
    let named = v1::CreateTaskRequest { workflow_id: second.id.clone(), ..create("x") };
    assert_eq!(place(desk.created(named).await), at(&second.id), "a hidden one can be named");
    desk.platform.workflows.update(&by, &board.id, &hidden, None).await.unwrap();
    let none = "workflow_id is required: workspace has no workflow to default to";
    let refused = refusal(desk.client.create_task(create("x")).await);
    assert_eq!(refused, (Code::InvalidArgument, none.to_owned()));
}

async fn a_part_takes_over_the_repositories_of_its_whole_unless_it_names_its_own(db: db::Db) {
    let mut desk = desk(db).await;
    let (one, two, by) = (desk.workspace("one").await, desk.workspace("two").await, By::operator());
    let mut known = Vec::new();
    for name in ["a", "b", "c"] {
        let fields = RepositoryFields { name: name.to_owned(), ..RepositoryFields::default() };
        known.push(desk.platform.repositories.create(&by, &one.id, fields).await.unwrap().id);
    }
    let draft = |id: &String, branch: &str| RepositoryDraft {
        repository: RepositoryRef::Known(id.clone()),
        base_branch: branch.to_owned(),
        checkout_branch: format!("{branch}-fix"),
        pull_request_number: None,
    };
    let repositories = vec![draft(&known[1], "main"), draft(&known[0], "next")];
    let whole = desk.task(NewTask { workspace_id: one.id.clone(), repositories, ..titled("whole") }).await;
    let there = v1::CreateTaskRequest { workspace_id: one.id.clone(), ..create("part") };
    let under = v1::CreateTaskRequest { parent_id: Some(whole.id.clone()), ..there.clone() };
    let part = desk.created(under.clone()).await;
    let row = |id: &str, at: usize, branch: &str, position: i32| v1::TaskRepository {
        id: id.to_owned(),
        repository_id: known[at].clone(),
        base_branch: branch.to_owned(),
        position,
        checkout_branch: format!("{branch}-fix"),
    };
    let rows = &part.repositories;
    assert_eq!(*rows, [row(&rows[0].id, 1, "main", 0), row(&rows[1].id, 0, "next", 1)]);
    assert!(rows.iter().all(|row| whole.repositories.iter().all(|theirs| theirs.id != row.id)), "rows of its own");
    assert_eq!(part.parent_id, Some(whole.id.clone()));

    let entry = v1::PluginTaskRepository { repository_id: known[2].clone(), ..v1::PluginTaskRepository::default() };
    let own = desk.created(v1::CreateTaskRequest { repositories: vec![entry], ..under.clone() }).await;
    let ids: Vec<_> = own.repositories.iter().map(|row| row.repository_id.as_str()).collect();
    assert_eq!(ids, [known[2].as_str()]);
    let alone = desk.created(v1::CreateTaskRequest { parent_id: Some(String::new()), ..there }).await;
    assert_eq!((alone.parent_id, alone.repositories), (None, Vec::new()), "an empty parent is none");

    let elsewhere = v1::CreateTaskRequest { workspace_id: two.id.clone(), ..under };
    let foreign = (Code::InvalidArgument, "invalid parent_id: it is a task of another workspace".to_owned());
    assert_eq!(refusal(desk.client.create_task(elsewhere).await), foreign);
}

/// Each request has one fault less than the one before.
async fn of_many_faults_the_contracts_first_one_is_told(db: db::Db) {
    let mut desk = desk(db).await;
    let by = By::operator();
    let (one, two) = (desk.workspace("one").await, desk.workspace("two").await);
    let (board, steps) = desk.board(&one).await;
    let (foreign, _) = desk.board(&two).await;
    let agents = &desk.platform.agents;
    agents.register(&by, "codex", "Codex", 1, true, None).await.unwrap();
    let fields = AgentProfileFields {
        name: "p".to_owned(),
        model: "m".to_owned(),
        mode: String::new(),
        workspace_id: None,
        enabled: true,
        settings: Map::new(),
    };
    let profile = agents.create_profile(&by, "codex", fields).await.unwrap().id;
    let launch = |agent: &str, executor: &str, plan_mode: &str| {
        Some(v1::PluginTaskLaunchOptions {
            agent_profile_id: Some(agent.to_owned()),
            executor_profile_id: Some(executor.to_owned()),
            prompt: None,
            plan_mode: Some(plan_mode.to_owned()),
        })
    };
    let mut request = v1::CreateTaskRequest {
        metadata: object(json!({"source": "me"})),
        repositories: vec![v1::PluginTaskRepository::default()],
        launch: launch("none", "none", "maybe"),
        start_agent: true,
        workflow_id: foreign.id,
        workflow_step_id: Some("none".to_owned()),
        parent_id: Some("none".to_owned()),
        ..v1::CreateTaskRequest::default()
    };
    let mut fault = async |request: &v1::CreateTaskRequest, text: &str| {
        let refused = refusal(desk.client.create_task(request.clone()).await);
        assert_eq!(refused, (Code::InvalidArgument, text.to_owned()), "{request:?}");
    };
    fault(&request, "title is required").await;
    request.title = "x".repeat(5000);
    fault(&request, "metadata.source is reserved").await;
    request.metadata = None;
    fault(&request, "repository_id or remote descriptor is required").await;
    request.repositories.clear();
    fault(&request, "launch.plan_mode must be one of: off, on, replace").await;
    request.launch = launch("none", "none", "on");
    fault(&request, "launch.agent_profile_id is not available").await;
    request.launch = launch(&profile, "none", "on");
    fault(&request, "launch.executor_profile_id is not available").await;
    request.launch = launch(&profile, "", "on");
    fault(&request, "workspace_id is required: cannot resolve a default among the instance's workspaces").await;
    request.workspace_id = one.id;
    fault(&request, "task title is too long: task titles must be 60 characters or fewer").await;
    request.title = "x".to_owned();
    fault(&request, "workspace not found").await;
    request.workflow_id = board.id;
    fault(&request, "invalid task workflow: workflow step not found: none").await;
    request.workflow_step_id = Some(steps[1].id.clone());
    fault(&request, "invalid parent_id: no such task").await;
    request.parent_id = None;
    desk.created(request).await;
}

on_both_databases!(
    a_task_goes_to_the_start_step_a_planned_one_to_the_first_and_a_named_step_goes_before_both,
    a_task_goes_to_the_only_workspace_and_its_first_workflow_that_is_not_hidden,
    a_part_takes_over_the_repositories_of_its_whole_unless_it_names_its_own,
    of_many_faults_the_contracts_first_one_is_told,
);
