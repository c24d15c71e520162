//! Bringing records to disk.
//!
//! They are written in order and coalesced: at most one write for each plugin is under way, and a command's answer
//! waits for the write that holds its result. Files are written on blocking threads; how, is `store::records`'.

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};
use tokio::sync::oneshot;

use super::actor::Registry;
use crate::domain::id::PluginId;

/// Resolves when the state it was asked for, or a later one, is on disk, or could not be written.
pub(super) type Saved = oneshot::Receiver<Result<(), String>>;

/// Where the record's copy on disk stands.
#[derive(Default)]
pub(super) struct Disk {
    /// Counts the states of the record that want to be written.
    wanted: u64,
    /// The last one that was written.
    written: u64,
    busy: bool,
    waiters: Vec<(u64, oneshot::Sender<Result<(), String>>)>,
}

impl Disk {
    /// The record has changed.
    fn want(&mut self) -> Saved {
        self.wanted += 1;
        self.wait()
    }

    fn wait(&mut self) -> Saved {
        let (done, saved) = oneshot::channel();
        self.waiters.push((self.wanted, done));
        saved
    }

    fn is_current(&self) -> bool {
        self.written == self.wanted
    }

    /// The number of the state to write now, when there is one and no write is under way.
    fn begin(&mut self) -> Option<u64> {
        if self.busy || self.is_current() {
            return None;
        }
        self.busy = true;
        Some(self.wanted)
    }

    /// A state that could not be written is still wanted.
    fn end(&mut self, version: u64, result: &Result<(), String>) {
        self.busy = false;
        if result.is_ok() {
            self.written = version;
        }
        let (ready, waiting) = std::mem::take(&mut self.waiters).into_iter().partition(|(at, _)| *at <= version);
        self.waiters = waiting;
        for (_, done) in ready {
            drop(done.send(result.clone()));
        }
    }
}

impl Registry {
    /// Has the record written.
    pub(super) fn save(&mut self, id: &PluginId, ctx: &mut Context<Self>) -> Option<Saved> {
        let saved = self.entries.get_mut(id)?.disk.want();
        self.write(id, ctx);
        Some(saved)
    }

    /// What to wait for until the present state of the record is on disk; nothing when it is. A write that failed is
    /// tried again.
    pub(super) fn saved(&mut self, id: &PluginId, ctx: &mut Context<Self>) -> Option<Saved> {
        let disk = &mut self.entries.get_mut(id)?.disk;
        if disk.is_current() {
            return None;
        }
        let saved = disk.wait();
        self.write(id, ctx);
        Some(saved)
    }

    fn write(&mut self, id: &PluginId, ctx: &mut Context<Self>) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        let Some(version) = entry.disk.begin() else { return };
        let (records, record) = (self.records.clone(), entry.record.clone());
        let work = tokio::task::spawn_blocking(move || records.save(&record));
        let id = id.clone();
        ctx.spawn(work.into_actor(self).map(move |result, actor, ctx| {
            let result = match result {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            actor.written(&id, version, &result, ctx);
        }));
    }

    fn written(&mut self, id: &PluginId, version: u64, result: &Result<(), String>, ctx: &mut Context<Self>) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        if let Err(error) = result {
            tracing::error!(plugin.id = %id, %error, "plugin record could not be written");
        }
        entry.disk.end(version, result);
        if result.is_ok() {
            self.unreadable.forget(id);
            self.write(id, ctx);
        } else {
            let id = id.clone();
            ctx.run_later(self.config.timing.ask_timeout, move |actor, ctx| actor.write(&id, ctx));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_wanted_during_a_write_are_written_as_one() {
        let mut disk = Disk::default();
        let mut first = disk.want();
        assert_eq!(disk.begin(), Some(1));
        let (mut second, mut third) = (disk.want(), disk.want());
        assert_eq!(disk.begin(), None, "one write at a time");
        disk.end(1, &Ok(()));
        assert_eq!(first.try_recv(), Ok(Ok(())));
        assert!(second.try_recv().is_err());
        assert_eq!(disk.begin(), Some(3));
        disk.end(3, &Ok(()));
        assert_eq!((second.try_recv(), third.try_recv()), (Ok(Ok(())), Ok(Ok(()))));
        assert!(disk.is_current());
        assert_eq!(disk.begin(), None);
    }

    #[test]
    fn a_failed_write_is_told_and_its_state_still_wanted() {
        let mut disk = Disk::default();
        let mut first = disk.want();
        assert_eq!(disk.begin(), Some(1));
        disk.end(1, &Err("full".into()));
        assert_eq!(first.try_recv(), Ok(Err("full".into())));
        assert!(!disk.is_current());
        let mut again = disk.wait();
        assert_eq!(disk.begin(), Some(1));
        disk.end(1, &Ok(()));
        assert_eq!(again.try_recv(), Ok(Ok(())));
        assert!(disk.is_current());
    }
}
