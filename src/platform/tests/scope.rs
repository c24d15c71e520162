//! What is out of a scope is not there: no read finds it and no change reaches it.

use super::*;
use crate::{
    domain::platform::{
        message::{Message, MessageFilter, MessagePatch, NewMessage},
        profile::{AgentProfile, AgentProfileFields, ExecutorFields, ExecutorProfileFields},
        refusal::Class,
        repository::{Repository, RepositoryFields},
        session::{NewSession, Session, SessionFilter, SessionPatch},
        stats::{CommitFields, SnapshotFields},
        task::{Launch, RepositoryDraft, RepositoryRef, TaskFilter, TaskPatch},
        words::{AuthorType, ExecutorType, MessageType},
        workflow::WorkflowDraft,
    },
    platform::{executors::At, tasks::BulkMove},
    store::{
        db::tests::on_both_databases,
        platform::{EventFilter, TaskQuery},
    },
};

/// One thing of each kind, in one workspace.
struct Things {
    workspace: Workspace,
    workflow: Workflow,
    step: Step,
    task: Task,
    repository: Repository,
    profile: AgentProfile,
    session: Session,
    message: Message,
}

fn message_of(session: &Session) -> NewMessage {
    NewMessage {
        session_id: session.id.clone(),
        author_type: AuthorType::Agent,
        author_id: String::new(),
        message_type: MessageType::Content,
        content: "x".to_owned(),
        requests_input: false,
        metadata: Map::new(),
    }
}

fn session_of(task: &Task) -> NewSession {
    NewSession { task_id: task.id.clone(), ..NewSession::default() }
}

fn profile_fields(workspace_id: Option<String>) -> AgentProfileFields {
    AgentProfileFields {
        name: "p".to_owned(),
        model: "m".to_owned(),
        mode: String::new(),
        workspace_id,
        enabled: true,
        settings: Map::new(),
    }
}

fn commit() -> CommitFields {
    CommitFields { commit_sha: "a".to_owned(), ..CommitFields::default() }
}

impl Things {
    /// Made by a plugin; the agent `a` must be known.
    async fn in_new_workspace(world: &World, name: &str) -> Self {
        let (platform, by) = (&world.platform, By::plugin(&plugin("acme")));
        let workspace = world.workspace(name).await;
        let (workflow, steps) = world.board(&workspace).await;
        let new = NewTask { workspace_id: workspace.id.clone(), external_id: "e".to_owned(), ..titled("x") };
        let task = world.made(&by, &new).await;
        let fields = RepositoryFields { name: "app".to_owned(), ..RepositoryFields::default() };
        let repository = platform.repositories.create(&by, &workspace.id, fields).await.unwrap();
        let fields = profile_fields(Some(workspace.id.clone()));
        let profile = platform.agents.create_profile(&by, "a", fields).await.unwrap();
        let session = platform.sessions.create(&by, &session_of(&task)).await.unwrap();
        let message = platform.messages.add(&by, &message_of(&session)).await.unwrap();
        platform.code.record_commit(&by, &session.id, commit(), None).await.unwrap();
        platform.code.record_snapshot(&by, &session.id, SnapshotFields::default()).await.unwrap();
        let step = steps.into_iter().next().unwrap();
        Self { workspace, workflow, step, task, repository, profile, session, message }
    }
}

/// Two workspaces with the same things, and the scope of a reader that sees the first.
async fn two_workspaces(db: Db) -> (World, Things, Things, Scope) {
    let world = World::new(db);
    world.platform.agents.register(&By::operator(), "a", "A", 1, false, None).await.unwrap();
    let seen = Things::in_new_workspace(&world, "seen").await;
    let hidden = Things::in_new_workspace(&world, "hidden").await;
    let scope = Scope::Workspaces(vec![seen.workspace.id.clone()]);
    (world, seen, hidden, scope)
}

/// Every one of these is refused as a thing that is not there.
macro_rules! not_found {
    ($($asked:expr),+ $(,)?) => {
        $(assert_eq!(refused($asked.await).class(), Class::NotFound, "{}", stringify!($asked));)+
    };
}

