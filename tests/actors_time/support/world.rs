//! A world and its clock.
//!
//! The clock advances by itself when nothing is left to do, and never while a record is being written or a package
//! moved: blocking tasks hold it. The database's own threads do not, so it is opened before the clock is paused, and a
//! test in which an actor asks it holds the clock with [`World::hold_clock`].

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use kandev_host::{
    actors::{EventBusHandle, Parts, RegistryError, RegistryHandle, Relayed, Surroundings},
    config::{Config, Features, Http, Install, Limits, Metrics, Plugins, Telemetry, Timing},
    domain::{
        id::PluginId,
        log_line::Stream,
        manifest,
        record::{PluginRecord, RecordState, Status},
        target::host_platform,
    },
    store::{db::Db, log_files::LogFiles, packages::PackageStore, records::RecordStore, trust::TrustStore},
    vault::{KeySource, Vault},
};
use secrecy::SecretString;
use tempfile::TempDir;
use time::macros::datetime;
use tokio::time::{Instant, sleep, sleep_until};

use super::Fakes;

/// More turns than an event takes from the bus to a plugin that answers at once.
const TURNS: usize = 8;

/// Longest time a test may take on its own clock; later something waits for ever.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Everything of one test.
pub struct World {
    pub registry: RegistryHandle,
    pub bus: EventBusHandle,
    pub fakes: Fakes,
    pub timing: Timing,
    records: RecordStore,
    began: Instant,
    home: TempDir,
}

/// A record of a plugin that subscribes to `task.*`.
pub fn record(id: &str, status: Status) -> PluginRecord {
    let platform = host_platform();
    let yaml = format!(
        "{{id: {id}, api_version: 1, version: 1.0.0, display_name: {id}, description: d, author: a, \
         categories: [tools], capabilities: {{events: ['task.*']}}, \
         runtime: {{type: binary, executables: {{{platform}: p}}}}}}"
    );
    let manifest = manifest::parse(yaml.as_bytes()).expect("a lawful manifest").manifest;
    let installed = RecordState::installed(format!("/nowhere/{id}/1.0.0"), datetime!(2026-08-01 09:00 UTC));
    let state = RecordState { status, ..installed };
    PluginRecord::new(PluginId::new(id).expect("a lawful id"), manifest, state)
}

/// Runs a test with one plugin, `acme`, which is off.
pub fn run(test: impl AsyncFnOnce(&World)) {
    run_with(vec![record("acme", Status::Disabled)], |_| {}, test);
}

/// Runs a test with these plugins and settings. At its end the host is stopped and no process may be left.
pub fn run_with(found: Vec<PluginRecord>, settings: impl FnOnce(&mut Config), test: impl AsyncFnOnce(&World)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    actix::System::with_tokio_rt(move || runtime).block_on(async {
        let world = World::new(found, settings).await;
        tokio::time::timeout(LONGEST, test(&world)).await.expect("the test ends");
        assert_eq!(world.registry.stop().await.expect("the registry answers"), [], "plugins did not stop");
        assert_eq!(world.fakes.alive(), Vec::<String>::new(), "processes are left");
    });
}

impl World {
    async fn new(mut found: Vec<PluginRecord>, settings: impl FnOnce(&mut Config)) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let database = format!("sqlite://{}", home.path().join("test.db").display());
        let mut config = config(home.path().to_owned(), database.into());
        settings(&mut config);
        let (timing, limits) = (config.timing.clone(), config.limits.clone());
        let db = Db::connect(&config.database_url, &timing, &limits).await.expect("a database");
        std::fs::create_dir_all(config.plugins_dir()).expect("a folder");
        let records = RecordStore::new(config.plugins_dir());
        for record in &mut found {
            // The host looks at its start whether it is there.
            let place = config.plugins_dir().join(record.id().as_str()).join("1.0.0");
            std::fs::create_dir_all(&place).expect("a folder");
            record.state.install_path = place.display().to_string();
            records.save(record).expect("a record");
        }

        let key = KeySource::File(home.path().join("vault.key"));
        let vault = Vault::open(db.clone(), key, &limits).await.expect("a vault");

