//! The one door for starting actors and tasks and for sending messages (house-style.md §2, habits 11 and 13).
//!
//! [`ask`] waits for an answer under a deadline, [`post`] does not wait and logs a drop. The raw actix verbs are
//! banned everywhere else by clippy.toml.

#![expect(clippy::disallowed_methods, reason = "this module is the wrapper around the banned verbs")]

use std::{future::Future, time::Duration};

use actix::{Actor, Addr, Context, Handler, Message, Recipient, WeakAddr, dev::ToEnvelope};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::AskError;

/// Starts an actor on the present arbiter.
pub fn start<A: Actor<Context = Context<A>>>(actor: A) -> Addr<A> {
    actor.start()
}

/// Sends and waits for the answer, at most `deadline`.
pub async fn ask<A, M>(addr: &Addr<A>, message: M, deadline: Duration) -> Result<M::Result, AskError>
where
    A: Actor + Handler<M>,
    A::Context: ToEnvelope<A, M>,
    M: Message + Send + 'static,
    M::Result: Send,
{
    if !addr.connected() {
        return Err(AskError::NotDelivered);
    }
    match tokio::time::timeout(deadline, addr.send(message)).await {
        Err(_) => Err(AskError::TimedOut),
        Ok(Err(_)) => Err(if addr.connected() { AskError::Died } else { AskError::NotDelivered }),
        Ok(Ok(answer)) => Ok(answer),
    }
}

/// Sends without waiting. A message to an actor that is gone is dropped, and the log says so at debug level: it is
/// ordinary for late reports of a plugin that was just removed.
pub fn post<A, M>(addr: &Addr<A>, message: M)
where
    A: Actor + Handler<M>,
    A::Context: ToEnvelope<A, M>,
    M: Message + Send + 'static,
    M::Result: Send,
{
    if !addr.connected() {
        tracing::debug!(message = std::any::type_name::<M>(), "message to a stopped actor dropped");
        return;
    }
    addr.do_send(message);
}

/// [`post`] from a task to the actor that owns it, without keeping the actor alive.
pub fn post_back<A, M>(addr: &WeakAddr<A>, message: M)
where
    A: Actor + Handler<M>,
    A::Context: ToEnvelope<A, M>,
    M: Message + Send + 'static,
    M::Result: Send,
{
    if let Some(addr) = addr.upgrade() {
        post(&addr, message);
    }
}

/// [`post`] to a recipient.
pub fn post_to<M>(recipient: &Recipient<M>, message: M)
where
    M: Message + Send + 'static,
    M::Result: Send,
{
    if !recipient.connected() {
        tracing::debug!(message = std::any::type_name::<M>(), "message to a stopped actor dropped");
        return;
    }
    recipient.do_send(message);
}

/// The tasks that one actor owns: they run on the multi-threaded runtime and end with the actor.
#[derive(Debug, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    cancel: CancellationToken,
}

impl Tasks {
    /// Runs a task until it ends or the actor does.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let cancel = self.cancel.clone();
        self.tracker.spawn(async move {
            tokio::select! {
                () = task => {}
                () = cancel.cancelled() => {}
            }
        });
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Runs a task that must finish whatever becomes of its starter.
pub fn detached(task: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(task);
}
