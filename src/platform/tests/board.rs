//! Workspaces, workflows, repositories, agents and executors.

use super::*;
use crate::{
    domain::platform::{
        profile::{AgentProfileFields, ExecutorFields, ExecutorProfileFields},
        refusal::{Class, Kind},
        repository::RepositoryFields,
        words::ExecutorType,
        workflow::WorkflowDraft,
    },
    store::db::tests::on_both_databases,
};

async fn a_workspace_begins_with_a_board_and_goes_with_everything_in_it(db: Db) {
    let world = World::new(db);
    let (workspaces, by) = (&world.platform.workspaces, By::operator());
    let workspace = world.workspace("one").await;
    let mut expected = vec!["workspace.created", "workflow.created"];
    expected.extend(["workflow_step.created"; 4]);
    assert_eq!(world.told(0).await, expected);
    assert!(world.log().await.iter().all(|event| event.workspace_id == workspace.id));
    let (workflow, steps) = world.board(&workspace).await;
    assert_eq!(workflow.name, "Kanban");
    let names: Vec<_> = steps.iter().map(|step| (step.name.as_str(), step.position, step.is_start_step)).collect();
    assert_eq!(names, [("Backlog", 0, true), ("In Progress", 1, false), ("Review", 2, false), ("Done", 3, false)]);

    let renamed = WorkspaceDraft { name: Some("two".to_owned()), ..WorkspaceDraft::default() };
    let updated = workspaces.update(&by, &workspace.id, &renamed, Some(1)).await.unwrap();
    assert_eq!((updated.name.as_str(), updated.version), ("two", 2));
    assert_eq!(workspaces.update(&by, &workspace.id, &renamed, Some(2)).await.unwrap(), updated);
    assert_eq!(refused(workspaces.update(&by, &workspace.id, &renamed, Some(1)).await).class(), Class::Stale);
    let task = world.task("x").await;
    assert_eq!(
        text(workspaces.delete(&by, &workspace.id, "one", None).await),
        "confirm_name must be the name of the workspace"
    );
    let seen = world.log().await.len();
    workspaces.delete(&by, &workspace.id, "two", Some(2)).await.unwrap();
    assert_eq!(world.told(seen).await, ["workspace.deleted"]);
    assert_eq!(refused(world.platform.tasks.get(&Scope::All, &task.id).await).class(), Class::NotFound);
    assert_eq!(refused(world.platform.workflows.get(&Scope::All, &workflow.id).await).class(), Class::NotFound);
}

async fn no_step_pulls_from_one_that_is_gone(db: Db) {
    let world = World::new(db);
    let (workflows, by) = (&world.platform.workflows, By::operator());
    let workspace = world.workspace("one").await;
    let (board, steps) = world.board(&workspace).await;
    let pulling = |name: &str, from: &Step| StepDraft { pull_from_step_id: Some(from.id.clone()), ..step_named(name) };
    let near = workflows.create_step(&by, &board.id, &pulling("near", &steps[1])).await.unwrap();
    let other = workflows.create_step(&by, &board.id, &pulling("other", &steps[2])).await.unwrap();
    let named = WorkflowDraft { name: Some("second".to_owned()), ..WorkflowDraft::default() };
    let second = workflows.create(&by, &workspace.id, &named, None).await.unwrap();
    let far = workflows.create_step(&by, &second.id, &pulling("far", &steps[1])).await.unwrap();
    let seen = world.log().await.len();
    workflows.delete_step(&by, &steps[1].id, None).await.unwrap();
    let step = async |id: &str| workflows.step(&Scope::All, id).await.unwrap();
    for pulled in [&near, &far] {
        let found = step(&pulled.id).await;
        assert_eq!((found.pull_from_step_id, found.version), (None, pulled.version + 1), "{}", pulled.name);
    }
    assert_eq!(step(&other.id).await, other);
    let told = world.log().await.split_off(seen);
    let shown: Vec<_> = told.iter().map(|event| (event.subject.as_str(), event.workspace_id.as_str())).collect();
    let [updated, deleted] = ["workflow_step.updated", "workflow_step.deleted"].map(|told| (told, &*workspace.id));
    assert_eq!(shown, [updated, updated, deleted]);
    assert!(told[..2].iter().all(|event| event.payload["step"]["pull_from_step_id"].is_null()), "{told:?}");

    let to_first = StepDraft { pull_from_step_id: Some(steps[0].id.clone()), ..StepDraft::default() };
    workflows.update_step(&by, &far.id, &to_first, None).await.unwrap();
    workflows.delete(&by, &board.id, None).await.unwrap();
    assert_eq!(step(&far.id).await.pull_from_step_id, None, "its workflow is gone");
}

