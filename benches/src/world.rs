//! The host's parts in this process, put together as `app` does, so that baseline and host share runtime, sockets and
//! plugin processes.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    path::{Path, PathBuf},
    sync::Arc,
};

use goplugin::host::Forker;
use kandev_host::{
    actors::{EventBusHandle, Parts, RegistryHandle, Relayed, SettingsHandle, Surroundings},
    config::{self, Config},
    domain::{consent::Terms, id::PluginId, marketplace::HostRules},
    fetch::{Downloader, IndexFetcher, SystemLookup},
    grpc::host::HostServices,
    http::{self, Browser, Hub, Mcp, OperatorToken, RequestFigures, Room, Services, Stop, Tasks},
    marketplace::{Catalogue, Market},
    pace,
    platform::{Platform, event_writer::EventWriter, inbox::Inbox, publisher::Publisher},
    process::{Environment, GoPluginLauncher, HostServiceFactory, SocketRoot, usage::UsageSampler},
    store::{
        db::Db, inbox::InboxStore, log_files::LogFiles, marketplace::MarketplaceStore, packages::PackageStore,
        platform::PlatformStore, plugin_config::PluginConfigs, plugin_state::StateStore, records::RecordStore,
        run_folder::RunFolder, trust::TrustStore,
    },
    vault::{KeySource, Vault},
};
use prost_types::Struct;
use tempfile::TempDir;
use time::OffsetDateTime;
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use uuid::Uuid;

use crate::{
    Outcome,
    bare_state::BareState,
    package,
    tap::{Beside, Tap},
};

/// The operator's token of every host that is measured.
pub const TOKEN: &str = "bench-token-0123456789abcdef0123456789abcdef";

/// A host in this process.
pub struct World {
    pub registry: RegistryHandle,
    pub bus: EventBusHandle,
    pub tap: Arc<Tap>,
    pub state: StateStore,
    pub platform: Platform,
    pub config: Arc<Config>,
    pub forker: Forker,
    pub host_services: Arc<dyn HostServiceFactory>,
    pub sockets: PathBuf,
    pub address: std::net::SocketAddr,
    guest: PathBuf,
    packages: PackageStore,
    server: http::Running,
    _pace: AbortOnDropHandle<Infallible>,
    _events: [AbortOnDropHandle<()>; 2],
    _run_folder: RunFolder,
    _home: TempDir,
}

