//! Making and changing tasks (host-data.md §6.1, §6.2; wire.md §4).

use super::*;
use crate::{
    domain::platform::{
        profile::AgentProfileFields,
        refusal::Class,
        repository::{RemoteRepository, RepositoryFields},
        session::NewSession,
        task::{Launch, RepositoryDraft, RepositoryRef, TaskPatch},
        words::{PlanMode, Priority, TaskState},
        workflow::WorkflowDraft,
    },
    platform::tasks::BulkMove,
    store::db::tests::{on_both_databases, postgres},
};

fn patch() -> TaskPatch {
    TaskPatch::default()
}

fn remote(clone_url: &str) -> RemoteRepository {
    RemoteRepository {
        provider_id: "forge".to_owned(),
        provider_host: "forge.test".to_owned(),
        owner_or_project: "team".to_owned(),
        provider_repository_id: "7".to_owned(),
        name: "app".to_owned(),
        clone_url: clone_url.to_owned(),
        ..RemoteRepository::default()
    }
}

fn draft(repository: RepositoryRef) -> RepositoryDraft {
    let branch = "main".to_owned();
    RepositoryDraft { repository, base_branch: branch, checkout_branch: String::new(), pull_request_number: Some(3) }
}

async fn a_task_goes_where_nobody_said_otherwise(db: Db) {
    let world = World::new(db);
    let tasks = &world.platform.tasks;
    let by = By::operator();
    assert_eq!(
        text(tasks.create(&by, &titled("x")).await),
        "workspace_id is required: cannot resolve a default among the instance's workspaces"
    );
    let workspace = world.workspace("one").await;
    let (workflow, steps) = world.board(&workspace).await;
    let task = world.task("x").await;
    assert_eq!((&task.workspace_id, &task.workflow_id), (&workspace.id, &workflow.id));
    assert_eq!(task.workflow_step_id.as_ref(), Some(&steps[0].id));
    assert_eq!((task.state, task.priority), (TaskState::Created, Priority::Medium));
    assert_eq!((task.identifier.as_str(), task.version, task.source()), ("", 1, None));

    let by_operator = By::operator();
    let start = StepDraft { is_start_step: Some(true), ..StepDraft::default() };
    world.platform.workflows.update_step(&by_operator, &steps[2].id, &start, None).await.unwrap();
    assert_eq!(world.task("x").await.workflow_step_id.as_ref(), Some(&steps[2].id));
    let planned = NewTask { plan_mode: Some(PlanMode::On), ..titled("x") };
    assert_eq!(world.made(&by, &planned).await.workflow_step_id.as_ref(), Some(&steps[0].id));
    let off = NewTask { plan_mode: Some(PlanMode::Off), ..titled("x") };
    assert_eq!(world.made(&by, &off).await.workflow_step_id.as_ref(), Some(&steps[2].id));

    world.workspace("two").await;
    assert_eq!(refused(tasks.create(&by, &titled("x")).await), Refusal::NoDefaultWorkspace);
    let found = world.platform.tasks.get(&Scope::All, &task.id).await.unwrap();
    assert_eq!(found, task);
}