async fn no_list_shows_what_is_out_of_scope(db: Db) {
    let (world, seen, hidden, scope) = two_workspaces(db).await;
    let (platform, page) = (&world.platform, PageRequest::default());
    let of_hidden = [hidden.workspace.id.clone()];

    let workspaces = platform.workspaces.list(&scope, &page).await.unwrap().items;
    assert_eq!(workspaces.iter().map(|each| &each.id).collect::<Vec<_>>(), [&seen.workspace.id]);
    let workflows = platform.workflows.list(&scope, "", &page).await.unwrap().items;
    assert_eq!(workflows, std::slice::from_ref(&seen.workflow));
    assert_eq!(platform.workflows.list(&scope, &of_hidden[0], &page).await.unwrap().items, []);
    assert_eq!(platform.workflows.steps(&scope, &hidden.workflow.id).await.unwrap(), []);

    let (any, asked) =
        (TaskFilter::default(), TaskFilter { workspace_ids: of_hidden.to_vec(), ..TaskFilter::default() });
    let ids = |tasks: Vec<Task>| tasks.into_iter().map(|task| task.id).collect::<Vec<_>>();
    assert_eq!(ids(platform.tasks.list(&scope, &any, &page).await.unwrap().items), std::slice::from_ref(&seen.task.id));
    assert_eq!(platform.tasks.list(&scope, &asked, &page).await.unwrap().items, []);
    let part = TaskQuery { offset: 0, limit: 10 };
    assert_eq!(platform.tasks.list_at(&scope, &asked, part).await.unwrap(), (Default::default(), 0));
    let both = [seen.task.id.clone(), hidden.task.id.clone()];
    let summaries = platform.tasks.session_summaries(&scope, &both).await.unwrap();
    assert_eq!(summaries.into_keys().collect::<Vec<_>>(), std::slice::from_ref(&seen.task.id));
    assert_eq!(platform.repositories.list(&scope, &of_hidden[0], &page).await.unwrap().items, []);

    let sessions = platform.sessions.list(&scope, &SessionFilter::default(), &page).await.unwrap().items;
    assert_eq!(sessions.iter().map(|each| &each.id).collect::<Vec<_>>(), [&seen.session.id]);
    assert_eq!(platform.sessions.primary(&scope, &hidden.task.id).await.unwrap(), None);
    let messages = platform.messages.list(&scope, &MessageFilter::default(), false, &page).await.unwrap().items;
    assert_eq!(messages, std::slice::from_ref(&seen.message));
    let stats = platform.code.stats(&scope, &SessionFilter::default(), &page).await.unwrap().items;
    assert_eq!(stats.iter().map(|each| &each.session_id).collect::<Vec<_>>(), [&seen.session.id]);
    let events = platform.events.list(&scope, &EventFilter::default(), &page).await.unwrap().items;
    assert!(!events.is_empty() && events.iter().all(|event| event.workspace_id == seen.workspace.id));
}

async fn no_id_finds_what_is_out_of_scope(db: Db) {
    let (world, seen, hidden, scope) = two_workspaces(db).await;
    let (platform, page, scope) = (&world.platform, &PageRequest::default(), &scope);
    not_found!(
        platform.workspaces.get(scope, &hidden.workspace.id),
        platform.workflows.get(scope, &hidden.workflow.id),
        platform.workflows.step(scope, &hidden.step.id),
        platform.tasks.get(scope, &hidden.task.id),
        platform.tasks.by_external_id(scope, &hidden.workspace.id, "e"),
        platform.tasks.subtask_count(scope, &hidden.task.id),
        platform.tasks.owned_tree(scope, &plugin("acme"), &hidden.task.id),
        platform.repositories.get(scope, &hidden.repository.id),
        platform.agents.profile(scope, &hidden.profile.id),
        platform.sessions.get(scope, &hidden.session.id),
        platform.sessions.turns(scope, &hidden.session.id, page),
        platform.messages.get(scope, &hidden.message.id),
        platform.code.commits(scope, &hidden.session.id, page),
        platform.code.snapshots(scope, &hidden.session.id, page),
    );
    assert_eq!(platform.tasks.get(scope, &seen.task.id).await.unwrap(), seen.task);
    assert_eq!(platform.workflows.step(scope, &seen.step.id).await.unwrap(), seen.step);
    assert_eq!(platform.agents.profile(scope, &seen.profile.id).await.unwrap(), seen.profile);
    assert_eq!(platform.messages.get(scope, &seen.message.id).await.unwrap(), seen.message);
}

