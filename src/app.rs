//! The composition root: builds every part, starts them in order and stops them in reverse.
//!
//! Nothing here decides anything about plugins. Order of the start: home and its lock, processes and files that an
//! earlier host left, database, vault, actors, listener, `host.json`, then the plugins. Order of the stop: no new
//! connections, plugins and open requests side by side under `timing.shutdown_timeout`, the last events, database,
//! `host.json`.

mod error;
mod market;

use std::{collections::BTreeMap, fs::DirBuilder, os::unix::fs::DirBuilderExt, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::Semaphore,
    task::JoinHandle,
    time::{Instant, timeout},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

pub use error::AppError;
use market::UpdateTask;

use crate::{
    actors::{EventBusHandle, Parts, RegistryHandle, SettingsHandle, Surroundings},
    config::Config,
    domain::{id::PluginId, lifecycle_event, log_line::LogLine, record::PluginRecord, redaction},
    fetch::{Downloader, SystemLookup},
    grpc::host::HostServices,
    http::{self, Browser, Hub, Mcp, OperatorToken, RequestFigures, Room, Services, Stop, Tasks},
    marketplace::Worksite,
    pace,
    platform::{
        Platform,
        event_writer::EventWriter,
        housekeeping::Housekeeping,
        inbox::{Inbox, Keeper, Plugins, Standings},
        publisher::Publisher,
    },
    process::{Environment, GoPluginLauncher, SocketRoot, open_files, sweep, usage::UsageSampler},
    store::{
        admin_token,
        db::Db,
        inbox::InboxStore,
        log_files::LogFiles,
        packages::PackageStore,
        platform::PlatformStore,
        plugin_config::PluginConfigs,
        plugin_state::StateStore,
        records::{RecordStore, Skipped},
        run_folder::RunFolder,
        trust::TrustStore,
    },
    vault::{self, KeySource, Vault},
};

/// Runs the host until SIGINT or SIGTERM. Answers what its stop has left of `timing.shutdown_timeout`: what comes after
/// must not take longer.
///
/// # Errors
/// [`AppError`] when it cannot start; nothing it started is left then.
pub fn run(config: Config) -> Result<Duration, AppError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(AppError::Runtime)?;
    actix::System::with_tokio_rt(move || runtime).block_on(Host::run(config))
}

/// Everything that runs.
struct Host {
    config: Arc<Config>,
    run_folder: RunFolder,
    db: Db,
    registry: RegistryHandle,
    keeper: InboxKeeper,
    events: EventTask,
    platform: PlatformTasks,
    updates: UpdateTask,
    log_files: LogFiles,
    server: http::Running,
    sockets: SocketRoot,
}

/// The tasks that feed the bus from the event log and delete what is old.
struct PlatformTasks {
    store: PlatformStore,
    publisher: AbortOnDropHandle<()>,
    housekeeping: AbortOnDropHandle<()>,
    stop: CancellationToken,
}

/// The task that writes events to the log.
struct EventTask {
    task: JoinHandle<()>,
    stop: CancellationToken,
}

/// The task that writes the inbox.
struct InboxKeeper {
    task: JoinHandle<()>,
    stop: CancellationToken,
}

impl Host {
    async fn run(config: Config) -> Result<Duration, AppError> {
        let mut terminate = signal(SignalKind::terminate()).map_err(AppError::Runtime)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(AppError::Runtime)?;
        let _pace = AbortOnDropHandle::new(tokio::spawn(pace::keep(config.timing.timer_pace)));
        let mut host = Self::start(config).await?;
        let (registry, booted) = (host.registry.clone(), host.updates.booted());
        // Starting plugins may take long; the host already answers.
        let boot = tokio::spawn(async move {
            if let Err(error) = registry.boot().await {
                tracing::warn!(%error, "not every plugin was started");
            }
            booted.notify_one();
        });
        let outcome = tokio::select! {
            _ = terminate.recv() => Ok(()),
            _ = interrupt.recv() => Ok(()),
            error = host.server.failed() => Err(AppError::Server(error)),
        };
        tracing::info!("the host is stopping");
        // Tells of a task that was never ended; workers of the web server have runtimes of their own.
        tracing::debug!(count = tokio::runtime::Handle::current().metrics().num_alive_tasks(), "tasks alive");
        boot.abort();
        let ends = Instant::now() + host.config.timing.shutdown_timeout;
        let in_order = tokio::select! {
            () = host.stop() => true,
            _ = terminate.recv() => false,
            _ = interrupt.recv() => false,
        };
        if !in_order {
            tracing::warn!("second signal: the host ends at once");
            return outcome.map(|()| Duration::ZERO);
        }
        outcome.map(|()| ends.saturating_duration_since(Instant::now()))
    }

