//! The sessions of clients: how many there may be, when one ends, and what becomes of a call whose client hung up.
//!
//! A session is the library's; here is what it leaves open. Each has a seat of `limits.mcp_sessions`, and so has each
//! subscription of clients that know no sessions. A session that nobody uses for `timing.mcp_idle` is closed; an open
//! stream counts as use. The library is given a [`Turn`] for each HTTP request, which carries the request's seat.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use futures_util::Stream;
use rmcp::{
    model::{
        CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, ClientNotification, RequestId,
        ServerJsonRpcMessage,
    },
    transport::streamable_http_server::{
        SessionId, SessionManager,
        session::{
            ServerSseMessage,
            local::{LocalSessionManager, LocalSessionManagerError, SessionConfig, SessionError},
        },
    },
};
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Refused;
use crate::config::{Limits, Timing};

/// A stream of the library's messages to a client.
type Messages = Pin<Box<dyn Stream<Item = ServerSseMessage> + Send + Sync>>;

/// Why a session did not take what a request has for it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Fault {
    /// It has ended or never was.
    #[error("the session has ended")]
    Gone,
    /// It takes nothing now.
    #[error("the session takes no message in time")]
    Busy,
    /// A session begins without a seat.
    #[error("all sessions are taken")]
    NoSeat,
    /// The library's own trouble.
    #[error("{0}")]
    Broken(String),
}

impl From<LocalSessionManagerError> for Fault {
    fn from(error: LocalSessionManagerError) -> Self {
        match error {
            LocalSessionManagerError::SessionNotFound(_)
            | LocalSessionManagerError::SessionError(SessionError::SessionServiceTerminated) => Self::Gone,
            other => Self::Broken(other.to_string()),
        }
    }
}

/// All sessions.
pub struct Sessions {
    local: LocalSessionManager,
    seats: Arc<Semaphore>,
    most: usize,
    open: Mutex<HashMap<SessionId, Open>>,
    /// How long a session may take to take a message.
    patience: Duration,
    runtime: Handle,
}

/// One of them.
struct Open {
    streams: usize,
    used: Instant,
    _seat: OwnedSemaphorePermit,
    /// Tells its calls that it has ended; the library gives them 5 s more.
    _ended: DropGuard,
}

impl Open {
    fn is_idle(&self, idle: Duration) -> bool {
        self.streams == 0 && self.used.elapsed() >= idle
    }
}

impl Sessions {
    /// None yet. What they do runs on `runtime`.
    pub fn new(timing: &Timing, limits: &Limits, runtime: Handle) -> Self {
        let mut settings = SessionConfig::default();
        // Idleness is judged here: the library's takes a client that only listens for one that is gone.
        settings.keep_alive = None;
        // No stream is taken up again: what a client was sent is not kept for it.
        settings.sse_retry = None;
        settings.init_timeout = Some(timing.ask_timeout);
        let mut local = LocalSessionManager::default();
        local.session_config = settings;
        let most = limits.mcp_sessions;
        let seats = Arc::new(Semaphore::new(most));
        Self { local, seats, most, open: Mutex::default(), patience: timing.ask_timeout, runtime }
    }

    /// A seat for a session or a subscription; dropped, it is free again.
    ///
    /// # Errors
    /// [`Refused::TooMany`] when all are taken.
    pub fn sit(&self) -> Result<OwnedSemaphorePermit, Refused> {
        Arc::clone(&self.seats).try_acquire_owned().map_err(|_| Refused::TooMany)
    }

    /// Seats that are taken.
    pub fn count(&self) -> usize {
        self.most.saturating_sub(self.seats.available_permits())
    }

    /// Closes sessions that nobody has used for `idle`. Runs for ever.
    pub async fn sweep(self: Arc<Self>, idle: Duration) {
        loop {
            sleep(idle / 4).await;
            for id in self.idle_for(idle) {
                // Closing the one before may have taken a while.
                if !self.is_idle(&id, idle) {
                    continue;
                }
                tracing::debug!("an MCP session was closed: nobody used it");
                // Whatever the library says, its place here is free.
                let _ = self.close(&id).await;
            }
        }
    }

    fn idle_for(&self, idle: Duration) -> Vec<SessionId> {
        let open = lock(&self.open);
        open.iter().filter(|(_, session)| session.is_idle(idle)).map(|(id, _)| Arc::clone(id)).collect()
    }

    fn is_idle(&self, id: &SessionId, idle: Duration) -> bool {
        lock(&self.open).get(id).is_some_and(|session| session.is_idle(idle))
    }