async fn what_cannot_be_a_task_is_refused_with_the_contracts_words(db: Db) {
    let world = World::new(db);
    let tasks = &world.platform.tasks;
    let by = By::operator();
    let (one, two) = (world.workspace("one").await, world.workspace("two").await);
    let ((_, steps), (foreign, foreign_steps)) = (world.board(&one).await, world.board(&two).await);
    let seen = world.log().await.len();
    let base = NewTask { workspace_id: one.id.clone(), ..titled("x") };
    let remote_at = |url: &str| vec![draft(RepositoryRef::Remote(remote(url)))];
    let launch = |agent: &str, executor: &str| {
        Some(Launch {
            agent_profile_id: agent.to_owned(),
            executor_profile_id: executor.to_owned(),
            prompt: String::new(),
        })
    };
    let cases = [
        (titled(" "), "title is required"),
        (
            NewTask { title: "x".repeat(61), ..base.clone() },
            "task title is too long: task titles must be 60 characters or fewer",
        ),
        (
            NewTask { title: "x".repeat(5000), ..base.clone() },
            "task title is too long: task titles must be 60 characters or fewer",
        ),
        (NewTask { title: "a\0b".to_owned(), ..base.clone() }, "title contains a zero byte"),
        (NewTask { parent_id: "a\0b".to_owned(), ..base.clone() }, "invalid parent_id: no such task"),
        (NewTask { metadata: map(json!({"source": 1})), ..base.clone() }, "metadata.source is reserved"),
        (NewTask { workspace_id: "none".to_owned(), ..base.clone() }, "workspace \"none\" not found"),
        (NewTask { workspace_id: "a\0b".to_owned(), ..base.clone() }, "workspace \"a b\" not found"),
        (NewTask { workflow_id: foreign.id.clone(), ..base.clone() }, "workspace not found"),
        (NewTask { workflow_id: "none".to_owned(), ..base.clone() }, "workflow \"none\" not found"),
        (
            NewTask { workflow_step_id: "none".to_owned(), ..base.clone() },
            "invalid task workflow: workflow step not found: none",
        ),
        (NewTask { parent_id: "none".to_owned(), ..base.clone() }, "invalid parent_id: no such task"),
        (NewTask { description: "a\0b".to_owned(), ..base.clone() }, "description contains a zero byte"),
        (NewTask { state: Some(TaskState::Scheduling), ..base.clone() }, "invalid task state \"SCHEDULING\""),
        (
            NewTask { repositories: vec![draft(RepositoryRef::Known("none".to_owned()))], ..base.clone() },
            "repository \"none\" not found",
        ),
        (
            NewTask { repositories: remote_at("http://forge.test/x"), ..base.clone() },
            "remote repository clone_url must match its credential-free HTTPS provider origin",
        ),
        (NewTask { launch: launch("none", ""), ..base.clone() }, "launch.agent_profile_id is not available"),
        (NewTask { launch: launch("", "none"), ..base.clone() }, "launch.executor_profile_id is not available"),
    ];
    for (new, expected) in cases {
        assert_eq!(text(tasks.create(&by, &new).await), expected, "{new:?}");
    }
    let foreign_step = NewTask { workflow_step_id: foreign_steps[0].id.clone(), ..base.clone() };
    assert!(matches!(refused(tasks.create(&by, &foreign_step).await), Refusal::ForeignStep(_)));
    assert_eq!(world.told(seen).await, [""; 0], "nothing is told of what was refused");
    assert!(
        steps.len() == 4
            && world
                .platform
                .tasks
                .list(&Scope::All, &Default::default(), &PageRequest::default())
                .await
                .unwrap()
                .items
                .is_empty()
    );

    let hidden = WorkflowDraft { hidden: Some(true), ..WorkflowDraft::default() };
    let (workflow, _) = world.board(&one).await;
    world.platform.workflows.update(&by, &workflow.id, &hidden, None).await.unwrap();
    assert_eq!(
        text(tasks.create(&by, &base).await),
        "workflow_id is required: workspace has no workflow to default to"
    );
}

async fn a_part_is_one_level_deep_and_inherits_what_its_whole_works_on(db: Db) {
    let world = World::new(db);
    let (tasks, by) = (&world.platform.tasks, By::operator());
    let workspace = world.workspace("one").await;
    let fields = RepositoryFields { name: "app".to_owned(), ..RepositoryFields::default() };
    let repository = world.platform.repositories.create(&by, &workspace.id, fields).await.unwrap();
    let whole = NewTask { repositories: vec![draft(RepositoryRef::Known(repository.id.clone()))], ..titled("whole") };
    let whole = world.made(&by, &whole).await;
    let part = world.made(&by, &NewTask { parent_id: whole.id.clone(), ..titled("part") }).await;
    let works_on = |task: &Task| {
        task.repositories
            .iter()
            .map(|r| (r.repository_id.clone(), r.base_branch.clone(), r.pull_request_number))
            .collect::<Vec<_>>()
    };
    assert_eq!(works_on(&part), [(repository.id.clone(), "main".to_owned(), Some(3))]);
    assert_eq!(part.parent_id.as_ref(), Some(&whole.id));
    assert_eq!(tasks.subtask_count(&Scope::All, &whole.id).await.unwrap(), 1);
    let deeper = NewTask { parent_id: part.id.clone(), ..titled("deeper") };
    assert_eq!(
        text(tasks.create(&by, &deeper).await),
        "invalid parent_id: cannot create a subtask of a subtask \u{2014} maximum nesting depth is 1 for kanban tasks. \
         Create a sibling task under the same parent or a top-level task instead"
    );
    let other = world.task("other").await;
    let under = |parent: &str| TaskPatch { parent_id: Some(parent.to_owned()), ..patch() };
    for (id, parent, expected) in [
        (&other.id, &part.id, "invalid parent_id: cannot create a subtask of a subtask"),
        (&whole.id, &other.id, "invalid parent_id: a task with subtasks cannot become one"),
        (&other.id, &other.id, "invalid parent_id: a task cannot be a part of itself"),
        (&other.id, &"a\0b".to_owned(), "invalid parent_id: no such task"),
        (&other.id, &"x".repeat(200), "invalid parent_id: no such task"),
    ] {
        let refusal = text(tasks.update(&by, id, &under(parent), None).await);
        assert!(refusal.starts_with(expected), "{refusal}");
    }
    let moved = tasks.update(&by, &part.id, &under(&other.id), None).await.unwrap();
    assert_eq!(moved.parent_id.as_ref(), Some(&other.id));
    let freed = tasks.update(&by, &part.id, &under(""), None).await.unwrap();
    assert_eq!(freed.parent_id, None);
}

