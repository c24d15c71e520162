//! Data for demos, tests and benchmarks: workspaces with boards, people's tasks, agents' sessions and what they did.
//!
//! The same [`Plan`] gives the same rows on every machine and both databases, ids and times included: each row is a
//! function of the plan and its number. Rows are written past the services, in chunks of one transaction each, and tell
//! no events: there would be millions, of things that nobody did. That they keep every rule of the services is tested.
//!
//! What is in which file: `dice` the randomness, `board` what tasks stand on, `work` tasks and sessions, `talk` turns
//! and messages, `code` commits and snapshots, `words` the texts.

mod board;
mod code;
mod dice;
mod talk;
mod words;
mod work;

use time::{OffsetDateTime, macros::datetime};

use crate::{
    domain::platform::{
        Scope,
        message::Message,
        micros,
        profile::Agent,
        session::{Session, Turn},
        stats::{Commit, Snapshot},
        task::Task,
        workspace::Workspace,
    },
    store::platform::{PlatformError, PlatformStore},
};

/// Tasks of one transaction, with everything that belongs to them.
const CHUNK: u32 = 250;

/// Most tasks; the time between two of them stays far above a microsecond.
pub const MAX_TASKS: u32 = 10_000_000;
/// Most messages of a task: the times of all stay within a day.
pub const MAX_MESSAGES: u32 = 100_000;
/// Most commits, and most snapshots, of a session.
pub const MAX_CODE: u32 = 10_000;

/// The moment that the data ends with unless somebody says another one.
pub const UNTIL: OffsetDateTime = datetime!(2026-11-01 00:00 UTC);

/// What is to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Tasks, at most [`MAX_TASKS`].
    pub tasks: u32,
    /// Messages of each task, at most [`MAX_MESSAGES`].
    pub messages: u32,
    /// Commits of each session that changed code, at most [`MAX_CODE`].
    pub commits: u32,
    /// Snapshots of each such session, at most [`MAX_CODE`].
    pub snapshots: u32,
    /// Another seed gives other data, which can stand beside the first.
    pub seed: u64,
    /// The newest row is not younger.
    pub until: OffsetDateTime,
}

impl Plan {
    /// So many tasks with ten messages each.
    pub fn of(tasks: u32) -> Self {
        Self { tasks, messages: 10, commits: 1, snapshots: 1, seed: 1, until: UNTIL }
    }

    /// In microseconds.
    fn until(&self) -> i64 {
        micros(self.until)
    }
}

/// What was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Made {
    /// Workspaces.
    pub workspaces: u64,
    /// Tasks.
    pub tasks: u64,
    /// Sessions.
    pub sessions: u64,
    /// Turns.
    pub turns: u64,
    /// Messages.
    pub messages: u64,
    /// Commits.
    pub commits: u64,
    /// Snapshots.
    pub snapshots: u64,
}

/// Why nothing, or not all, was made.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// Somebody's data is there.
    #[error("the database has data already; name an empty one by --home or DATABASE_URL, or add to it with --add")]
    NotEmpty,
    /// The same was made before.
    #[error("the data of seed {0} is in this database already; add other data with another --seed")]
    Again(u64),
    /// The database failed. Chunks that were written before stay: each is whole.
    #[error(
        "seeding stopped: {0}; what was written before stays, begin again with an empty database or another --seed"
    )]
    Database(#[from] PlatformError),
}

/// Everything that belongs to a number of tasks.
#[derive(Debug, Default)]
struct Chunk {
    tasks: Vec<Task>,
    sessions: Vec<Session>,
    turns: Vec<Turn>,
    messages: Vec<Message>,
    commits: Vec<Commit>,
    snapshots: Vec<Snapshot>,
}

/// Makes what the plan says; `add` allows it beside other data. `progress` is told the number of tasks that are
/// written.
///
/// # Errors
/// [`SeedError`]. After one from the database, the chunks before it are kept.
pub async fn seed(
    store: &PlatformStore,
    plan: &Plan,
    add: bool,
    mut progress: impl FnMut(u32),
) -> Result<Made, SeedError> {
    if !add && !store.is_empty().await? {
        return Err(SeedError::NotEmpty);
    }
    let mut board = board::Board::new(plan);
    if store.find::<Workspace>(&Scope::All, &board.workspaces[0].workspace.id).await.is_ok() {
        return Err(SeedError::Again(plan.seed));
    }
    let (known, _) = store.agents_with_profiles(&Scope::All).await?;
    write_board(store, &mut board, known).await?;
    let mut made = Made { workspaces: board.workspaces.len() as u64, ..Made::default() };
    let mut first = 0;
    while first < plan.tasks {
        let after = plan.tasks.min(first + CHUNK);
        let mut chunk = Chunk::default();
        (first..after).for_each(|n| work::task(plan, &board, n, &mut chunk));
        write(store, &chunk).await?;
        made.count(&chunk);
        progress(after);
        first = after;
    }
    store.count_rows().await?;
    Ok(made)
}

/// Agents have words for ids: one that is known stays as it is, and its profiles show its name.
async fn write_board(store: &PlatformStore, board: &mut board::Board, known: Vec<Agent>) -> Result<(), PlatformError> {
    let bulk = store.bulk().await?;
    let new: Vec<_> = board.agents.iter().filter(|agent| known.iter().all(|old| old.id != agent.id)).cloned().collect();
    known.iter().for_each(|agent| board.is_known(agent));
    bulk.insert(&new).await?;
    bulk.insert(&board.executors).await?;
    bulk.insert(&board.executor_profiles).await?;
    let workspaces: Vec<_> = board.workspaces.iter().map(|each| each.workspace.clone()).collect();
    bulk.insert(&workspaces).await?;
    bulk.insert(&board.agent_profiles).await?;
    for each in &board.workspaces {
        bulk.insert(&each.workflows).await?;
        bulk.insert(&each.steps.concat()).await?;
        bulk.insert(&each.repositories).await?;
    }
    bulk.commit().await
}

async fn write(store: &PlatformStore, chunk: &Chunk) -> Result<(), PlatformError> {
    let bulk = store.bulk().await?;
    bulk.insert_tasks(&chunk.tasks).await?;
    bulk.insert(&chunk.sessions).await?;
    bulk.insert(&chunk.turns).await?;
    bulk.insert(&chunk.messages).await?;
    bulk.insert(&chunk.commits).await?;
    bulk.insert(&chunk.snapshots).await?;
    bulk.commit().await
}

impl Made {
    fn count(&mut self, chunk: &Chunk) {
        let Chunk { tasks, sessions, turns, messages, commits, snapshots } = chunk;
        self.tasks += tasks.len() as u64;
        self.sessions += sessions.len() as u64;
        self.turns += turns.len() as u64;
        self.messages += messages.len() as u64;
        self.commits += commits.len() as u64;
        self.snapshots += snapshots.len() as u64;
    }
}
