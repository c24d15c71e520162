//! Sessions and their turns.

use super::{
    By, PlatformError, Versioned as _,
    clearing::{self, Begun, Earlier, ROWS},
    new_id, tasks,
};
use crate::{
    domain::platform::{
        Map, Scope, event,
        page::{Page, PageRequest},
        profile::{AgentProfile, Executor, ExecutorProfile},
        refusal::{Kind, Refusal},
        session::{NewSession, Session, SessionFilter, SessionPatch, Turn},
        task::Task,
        text::{check_name, check_object, check_text},
        words::SessionState,
    },
    store::platform::{Holder, PlatformStore, Work},
};

/// The service.
#[derive(Debug, Clone)]
pub struct Sessions {
    store: PlatformStore,
}

impl Sessions {
    pub(super) fn new(store: PlatformStore) -> Self {
        Self { store }
    }

    /// A page of sessions, the newest first, ids in order.
    pub async fn list(
        &self,
        scope: &Scope,
        filter: &SessionFilter,
        page: &PageRequest,
    ) -> Result<Page<Session>, PlatformError> {
        filter.check()?;
        self.store.sessions(scope, filter, page).await
    }

    /// How many sessions such a list has.
    pub async fn count(&self, scope: &Scope, filter: &SessionFilter) -> Result<u64, PlatformError> {
        filter.check()?;
        self.store.count_sessions(scope, filter).await
    }

    /// One session.
    pub async fn get(&self, scope: &Scope, id: &str) -> Result<Session, PlatformError> {
        self.store.find(scope, id).await
    }

    /// The session that messages to a task go to.
    pub async fn primary(&self, scope: &Scope, task_id: &str) -> Result<Option<Session>, PlatformError> {
        self.store.primary_session(scope, task_id).await
    }

    /// A page of a session's turns, the oldest first.
    pub async fn turns(
        &self,
        scope: &Scope,
        session_id: &str,
        page: &PageRequest,
    ) -> Result<Page<Turn>, PlatformError> {
        let session = self.get(scope, session_id).await?;
        self.store.turns(&session.id, page).await
    }

    /// How many turns a session has.
    pub async fn count_turns(&self, scope: &Scope, session_id: &str) -> Result<u64, PlatformError> {
        let session: Session = self.store.find(scope, session_id).await?;
        self.store.count_turns(&session.id).await
    }

    /// A new session with a snapshot of its profiles, in the repository that is named or the task's only one; the first
    /// of a task is its primary one. Tells `task_session.state_changed` and `task.updated`.
    pub async fn create(&self, by: &By, new: &NewSession) -> Result<Session, PlatformError> {
        check(new)?;
        let id = &new_id();
        self.store.write(&by.scope, by.once.as_ref(), |work| async move { create(&work, id, new).await }).await
    }