async fn a_remote_repository_is_added_to_its_workspace_once(db: Db) {
    let world = World::new(db);
    let by = By::operator();
    let workspace = world.workspace("one").await;
    let seen = world.log().await.len();
    let new = NewTask {
        repositories: vec![draft(RepositoryRef::Remote(remote("https://forge.test/team/app.git")))],
        ..titled("x")
    };
    let (first, second) = (world.made(&by, &new).await, world.made(&by, &new).await);
    assert_eq!(first.repositories[0].repository_id, second.repositories[0].repository_id);
    assert_ne!(first.repositories[0].id, second.repositories[0].id);
    assert_eq!(world.told(seen).await, ["repository.created", "task.created", "task.created"]);
    let page = PageRequest::default();
    let known = world.platform.repositories.list(&Scope::All, &workspace.id, &page).await.unwrap().items;
    assert_eq!(known.len(), 1);
    assert_eq!(known[0].fields.remote_url, "https://forge.test/team/app.git");
}

async fn a_plugins_task_carries_its_tag_and_nobody_elses(db: Db) {
    let world = World::new(db);
    world.workspace("one").await;
    let by = By::plugin(&plugin("acme"));
    let task = world.made(&by, &NewTask { metadata: map(json!({"a": 1})), ..titled("x") }).await;
    let stored = json!({"source": "plugin:acme", "plugin:acme": {"a": 1}});
    assert_eq!(Value::from(task.metadata.clone()), stored);
    let forged = TaskPatch { metadata: Some(map(json!({"source": "plugin:other"}))), ..patch() };
    assert_eq!(text(world.platform.tasks.update(&by, &task.id, &forged, None).await), "metadata.source is reserved");
    let log = world.log().await;
    assert_eq!(log.last().unwrap().payload["metadata"], stored);
}

async fn an_external_id_is_one_task_of_its_workspace(db: Db) {
    let world = World::new(db);
    let (tasks, by) = (&world.platform.tasks, By::operator());
    let workspace = world.workspace("one").await;
    let new = NewTask { external_id: "JIRA-1".to_owned(), workspace_id: workspace.id.clone(), ..titled("x") };
    let attempts = futures_util::future::join_all((0..8).map(|_| tasks.create(&by, &new))).await;
    let made: Vec<_> = attempts.into_iter().map(Result::unwrap).collect();
    assert_eq!(made.iter().filter(|created| !created.deduplicated).count(), 1);
    assert!(made.iter().all(|created| created.task.id == made[0].task.id));
    let found = tasks.by_external_id(&Scope::All, &workspace.id, "JIRA-1").await.unwrap();
    assert_eq!(found, made[0].task);
    let elsewhere = NewTask { workspace_id: world.workspace("two").await.id, ..new.clone() };
    assert!(!tasks.create(&by, &elsewhere).await.unwrap().deduplicated);
    let nowhere = Scope::Workspaces(Vec::new());
    assert_eq!(refused(tasks.by_external_id(&nowhere, &workspace.id, "JIRA-1").await).class(), Class::NotFound);
}

async fn tasks_of_a_workspace_with_a_prefix_are_numbered_without_a_gap(db: Db) {
    let world = World::new(db);
    let (tasks, by) = (&world.platform.tasks, By::operator());
    let draft = WorkspaceDraft {
        name: Some("one".to_owned()),
        task_prefix: Some("KAN".to_owned()),
        ..WorkspaceDraft::default()
    };
    world.platform.workspaces.create(&by, &draft).await.unwrap();
    let new = titled("x");
    let made = futures_util::future::join_all((0..10).map(|_| tasks.create(&by, &new))).await;
    let mut numbers: Vec<_> = made.into_iter().map(|created| created.unwrap().task.identifier).collect();
    numbers.sort_by_key(|identifier| identifier.len() * 100 + identifier.as_bytes()[4] as usize);
    assert_eq!(numbers, (1..=10).map(|n| format!("KAN-{n}")).collect::<Vec<_>>());
}