    async fn start(config: Config) -> Result<Self, AppError> {
        let config = Arc::new(config);
        let (timing, limits) = (&config.timing, &config.limits);
        let files = open_files::OpenFiles::raise();
        for path in [config.home.clone(), config.plugins_dir()] {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
            made.map_err(|source| AppError::Home { path, source })?;
        }
        let run_folder = RunFolder::claim(&config.run_dir())?;
        let token = match &config.admin_token {
            Some(token) => OperatorToken::new(token),
            None => {
                let token = admin_token::read_or_make(&config.home)?;
                token.announce(&config.home);
                OperatorToken::new(&token.secret)
            }
        };
        sweep_processes(&run_folder, &config).await;
        let sockets = SocketRoot::prepare(run_folder.home_id(), &SocketRoot::places(|name| std::env::var_os(name)))?;
        let found = Db::open(&config.database_url, timing, limits).await?;
        // Before the schema or anything of a plugin is touched: without its key the start ends here.
        Vault::refuse_foreign_key(found.as_found(), &key_source(&config)).await?;
        let db = found.bring_up_to_date().await?;
        let vault = Vault::open(db.clone(), key_source(&config), limits).await?;
        let state = StateStore::new(db.clone(), limits);
        // One for all services: it is by this one that the publisher learns of their changes.
        let platform_store = PlatformStore::new(db.clone());
        let packages = PackageStore::new(config.plugins_dir());
        let records = RecordStore::new(config.plugins_dir());
        let trust = TrustStore::new(config.trust_dir(), limits);
        if let Err(error) = trust.sweep() {
            tracing::warn!(%error, "a half-written trusted key was not removed");
        }
        trust.load()?.log();
        let log_files = LogFiles::start(config.logs_dir(), limits).map_err(AppError::LogFiles)?;
        finish_removals(&packages, &vault, &log_files, timing.ask_timeout).await?;
        let user_home = std::env::var("HOME").unwrap_or_default();
        let (found, unreadable) = load_records(&records, &user_home)?;
        files.tell(open_files::needed(limits, found.len() + unreadable.len()));
        let earlier_lines = earlier_lines(&found, &log_files, limits.log_lines).await;
        let bus = EventBusHandle::new(limits.event_bytes);
        // Before anything is told of a plugin: it all goes through the log.
        let (writer, events) = EventTask::start(&config, &platform_store, &bus);
        let inbox = InboxStore::new(db.clone(), limits);
        let standings = found.iter().chain(&unreadable).map(|record| (record.id().clone(), record.into())).collect();
        let configs = PluginConfigs::new(config.plugins_dir(), limits);
        let surroundings = Surroundings {
            timing: timing.clone(),
            limits: limits.clone(),
            plugins_dir: config.plugins_dir(),
            user_home,
            launcher: Arc::new(launcher(&config, &run_folder, sockets.clone(), files.found)?),
            host_services: Arc::new(HostServices::new(
                state,
                configs.clone(),
                vault.clone(),
                Platform::new(&platform_store),
                Arc::new(writer.clone()),
                timing,
                limits,
            )),
            log_files: log_files.clone(),
        };
        let registry = RegistryHandle::start(Parts {
            config: Arc::clone(&config),
            surroundings: Arc::new(surroundings),
            records,
            packages: packages.clone(),
            trust: trust.clone(),
            vault: vault.clone(),
            db: db.clone(),
            bus: bus.clone(),
            found,
            unreadable,
            earlier_lines,
        });
        let keeper = InboxKeeper::start(&config, inbox.clone(), &bus, &registry, standings);

        // It answers when the installed plugins have subscribed: what the log still holds is for them too.
        registry.list().await?;
        let platform = PlatformTasks::start(&config, &platform_store, &bus);

        let settings = SettingsHandle::new(registry.clone(), configs, vault.clone(), &config);
        settings.recover().await?;
        let listener =
            http::listen(config.listen).map_err(|source| AppError::Listen { address: config.listen, source })?;
        let market = market::open(&config, &db).await?;
        let downloader = Downloader::new(timing, limits, &config.install, Arc::new(SystemLookup))?;
        let site = Worksite {
            registry: registry.clone(),
            downloader: downloader.strict(),
            packages: packages.clone(),
            inbox: inbox.clone(),
        };
        let updates = UpdateTask::start(&config, market.clone(), site);
        let stop = Stop::default();
        let services = Services {
            registry: registry.clone(),
            settings,
            events: writer.clone(),
            platform: Platform::new(&platform_store),
            vault,
            browser: Browser::new(&config, &db, &writer),
            inbox: Inbox::new(inbox),
            downloader,
            market,
            packages,
            trust,
            package_limits: limits.package(),
            timing: timing.clone(),
            limits: limits.clone(),
            tasks: Tasks::new(tokio::runtime::Handle::current()),
            stop: stop.clone(),
            webhook_room: Room::new(limits.webhook_room_bytes),
            install_slots: Arc::new(Semaphore::new(limits.installs)),
            follow_slots: Arc::new(Semaphore::new(limits.log_followers)),
            hub: Hub::start(&bus, limits),
            mcp: Mcp::start(&registry, &Platform::new(&platform_store), &stop, timing, limits),
            usage: UsageSampler::new(timing.usage_age, timing.ask_timeout),
            allowed_origins: config.http.allowed_origins.clone(),
            requests: RequestFigures::default(),
            public_metrics: config.metrics.public,
            traced: config.telemetry.is_on(),
            started_at: time::OffsetDateTime::now_utc(),
        };
        let server = http::start(listener, Arc::new(services), token).map_err(AppError::Server)?;
        let url = format!("http://{}", server.address());
        run_folder.announce(&url)?;
        tracing::info!(%url, home = %config.home.display(), "the host is listening");
        Ok(Self { config, run_folder, db, registry, keeper, events, platform, updates, log_files, server, sockets })
    }