    /// The primary session of a task, or a new one.
    pub async fn ensure(&self, by: &By, new: &NewSession) -> Result<Session, PlatformError> {
        check(new)?;
        let id = &new_id();
        let work = |work: Work| async move {
            work.get::<Task>(&new.task_id).await?;
            match work.primary_session(&new.task_id).await? {
                Some(session) => Ok(session),
                None => create(&work, id, new).await,
            }
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// Changes a session. Tells `task_session.state_changed`, and `task.updated` when it is or was the primary one;
    /// nothing when nothing changes.
    pub async fn update(
        &self,
        by: &By,
        id: &str,
        patch: &SessionPatch,
        expected: Option<i64>,
    ) -> Result<Session, PlatformError> {
        patch.name.as_deref().map_or(Ok(()), |name| check_name("name", name))?;
        patch.error_message.as_deref().map_or(Ok(()), |text| check_text("error_message", text))?;
        self.store
            .write(&by.scope, by.once.as_ref(), |work| async move { update(&work, id, patch, expected).await })
            .await
    }

    /// Deletes a session with its turns and messages. Tells `task.updated`.
    pub async fn delete(&self, by: &By, id: &str, expected: Option<i64>) -> Result<(), PlatformError> {
        let begun = match clearing::earlier(&self.store, Holder::Session(id)).await? {
            Earlier::None => Begun::NOT_YET,
            Earlier::Same | Earlier::Other(_) => Begun::EARLIER,
        };
        self.remove(by, begun, id, expected).await
    }

    /// Goes on with a deletion that was begun; nothing when the session is gone.
    pub(super) async fn finish_deletion(&self, id: &str) -> Result<(), PlatformError> {
        self.remove(&By::operator(), Begun::EARLIER, id, None).await
    }

    async fn remove(&self, by: &By, begun: Begun, id: &str, expected: Option<i64>) -> Result<(), PlatformError> {
        let work = |work: Work, begun: Begun| async move {
            let (task, mut session) = match with_task(&work, id).await {
                Err(error) if begun.is_done(&error) => return Ok(()),
                found => found?,
            };
            begun.before(|| session.expect(expected))?;
            clearing::refuse_large(&work, Holder::Session(id), ROWS).await?;
            work.delete::<Session>(id).await?;
            tasks::tell_updated(&work, &task).await
        };
        clearing::delete(&self.store, by, begun, Holder::Session(id), ROWS, work).await
    }

    /// Notes the last message that a person has read. Tells nothing.
    pub async fn mark_read(&self, by: &By, id: &str, message_id: &str) -> Result<Session, PlatformError> {
        check_name("message_id", message_id)?;
        let work = |work: Work| async move {
            let mut session: Session = work.get(id).await?;
            let message: Option<crate::domain::platform::message::Message> = work.peek(message_id).await?;
            if message.is_none_or(|message| message.session_id != session.id) {
                return Err(Refusal::not_found(Kind::Message, message_id).into());
            }
            if session.last_read_message_id.as_deref() != Some(message_id) {
                session.last_read_message_id = Some(message_id.to_owned());
                session.touch(work.now());
                work.update(&session).await?;
            }
            Ok(session)
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// The open turn of a session, or a new one. Tells `turn.started` of a new one.
    pub async fn start_turn(&self, by: &By, session_id: &str) -> Result<Turn, PlatformError> {
        let work = |work: Work| async move {
            let session: Session = work.get(session_id).await?;
            open_turn(&work, &session).await
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// Closes the open turn of a session; none when there is none. Tells `turn.completed`.
    pub async fn complete_turn(&self, by: &By, session_id: &str) -> Result<Option<Turn>, PlatformError> {
        let work = |work: Work| async move {
            let session: Session = work.get(session_id).await?;
            let Some(mut turn) = work.open_turn(session_id).await? else { return Ok(None) };
            turn.completed_at = Some(work.now());
            turn.updated_at = work.now();
            work.update(&turn).await?;
            work.tell(event::turn_completed(&session.workspace_id, &turn));
            Ok(Some(turn))
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }
}

/// What needs no row.
fn check(new: &NewSession) -> Result<(), Refusal> {
    check_name("name", &new.name)?;
    check_name("repository_id", &new.repository_id)?;
    check_name("base_branch", &new.base_branch)?;
    check_object("metadata", &new.metadata)
}

async fn create(work: &Work, id: &str, new: &NewSession) -> Result<Session, PlatformError> {
    let task = work.task(&new.task_id).await?;
    let (agent_profile_snapshot, executor_id, executor_snapshot) = snapshots(work, new).await?;
    let (repository_id, base_branch) = new.place(&task.repositories);
    let now = work.now();
    let mut session = Session {
        id: id.to_owned(),
        task_id: task.id.clone(),
        workspace_id: task.workspace_id.clone(),
        name: new.name.clone(),
        state: SessionState::Created,
        error_message: String::new(),
        agent_profile_id: new.agent_profile_id.clone(),
        agent_profile_snapshot,
        executor_id,
        executor_profile_id: new.executor_profile_id.clone(),
        executor_snapshot,
        repository_id,
        base_branch,
        metadata: new.metadata.clone(),
        is_primary: work.primary_session(&task.id).await?.is_none(),
        review_status: None,
        last_read_message_id: None,
        started_at: now,
        completed_at: None,
        updated_at: now,
        version: 1,
    };
    session.enter(new.state.unwrap_or(SessionState::Created), now);
    work.insert(&session).await?;
    work.tell(event::session_created(&session, task.workflow_step_id.as_deref()));
    tasks::tell_updated(work, &task).await?;
    Ok(session)
}

/// What the profiles are now: of the agent, the executor's id, of the executor.
async fn snapshots(work: &Work, new: &NewSession) -> Result<(Map, String, Map), PlatformError> {
    let agent = match new.agent_profile_id.as_str() {
        "" => Map::new(),
        id => {
            let profile: Option<AgentProfile> = work.peek(id).await?;
            profile.ok_or(Refusal::Unavailable("agent_profile_id"))?.snapshot()
        }
    };
    if new.executor_profile_id.is_empty() {
        return Ok((agent, String::new(), Map::new()));
    }
    let profile: Option<ExecutorProfile> = work.peek(&new.executor_profile_id).await?;
    let profile = profile.ok_or(Refusal::Unavailable("executor_profile_id"))?;
    let executor: Option<Executor> = work.peek(&profile.executor_id).await?;
    let kind = executor.map(|executor| executor.fields.executor_type.as_str()).unwrap_or_default();
    let snapshot = [
        ("id", profile.executor_id.as_str()),
        ("type", kind),
        ("profile_id", profile.id.as_str()),
        ("profile_name", profile.fields.name.as_str()),
    ];
    let snapshot = snapshot.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
    Ok((agent, profile.executor_id, snapshot))
}

/// A session and its task, both locked: the task first, as whoever changes which session is primary holds it.
pub(super) async fn with_task(work: &Work, id: &str) -> Result<(Task, Session), PlatformError> {
    let found: Session = work.peek(id).await?.ok_or_else(|| Refusal::not_found(Kind::Session, id))?;
    Ok((work.task(&found.task_id).await?, work.get(id).await?))
}

async fn update(work: &Work, id: &str, patch: &SessionPatch, expected: Option<i64>) -> Result<Session, PlatformError> {
    let (task, mut session) = with_task(work, id).await?;
    session.expect(expected)?;
    let before = session.clone();
    apply(&mut session, patch)?;
    if let Some(state) = patch.state {
        session.enter(state, work.now());
    }
    if session == before {
        return Ok(session);
    }
    if session.is_primary && !before.is_primary {
        dethrone(work, &task.id).await?;
    }
    session.touch(work.now());
    work.update(&session).await?;
    if session.state.is_final() {
        work.end_git_tokens(id).await?;
    }
    work.tell(event::session_changed(&session, before.state));
    if session.is_primary || before.is_primary {
        tasks::tell_updated(work, &task).await?;
    }
    Ok(session)
}

fn apply(session: &mut Session, patch: &SessionPatch) -> Result<(), Refusal> {
    if let Some(name) = &patch.name {
        session.name.clone_from(name);
    }
    if let Some(text) = &patch.error_message {
        session.error_message.clone_from(text);
    }
    if let Some(metadata) = &patch.metadata {
        for (key, value) in metadata {
            if value.is_null() {
                session.metadata.shift_remove(key);
            } else {
                session.metadata.insert(key.clone(), value.clone());
            }
        }
        check_object("metadata", &session.metadata)?;
    }
    session.is_primary = patch.is_primary.unwrap_or(session.is_primary);
    session.review_status = patch.review_status.unwrap_or(session.review_status);
    Ok(())
}

/// The session that is primary is no longer.
async fn dethrone(work: &Work, task_id: &str) -> Result<(), PlatformError> {
    if let Some(mut old) = work.primary_session(task_id).await? {
        old.is_primary = false;
        old.touch(work.now());
        work.update(&old).await?;
        work.tell(event::session_changed(&old, old.state));
    }
    Ok(())
}

/// The turn of a locked session that is open, or a new one.
pub(super) async fn open_turn(work: &Work, session: &Session) -> Result<Turn, PlatformError> {
    if let Some(turn) = work.open_turn(&session.id).await? {
        return Ok(turn);
    }
    let now = work.now();
    let turn = Turn {
        id: new_id(),
        session_id: session.id.clone(),
        task_id: session.task_id.clone(),
        metadata: Map::new(),
        started_at: now,
        completed_at: None,
        created_at: now,
        updated_at: now,
    };
    work.insert(&turn).await?;
    work.tell(event::turn_started(&session.workspace_id, &turn));
    Ok(turn)
}
