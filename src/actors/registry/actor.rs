//! The registry actor: entries, claims, and what each message does to them. When a record goes to disk is
//! [`super::disk`]'s.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use actix::{Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, ResponseActFuture, WrapFuture, fut};
use futures_util::{FutureExt, future::join_all};
use time::OffsetDateTime;

use super::{
    RegistryError,
    announce::Told,
    boot::Owed,
    claims::Claims,
    directory::Directory,
    disk::Disk,
    messages::{Adopt, Forget, Operate, Restore, StopAll},
    owners::Starting,
    should_run,
    views::Unreadable,
};
use crate::{
    actors::{
        EventBusHandle, LogEnd, PluginHandle, PluginLog, PluginView, Vitals,
        plugin::{
            ActorGone, Birth, Changed, Command, Condemn, Door, Inlet, Line, LiveState, NotDone, PluginActor, Replace,
            Surroundings, Want,
        },
        spawn::{ask, post, start},
    },
    config::Config,
    domain::{
        id::PluginId,
        log_line::LogLine,
        record::{PluginRecord, Status},
        subject::Pattern,
        target::host_platform,
        upgrade::is_unproven,
    },
    store::{packages::PackageStore, records::RecordStore, trust::TrustStore},
};

pub(super) struct Entry {
    pub(super) record: PluginRecord,
    pub(super) addr: Addr<PluginActor>,
    incarnation: u64,
    /// Where calls into it pass.
    door: Door,
    /// Where its events wait.
    line: Line,
    /// Of the last report taken from this incarnation.
    revision: u64,
    /// Panics of this plugin's actor in a row, for the backoff.
    losses: usize,
    pub(super) log: Arc<PluginLog>,
    pub(super) vitals: Arc<Vitals>,
    pub(super) disk: Disk,
}

/// What the registry reads and writes.
pub struct Files {
    pub records: RecordStore,
    pub packages: PackageStore,
    pub trust: TrustStore,
}

impl Entry {
    /// Whether this actor of the plugin has reported nothing yet: the record is as it was found.
    pub(super) fn is_unheard(&self) -> bool {
        self.revision == 0
    }
}

/// What the host found of the plugins at its start.
pub(super) struct Found {
    /// Records.
    pub records: Vec<PluginRecord>,
    /// What is shown of the records that cannot be read.
    pub unreadable: Vec<PluginRecord>,
    /// Log lines that an earlier host wrote.
    pub earlier_lines: BTreeMap<PluginId, Vec<LogLine>>,
}

/// The actor.
pub struct Registry {
    pub(super) config: Arc<Config>,
    pub(super) surroundings: Arc<Surroundings>,
    pub(super) records: RecordStore,
    pub(super) packages: PackageStore,
    pub(super) trust: TrustStore,
    pub(super) bus: EventBusHandle,
    pub(super) told: Told,
    found: Vec<PluginRecord>,
    /// Log lines that an earlier host wrote.
    pub(super) earlier: BTreeMap<PluginId, Vec<LogLine>>,
    pub(super) entries: BTreeMap<PluginId, Entry>,
    pub(super) directory: Directory,
    pub(super) unreadable: Unreadable,
    pub(super) claims: Claims,
    pub(super) owed: Owed,
    pub(super) starting: Starting,
    /// Installed before this host started and never seen to run: verified before they do.
    unverified: BTreeSet<PluginId>,
    incarnations: u64,
    pub(super) stopping: bool,
}

impl Registry {
    pub(super) fn new(
        config: Arc<Config>,
        surroundings: Arc<Surroundings>,
        Files { records, packages, trust }: Files,
        bus: EventBusHandle,
        found: Found,
    ) -> Self {
        let Found { records: found, unreadable, earlier_lines: earlier } = found;
        Self {
            config,
            surroundings,
            records,
            packages,
            trust,
            bus,
            told: Told::default(),
            found,
            earlier,
            entries: BTreeMap::new(),
            directory: Directory::default(),
            unreadable: Unreadable::new(unreadable),
            claims: Claims::default(),
            owed: Owed::default(),
            starting: Starting::default(),
            unverified: BTreeSet::new(),
            incarnations: 0,
            stopping: false,
        }
    }

    /// The directory that it keeps.
    pub(super) fn directory(&self) -> Directory {
        self.directory.clone()
    }