async fn any_state_follows_any_other_and_is_told_before_the_change(db: Db) {
    let world = World::new(db);
    let (tasks, by) = (&world.platform.tasks, By::operator());
    let workspace = world.workspace("one").await;
    let id = world.task("x").await.id;
    let mut state = TaskState::Created;
    let mut version = 1;
    let settable = TaskState::ALL.iter().copied().filter(|state| *state != TaskState::Scheduling);
    for next in settable.clone().chain(settable.rev()) {
        let seen = world.log().await.len();
        let to = TaskPatch { state: Some(next), ..patch() };
        let task = tasks.update(&by, &id, &to, None).await.unwrap();
        assert_eq!(task.state, next);
        if next == state {
            assert_eq!((task.version, world.told(seen).await), (version, vec![]), "nothing changed");
            continue;
        }
        let told = world.log().await.split_off(seen);
        assert_eq!(
            told.iter().map(|event| event.subject.as_str()).collect::<Vec<_>>(),
            ["task.state_changed", "task.updated"]
        );
        assert_eq!(
            (&told[0].payload["old_state"], &told[0].payload["new_state"]),
            (&state.as_str().into(), &next.as_str().into())
        );
        assert_eq!(told[0].workspace_id, workspace.id);
        version += 1;
        assert_eq!(task.version, version);
        assert_eq!(task.completed_at.is_some(), next.is_final());
        state = next;
    }
    let scheduling = TaskPatch { state: Some(TaskState::Scheduling), ..patch() };
    assert_eq!(text(tasks.update(&by, &id, &scheduling, None).await), "invalid task state \"SCHEDULING\"");
}

async fn an_update_is_refused_when_the_writer_has_not_seen_the_newest_version(db: Db) {
    let world = World::new(db);
    let (tasks, by) = (&world.platform.tasks, By::operator());
    world.workspace("one").await;
    let id = world.task("x").await.id;
    let named = |title: &str| TaskPatch { title: Some(title.to_owned()), ..patch() };
    let second = tasks.update(&by, &id, &named(""), Some(1)).await.unwrap();
    assert_eq!((second.title.as_str(), second.version), ("", 2));
    let stale = refused(tasks.update(&by, &id, &named("b"), Some(1)).await);
    assert_eq!(
        (stale.class(), stale.to_string()),
        (Class::Stale, format!("task \"{id}\" has version 2, not 1; read it again and repeat the change"))
    );
    assert_eq!(refused(tasks.delete(&by, &id, false, Some(1)).await).class(), Class::Stale);
    assert_eq!(refused(tasks.set_archived(&by, &id, true, Some(1)).await).class(), Class::Stale);
    // Of many writers who saw the same version, one wins.
    let names: Vec<_> = (0..8).map(|n| named(&format!("writer {n}"))).collect();
    let attempts = futures_util::future::join_all(names.iter().map(|name| tasks.update(&by, &id, name, Some(2)))).await;
    assert_eq!(attempts.iter().filter(|attempt| attempt.is_ok()).count(), 1);
    assert_eq!(text(tasks.update(&by, "none", &patch(), None).await), "task \"none\" not found");
}

