//! Data of a seed: every rule of the services holds for it, it is the same everywhere, and one can go on from it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::*;
use crate::{
    domain::platform::{
        message::{Message, MessageFilter},
        page::Page,
        session::{Session, SessionFilter, Turn},
        stats::{Commit, Snapshot},
        task::{Show, TaskFilter, TaskPatch},
        words::{MessageType, Origin, Priority, TaskState},
    },
    platform::seed::{Made, Plan, SeedError, seed},
    store::db::tests::{on_both_databases, postgres, sqlite},
};

/// Everything, as the services show it.
#[derive(serde::Serialize)]
struct All {
    board: Vec<Value>,
    workspaces: Vec<Workspace>,
    tasks: Vec<Task>,
    sessions: Vec<Session>,
    turns: Vec<Turn>,
    messages: Vec<Message>,
    commits: Vec<Commit>,
    snapshots: Vec<Snapshot>,
}

async fn walk<T>(mut page: impl AsyncFnMut(PageRequest) -> Page<T>) -> Vec<T> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let part = page(PageRequest::new(200, &cursor)).await;
        all.extend(part.items);
        match part.next_cursor {
            None => return all,
            Some(next) => cursor = next,
        }
    }
}

fn values<T: serde::Serialize>(things: &[T]) -> Vec<Value> {
    things.iter().map(|thing| serde_json::to_value(thing).unwrap()).collect()
}

async fn read(world: &World) -> All {
    let (scope, platform) = (&Scope::All, &world.platform);
    let workspaces = walk(async |page| platform.workspaces.list(scope, &page).await.unwrap()).await;
    let mut board = values(&platform.agents.list(scope).await.unwrap());
    board.extend(values(&walk(async |page| platform.agents.profiles(scope, &page).await.unwrap()).await));
    board.extend(values(&platform.executors.list(scope).await.unwrap()));
    board.extend(values(&walk(async |page| platform.executors.profiles(scope, &page).await.unwrap()).await));
    for workflow in walk(async |page| platform.workflows.list(scope, "", &page).await.unwrap()).await {
        board.extend(values(std::slice::from_ref(&workflow)));
        board.extend(values(&platform.workflows.steps(scope, &workflow.id).await.unwrap()));
    }
    for workspace in &workspaces {
        let id = &workspace.id;
        board.extend(values(&walk(async |page| platform.repositories.list(scope, id, &page).await.unwrap()).await));
    }
    let filter =
        TaskFilter { archived: Show::With, ephemeral: Show::With, internal: Show::With, ..TaskFilter::default() };
    let tasks = walk(async |page| platform.tasks.list(scope, &filter, &page).await.unwrap()).await;
    let of_tasks =
        SessionFilter { task_ids: tasks.iter().map(|task| task.id.clone()).collect(), ..SessionFilter::default() };
    let sessions = walk(async |page| platform.sessions.list(scope, &of_tasks, &page).await.unwrap()).await;
    let every = MessageFilter::default();
    let messages = walk(async |page| platform.messages.list(scope, &every, false, &page).await.unwrap()).await;
    let (mut turns, mut commits, mut snapshots) = (Vec::new(), Vec::new(), Vec::new());
    for session in &sessions {
        let id = &session.id;
        turns.extend(walk(async |page| platform.sessions.turns(scope, id, &page).await.unwrap()).await);
        commits.extend(walk(async |page| platform.code.commits(scope, id, &page).await.unwrap()).await);
        snapshots.extend(walk(async |page| platform.code.snapshots(scope, id, &page).await.unwrap()).await);
    }
    All { board, workspaces, tasks, sessions, turns, messages, commits, snapshots }
}

fn plan() -> Plan {
    Plan { commits: 2, ..Plan::of(400) }
}

async fn filled(db: Db) -> (World, Made, All) {
    let world = World::new(db);
    let made = seed(&world.store, &plan(), false, |_| {}).await.unwrap();
    let all = read(&world).await;
    (world, made, all)
}

