//! Tasks and their sessions: of whom, how far, where on the board, on which repositories.
//!
//! Tasks come in blocks of ten to a workspace: the first of a block is a larger piece of work, three others are parts
//! of it. The oldest are done, the newest are not; what is between is somewhere on its way.

use serde_json::{Value, json};

use super::{
    Chunk, Plan,
    board::{Board, DAY, DAYS, Place},
    code,
    dice::{Dice, Of},
    talk, words,
};
use crate::domain::platform::{
    Map, from_micros,
    session::Session,
    task::{CONFIG_MODE, SOURCE, Task, TaskRepository},
    words::{Origin, Priority, ReviewStatus, SessionState, TaskState},
};

/// Tasks of one block.
const BLOCK: u32 = 10;
const MINUTE: i64 = 60_000_000;
/// Everything about a task happens within so long of its start.
pub const SPAN: i64 = 20 * 60 * MINUTE;
/// Plugins that made tasks for what they saw elsewhere.
const PLUGIN: &str = "issue-sync";

/// A number of the plan as task: its dice, moment and id. Other tasks ask for these of their parent.
fn begin(plan: &Plan, n: u32) -> (Dice, i64, String) {
    let mut dice = Dice::new(plan.seed, Of::Task, n);
    // One day for the board, one for what happens in the last session.
    let (first, last) = (plan.until() - (DAYS - 1) * DAY, plan.until() - DAY);
    let apart = (last - first) / i64::from(plan.tasks.max(1));
    let at = first + i64::from(n) * apart + dice.below(apart);
    let id = dice.id(at);
    (dice, at, id)
}

/// Makes the task of this number and everything that belongs to it.
pub fn task(plan: &Plan, board: &Board, n: u32, chunk: &mut Chunk) {
    let teams = board.workspaces.len() as u32;
    let place = &board.workspaces[(n % teams) as usize];
    let (mut dice, at, id) = begin(plan, n);
    let age = i64::from(plan.tasks - n) * 100 / i64::from(plan.tasks.max(1));
    let kind = Kind::of(&mut dice, n / teams);
    let parent = kind.parent.map(|first| begin(plan, first * teams + n % teams));
    let state = state(&mut dice, age, kind.is_ephemeral);
    let workflow = usize::from(dice.one_in(4));
    let started = at + dice.between(2, 40) * MINUTE;
    let ended = started + SPAN;
    let mut task = Task {
        id,
        workspace_id: place.workspace.id.clone(),
        workflow_id: place.workflows[workflow].id.clone(),
        workflow_step_id: Some(place.steps[workflow][step(state, workflow)].id.clone()),
        title: title(&mut dice, place, &kind),
        description: String::new(),
        state: TaskState::Created,
        priority: dice.weighted(&[
            (1, Priority::Critical),
            (4, Priority::High),
            (10, Priority::Medium),
            (5, Priority::Low),
        ]),
        origin: kind.origin,
        position: i64::from(n / teams),
        identifier: identifier(place, n / teams + 1),
        external_id: kind.is_plugins.then(|| format!("forge#{}", n + 1)),
        parent_id: parent.map(|(_, _, id)| id),
        is_ephemeral: kind.is_ephemeral,
        archived_at: None,
        started_at: None,
        completed_at: None,
        metadata: metadata(&mut dice, &kind, n),
        repositories: Vec::new(),
        created_at: from_micros(at),
        updated_at: from_micros(at),
        version: 1,
    };
    task.description = format!("{} {}", dice.pick(words::REASONS), dice.pick(words::GOALS));
    task.repositories = repositories(&mut dice, place, kind.parent, plan, n, at);
    live(&mut dice, &mut task, state, started, ended, age);
    let mut dice = Dice::new(plan.seed, Of::Work, n);
    sessions(&mut dice, plan, board, place, &task, started, chunk);
    chunk.tasks.push(task);
}

/// What sort of task a number is.
struct Kind {
    /// The block's first number in its workspace, for a part of it.
    parent: Option<u32>,
    is_ephemeral: bool,
    is_plugins: bool,
    is_config: bool,
    origin: Origin,
}