    /// Makes the plugin's actor and tells the bus. The record is not written.
    fn insert(&mut self, record: PluginRecord, ctx: &Context<Self>) {
        let id = record.id().clone();
        let (log, vitals) = match self.entries.get(&id) {
            Some(entry) => (Arc::clone(&entry.log), Arc::clone(&entry.vitals)),
            None => (self.new_log(&id), Arc::default()),
        };
        let losses = self.entries.get(&id).map_or(0, |entry| entry.losses);
        let disk = self.entries.remove(&id).map(|entry| entry.disk).unwrap_or_default();
        self.incarnations += 1;
        let birth = Birth {
            record: record.clone(),
            incarnation: self.incarnations,
            registry: ctx.address().recipient(),
            gone: ctx.address().recipient(),
            log: Arc::clone(&log),
            vitals: Arc::clone(&vitals),
        };
        let actor = PluginActor::new(birth, Arc::clone(&self.surroundings));
        let (door, line) = (actor.door(), actor.line());
        let (addr, incarnation) = (start(actor), self.incarnations);
        let entry = Entry { record, addr, incarnation, door, line, revision: 0, losses, log, vitals, disk };
        self.entries.insert(id.clone(), entry);
        self.make_known(&id);
    }

    /// Tells the bus and the edges of a new or replaced plugin.
    fn make_known(&self, id: &PluginId) {
        let Some(entry) = self.entries.get(id) else { return };
        let patterns = entry.record.manifest.capabilities.events.iter().map(Pattern::new).collect();
        self.bus.subscribe(id.clone(), patterns, Inlet::new(entry.line.clone(), entry.addr.clone().recipient()));
        self.directory.put(PluginHandle::new(&entry.record, &entry.door, &entry.log, &entry.vitals));
    }

    /// Takes a report, unless it is late, and has it written.
    fn take(&mut self, id: &PluginId, live: LiveState, ctx: &mut Context<Self>) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        if live.revision <= entry.revision {
            return;
        }
        entry.revision = live.revision;
        if live.status == Status::Active {
            entry.losses = 0;
        }
        entry.record.state.status = live.status;
        entry.record.state.restarting = live.restarting;
        entry.record.state.restart_count = live.restart_count;
        entry.record.state.last_error = live.last_error;
        entry.record.state.last_error_at = live.last_error_at;
        entry.record.state.executable_sha256 = live.executable_sha256;
        self.announce(id);
        self.save(id, ctx);
    }

    /// Checks what is installed against its checksums before it may run: the host ended between the record and the
    /// first start, so what is on disk is not proven. Files that fail stay unproven until they are installed again.
    fn verify_then(
        &mut self,
        id: PluginId,
        want: Want,
        claimed: bool,
    ) -> ResponseActFuture<Self, Result<PluginView, RegistryError>> {
        let Some(entry) = self.entries.get(&id) else {
            return Box::pin(fut::ready(Err(RegistryError::NotFound(id.as_str().to_owned()))));
        };
        let (packages, limits) = (self.packages.clone(), self.config.limits.package());
        let folder = PathBuf::from(&entry.record.state.install_path);
        let verify = move || packages.verify(&folder, &limits, &host_platform()).map_err(|error| error.to_string());
        let verified =
            async move { tokio::task::spawn_blocking(verify).await.unwrap_or_else(|error| Err(error.to_string())) };
        Box::pin(verified.map(|verdict| verdict.map(drop)).into_actor(self).then(move |verdict, actor, _| {
            if !claimed && actor.claims.is_closed(&id) {
                return Box::pin(fut::ready(Err(actor.busy(id, want)))) as ResponseActFuture<Self, _>;
            }
            match verdict {
                Ok(()) => {
                    actor.unverified.remove(&id);
                    actor.operate(id, want)
                }
                Err(why) => {
                    let reason = format!("the installed files are not what the package held; install it again: {why}");
                    if let Some(entry) = actor.entries.get(&id) {
                        post(&entry.addr, Condemn(reason.clone()));
                    }
                    Box::pin(fut::ready(Err(RegistryError::StartFailed { id, reason })))
                }
            }
        }))
    }

    /// Has a plugin's actor do something, then waits until the result is on disk.
    pub(super) fn perform(
        &mut self,
        id: PluginId,
        want: Want,
    ) -> ResponseActFuture<Self, Result<PluginView, RegistryError>> {
        let Some(entry) = self.entries.get(&id) else {
            return Box::pin(fut::ready(Err(RegistryError::NotFound(id.as_str().to_owned()))));
        };
        let (addr, incarnation) = (entry.addr.clone(), entry.incarnation);
        let deadline = self.config.timing.command_timeout();
        let work = async move { ask(&addr, Command(want), deadline).await };
        Box::pin(
            work.into_actor(self)
                .map(move |answer, actor, ctx| {
                    let (live, outcome) = match answer {
                        Ok(Ok(live)) => (Some(live), Ok(())),
                        Ok(Err(NotDone { reason, live, start_failed })) => {
                            let id = id.clone();
                            let error = if start_failed {
                                RegistryError::StartFailed { id, reason }
                            } else {
                                RegistryError::Overtaken { id, reason }
                            };
                            (Some(live), Err(error))
                        }
                        Err(error) => (None, Err(RegistryError::Ask(error))),
                    };
                    if let Some(live) = live
                        && actor.entries.get(&id).is_some_and(|entry| entry.incarnation == incarnation)
                    {
                        actor.take(&id, live, ctx);
                    }
                    // An upgrade goes on at once: its note is on disk, and its own record follows.
                    let saved = if want == Want::Held { None } else { actor.saved(&id, ctx) };
                    (id, outcome, saved)
                })
                .then(|(id, outcome, saved), actor, _| {
                    let wait = async move {
                        if let Some(saved) = saved
                            && let Ok(Err(error)) = saved.await
                        {
                            return (id, outcome.and(Err(RegistryError::Storage(error))));
                        }
                        (id, outcome)
                    };
                    wait.into_actor(actor)
                })
                .map(|(id, outcome), actor, _| {
                    outcome?;
                    actor.entry(id.as_str()).map(Self::view)
                }),
        )
    }
}