    async fn close(&self, id: &SessionId) -> Result<(), Fault> {
        drop(lock(&self.open).remove(id));
        self.within(self.local.close_session(id)).await
    }

    /// The library waits for its session's task without a bound.
    async fn within<T>(
        &self,
        work: impl Future<Output = Result<T, LocalSessionManagerError>> + Send,
    ) -> Result<T, Fault> {
        timeout(self.patience, work).await.map_err(|_| Fault::Busy)?.map_err(Fault::from)
    }

    fn touch(&self, id: &SessionId) {
        if let Some(session) = lock(&self.open).get_mut(id) {
            session.used = Instant::now();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The sessions as one HTTP request sees them.
pub struct Turn {
    sessions: Arc<Sessions>,
    seat: Mutex<Option<OwnedSemaphorePermit>>,
    fault: Mutex<Option<Fault>>,
    ended: CancellationToken,
}

impl Turn {
    /// For a request that may begin a session when it has a seat.
    pub fn new(sessions: &Arc<Sessions>, seat: Option<OwnedSemaphorePermit>) -> Self {
        let ended = CancellationToken::new();
        Self { sessions: Arc::clone(sessions), seat: Mutex::new(seat), fault: Mutex::default(), ended }
    }

    /// Cancelled when the session ends that this request begins, if it begins one.
    pub fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// What a session refused, for the answer.
    pub fn fault(&self) -> Option<Fault> {
        lock(&self.fault).clone()
    }

    /// Notes what goes wrong: the library makes one answer of all of it.
    fn noted<T>(&self, result: Result<T, Fault>) -> Result<T, Fault> {
        if let Err(fault) = &result {
            *lock(&self.fault) = Some(fault.clone());
        }
        result
    }

    fn stream(
        &self,
        id: &SessionId,
        messages: impl Stream<Item = ServerSseMessage> + Send + Sync + 'static,
        asked: Option<Asked>,
    ) -> Watched {
        Watched { messages: Box::pin(messages), asked, _use: InUse::new(&self.sessions, id) }
    }
}

impl SessionManager for Turn {
    type Error = Fault;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Fault> {
        let seat = lock(&self.seat).take();
        let seat = self.noted(seat.ok_or(Fault::NoSeat))?;
        let (id, transport) = self.noted(self.sessions.within(self.sessions.local.create_session()).await)?;
        let ended = self.ended.clone().drop_guard();
        let session = Open { streams: 0, used: Instant::now(), _seat: seat, _ended: ended };
        lock(&self.sessions.open).insert(Arc::clone(&id), session);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Fault> {
        self.noted(self.sessions.within(self.sessions.local.initialize_session(id, message)).await)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Fault> {
        self.noted(self.sessions.within(self.sessions.local.has_session(id)).await)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Fault> {
        self.noted(self.sessions.close(id).await)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Fault> {
        // Before the session has the request: whoever hangs up from now on has it cancelled.
        let asked = match &message {
            ClientJsonRpcMessage::Request(request) => Some(Asked::new(&self.sessions, id, &request.id)),
            _ => None,
        };
        let messages = self.noted(self.sessions.within(self.sessions.local.create_stream(id, message)).await)?;
        Ok(self.stream(id, messages, asked))
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Fault> {
        self.sessions.touch(id);
        self.noted(self.sessions.within(self.sessions.local.accept_message(id, message)).await)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Fault> {
        let messages = self.noted(self.sessions.within(self.sessions.local.create_standalone_stream(id)).await)?;
        Ok(self.stream(id, messages, None))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Fault> {
        // A refusal is no fault: the library answers with a stream that ends.
        let messages = self.sessions.within(self.sessions.local.resume(id, last_event_id)).await?;
        Ok(self.stream(id, messages, None))
    }
}

/// A stream to a client; while it is open its session is in use.
struct Watched {
    messages: Messages,
    /// What it is the answer to, until that is there.
    asked: Option<Asked>,
    _use: InUse,
}

impl Stream for Watched {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        let polled = self.messages.as_mut().poll_next(context);
        let ended = match &polled {
            Poll::Ready(Some(message)) => message.message.as_deref().is_some_and(is_answer),
            Poll::Ready(None) => true,
            Poll::Pending => false,
        };
        if ended && let Some(asked) = self.asked.take() {
            asked.answered();
        }
        polled
    }
}

fn is_answer(message: &ServerJsonRpcMessage) -> bool {
    matches!(message, ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_))
}

/// Counts as a use of a session.
struct InUse {
    sessions: Arc<Sessions>,
    id: SessionId,
}

impl InUse {
    fn new(sessions: &Arc<Sessions>, id: &SessionId) -> Self {
        if let Some(session) = lock(&sessions.open).get_mut(id) {
            session.streams += 1;
        }
        Self { sessions: Arc::clone(sessions), id: Arc::clone(id) }
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        if let Some(session) = lock(&self.sessions.open).get_mut(&self.id) {
            session.streams = session.streams.saturating_sub(1);
            session.used = Instant::now();
        }
    }
}

/// A request under way. Dropped before its answer it is cancelled: its client hung up, as with REST, and the answer
/// could be given to nobody.
struct Asked {
    sessions: Arc<Sessions>,
    session: SessionId,
    request: Option<RequestId>,
}

impl Asked {
    fn new(sessions: &Arc<Sessions>, session: &SessionId, request: &RequestId) -> Self {
        Self { sessions: Arc::clone(sessions), session: Arc::clone(session), request: Some(request.clone()) }
    }

    fn answered(mut self) {
        self.request = None;
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let Some(request) = self.request.take() else { return };
        let (sessions, session) = (Arc::clone(&self.sessions), Arc::clone(&self.session));
        let cancelled = CancelledNotificationParam::new(Some(request), Some("the client hung up".to_owned()));
        let cancelled = ClientNotification::CancelledNotification(CancelledNotification::new(cancelled));
        self.sessions.runtime.spawn(async move {
            let message = ClientJsonRpcMessage::notification(cancelled);
            // A session that has ended has cancelled it.
            let _ = sessions.within(sessions.local.accept_message(&session, message)).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions(most: usize) -> Arc<Sessions> {
        let limits = Limits { mcp_sessions: most, ..Limits::default() };
        Arc::new(Sessions::new(&Timing::default(), &limits, Handle::current()))
    }

    async fn begin(sessions: &Arc<Sessions>) -> SessionId {
        let seat = sessions.sit().unwrap();
        // The transport's end is the session's task, which these tests need not.
        let (id, transport) = Turn::new(sessions, Some(seat)).create_session().await.unwrap();
        drop(transport);
        id
    }

    #[tokio::test]
    async fn places_are_bounded_and_free_again_when_a_session_is_closed() {
        let sessions = sessions(1);
        let id = begin(&sessions).await;
        assert_eq!((sessions.count(), sessions.sit().unwrap_err()), (1, Refused::TooMany));
        sessions.close(&id).await.unwrap();
        assert_eq!(sessions.count(), 0);
        drop(sessions.sit().unwrap());
    }

    #[tokio::test]
    async fn no_session_begins_without_a_seat() {
        let sessions = sessions(1);
        let turn = Turn::new(&sessions, None);
        assert!(matches!(turn.create_session().await, Err(Fault::NoSeat)));
        assert!(matches!(turn.fault(), Some(Fault::NoSeat)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_that_takes_nothing_in_time_is_busy() {
        let sessions = sessions(1);
        let turn = Turn::new(&sessions, Some(sessions.sit().unwrap()));
        // Nobody works on its messages.
        let (id, _transport) = turn.create_session().await.unwrap();
        let message = serde_json::json!({"jsonrpc": "2.0", "id": 0, "method": "ping"});
        let message: ClientJsonRpcMessage = serde_json::from_value(message).unwrap();
        assert!(matches!(turn.initialize_session(&id, message).await, Err(Fault::Busy)));
        assert!(matches!(turn.fault(), Some(Fault::Busy)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_is_idle_without_messages_and_streams() {
        let sessions = sessions(3);
        let (unused, listening) = (begin(&sessions).await, begin(&sessions).await);
        let listens = InUse::new(&sessions, &listening);
        let idle = Timing::default().mcp_idle;
        sleep(idle).await;
        assert_eq!(sessions.idle_for(idle), [Arc::clone(&unused)]);
        assert!(sessions.is_idle(&unused, idle) && !sessions.is_idle(&listening, idle));
        sessions.touch(&unused);
        assert!(!sessions.is_idle(&unused, idle), "it was used since");
        drop(listens);
        assert_eq!(sessions.idle_for(idle), [] as [SessionId; 0]);
        sleep(idle).await;
        assert_eq!(sessions.idle_for(idle).len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_sessions_are_swept_and_their_places_free() {
        let sessions = sessions(1);
        begin(&sessions).await;
        let idle = Timing::default().mcp_idle;
        let sweeping = tokio::spawn(Arc::clone(&sessions).sweep(idle));
        sleep(idle * 2).await;
        assert_eq!(sessions.count(), 0);
        sweeping.abort();
    }
}