async fn a_move_is_checked_and_told_after_the_update(db: Db) {
    let world = World::new(db);
    let (tasks, by) = (&world.platform.tasks, By::operator());
    let (one, two) = (world.workspace("one").await, world.workspace("two").await);
    let ((board, steps), (foreign, foreign_steps)) = (world.board(&one).await, world.board(&two).await);
    let other = WorkflowDraft { name: Some("other".to_owned()), ..WorkflowDraft::default() };
    let other = world.platform.workflows.create(&by, &one.id, &other, Some("kanban")).await.unwrap();
    let other_steps = world.platform.workflows.steps(&Scope::All, &other.id).await.unwrap();
    let id = world.made(&by, &NewTask { workspace_id: one.id.clone(), ..titled("x") }).await.id;

    let seen = world.log().await.len();
    let to = |step: &str| TaskPatch { workflow_step_id: Some(step.to_owned()), ..patch() };
    let task =
        tasks.update(&by, &id, &TaskPatch { state: Some(TaskState::Review), ..to(&steps[2].id) }, None).await.unwrap();
    assert_eq!(task.workflow_step_id.as_ref(), Some(&steps[2].id));
    let told = world.log().await.split_off(seen);
    let subjects: Vec<_> = told.iter().map(|event| event.subject.as_str()).collect();
    assert_eq!(subjects, ["task.state_changed", "task.updated", "task.moved"]);
    assert_eq!(told[2].workspace_id, one.id);
    assert_eq!(
        (&told[2].payload["from_step_id"], &told[2].payload["to_step_id"]),
        (&steps[0].id.as_str().into(), &steps[2].id.as_str().into())
    );
    for step in [&other_steps[0].id, &foreign_steps[0].id, &"none".to_owned()] {
        let refusal = refused(tasks.update(&by, &id, &to(step), None).await);
        assert_eq!(refusal, Refusal::ForeignStep(step.clone()));
    }

    let seen = world.log().await.len();
    let moved = tasks.move_to(&by, &id, &other.id, &other_steps[1].id, 7, Some(task.version)).await.unwrap().task;
    assert_eq!((&moved.workflow_id, moved.position), (&other.id, 7));
    let told = world.log().await.split_off(seen);
    assert_eq!(told[0].payload["old_workflow_id"], board.id.as_str());
    assert_eq!(
        (told[1].subject.as_str(), &told[1].payload["from_workflow_id"]),
        ("task.moved", &board.id.as_str().into())
    );
    assert_eq!(
        refused(tasks.move_to(&by, &id, &foreign.id, &foreign_steps[0].id, 0, None).await),
        Refusal::ForeignWorkflow
    );
    let position_only = tasks.move_to(&by, &id, &other.id, &other_steps[1].id, 8, None).await.unwrap().task;
    assert_eq!(position_only.position, 8);
    assert_eq!(world.told(seen + 2).await, ["task.updated"], "a new place in the same step is no move");

    let more = [world.made(&by, &NewTask { workspace_id: one.id.clone(), ..titled("y") }).await];
    let bulk = BulkMove {
        source_workflow_id: board.id.clone(),
        target_workflow_id: other.id.clone(),
        target_step_id: other_steps[3].id.clone(),
        ..BulkMove::default()
    };
    assert_eq!(tasks.bulk_move(&by, &bulk).await.unwrap(), 1);
    let found = tasks.get(&Scope::All, &more[0].id).await.unwrap();
    assert_eq!(found.workflow_step_id.as_ref(), Some(&other_steps[3].id));
}

/// Two tasks of a step with more than a bulk move takes, and the move of them.
async fn two_of_a_full_step(world: &World) -> ([Task; 2], BulkMove) {
    let workspace = world.workspace("one").await;
    let (board, steps) = world.board(&workspace).await;
    let two = [world.task("a").await, world.task("b").await];
    let others: Vec<_> =
        (0..1000).map(|n| Task { id: format!("other-{n}"), external_id: None, ..two[0].clone() }).collect();
    let bulk = world.store.bulk().await.unwrap();
    bulk.insert_tasks(&others).await.unwrap();
    bulk.commit().await.unwrap();
    let bulk = BulkMove {
        source_workflow_id: board.id.clone(),
        source_step_id: steps[0].id.clone(),
        task_ids: two.iter().map(|task| task.id.clone()).collect(),
        target_workflow_id: board.id.clone(),
        target_step_id: steps[1].id.clone(),
    };
    (two, bulk)
}