impl Actor for Registry {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        for record in std::mem::take(&mut self.found) {
            if is_unproven(&record) {
                self.unverified.insert(record.id().clone());
            }
            self.told.remember(&record);
            self.insert(record, ctx);
        }
        self.tell_unreadable();
    }
}

impl Handler<Operate> for Registry {
    type Result = ResponseActFuture<Self, Result<PluginView, RegistryError>>;

    fn handle(&mut self, Operate { id, want, claimed }: Operate, _: &mut Context<Self>) -> Self::Result {
        self.command(&id, want, claimed)
    }
}

impl Registry {
    /// Carries a command out, unless the plugin is claimed by another one. What a start leaves to be pruned is the
    /// claim's holder's, if there is one.
    pub(super) fn command(
        &mut self,
        id: &str,
        want: Want,
        claimed: bool,
    ) -> ResponseActFuture<Self, Result<PluginView, RegistryError>> {
        let done = self.carry_out(id, want, claimed);
        let prunes = !claimed && matches!(want, Want::Started | Want::Booted);
        if prunes { Self::retain_after(done) } else { done }
    }

    fn carry_out(
        &mut self,
        id: &str,
        want: Want,
        claimed: bool,
    ) -> ResponseActFuture<Self, Result<PluginView, RegistryError>> {
        if self.stopping {
            return Box::pin(fut::ready(Err(RegistryError::Stopping)));
        }
        let id = match self.entry(id) {
            Ok(entry) => entry.record.id().clone(),
            Err(error) => return Box::pin(fut::ready(Err(error))),
        };
        if !claimed && self.claims.is_closed(&id) {
            return Box::pin(fut::ready(Err(self.busy(id, want))));
        }
        if let Err(error) = self.check_host(&id, want) {
            return Box::pin(fut::ready(Err(error)));
        }
        if self.asks_for_vouching(&id, want) {
            return self.vouch_then(id, want, claimed);
        }
        if matches!(want, Want::Started | Want::Booted) && self.unverified.contains(&id) {
            return self.verify_then(id, want, claimed);
        }
        self.operate(id, want)
    }
}

impl Handler<Adopt> for Registry {
    type Result = ResponseActFuture<Self, Result<(), RegistryError>>;