impl Kind {
    fn of(dice: &mut Dice, in_workspace: u32) -> Self {
        let place = in_workspace % BLOCK;
        let parent = matches!(place, 4..=6).then_some(in_workspace - place);
        // Neither a piece of work with parts nor a part.
        let alone = parent.is_none() && place != 0;
        let origin =
            [(30, Origin::Manual), (4, Origin::AgentCreated), (2, Origin::Routine), (1, Origin::AutomationRun)];
        let is_ephemeral = alone && dice.one_in(20);
        let is_plugins = alone && !is_ephemeral && dice.one_in(6);
        let is_config = alone && !is_ephemeral && !is_plugins && dice.one_in(60);
        let origin = match alone && !is_ephemeral && !is_plugins && !is_config {
            true if in_workspace == 1 => Origin::Onboarding,
            true => dice.weighted(&origin),
            false => Origin::Manual,
        };
        Self { parent, is_ephemeral, is_plugins, is_config, origin }
    }
}

/// `age` is 100 for the oldest task and 0 for the newest.
fn state(dice: &mut Dice, age: i64, is_ephemeral: bool) -> TaskState {
    use TaskState::*;
    let done = [(18, Completed), (1, Cancelled), (1, Failed)];
    let going = [(6, InProgress), (4, Review), (3, WaitingForInput), (2, Blocked), (1, Scheduling), (8, Completed)];
    let planned = [(6, Todo), (6, Created), (3, InProgress)];
    match age {
        _ if is_ephemeral => Completed,
        25.. => dice.weighted(&done),
        10..25 => dice.weighted(&going),
        _ => dice.weighted(&planned),
    }
}

/// The place of a state on the board of a template: `kanban` and `plan-first`.
fn step(state: TaskState, workflow: usize) -> usize {
    use TaskState::*;
    let [kanban, plan_first] = match state {
        Todo | Created | Scheduling => [0, 0],
        WaitingForInput => [1, 1],
        InProgress | Blocked => [1, 2],
        Review => [2, 3],
        Completed | Failed | Cancelled => [3, 4],
    };
    if workflow == 0 { kanban } else { plan_first }
}

fn title(dice: &mut Dice, place: &Place, kind: &Kind) -> String {
    let (thing, _) = dice.pick(place.team.things);
    match kind {
        Kind { is_ephemeral: true, .. } => (*dice.pick(words::QUESTIONS)).to_owned(),
        Kind { is_config: true, .. } => "Set up this workspace".to_owned(),
        Kind { origin: Origin::Onboarding, .. } => "Look around: this is a demo".to_owned(),
        Kind { origin: Origin::AutomationRun, .. } => format!("Nightly check of {thing}"),
        _ => format!("{} {thing}{}", dice.pick(words::VERBS), dice.pick(words::WHERE)),
    }
}

fn identifier(place: &Place, number: u32) -> String {
    match place.team.prefix {
        "" => String::new(),
        prefix => format!("{prefix}-{number}"),
    }
}

fn metadata(dice: &mut Dice, kind: &Kind, n: u32) -> Map {
    let labels = json!([dice.pick(words::LABELS)]);
    let value = match kind {
        Kind { is_plugins: true, .. } => {
            let tag = format!("plugin:{PLUGIN}");
            let own = json!({"issue": n + 1, "labels": labels});
            Value::Object(Map::from_iter([(SOURCE.to_owned(), json!(tag)), (tag, own)]))
        }
        Kind { is_config: true, .. } => json!({CONFIG_MODE: true}),
        _ if dice.one_in(3) => json!({}),
        _ => json!({"labels": labels, "estimate": dice.between(1, 8)}),
    };
    value.as_object().cloned().unwrap_or_default()
}

/// One or two of the workspace; a part works on what the whole works on.
fn repositories(
    dice: &mut Dice,
    place: &Place,
    parent: Option<u32>,
    plan: &Plan,
    n: u32,
    at: i64,
) -> Vec<TaskRepository> {
    let listed = place.repositories.len() - 1;
    let block = parent.unwrap_or(n / TEAMS);
    let mut choice = Dice::new(plan.seed, Of::Board, 1 + block);
    let (first, both) = (choice.below(listed as i64) as usize, choice.one_in(4));
    let chosen = [Some(first), both.then_some((first + 1) % listed)];
    let chosen = chosen.into_iter().flatten().enumerate();
    chosen
        .map(|(position, which)| TaskRepository {
            id: dice.id(at),
            repository_id: place.repositories[which].id.clone(),
            base_branch: if dice.one_in(5) { "develop".to_owned() } else { String::new() },
            checkout_branch: String::new(),
            pull_request_number: dice.one_in(6).then(|| dice.between(1, 4000)),
            position: position as i64,
        })
        .collect()
}

const TEAMS: u32 = words::TEAMS.len() as u32;