async fn a_bulk_move_takes_the_tasks_it_names_out_of_however_many(db: Db) {
    let world = World::new(db);
    let (two, bulk) = two_of_a_full_step(&world).await;
    let (tasks, by) = (&world.platform.tasks, By::operator());
    let session = NewSession { task_id: two[0].id.clone(), ..NewSession::default() };
    world.platform.sessions.create(&by, &session).await.unwrap();
    let seen = world.log().await.len();
    assert_eq!(tasks.bulk_move(&by, &bulk).await.unwrap(), 2);
    let told = world.log().await.split_off(seen);
    let of = |task: &Task| {
        let of_it = told.iter().filter(|event| event.payload["task_id"] == task.id.as_str());
        of_it.map(|event| (event.subject.as_str(), event.payload.get("session_count").cloned())).collect::<Vec<_>>()
    };
    assert_eq!(of(&two[0]), [("task.updated", Some(json!(1))), ("task.moved", None)]);
    assert_eq!(of(&two[1]), [("task.updated", Some(json!(0))), ("task.moved", None)]);
    assert_eq!(told.len(), 4);
    let none = BulkMove { task_ids: vec!["none".to_owned(), "a\0".to_owned()], ..bulk.clone() };
    assert_eq!(tasks.bulk_move(&by, &none).await.unwrap(), 0);

    let unknown = BulkMove { source_step_id: "none".to_owned(), ..bulk.clone() };
    assert_eq!(refused(tasks.bulk_move(&by, &unknown).await), Refusal::ForeignStep("none".to_owned()));
    let draft = WorkflowDraft { name: Some("bare".to_owned()), ..WorkflowDraft::default() };
    let bare = world.platform.workflows.create(&by, &two[0].workspace_id, &draft, None).await.unwrap();
    let stepless = world.made(&by, &NewTask { workflow_id: bare.id.clone(), ..titled("d") }).await;
    assert_eq!(stepless.workflow_step_id, None);
    let of_bare =
        BulkMove { source_workflow_id: bare.id, source_step_id: String::new(), task_ids: Vec::new(), ..bulk.clone() };
    assert_eq!(tasks.bulk_move(&by, &of_bare).await.unwrap(), 1, "a task without a step too");

    let too_many = |count| Refusal::TooMany { field: "task_ids", count, limit: 1000 };
    let twice: Vec<_> = (0..2000).map(|n| format!("other-{}", n % 1000)).collect();
    let of_all = BulkMove { task_ids: Vec::new(), ..bulk.clone() };
    world.task("c").await;
    assert_eq!(refused(tasks.bulk_move(&by, &of_all).await), Refusal::TooManyTasks { limit: 1000 });
    let named = BulkMove { task_ids: (0..1001).map(|n| n.to_string()).collect(), ..bulk.clone() };
    assert_eq!(refused(tasks.bulk_move(&by, &named).await), too_many(1001));
    assert_eq!(tasks.bulk_move(&by, &BulkMove { task_ids: twice, ..bulk }).await.unwrap(), 1000, "each once");
}

/// On PostgreSQL writers lock rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bulk_move_waits_for_no_task_that_it_does_not_move() {
    let Some(db) = postgres().await else { return };
    let world = World::new(db);
    let (_, bulk) = two_of_a_full_step(&world).await;
    let (tasks, bulk) = (&world.platform.tasks, &bulk);
    let work = |work: crate::store::platform::Work| async move {
        work.get::<Task>("other-0").await?;
        tasks.bulk_move(&By::operator(), bulk).await
    };
    assert_eq!(world.store.write(&Scope::All, None, work).await, Ok(2));
}

async fn a_launch_wants_profiles_that_can_be_used(db: Db) {
    let world = World::new(db);
    let (agents, by) = (&world.platform.agents, By::operator());
    world.workspace("one").await;
    agents.register(&by, "codex", "Codex", 1, true, None).await.unwrap();
    let fields = AgentProfileFields {
        name: "Default".to_owned(),
        model: "m1".to_owned(),
        mode: String::new(),
        workspace_id: None,
        enabled: true,
        settings: Map::new(),
    };
    let profile = agents.create_profile(&by, "codex", fields).await.unwrap();
    let launch = Launch { agent_profile_id: profile.id.clone(), ..Launch::default() };
    let new = NewTask { launch: Some(launch), ..titled("x") };
    assert!(world.platform.tasks.create(&by, &new).await.is_ok());
    agents.update_profile(&by, &profile.id, &map(json!({"enabled": false})), &Map::new(), None).await.unwrap();
    assert_eq!(text(world.platform.tasks.create(&by, &new).await), "launch.agent_profile_id is not available");
}

on_both_databases!(
    a_task_goes_where_nobody_said_otherwise,
    what_cannot_be_a_task_is_refused_with_the_contracts_words,
    a_part_is_one_level_deep_and_inherits_what_its_whole_works_on,
    a_remote_repository_is_added_to_its_workspace_once,
    a_plugins_task_carries_its_tag_and_nobody_elses,
    an_external_id_is_one_task_of_its_workspace,
    tasks_of_a_workspace_with_a_prefix_are_numbered_without_a_gap,
    any_state_follows_any_other_and_is_told_before_the_change,
    an_update_is_refused_when_the_writer_has_not_seen_the_newest_version,
    a_move_is_checked_and_told_after_the_update,
    a_launch_wants_profiles_that_can_be_used,
    a_bulk_move_takes_the_tasks_it_names_out_of_however_many,
);
