//! Deleting what is too large for one transaction. One statement for all of it would take longer than
//! `timing.database_timeout`, and on SQLite nobody else could write while it runs: so what it holds goes first, a
//! little at a time, and others write between two transactions.

use serde::{Serialize, de::DeserializeOwned};

use super::{By, PlatformError};
use crate::{
    domain::platform::{
        Scope, event,
        refusal::{Kind, Refusal},
        session::SessionSummary,
    },
    store::{
        db::DbFault,
        platform::{Cleared, Holder, PlatformStore, Unfinished, Work},
    },
};

/// Most rows of a kind that go in one transaction.
pub(super) const ROWS: u64 = 2000;

/// Empties the holder. A host that stops ends this between two transactions.
pub(super) async fn empty(
    store: &PlatformStore,
    scope: &Scope,
    holder: Holder<'_>,
    rows: u64,
) -> Result<(), PlatformError> {
    loop {
        if store.is_closing() {
            return Err(
                DbFault::Unavailable("the host is stopping in the middle of a large deletion".to_owned()).into()
            );
        }
        if !round(store, scope, holder, rows).await? {
            return Ok(());
        }
    }
}

/// One transaction of it; whether there may be more to do. Tells `task.deleted` of each task, with the transaction that
/// deletes it. Noted together with what is lost: whatever ends the deletion now, `housekeeping` goes on with it.
pub(super) async fn round(
    store: &PlatformStore,
    scope: &Scope,
    holder: Holder<'_>,
    rows: u64,
) -> Result<bool, PlatformError> {
    let work = |work: Work| async move {
        let Cleared { tasks, more } = work.clear_some(holder, rows).await?;
        work.note_deletion(holder).await?;
        for task in &tasks {
            // Their sessions are gone.
            work.tell(event::task_deleted(task, &SessionSummary::default(), Some("workspace deleted")));
        }
        Ok(more)
    };
    store.write(scope, None, work).await
}

/// Deletes by `work`, which looks whether it may and then whether it can ([`refuse_large`]); as long as it cannot, the
/// holder is emptied a little. From then on the deletion is begun: `work` is told so, and refuses nothing that has
/// changed since, because what was in the holder is lost already. The key of `by` is used up when it is done.
pub(super) async fn delete<T, F>(
    store: &PlatformStore,
    by: &By,
    mut begun: Begun,
    holder: Holder<'_>,
    rows: u64,
    work: impl Fn(Work, Begun) -> F,
) -> Result<T, PlatformError>
where
    T: Serialize + DeserializeOwned + Clone + Send,
    F: Future<Output = Result<T, PlatformError>>,
{
    loop {
        let whole = |open: Work| {
            let deleted = work(open.clone(), begun);
            async move {
                let done = deleted.await?;
                if begun == Begun::EARLIER {
                    open.forget_deletion(holder).await?;
                }
                Ok::<_, PlatformError>(done)
            }
        };
        match store.write(&by.scope, by.once.as_ref(), whole).await {
            Err(error) if is_too_large(&error) => empty(store, &by.scope, holder, rows).await?,
            done => return done,
        }
        begun = Begun::EARLIER;
    }
}

/// What was begun of a deletion that is asked for now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Earlier {
    /// Nothing.
    None,
    /// The same.
    Same,
    /// Another one of the same thing, which has taken other rows: it must be finished first.
    Other(Unfinished),
}

/// Whether a deletion of the holder was begun and cut off.
pub(super) async fn earlier(store: &PlatformStore, holder: Holder<'_>) -> Result<Earlier, PlatformError> {
    Ok(match store.unfinished_deletion(holder).await? {
        None => Earlier::None,
        Some(noted) if noted.holder().is_ok_and(|other| other != holder) => Earlier::Other(noted),
        Some(_) => Earlier::Same,
    })
}

/// Whether rows of what is being deleted are gone already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Begun(bool);

impl Begun {
    /// Nothing is gone yet.
    pub const NOT_YET: Self = Self(false);
    /// Something is, and it is noted.
    pub const EARLIER: Self = Self(true);

    /// What is to be looked at before a deletion begins, and not after.
    pub fn before<E>(self, check: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        match self.0 {
            true => Ok(()),
            false => check(),
        }
    }

    /// Whether this says that somebody else has finished the deletion.
    pub fn is_done(self, error: &PlatformError) -> bool {
        self.0 && matches!(error, PlatformError::Refused(Refusal::NotFound { .. }))
    }
}

/// Gives the transaction up when the holder is too large for one.
pub(super) async fn refuse_large(work: &Work, holder: Holder<'_>, rows: u64) -> Result<(), PlatformError> {
    match work.is_large(holder, rows).await? {
        true => Err(too_large().into()),
        false => Ok(()),
    }
}

/// Whether a transaction was given up by [`refuse_large`].
pub(super) fn is_too_large(error: &PlatformError) -> bool {
    matches!(error, PlatformError::Refused(refusal) if *refusal == too_large())
}

/// Seen by nobody outside.
fn too_large() -> Refusal {
    Refusal::NotEmpty { kind: Kind::Workspace, id: String::new(), holds: "many rows" }
}