async fn no_change_reaches_what_is_out_of_scope(db: Db) {
    let (world, seen, hidden, scope) = two_workspaces(db).await;
    let (platform, by) = (&world.platform, &By::operator().within(scope.clone()));
    let log = world.log().await.len();
    board_is_not_found(platform, by, &hidden).await;
    work_is_not_found(platform, by, &seen, &hidden).await;
    let deleted = platform.tasks.delete_owned_tree(&scope, &plugin("acme"), &hidden.task.id).await.unwrap();
    assert_eq!(deleted, [""; 0], "no such root");
    assert_eq!(world.told(log).await, [""; 0]);

    // The same changes reach what is in it.
    let patch = TaskPatch { title: Some("y".to_owned()), ..TaskPatch::default() };
    assert_eq!(platform.tasks.update(by, &seen.task.id, &patch, None).await.unwrap().title, "y");
    platform.messages.delete(by, &seen.message.id, None).await.unwrap();
    platform.workflows.delete_step(by, &last_step(platform, &seen).await, None).await.unwrap();
    platform.agents.delete_profile(by, &seen.profile.id, None).await.unwrap();
    let placed = platform.tasks.create(by, &titled("z")).await.unwrap().task;
    assert_eq!(placed.workspace_id, seen.workspace.id, "the only workspace of the scope");
}

async fn last_step(platform: &Platform, things: &Things) -> String {
    platform.workflows.steps(&Scope::All, &things.workflow.id).await.unwrap().pop().unwrap().id
}

async fn board_is_not_found(platform: &Platform, by: &By, hidden: &Things) {
    let (workspace, workflow, step) = (&hidden.workspace.id, &hidden.workflow.id, &hidden.step.id);
    let (board, column, name) = (WorkflowDraft::default(), step_named("y"), map(json!({"name": "y"})));
    not_found!(
        platform.workspaces.update(by, workspace, &WorkspaceDraft::default(), None),
        platform.workspaces.delete(by, workspace, "hidden", None),
        platform.workflows.create(by, workspace, &board, None),
        platform.workflows.update(by, workflow, &board, None),
        platform.workflows.delete(by, workflow, None),
        platform.workflows.reorder(by, workspace, std::slice::from_ref(workflow)),
        platform.workflows.create_step(by, workflow, &column),
        platform.workflows.create_steps_of(by, workflow, "kanban"),
        platform.workflows.update_step(by, step, &column, None),
        platform.workflows.delete_step(by, step, None),
        platform.workflows.reorder_steps(by, workflow, std::slice::from_ref(step)),
        platform.repositories.create(by, workspace, RepositoryFields { name: "y".to_owned(), ..Default::default() }),
        platform.repositories.update(by, &hidden.repository.id, &name, None),
        platform.repositories.delete(by, &hidden.repository.id, None),
        platform.agents.create_profile(by, "a", profile_fields(Some(workspace.clone()))),
        platform.agents.update_profile(by, &hidden.profile.id, &name, &Map::new(), None),
        platform.agents.delete_profile(by, &hidden.profile.id, None),
    );
}

async fn work_is_not_found(platform: &Platform, by: &By, seen: &Things, hidden: &Things) {
    let (task, session, message) = (&hidden.task.id, &hidden.session.id, &hidden.message.id);
    let (workflow, step) = (&hidden.workflow.id, &hidden.step.id);
    let new = NewTask { workspace_id: hidden.workspace.id.clone(), ..titled("y") };
    let bulk = |source: &Things, target: &Things| BulkMove {
        source_workflow_id: source.workflow.id.clone(),
        target_workflow_id: target.workflow.id.clone(),
        target_step_id: target.step.id.clone(),
        ..BulkMove::default()
    };
    not_found!(
        platform.tasks.create(by, &new),
        platform.tasks.update(by, task, &TaskPatch::default(), None),
        platform.tasks.move_to(by, task, workflow, step, 0, None),
        platform.tasks.move_to(by, &seen.task.id, workflow, step, 0, None),
        platform.tasks.bulk_move(by, &bulk(hidden, hidden)),
        platform.tasks.bulk_move(by, &bulk(seen, hidden)),
        platform.tasks.set_archived(by, task, true, None),
        platform.tasks.delete(by, task, true, None),
        platform.sessions.create(by, &session_of(&hidden.task)),
        platform.sessions.ensure(by, &session_of(&hidden.task)),
        platform.sessions.update(by, session, &SessionPatch::default(), None),
        platform.sessions.delete(by, session, None),
        platform.sessions.mark_read(by, session, message),
        platform.sessions.mark_read(by, &seen.session.id, message),
        platform.sessions.start_turn(by, session),
        platform.sessions.complete_turn(by, session),
        platform.messages.add(by, &message_of(&hidden.session)),
        platform.messages.update(by, message, &MessagePatch::default(), None),
        platform.messages.delete(by, message, None),
        platform.code.record_commit(by, session, commit(), None),
        platform.code.record_snapshot(by, session, SnapshotFields::default()),
    );
}

