//! Commits and snapshots that agents report, and the statistics over them (host-data.md §5).

use time::OffsetDateTime;

use super::{By, PlatformError, new_id};
use crate::{
    domain::platform::{
        Scope, event, kept_moment,
        page::{Page, PageRequest},
        session::{Session, SessionFilter},
        stats::{CodeStats, Commit, CommitFields, Snapshot, SnapshotFields},
    },
    store::platform::{PlatformStore, Work},
};

/// The service.
#[derive(Debug, Clone)]
pub struct Code {
    store: PlatformStore,
}

impl Code {
    pub(super) fn new(store: PlatformStore) -> Self {
        Self { store }
    }

    /// A page of code statistics, in the order of sessions: the newest first, ids in order.
    pub async fn stats(
        &self,
        scope: &Scope,
        filter: &SessionFilter,
        page: &PageRequest,
    ) -> Result<Page<CodeStats>, PlatformError> {
        filter.check()?;
        self.store.code_stats(scope, filter, page).await
    }

    /// A page of a session's commits, the newest first.
    pub async fn commits(
        &self,
        scope: &Scope,
        session_id: &str,
        page: &PageRequest,
    ) -> Result<Page<Commit>, PlatformError> {
        let session: Session = self.store.find(scope, session_id).await?;
        self.store.commits(&session.id, page).await
    }

    /// A page of a session's snapshots, the newest first.
    pub async fn snapshots(
        &self,
        scope: &Scope,
        session_id: &str,
        page: &PageRequest,
    ) -> Result<Page<Snapshot>, PlatformError> {
        let session: Session = self.store.find(scope, session_id).await?;
        self.store.snapshots(&session.id, page).await
    }

    /// Records a commit of a session; one that is recorded is answered as it is. Tells `git.event.<session>`.
    pub async fn record_commit(
        &self,
        by: &By,
        session_id: &str,
        fields: CommitFields,
        committed_at: Option<OffsetDateTime>,
    ) -> Result<Commit, PlatformError> {
        let fields = &fields.checked()?;
        let committed_at = committed_at.map(|at| kept_moment("committed_at", at)).transpose()?;
        let id = &new_id();
        let work = |work: Work| async move {
            let session: Session = work.get(session_id).await?;
            if let Some(commit) = work.commit_of(session_id, &fields.commit_sha).await? {
                return Ok(commit);
            }
            let commit = Commit {
                id: id.clone(),
                session_id: session.id.clone(),
                fields: fields.clone(),
                committed_at: committed_at.unwrap_or_else(|| work.now()),
                created_at: work.now(),
            };
            work.insert(&commit).await?;
            work.tell(event::commit(&session, &commit));
            Ok(commit)
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// Records what a session has not committed. Tells `git.event.<session>`.
    pub async fn record_snapshot(
        &self,
        by: &By,
        session_id: &str,
        fields: SnapshotFields,
    ) -> Result<Snapshot, PlatformError> {
        let fields = &fields.checked()?;
        let id = &new_id();
        let work = |work: Work| async move {
            let session: Session = work.get(session_id).await?;
            let (additions, deletions) = fields.totals();
            let snapshot = Snapshot {
                id: id.clone(),
                session_id: session.id.clone(),
                fields: fields.clone(),
                additions,
                deletions,
                created_at: work.now(),
            };
            work.insert(&snapshot).await?;
            work.tell(event::snapshot(&session, &snapshot));
            Ok(snapshot)
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }
}