    /// The stop ladder. Plugins are stopped while open requests end: a command that waits for a plugin is answered
    /// that the host is stopping, and would otherwise hold the ladder up.
    async fn stop(self) {
        let Self { config, run_folder, db, registry, keeper, events, platform, updates, log_files, server, sockets } =
            self;
        let limit = config.timing.shutdown_timeout;
        let ladder = async {
            let plugins = async {
                // Before the plugins: what is told from now on waits in the log for the next start. A database that
                // hangs must leave them the time for a stop in order.
                platform.stop(limit / 8).await;
                registry.stop().await
            };
            // A quarter is kept for what comes after the requests.
            let most = limit / 4 * 3;
            let (stopped, plugins, ()) = tokio::join!(server.stop(most), plugins, updates.stop(most));
            if stopped.unfinished > 0 {
                tracing::warn!(commands = stopped.unfinished, "commands were cut off by the host's stop");
            }
            match plugins {
                Ok(left) if left.is_empty() => tracing::info!("all plugins have stopped"),
                Ok(left) => tracing::warn!(plugins = ?left, "plugins did not stop in time; they are killed"),
                Err(error) => tracing::warn!(%error, "plugins could not be stopped in order; they are killed"),
            }
            // Nobody tells anything any more.
            tokio::join!(keeper.stop(), events.stop());
            log_files.close(config.timing.ask_timeout).await;
            if let Err(error) = db.close().await {
                tracing::warn!(%error, "the database was not closed in order");
            }
        };
        if timeout(limit, ladder).await.is_err() {
            tracing::warn!(limit_ms = limit.as_millis(), "the stop took longer than timing.shutdown_timeout");
        }
        sockets.withdraw();
        if let Err(error) = run_folder.withdraw() {
            tracing::warn!(%error, "host.json was not removed");
        }
    }
}

impl PlatformTasks {
    /// The installed plugins must have subscribed.
    fn start(config: &Config, store: &PlatformStore, bus: &EventBusHandle) -> Self {
        let stop = CancellationToken::new();
        let publisher = Publisher::new(store.clone(), bus.clone(), config.timing.event_poll, stop.clone());
        let housekeeping = Housekeeping::new(store.clone(), &config.timing, &config.limits, stop.clone());
        let publisher = AbortOnDropHandle::new(tokio::spawn(publisher.run()));
        let housekeeping = AbortOnDropHandle::new(tokio::spawn(housekeeping.run()));
        Self { store: store.clone(), publisher, housekeeping, stop }
    }

    /// Saves the place in the log, if the database lets it in time.
    async fn stop(self, limit: Duration) {
        self.store.close();
        self.stop.cancel();
        match timeout(limit, async { tokio::join!(self.publisher, self.housekeeping) }).await {
            Ok((publisher, housekeeping)) => {
                if let Err(error) = publisher.and(housekeeping) {
                    tracing::error!(%error, "a task of the platform was lost");
                }
            }
            Err(_) => tracing::warn!(
                limit_ms = limit.as_millis(),
                "the place in the event log was not saved in time; events may come twice after the next start"
            ),
        }
    }
}

impl EventTask {
    /// The plugins' actors must not have begun: what they tell goes to the log from now on.
    fn start(config: &Config, store: &PlatformStore, bus: &EventBusHandle) -> (EventWriter, Self) {
        let stop = CancellationToken::new();
        let (timing, limits) = (&config.timing, &config.limits);
        let (writer, writing) = EventWriter::new(store.clone(), bus.clone(), timing, limits, stop.clone());
        (writer, Self { task: tokio::spawn(writing.run()), stop })
    }

    /// Writes what waits. The stop's own deadline bounds it.
    async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the task that writes events to the log was lost");
        }
    }
}