async fn workflows_and_steps_keep_their_order_and_their_tasks(db: Db) {
    let world = World::new(db);
    let (workflows, by) = (&world.platform.workflows, By::operator());
    let workspace = world.workspace("one").await;
    let (board, steps) = world.board(&workspace).await;
    let named = |name: &str| WorkflowDraft { name: Some(name.to_owned()), ..WorkflowDraft::default() };
    let second = workflows.create(&by, &workspace.id, &named("second"), None).await.unwrap();
    assert_eq!(second.sort_order, 1);
    workflows.reorder(&by, &workspace.id, std::slice::from_ref(&second.id)).await.unwrap();
    let list = async || {
        let page = workflows.list(&Scope::All, &workspace.id, &PageRequest::default()).await.unwrap();
        page.items.into_iter().map(|workflow| workflow.name).collect::<Vec<_>>()
    };
    assert_eq!(list().await, ["second", "Kanban"]);
    assert_eq!(refused(workflows.reorder(&by, &workspace.id, &["none".to_owned()]).await).class(), Class::NotFound);

    let reversed: Vec<_> = steps.iter().rev().map(|step| step.id.clone()).collect();
    workflows.reorder_steps(&by, &board.id, &reversed).await.unwrap();
    let found = workflows.steps(&Scope::All, &board.id).await.unwrap();
    assert_eq!(found.iter().map(|step| step.id.clone()).collect::<Vec<_>>(), reversed);
    let start = StepDraft { is_start_step: Some(true), ..step_named("Start") };
    let start = workflows.create_step(&by, &board.id, &start).await.unwrap();
    let starts = workflows.steps(&Scope::All, &board.id).await.unwrap();
    assert_eq!(starts.iter().filter(|step| step.is_start_step).map(|step| &step.id).collect::<Vec<_>>(), [&start.id]);
    assert_eq!(start.position, 4);

    let new = NewTask { workflow_id: board.id.clone(), ..titled("x") };
    let task = world.made(&by, &new).await;
    let full = format!("workflow step \"{}\" still has tasks; move or delete them first", start.id);
    let refusal = refused(workflows.delete_step(&by, &start.id, None).await);
    assert_eq!((refusal.class(), refusal.to_string()), (Class::Conflict, full));
    assert_eq!(refused(workflows.delete(&by, &board.id, None).await).class(), Class::Conflict);
    world.platform.tasks.delete(&by, &task.id, false, None).await.unwrap();
    let seen = world.log().await.len();
    workflows.delete_step(&by, &start.id, None).await.unwrap();
    workflows.delete(&by, &board.id, None).await.unwrap();
    let steps = vec!["workflow_step.deleted"; 5];
    assert_eq!(
        world.told(seen).await,
        [steps, vec!["workflow.deleted"]].concat(),
        "the four that were left go with it"
    );
    assert_eq!(workflows.steps(&Scope::All, &board.id).await.unwrap(), []);
    assert_eq!(refused(workflows.create(&by, &workspace.id, &named("x"), Some("none")).await).class(), Class::NotFound);
}

async fn a_deleted_repository_leaves_the_lists_and_stays_with_its_tasks(db: Db) {
    let world = World::new(db);
    let (repositories, by) = (&world.platform.repositories, By::operator());
    let workspace = world.workspace("one").await;
    let fields = RepositoryFields {
        name: "app".to_owned(),
        remote_url: "https://user:hunter2@forge.test/app.git".to_owned(),
        ..RepositoryFields::default()
    };
    let repository = repositories.create(&by, &workspace.id, fields).await.unwrap();
    assert_eq!(repository.fields.remote_url, "https://forge.test/app.git");
    let patched =
        repositories.update(&by, &repository.id, &map(json!({"default_branch": "main"})), Some(1)).await.unwrap();
    assert_eq!((patched.fields.default_branch.as_str(), patched.version), ("main", 2));
    let unknown = repositories.update(&by, &repository.id, &map(json!({"id": "x"})), None).await;
    assert_eq!(text(unknown), "id is not a field of it");
    repositories.delete(&by, &repository.id, None).await.unwrap();
    let list = repositories.list(&Scope::All, &workspace.id, &PageRequest::default()).await.unwrap();
    assert_eq!(list.items, []);
    assert_eq!(refused(repositories.get(&Scope::All, &repository.id).await).class(), Class::NotFound);
    assert_eq!(world.told(6).await, ["repository.created", "repository.updated", "repository.deleted"]);
    let none = repositories.list(&Scope::All, "", &PageRequest::default()).await.unwrap();
    assert_eq!(none.items, [], "no workspace, no repositories");
}

