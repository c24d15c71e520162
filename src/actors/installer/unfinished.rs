//! Ends the changes of version that an earlier host began and did not live to finish. What is to be done is
//! `domain::upgrade`'s verdict; every repair is logged and noted in the record.

use futures_util::future::join_all;

use super::{Change, Installer, blocking};
use crate::{
    actors::{
        plugin::Want,
        registry::{Claim, ClaimGuard, NoteUpgrade, RegistryError, prune, should_run},
    },
    domain::{
        record::PluginRecord,
        target::host_platform,
        upgrade::{LastUpgrade, Outcome, Unfinished, undone_package, unfinished},
    },
};

/// A change to end, with its id claimed: nobody else touches the plugin before.
pub struct Pending {
    guard: ClaimGuard,
    record: PluginRecord,
    note: LastUpgrade,
    verdict: Unfinished,
}

impl Installer {
    /// Claims every plugin with an unfinished change, and clears what ended ones left. Before any plugin is started.
    pub async fn claim_unfinished(&self, records: Vec<PluginRecord>) -> Vec<Pending> {
        let mut pending = Vec::new();
        for record in records {
            let claimed = self.ask_registry(Claim(record.id().clone())).await.map_err(RegistryError::from).flatten();
            let claim = match claimed {
                Ok(claim) => claim,
                Err(error) => {
                    tracing::warn!(plugin.id = %record.id(), %error, "what a change of version left is left as it is");
                    continue;
                }
            };
            match (unfinished(&record), record.state.last_upgrade.clone()) {
                (Some(verdict), Some(note)) => pending.push(Pending { guard: claim.guard, record, note, verdict }),
                // As it is now: the host answers already.
                _ => {
                    if let Some(present) = &claim.present {
                        self.clear(&present.record).await;
                    }
                }
            }
        }
        pending
    }

    /// Ends them side by side, and starts what should run.
    pub async fn finish(&self, pending: Vec<Pending>) {
        join_all(pending.into_iter().map(|pending| self.finish_one(pending))).await;
    }

    async fn finish_one(&self, Pending { guard, record, note, verdict }: Pending) {
        let (from, version) = (note.from.clone(), note.version.clone());
        tracing::warn!(plugin.id = %record.id(), %from, %version, ?verdict, "the host ended during a change of version");
        let change = Change { before: &record, note, guard: &guard };
        match verdict {
            Unfinished::Abandon => self.interrupted(&change).await,
            Unfinished::Prove => self.prove(&change).await,
            Unfinished::GoBack => {
                let reason = record.state.last_error.clone();
                self.go_back(&change, reason.as_deref().unwrap_or("it did not come up")).await;
            }
            Unfinished::Close => {
                self.start(&change).await;
                self.conclude(&change, None).await;
            }
        }
    }

    /// The version before goes on. What was placed of the other one is removed, and the kept version has its place
    /// again.
    async fn interrupted(&self, change: &Change<'_>) {
        let (record, note) = (change.before, &change.note);
        self.remove_failed(change).await;
        let reason = format!("the host ended meanwhile; {} goes on", note.from);
        self.write(record, note.ended(Outcome::Interrupted, Some(reason))).await;
        self.start(change).await;
        if let Ok(present) = change.guard.close(self.shared.ask_timeout()).await {
            prune(&self.shared.packages, &present.record).await;
        }
    }

    async fn prove(&self, change: &Change<'_>) {
        change.guard.open();
        match self.operate(change.before.id(), Want::Started, true).await {
            Ok(_) => drop(self.conclude(change, Some("finished after the host had ended meanwhile".into())).await),
            Err(error) => {
                let Ok(present) = change.guard.close(self.shared.ask_timeout()).await else { return };
                match error {
                    RegistryError::StartFailed { reason, .. } => self.go_back(change, &reason).await,
                    RegistryError::Overtaken { reason, .. } => {
                        self.write(&present.record, change.note.ended(Outcome::Done, Some(reason))).await;
                    }
                    // Verified again, and proved, by the next host.
                    other => tracing::error!(plugin.id = %change.before.id(), error = %other, "not started"),
                }
            }
        }
    }

    /// `change.before` is the record of the version that failed. The one before it ran here, so it was accepted once:
    /// what today's policy says of its package is no question, only whether its program is still the same.
    async fn go_back(&self, change: &Change<'_>, reason: &str) {
        let (failed, note) = (change.before, &change.note);
        let (packages, id, from) = (self.shared.packages.clone(), failed.id().clone(), note.from.clone());
        let kept = blocking(move || {
            let before = packages.before(&id, &from, &host_platform());
            before.map_err(|error| RegistryError::Storage(error.to_string()))
        });
        match kept.await {
            Ok(before) => {
                self.undo(&Change { before: &before, note: note.clone(), guard: change.guard }, reason).await;
            }
            Err(error) => {
                tracing::error!(plugin.id = %failed.id(), %error, "no way back to the version before");
                let reason = format!("{reason}; and {} cannot be used any more", note.from);
                self.write(failed, note.ended(Outcome::Done, Some(reason))).await;
            }
        }
    }

    /// Clears what is left of a change that has come to its end, or to no beginning: a kept version that is still aside
    /// comes back, unless what took its place is installed; the package of a change that was undone goes.
    pub(super) async fn clear(&self, record: &PluginRecord) {
        let (packages, id, version) =
            (self.shared.packages.clone(), record.id().clone(), record.manifest.version.clone());
        let undone = undone_package(record).map(str::to_owned);
        let done = blocking(move || {
            for aside in packages.aside(&id)?.into_iter().filter(|aside| *aside != version) {
                packages.bring_back(&id, &aside)?;
            }
            if let Some(undone) = undone.filter(|undone| packages.is_package(&id, undone)) {
                packages.remove_version(&id, &undone)?;
            }
            Ok(packages.drop_before(&id)?)
        });
        if let Err(error) = done.await {
            tracing::warn!(plugin.id = %record.id(), %error, "what a change of version left was not cleared");
        }
    }

    async fn start(&self, change: &Change<'_>) {
        let record = change.before;
        change.guard.open();
        if should_run(record)
            && let Err(error) = self.operate(record.id(), Want::Booted, true).await
        {
            // The plugin's actor has noted why.
            tracing::debug!(plugin.id = %record.id(), %error, "not started");
        }
    }

    async fn write(&self, record: &PluginRecord, note: LastUpgrade) {
        let written = self.ask_registry(NoteUpgrade { id: record.id().clone(), note: Some(note) }).await;
        if let Err(error) = written.map_err(RegistryError::from).flatten() {
            tracing::warn!(plugin.id = %record.id(), %error, "the end of a change of version was not noted");
        }
    }
}