async fn tasks_of_a_seed_keep_every_rule(db: Db) {
    let (_, made, all) = filled(db).await;
    assert_eq!((made.tasks, made.workspaces), (400, 3));
    assert_eq!(all.tasks.len(), 400);
    let of_id: HashMap<_, _> = all.tasks.iter().map(|task| (task.id.as_str(), task)).collect();
    let named = |key: &str, id: &str| all.board.iter().find(|thing| thing["id"] == id).unwrap()[key].clone();
    for task in &all.tasks {
        TaskPatch { title: Some(task.title.clone()), ..TaskPatch::default() }.check().unwrap();
        assert!(!task.title.is_empty() && task.updated_at <= plan().until && task.created_at <= task.updated_at);
        assert_eq!(named("workspace_id", &task.workflow_id), task.workspace_id);
        assert_eq!(named("workflow_id", task.workflow_step_id.as_deref().unwrap()), task.workflow_id);
        assert_eq!(task.completed_at.is_some(), task.state.is_final(), "{task:?}");
        assert!(task.archived_at.is_none() || task.state.is_final());
        if let Some(parent) = task.parent_id.as_deref().map(|parent| of_id[parent]) {
            assert_eq!((&parent.parent_id, &parent.workspace_id), (&None, &task.workspace_id));
            let works_on =
                |task: &Task| task.repositories.iter().map(|each| each.repository_id.clone()).collect::<Vec<_>>();
            assert!(parent.created_at < task.created_at && works_on(parent) == works_on(task));
        }
        for repository in &task.repositories {
            assert_eq!(named("workspace_id", &repository.repository_id), task.workspace_id);
            assert_eq!(named("deleted_at", &repository.repository_id), Value::Null);
        }
        assert_eq!(task.source().is_some(), task.external_id.is_some());
    }
    let states: BTreeSet<_> = all.tasks.iter().map(|task| task.state).collect();
    let origins: BTreeSet<_> = all.tasks.iter().map(|task| task.origin).collect();
    let priorities: BTreeSet<_> = all.tasks.iter().map(|task| task.priority).collect();
    assert_eq!((states.len(), origins.len()), (TaskState::ALL.len(), Origin::ALL.len()));
    assert_eq!(priorities.len(), Priority::ALL.len());
    for (name, count) in [
        ("parts", all.tasks.iter().filter(|task| task.parent_id.is_some()).count()),
        ("put away", all.tasks.iter().filter(|task| task.archived_at.is_some()).count()),
        ("quick chats", all.tasks.iter().filter(|task| task.is_ephemeral).count()),
        ("config mode", all.tasks.iter().filter(|task| task.is_config_mode()).count()),
        ("a plugin's", all.tasks.iter().filter(|task| task.source().is_some()).count()),
    ] {
        assert!(count > 0, "there are no tasks that are {name}");
    }
}

async fn sessions_of_a_seed_keep_every_rule(db: Db) {
    let (world, made, all) = filled(db).await;
    let count = |n: usize| n as u64;
    assert_eq!((made.sessions, made.turns), (count(all.sessions.len()), count(all.turns.len())));
    assert_eq!((made.messages, count(all.messages.len())), (4000, 4000));
    assert_eq!((made.commits, made.snapshots), (count(all.commits.len()), count(all.snapshots.len())));
    let ids: Vec<_> = all.tasks.iter().map(|task| task.id.clone()).collect();
    let summaries = world.platform.tasks.session_summaries(&Scope::All, &ids).await.unwrap();
    for task in &all.tasks {
        let of_task: Vec<_> = all.sessions.iter().filter(|session| session.task_id == task.id).collect();
        let summary = &summaries[&task.id];
        let primary: Vec<_> = of_task.iter().filter(|session| session.is_primary).map(|session| &session.id).collect();
        assert_eq!(summary.count, of_task.len() as i64);
        assert_eq!(primary, [&summary.primary.as_ref().unwrap().id]);
    }
    let turns: HashMap<_, _> = all.turns.iter().map(|turn| (turn.id.as_str(), turn)).collect();
    for session in &all.sessions {
        assert_eq!(session.completed_at.is_some(), session.state.is_final());
        assert!(session.updated_at <= plan().until && !session.agent_profile_name().is_empty());
        assert!(!session.acp_session_id().is_empty() && !session.model().is_empty());
    }
    for message in &all.messages {
        let turn = turns[message.turn_id.as_str()];
        assert_eq!((&turn.session_id, &turn.task_id), (&message.session_id, &message.task_id));
        let end = turn.completed_at.unwrap_or(plan().until);
        assert!(turn.started_at <= message.created_at && message.created_at <= end);
    }
    let kinds: BTreeSet<_> = all.messages.iter().map(|message| message.message_type).collect();
    assert_eq!(kinds.len(), MessageType::ALL.len(), "{kinds:?}");
    assert!(all.messages.iter().any(Message::hides_something));
    for snapshot in &all.snapshots {
        assert_eq!(snapshot.fields.clone().checked().unwrap().totals(), (snapshot.additions, snapshot.deletions));
    }
    let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
    for commit in &all.commits {
        commit.fields.clone().checked().unwrap();
        *sums.entry(&commit.session_id).or_default() += commit.fields.insertions;
    }
    let stats =
        walk(async |page| world.platform.code.stats(&Scope::All, &SessionFilter::default(), &page).await.unwrap());
    for stats in stats.await {
        let expected = sums.get(stats.session_id.as_str()).copied().unwrap_or(0);
        assert_eq!(stats.lines_added_committed, expected);
    }
}