/// What a writer names in passing is answered as if it were not there, in the words for that.
async fn a_hidden_thing_cannot_be_referred_to(db: Db) {
    let (world, seen, hidden, scope) = two_workspaces(db).await;
    let (tasks, by) = (&world.platform.tasks, &By::operator().within(scope));
    let texts = async |hidden: &str, repository: &str, workflow: &str, profile: &str| {
        let launch = Launch { agent_profile_id: profile.to_owned(), ..Launch::default() };
        let draft = RepositoryDraft {
            repository: RepositoryRef::Known(repository.to_owned()),
            base_branch: String::new(),
            checkout_branch: String::new(),
            pull_request_number: None,
        };
        let new = || NewTask { workspace_id: seen.workspace.id.clone(), ..titled("y") };
        [
            text(tasks.create(by, &NewTask { parent_id: hidden.to_owned(), ..new() }).await),
            text(tasks.create(by, &NewTask { workflow_id: workflow.to_owned(), ..new() }).await),
            text(tasks.create(by, &NewTask { repositories: vec![draft], ..new() }).await),
            text(tasks.create(by, &NewTask { launch: Some(launch), ..new() }).await),
        ]
    };
    let profile = &hidden.profile.id;
    let told = texts(&hidden.task.id, &hidden.repository.id, &hidden.workflow.id, profile).await;
    let missing = texts("none", "none", "none", "none").await;
    let renamed = [&hidden.task.id, &hidden.repository.id, &hidden.workflow.id, profile];
    let told = told.map(|text| renamed.iter().fold(text, |text, id| text.replace(id.as_str(), "none")));
    assert_eq!(told, missing);
}

async fn things_of_the_instance_are_seen_by_all_but_who_sees_no_workspace(db: Db) {
    let (world, _, _, scope) = two_workspaces(db).await;
    let (agents, executors) = (&world.platform.agents, &world.platform.executors);
    let by = By::operator();
    let shared = agents.create_profile(&by, "a", profile_fields(None)).await.unwrap();
    let fields = ExecutorFields {
        name: "Local".to_owned(),
        executor_type: ExecutorType::LocalDocker,
        status: "active".to_owned(),
        is_system: false,
        resumable: true,
        config: Map::new(),
    };
    let executor = executors.create(&by, fields).await.unwrap();
    let fields = ExecutorProfileFields { name: "p".to_owned(), ..ExecutorProfileFields::default() };
    let profile = executors.create_profile(&by, &executor.id, fields).await.unwrap();
    let at = At { executor_id: &executor.id, profile_id: &profile.id };
    let page = PageRequest::default();
    let counts = async |scope: &Scope| {
        [
            agents.list(scope).await.unwrap().len(),
            agents.profiles(scope, &page).await.unwrap().items.len(),
            executors.list(scope).await.unwrap().len(),
            executors.profiles(scope, &page).await.unwrap().items.len(),
        ]
    };
    assert_eq!(counts(&scope).await, [1, 1, 1, 1]);
    assert_eq!(executors.profile(&scope, at).await.unwrap(), profile);

    let none = Scope::Workspaces(Vec::new());
    assert_eq!(counts(&none).await, [0, 0, 0, 0]);
    let (nobody, name) = (&By::operator().within(none.clone()), map(json!({"name": "y"})));
    not_found!(
        agents.profile(&none, &shared.id),
        executors.get(&none, &executor.id),
        executors.profile(&none, at),
        agents.register(nobody, "a", "B", 1, false, None),
        agents.create_profile(nobody, "a", profile_fields(None)),
        agents.delete_profile(nobody, &shared.id, None),
        executors.update(nobody, &executor.id, &name, None),
        executors.delete(nobody, &executor.id, None),
        executors.create_profile(
            nobody,
            &executor.id,
            ExecutorProfileFields { name: "q".to_owned(), ..Default::default() }
        ),
        executors.update_profile(nobody, at, &name, None),
        executors.delete_profile(nobody, at, None),
    );
}

on_both_databases!(
    no_list_shows_what_is_out_of_scope,
    no_id_finds_what_is_out_of_scope,
    no_change_reaches_what_is_out_of_scope,
    a_hidden_thing_cannot_be_referred_to,
    things_of_the_instance_are_seen_by_all_but_who_sees_no_workspace,
);