async fn profiles_come_in_the_order_of_their_agents_and_executors(db: Db) {
    let world = World::new(db);
    let (agents, executors, by) = (&world.platform.agents, &world.platform.executors, By::operator());
    let workspace = world.workspace("one").await;
    let agent_profile = |name: &str, workspace_id: Option<String>| AgentProfileFields {
        name: name.to_owned(),
        model: "m".to_owned(),
        mode: String::new(),
        workspace_id,
        enabled: true,
        settings: map(json!({"cli_flags": ["-x"]})),
    };
    agents.register(&by, "b", "Second", 2, false, None).await.unwrap();
    agents.register(&by, "a", "First", 1, true, None).await.unwrap();
    for (agent, name, of) in
        [("b", "b1", None), ("a", "a1", None), ("a", "a2", None), ("a", "office", Some(workspace.id.clone()))]
    {
        agents.create_profile(&by, agent, agent_profile(name, of)).await.unwrap();
    }
    let names = async || {
        let page = agents.profiles(&Scope::All, &PageRequest::default()).await.unwrap();
        page.items.into_iter().map(|profile| (profile.agent_display_name, profile.fields.name)).collect::<Vec<_>>()
    };
    let owned = |pairs: [(&str, &str); 3]| pairs.map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec();
    assert_eq!(names().await, owned([("First", "a1"), ("First", "a2"), ("Second", "b1")]));
    let told = world.log().await.len();
    let known = agents.register(&by, "b", "Zeroth", 0, false, Some(1)).await.unwrap();
    assert_eq!((known.agent.version, known.profiles.len(), known.profiles[0].version), (2, 1, 2));
    assert_eq!(world.told(told).await, ["agent_profile.updated"], "it shows the name");
    assert_eq!(agents.register(&by, "b", "Zeroth", 0, false, None).await.unwrap(), known, "nothing changes");
    assert_eq!(world.told(told + 1).await, Vec::<String>::new());
    let stale = refused(agents.register(&by, "b", "Third", 0, false, Some(1)).await);
    assert_eq!(stale.class(), Class::Stale);
    assert_eq!(refused(agents.register(&by, "c", "New", 0, false, Some(0)).await).class(), Class::Stale);
    let long = "x".repeat(129);
    assert!(text(agents.register(&by, &long, "Long", 0, false, None).await).starts_with("id must have 1 to 128 bytes"));
    let all: Vec<_> = agents.list(&Scope::All).await.unwrap();
    let all: Vec<_> = all.iter().map(|known| (known.agent.id.as_str(), known.profiles.len())).collect();
    assert_eq!(all, [("b", 1), ("a", 3)], "those of one workspace too");
    assert_eq!(names().await, owned([("Zeroth", "b1"), ("First", "a1"), ("First", "a2")]));

    let fields = ExecutorFields {
        name: "Local".to_owned(),
        executor_type: ExecutorType::LocalDocker,
        status: "active".to_owned(),
        is_system: false,
        resumable: true,
        config: Map::new(),
    };
    let executor = executors.create(&by, fields).await.unwrap();
    for name in ["b", "B", "a"] {
        let fields = ExecutorProfileFields { name: name.to_owned(), ..ExecutorProfileFields::default() };
        executors.create_profile(&by, &executor.id, fields).await.unwrap();
    }
    let list = async || {
        let page = executors.profiles(&Scope::All, &PageRequest::default()).await.unwrap();
        page.items.into_iter().map(|profile| (profile.fields.name, profile.executor_type)).collect::<Vec<_>>()
    };
    let expected = |kind| ["B", "a", "b"].map(|name| (name.to_owned(), kind)).to_vec();
    assert_eq!(list().await, expected(Some(ExecutorType::LocalDocker)), "names by their bytes");
    executors.delete(&by, &executor.id, None).await.unwrap();
    assert_eq!(list().await, expected(None), "a vanished executor has no type");
}

async fn a_workspace_that_was_seen_is_gone_when_its_deletion_is_answered(db: Db) {
    let world = World::new(db);
    let (workspaces, by) = (&world.platform.workspaces, By::operator());
    let (one, other) = (world.workspace("one").await, world.workspace("other").await);
    let within = Scope::Workspaces(vec![one.id.clone()]);
    for _ in 0..2 {
        workspaces.see(&Scope::All, &one.id).await.unwrap();
        workspaces.see(&Scope::All, &other.id).await.unwrap();
        workspaces.see(&within, &one.id).await.unwrap();
    }
    let hidden = Refusal::not_found(Kind::Workspace, &other.id);
    assert_eq!(refused(workspaces.see(&within, &other.id).await), hidden);
    workspaces.delete(&by, &one.id, "one", None).await.unwrap();
    let gone = Refusal::not_found(Kind::Workspace, &one.id);
    assert_eq!(refused(workspaces.see(&Scope::All, &one.id).await), gone);
    workspaces.see(&Scope::All, &other.id).await.unwrap();
}

on_both_databases!(
    a_workspace_begins_with_a_board_and_goes_with_everything_in_it,
    no_step_pulls_from_one_that_is_gone,
    workflows_and_steps_keep_their_order_and_their_tasks,
    a_deleted_repository_leaves_the_lists_and_stays_with_its_tasks,
    profiles_come_in_the_order_of_their_agents_and_executors,
    a_workspace_that_was_seen_is_gone_when_its_deletion_is_answered,
);