impl InboxKeeper {
    /// Follows the bus from now on; no plugin may have been started yet.
    fn start(
        config: &Config,
        inbox: InboxStore,
        bus: &EventBusHandle,
        registry: &RegistryHandle,
        standings: Standings,
    ) -> Self {
        let listener = bus.listen(lifecycle_event::PATTERN, config.limits.inbox_queue);
        let stop = CancellationToken::new();
        let plugins = Arc::new(Registered(registry.clone()));
        let keeper = Keeper::new(inbox, listener, plugins, config.timing.inbox_retry, stop.clone());
        Self { task: tokio::spawn(keeper.run(standings)), stop }
    }

    /// Writes what waits. The stop's own deadline bounds it.
    async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the task that writes the inbox was lost");
        }
    }
}

/// The registry as the inbox sees it.
struct Registered(RegistryHandle);

#[async_trait]
impl Plugins for Registered {
    async fn standings(&self) -> Option<Standings> {
        let plugins = self.0.list().await.ok()?;
        Some(plugins.iter().map(|view| (view.record.id().clone(), (&view.record).into())).collect())
    }
}

/// Kills what outlived an earlier host on this home.
async fn sweep_processes(run_folder: &RunFolder, config: &Config) {
    let swept = sweep::sweep(run_folder.home_id(), config.timing.term_grace + config.timing.pipe_grace).await;
    if !swept.killed.is_empty() {
        tracing::warn!(pids = ?swept.killed, "processes of an earlier host were still there and were killed");
    }
    if !swept.left.is_empty() {
        tracing::error!(pids = ?swept.left, "processes of an earlier host could not be killed");
    }
}

/// Finishes uninstalls that an earlier host began, and deletes what its installs left behind.
async fn finish_removals(
    packages: &PackageStore,
    vault: &Vault,
    log_files: &LogFiles,
    deadline: Duration,
) -> Result<(), AppError> {
    let swept = packages.sweep()?;
    for id in &swept.removed {
        vault.delete_plugin(id).await?;
        log_files.remove(id, deadline).await;
        match packages.finish_removal(id) {
            Ok(()) => tracing::info!(plugin.id = %id, "an unfinished uninstall was finished"),
            Err(error) => tracing::error!(plugin.id = %id, %error, "files of an uninstalled plugin cannot be removed"),
        }
    }
    if swept.leftovers > 0 {
        tracing::info!(count = swept.leftovers, "unfinished files of an earlier host were removed");
    }
    Ok(())
}

/// Where the vault's keys come from.
pub fn key_source(config: &Config) -> KeySource {
    match &config.vault_key {
        Some((keys, variable)) => KeySource::Given { variable, keys: keys.clone() },
        None => KeySource::File(config.home.join(vault::FILE_NAME)),
    }
}

/// What plugins wrote under an earlier host, so that it can still be asked for.
async fn earlier_lines(found: &[PluginRecord], log_files: &LogFiles, limit: usize) -> BTreeMap<PluginId, Vec<LogLine>> {
    let (ids, log_files) = (found.iter().map(|record| record.id().clone()).collect::<Vec<_>>(), log_files.clone());
    let read = move || ids.into_iter().map(|id| (id.clone(), log_files.newest(&id, limit))).collect();
    tokio::task::spawn_blocking(read).await.unwrap_or_default()
}

/// The records, and what is shown of those that cannot be read.
fn load_records(records: &RecordStore, user_home: &str) -> Result<(Vec<PluginRecord>, Vec<PluginRecord>), AppError> {
    let loaded = records.load_all()?;
    let now = time::OffsetDateTime::now_utc();
    let mut unreadable = Vec::new();
    for Skipped { path, id, reason } in loaded.skipped {
        tracing::error!(path = %path.display(), error = reason, "a plugin record is unreadable: repair or delete the file");
        let text = format!(
            "the record {} cannot be read: {reason}; repair the file and restart the host, install the package again, \
             or uninstall the plugin",
            path.display()
        );
        unreadable.extend(id.map(|id| PluginRecord::unreadable(id, redaction::diagnostic(text, user_home), now)));
    }
    Ok((loaded.records, unreadable))
}

fn launcher(
    config: &Config,
    run_folder: &RunFolder,
    sockets: SocketRoot,
    open_files: Option<u64>,
) -> Result<GoPluginLauncher, AppError> {
    let listed = &config.plugins.environment;
    let (environment, refused) = Environment::new(listed, |name| std::env::var_os(name), run_folder.home_id());
    if !refused.is_empty() {
        tracing::warn!(names = ?refused, "variables that may hold the host's secrets never pass to plugins");
    }
    let forker = goplugin::host::Forker::start().map_err(AppError::Forker)?.with_open_files(open_files);
    Ok(GoPluginLauncher::new(forker, environment, sockets, &config.timing, &config.limits))
}