/// Takes the task through its states, as its writers would have.
fn live(dice: &mut Dice, task: &mut Task, state: TaskState, started: i64, ended: i64, age: i64) {
    let enter = |task: &mut Task, state, at| {
        task.enter(state, from_micros(at));
        task.updated_at = from_micros(at);
        task.version += 1;
    };
    if !matches!(state, TaskState::Created | TaskState::Todo | TaskState::Scheduling) {
        enter(task, TaskState::InProgress, started);
    }
    if task.state != state {
        enter(task, state, if state.is_final() { ended } else { started + MINUTE });
    }
    if state.is_final() && age > 40 && dice.one_in(2) {
        task.archived_at = Some(from_micros(ended + 60 * MINUTE));
        task.updated_at = from_micros(ended + 60 * MINUTE);
        task.version += 1;
    }
}

/// One session, or a failed one before it; together they have the task's messages.
fn sessions(dice: &mut Dice, plan: &Plan, board: &Board, place: &Place, task: &Task, started: i64, chunk: &mut Chunk) {
    let retried = task.state.is_final() && dice.one_in(6);
    let earlier = if retried { plan.messages / 3 } else { 0 };
    if retried {
        let session = session(dice, board, place, task, started, SessionState::Failed);
        finish(dice, plan, place, session, earlier, chunk);
    }
    let state = session_state(task.state);
    let later = if retried { started + SPAN / 2 } else { started };
    let mut session = session(dice, board, place, task, later, state);
    session.is_primary = true;
    session.review_status = match task.state {
        TaskState::Review => Some(ReviewStatus::Pending),
        TaskState::Completed if dice.one_in(2) => Some(ReviewStatus::Approved),
        _ => None,
    };
    finish(dice, plan, place, session, plan.messages - earlier, chunk);
}

fn session_state(state: TaskState) -> SessionState {
    match state {
        TaskState::Todo | TaskState::Created => SessionState::Created,
        TaskState::Scheduling => SessionState::Starting,
        TaskState::InProgress => SessionState::Running,
        TaskState::Review => SessionState::Idle,
        TaskState::Blocked | TaskState::WaitingForInput => SessionState::WaitingForInput,
        TaskState::Completed => SessionState::Completed,
        TaskState::Failed => SessionState::Failed,
        TaskState::Cancelled => SessionState::Cancelled,
    }
}

fn session(dice: &mut Dice, board: &Board, place: &Place, task: &Task, at: i64, state: SessionState) -> Session {
    let profile = &board.agent_profiles[dice.below(3) as usize];
    let executor_profile = dice.pick(&board.executor_profiles);
    let executor = json!({
        "id": executor_profile.executor_id,
        "type": executor_profile.executor_type,
        "profile_id": executor_profile.id,
        "profile_name": executor_profile.fields.name,
    });
    let repository = task.repositories.first();
    let failed = state == SessionState::Failed;
    let moment = from_micros(at);
    Session {
        id: dice.id(at),
        task_id: task.id.clone(),
        workspace_id: place.workspace.id.clone(),
        name: String::new(),
        state,
        error_message: if failed { (*dice.pick(words::FAILURES)).to_owned() } else { String::new() },
        agent_profile_id: profile.id.clone(),
        agent_profile_snapshot: profile.snapshot(),
        executor_id: executor_profile.executor_id.clone(),
        executor_profile_id: executor_profile.id.clone(),
        executor_snapshot: executor.as_object().cloned().unwrap_or_default(),
        repository_id: repository.map(|repository| repository.repository_id.clone()).unwrap_or_default(),
        base_branch: repository.map(|repository| repository.base_branch.clone()).unwrap_or_default(),
        metadata: Map::from_iter([("acp".to_owned(), json!({"session_id": dice.hex(16)}))]),
        is_primary: false,
        review_status: None,
        last_read_message_id: None,
        started_at: moment,
        completed_at: state.is_final().then(|| from_micros(at + SPAN / 2 - MINUTE)),
        updated_at: moment,
        version: 1,
    }
}

/// Adds the session with what was said and done in it.
fn finish(dice: &mut Dice, plan: &Plan, place: &Place, mut session: Session, messages: u32, chunk: &mut Chunk) {
    let (thing, file) = dice.pick(place.team.things);
    talk::talk(dice, &mut session, messages, &talk::About { thing, file }, chunk);
    if session.state != SessionState::Created && session.state != SessionState::Starting {
        code::code(dice, plan, &session, file, chunk);
    }
    chunk.sessions.push(session);
}