async fn after_a_seed_the_next_task_has_the_next_number_and_nothing_was_told(db: Db) {
    let (world, _, all) = filled(db).await;
    assert!(world.log().await.is_empty());
    for workspace in &all.workspaces {
        let of_this: BTreeSet<_> =
            all.tasks.iter().filter(|task| task.workspace_id == workspace.id).map(|task| &task.identifier).collect();
        let new = NewTask { workspace_id: workspace.id.clone(), ..titled("The next one") };
        let task = world.made(&By::operator(), &new).await;
        match workspace.task_prefix.as_str() {
            "" => assert_eq!(task.identifier, ""),
            prefix => {
                let next = format!("{prefix}-{}", of_this.len() + 1);
                assert!(task.identifier == next && !of_this.contains(&next), "{task:?}");
            }
        }
    }
}

async fn a_seed_is_refused_beside_data_unless_it_is_another_one_that_is_added(db: Db) {
    let world = World::new(db);
    let plan = Plan::of(7);
    seed(&world.store, &plan, false, |_| {}).await.unwrap();
    let refused = seed(&world.store, &plan, false, |_| {}).await.unwrap_err();
    assert!(matches!(refused, SeedError::NotEmpty), "{refused}");
    let refused = seed(&world.store, &plan, true, |_| {}).await.unwrap_err();
    assert!(matches!(refused, SeedError::Again(1)), "{refused}");
    let mut seen = Vec::new();
    let other = Plan { seed: 2, tasks: 300, messages: 1, ..plan };
    let made = seed(&world.store, &other, true, |done| seen.push(done)).await.unwrap();
    assert_eq!((made.tasks, made.messages, seen), (300, 300, vec![250, 300]));
    let all = read(&world).await;
    assert_eq!((all.workspaces.len(), all.tasks.len()), (6, 307));
}

on_both_databases!(
    tasks_of_a_seed_keep_every_rule,
    sessions_of_a_seed_keep_every_rule,
    after_a_seed_the_next_task_has_the_next_number_and_nothing_was_told,
    a_seed_is_refused_beside_data_unless_it_is_another_one_that_is_added,
);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_seed_is_the_same_on_both_databases_and_another_one_is_not() {
    let dump = async |db: Db, plan: &Plan| {
        let world = World::new(db);
        seed(&world.store, plan, false, |_| {}).await.unwrap();
        serde_json::to_string_pretty(&read(&world).await).unwrap()
    };
    let plan = Plan::of(60);
    let (_one, db) = sqlite().await;
    let first = dump(db, &plan).await;
    let (_two, db) = sqlite().await;
    let other = dump(db, &Plan { seed: 2, ..plan }).await;
    assert!(first.len() > 100_000 && first != other);
    if let Some(db) = postgres().await {
        let there = dump(db, &plan).await;
        let line = first.lines().zip(there.lines()).find(|(here, there)| here != there);
        assert_eq!((line, first.len()), (None, there.len()));
    }
}

#[test]
fn bounds_of_a_plan_leave_room_for_every_time() {
    use crate::platform::seed::{MAX_MESSAGES, MAX_TASKS};
    let day = 86_400_000_000u64;
    assert!(118 * day / u64::from(MAX_TASKS) > 1_000 && day / 4 / u64::from(MAX_MESSAGES) > 1_000);
}