        tokio::time::pause();
        let fakes = Fakes::new();
        let bus = EventBusHandle::new(limits.event_bytes);
        let surroundings = Surroundings {
            timing: timing.clone(),
            limits,
            plugins_dir: config.plugins_dir(),
            user_home: String::new(),
            launcher: Arc::new(fakes.clone()),
            host_services: Arc::new(fakes.clone()),
            log_files: LogFiles::start(config.logs_dir(), &config.limits).expect("a thread"),
        };
        let registry = RegistryHandle::start(Parts {
            packages: PackageStore::new(config.plugins_dir()),
            trust: TrustStore::new(config.trust_dir(), &config.limits),
            config: Arc::new(config),
            surroundings: Arc::new(surroundings),
            records: records.clone(),
            vault,
            db,
            bus: bus.clone(),
            found,
            unreadable: Vec::new(),
            earlier_lines: BTreeMap::new(),
        });
        Self { registry, bus, fakes, timing, records, began: Instant::now(), home }
    }

    /// `<home>/plugins`.
    pub fn plugins(&self) -> PathBuf {
        self.home.path().join("plugins")
    }

    /// Waits until so many seconds have passed since the world began, and everything due before is done.
    pub async fn at(&self, seconds: f64) {
        sleep_until(self.began + Duration::from_secs_f64(seconds)).await;
    }

    /// Waits until nothing is left to do at this moment.
    pub async fn settled(&self) {
        sleep(Duration::from_millis(1)).await;
    }

    /// Seconds since the world began.
    pub fn now(&self) -> f64 {
        (self.began.elapsed().as_secs_f64() * 10.0).round() / 10.0
    }

    /// Publishes an event without payload.
    pub async fn publish(&self, subject: &str) {
        self.bus.relay(Relayed {
            id: uuid::Uuid::now_v7(),
            subject: subject.to_owned(),
            workspace_id: String::new(),
            payload: None,
            at: datetime!(2026-11-29 12:00 UTC),
            about: None,
        });
        // The plugins' actors go on between two events, as they do beside a publisher with other work.
        for _ in 0..TURNS {
            tokio::task::yield_now().await;
        }
    }

    /// Publishes `task.<n>` for each number.
    pub async fn publish_all(&self, numbers: impl IntoIterator<Item = usize>) {
        for number in numbers {
            self.publish(&format!("task.{number}")).await;
        }
    }

    /// The plugin's record on disk once everything that is due was written: status, restarting, restarts, last error.
    pub async fn on_disk(&self, id: &str) -> (Status, bool, u64, Option<String>) {
        self.settled().await;
        let id = PluginId::new(id).expect("a lawful id");
        let state = self.records.load(&id).expect("a readable record").expect("a record").state;
        assert_eq!(state.last_error.is_some(), state.last_error_at.is_some());
        (state.status, state.restarting, state.restart_count, state.last_error)
    }

    /// The status as REST shows it.
    pub async fn status(&self, id: &str) -> Status {
        self.registry.get(id).await.expect("an installed plugin").record.state.status
    }

    /// The host's own notes among the plugin's log lines.
    pub async fn notes(&self, id: &str) -> Vec<String> {
        let lines = self.registry.log(id).await.expect("an installed plugin").newest(usize::MAX, |_| true);
        lines.into_iter().filter(|line| line.stream == Stream::Host).map(|line| line.message).collect()
    }

    /// Runs a command beside the test.
    pub fn command<T: Send + 'static>(
        &self,
        command: impl AsyncFnOnce(RegistryHandle) -> Result<T, RegistryError> + 'static,
    ) -> tokio::task::JoinHandle<(f64, Result<T, RegistryError>)> {
        let (registry, began) = (self.registry.clone(), self.began);
        tokio::task::spawn_local(async move {
            let result = command(registry).await;
            ((began.elapsed().as_secs_f64() * 10.0).round() / 10.0, result)
        })
    }

    /// Stops the clock from advancing by itself until the guard is dropped.
    pub fn hold_clock(&self) -> impl Drop + use<> {
        let (guard, released) = std::sync::mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || released.recv());
        Held(Some(guard))
    }
}

struct Held(Option<std::sync::mpsc::Sender<()>>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.take();
    }
}

fn config(home: PathBuf, database_url: SecretString) -> Config {
    Config {
        listen: ([127, 0, 0, 1], 0).into(),
        home,
        database_url,
        admin_token: None,
        vault_key: None,
        log: String::new(),
        compat_version: "0.91.0".to_owned(),
        timing: Timing::default(),
        limits: Limits::default(),
        http: Http::default(),
        install: Install::default(),
        plugins: Plugins::default(),
        features: Features::default(),
        metrics: Metrics::default(),
        telemetry: Telemetry::default(),
    }
}