    fn handle(&mut self, Adopt(mut record): Adopt, ctx: &mut Context<Self>) -> Self::Result {
        let id = record.id().clone();
        if record.state.status == Status::Active {
            // It has no process yet.
            record.state.status = Status::Registered;
        }
        self.unverified.remove(&id);
        match self.entries.get_mut(&id) {
            Some(entry) => {
                entry.record = record.clone();
                post(&entry.addr, Replace(record));
                self.make_known(&id);
            }
            None => self.insert(record, ctx),
        }
        self.announce(&id);
        let Some(saved) = self.save(&id, ctx) else {
            return Box::pin(fut::ready(Err(RegistryError::NotFound(id.as_str().to_owned()))));
        };
        let wait = async move {
            match saved.await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(RegistryError::Storage(error)),
                Err(_) => Err(RegistryError::Stopping),
            }
        };
        Box::pin(wait.into_actor(self))
    }
}

impl Handler<Forget> for Registry {
    type Result = ();

    fn handle(&mut self, Forget(id): Forget, _: &mut Context<Self>) {
        // The actor ends with its last address.
        self.directory.remove(&id);
        if let Some(entry) = self.entries.remove(&id) {
            entry.log.end(LogEnd::Uninstalled);
        }
        self.bus.unsubscribe(&id);
    }
}

impl Handler<Restore> for Registry {
    type Result = ResponseActFuture<Self, Result<(), RegistryError>>;

    fn handle(&mut self, Restore(record): Restore, ctx: &mut Context<Self>) -> Self::Result {
        // The actor came to its end with the uninstall; the record finds none and gets a new one.
        <Self as Handler<Adopt>>::handle(self, Adopt(record), ctx)
    }
}

impl Handler<Changed> for Registry {
    type Result = ();

    fn handle(&mut self, Changed { id, incarnation, live }: Changed, ctx: &mut Context<Self>) {
        if self.entries.get(&id).is_some_and(|entry| entry.incarnation == incarnation) {
            self.take(&id, live, ctx);
        }
    }
}

impl Handler<ActorGone> for Registry {
    type Result = ();

    /// An actor that was lost, not dismissed, is made anew after a delay that grows with the losses in a row.
    fn handle(&mut self, ActorGone { id, incarnation, panicked }: ActorGone, ctx: &mut Context<Self>) {
        let delays = &self.config.timing.restart_delays;
        let Some(entry) = self.entries.get_mut(&id) else { return };
        if entry.incarnation != incarnation || self.stopping {
            return;
        }
        tracing::error!(plugin.id = %id, panicked, "plugin actor lost, it is made anew");
        let delay = delays.get(entry.losses).or(delays.last()).copied().unwrap_or(Duration::ZERO);
        entry.losses += 1;
        if should_run(&entry.record) {
            entry.record.state.status = Status::Error;
            entry.record.state.restarting = true;
            entry
                .record
                .fail("the host lost track of the plugin and starts it again".into(), OffsetDateTime::now_utc());
        }
        self.announce(&id);
        self.save(&id, ctx);
        ctx.run_later(delay, move |actor, ctx| {
            let Some(entry) = actor.entries.get(&id) else { return };
            if entry.incarnation != incarnation || actor.stopping {
                return;
            }
            let record = entry.record.clone();
            let run = should_run(&record);
            actor.insert(record, ctx);
            if run {
                actor.boot_one(id, ctx);
            }
        });
    }
}

impl Handler<StopAll> for Registry {
    type Result = ResponseActFuture<Self, Vec<PluginId>>;

    fn handle(&mut self, _: StopAll, _: &mut Context<Self>) -> Self::Result {
        self.stopping = true;
        let deadline = self.config.timing.longest_stop() + self.config.timing.ask_timeout;
        let stops: Vec<_> = self
            .entries
            .iter()
            .map(|(id, entry)| {
                let (id, addr) = (id.clone(), entry.addr.clone());
                async move {
                    let answer = ask(&addr, Command(Want::HostStopped), deadline).await;
                    (!matches!(answer, Ok(Ok(_)))).then_some(id)
                }
            })
            .collect();
        Box::pin(
            join_all(stops)
                .into_actor(self)
                .map(|left, actor, ctx| {
                    let ids: Vec<_> = actor.entries.keys().cloned().collect();
                    let writes: Vec<_> = ids.iter().filter_map(|id| actor.saved(id, ctx)).collect();
                    (left.into_iter().flatten().collect::<Vec<_>>(), writes)
                })
                .then(|(left, writes), actor, _| {
                    actor.entries.values().for_each(|entry| entry.log.end(LogEnd::HostStopping));
                    async move {
                        join_all(writes).await;
                        left
                    }
                    .into_actor(actor)
                }),
        )
    }
}