impl World {
    /// Starts everything but plugins. `change` may shorten waits that are not measured.
    pub async fn start(guest: &Path, change: impl FnOnce(&mut Config)) -> Outcome<Self> {
        let home = tempfile::Builder::new().prefix("kb").tempdir()?;
        let overrides = config::Overrides {
            listen: Some("127.0.0.1:0".into()),
            home: Some(home.path().to_string_lossy().into_owned()),
            ..config::Overrides::default()
        };
        let mut config = config::load(overrides, &|_| None)?;
        change(&mut config);
        let config = Arc::new(config);
        let pace = AbortOnDropHandle::new(tokio::spawn(pace::keep(config.timing.timer_pace)));
        let (timing, limits) = (&config.timing, &config.limits);
        std::fs::create_dir_all(config.plugins_dir())?;
        let run_folder = RunFolder::claim(&config.run_dir())?;
        let sockets = SocketRoot::prepare(run_folder.home_id(), &SocketRoot::places(|name| std::env::var_os(name)))?;
        let socket_folder = sockets.ensure()?.to_owned();
        let db = Db::connect(&config.database_url, timing, limits).await?;
        let vault =
            Vault::open(db.clone(), KeySource::File(config.home.join(kandev_host::vault::FILE_NAME)), limits).await?;
        let state = StateStore::new(db.clone(), limits);
        let log_files = LogFiles::start(config.logs_dir(), limits)?;
        let packages = PackageStore::new(config.plugins_dir());
        let trust = TrustStore::new(config.trust_dir(), limits);
        let bus = EventBusHandle::new(limits.event_bytes);
        let rows = PlatformStore::new(db.clone());
        let (writer, writing) = EventWriter::new(rows.clone(), bus.clone(), timing, limits, CancellationToken::new());
        let publisher = Publisher::new(rows.clone(), bus.clone(), timing.event_poll, CancellationToken::new());
        let events = [tokio::spawn(writing.run()), tokio::spawn(publisher.run())].map(AbortOnDropHandle::new);
        let platform = Platform::new(&rows);
        let configs = PluginConfigs::new(config.plugins_dir(), limits);
        let forker = Forker::start()?;
        let (environment, _) =
            Environment::new(&config.plugins.environment, |name| std::env::var_os(name), run_folder.home_id());
        let launcher = GoPluginLauncher::new(forker.clone(), environment, sockets, timing, limits);
        let tap = Arc::new(Tap::new(launcher));
        let bare = BareState::open(&home.path().join("kandev.db"), limits.database_connections).await?;
        let inner = Arc::new(HostServices::new(
            state.clone(),
            configs.clone(),
            vault.clone(),
            platform.clone(),
            Arc::new(writer.clone()),
            timing,
            limits,
        ));
        let host_services: Arc<dyn HostServiceFactory> = Arc::new(Beside { inner, bare });
        let surroundings = Surroundings {
            timing: timing.clone(),
            limits: limits.clone(),
            plugins_dir: config.plugins_dir(),
            user_home: String::new(),
            launcher: tap.clone(),
            host_services: host_services.clone(),
            log_files,
        };
        let registry = RegistryHandle::start(Parts {
            config: config.clone(),
            surroundings: Arc::new(surroundings),
            records: RecordStore::new(config.plugins_dir()),
            packages: packages.clone(),
            trust: trust.clone(),
            vault: vault.clone(),
            db: db.clone(),
            bus: bus.clone(),
            found: Vec::new(),
            unreadable: Vec::new(),
            earlier_lines: BTreeMap::new(),
        });
        let settings = SettingsHandle::new(registry.clone(), configs, vault.clone(), &config);
        let browser = Browser::new(&config, &db, &writer);
        let fetcher = IndexFetcher::new(timing, limits, &config.install, Arc::new(SystemLookup))?;
        let catalogue = Catalogue::new(fetcher, timing, limits, tokio::runtime::Handle::current());
        let rules = HostRules {
            compat_version: config.compat_version.clone(),
            private_addresses: config.install.allow_private_addresses,
        };
        let market = Market::new(MarketplaceStore::new(db.clone(), limits), catalogue, rules);
        let stop = Stop::default();
        let services = Services {
            browser,
            registry: registry.clone(),
            settings,
            events: writer,
            platform: platform.clone(),
            vault,
            market,
            inbox: Inbox::new(InboxStore::new(db, limits)),
            downloader: Downloader::new(timing, limits, &config.install, Arc::new(SystemLookup))?,
            packages: packages.clone(),
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
            mcp: Mcp::start(&registry, &platform, &stop, timing, limits),
            usage: UsageSampler::new(timing.usage_age, timing.ask_timeout),
            allowed_origins: config.http.allowed_origins.clone(),
            requests: RequestFigures::default(),
            public_metrics: config.metrics.public,
            traced: config.telemetry.is_on(),
            started_at: OffsetDateTime::now_utc(),
        };
        let token = OperatorToken::new(&TOKEN.to_owned().into());
        let server = http::start(http::listen(config.listen)?, Arc::new(services), token)?;
        let address = server.address();
        Ok(Self {
            registry,
            bus,
            tap,
            state,
            platform,
            forker,
            host_services,
            sockets: socket_folder,
            address,
            guest: guest.to_owned(),
            packages,
            server,
            config,
            _pace: pace,
            _events: events,
            _run_folder: run_folder,
            _home: home,
        })
    }

    /// Packs and installs the bench plugin under this id and waits until it is active.
    pub async fn install(&self, id: &str) -> Outcome<PluginId> {
        self.install_of(package::Of::id(id)).await
    }

    /// The same with a manifest of its own.
    pub async fn install_of(&self, of: package::Of<'_>) -> Outcome<PluginId> {
        let id = of.id;
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("p.tar.gz");
        package::pack(&path, of, &self.guest, &[], 1)?;
        let bytes = tokio::fs::read(&path).await?;
        let body = futures_util::stream::iter([Ok::<_, std::io::Error>(bytes)]);
        let staged = self.packages.stage(body, &self.config.limits.package()).await?;
        let installed = self.registry.install(staged, Terms::default()).await?;
        if let Some(warning) = installed.warning {
            return Err(format!("plugin {id} did not start: {warning}").into());
        }
        Ok(PluginId::new(id)?)
    }

    /// Hands an event of the log to the plugins' queues, as the publisher does.
    pub fn publish(&self, subject: &str, payload: Struct) {
        self.bus.relay(Relayed {
            id: Uuid::now_v7(),
            subject: subject.to_owned(),
            workspace_id: String::new(),
            payload: Some(payload),
            at: OffsetDateTime::now_utc(),
            about: None,
        });
    }

    /// Stops plugins and server.
    pub async fn stop(self) -> Outcome<()> {
        let limit = self.config.timing.shutdown_timeout;
        self.registry.stop().await?;
        self.server.stop(limit).await;
        Ok(())
    }
}
