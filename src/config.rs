//! Every duration, bound and setting of the host, in one validated place (architecture.md §8).
//!
//! Owns the shapes, their defaults and their rules. Reading the file, the environment and the flags is
//! [`load()`]'s part; nobody else names a duration or a bound.

mod client;
mod duration;
mod environment;
mod file;
mod load;
mod observing;
mod plugins;
mod rules;
mod show;
#[cfg(test)]
mod tests;
mod variables;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

pub use client::{ClientFlags, ClientSettings, ClientTiming, load_client};
pub use duration::parse as parse_duration;
pub use environment::Lookup;
pub use load::{ConfigError, DEFAULT_COMPAT_VERSION, Loaded, Overrides, Source, load, load_explained};
pub use observing::{Metrics, Telemetry};
pub use plugins::{Features, Install, Plugins, SignaturePolicy};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::domain::package;
pub use show::{Row, rows};
pub use variables::{Holds, VARIABLES, Variable};

/// The whole configuration of one host process.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the REST interface listens; port 0 takes a free one. Default `127.0.0.1:38429`.
    pub listen: SocketAddr,
    /// Root of everything the host keeps on disk. Default `~/.kandev`.
    pub home: PathBuf,
    /// Database address; default a SQLite file below `home`. May hold a password, hence a secret.
    pub database_url: SecretString,
    /// The operator's token, when it was given; otherwise `<home>/admin-token` is made or read.
    pub admin_token: Option<SecretString>,
    /// Keys of the vault with the variable that gave them; otherwise `<home>/vault.key` is made or read.
    pub vault_key: Option<(SecretString, &'static str)>,
    /// Log filter in `tracing` syntax. Default `info`.
    pub log: String,
    /// What `min_kandev_version` of a manifest is compared with. Default `0.91.0`.
    pub compat_version: String,
    /// Every wait on another party.
    pub timing: Timing,
    /// Every bound.
    pub limits: Limits,
    /// Where packages may come from.
    pub install: Install,
    /// What plugin processes get.
    pub plugins: Plugins,
    /// What the browser application offers.
    pub features: Features,
    /// Who may read the metrics.
    pub metrics: Metrics,
    /// Where traces go.
    pub telemetry: Telemetry,
}

/// Every wait on another party. In `host.toml` a duration is text with a unit: `"250ms"`, `"30s"`, `"5m"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timing {
    /// Between two health pings of an active plugin. Default 30 s.
    #[serde(with = "duration::one")]
    pub ping_interval: Duration,
    /// How long one ping may take; later counts as failed. Default 5 s.
    #[serde(with = "duration::one")]
    pub ping_timeout: Duration,
    /// Failed pings in a row after which the process is killed and treated as crashed. Default 3, at least 1.
    pub ping_failures: u32,
    /// From spawn to the plugin's handshake line; later the start has failed and the process is killed. Connecting and
    /// the first ping have `dial_timeout` and `ping_timeout`. Default 30 s.
    #[serde(with = "duration::one")]
    pub start_timeout: Duration,
    /// For connecting to a plugin's socket, TLS included. Default 5 s.
    #[serde(with = "duration::one")]
    pub dial_timeout: Duration,
    /// For a plugin's TLS handshake on its broker socket; later the connection is dropped. Default 10 s.
    #[serde(with = "duration::one")]
    pub accept_timeout: Duration,
    /// How long calls in flight may finish before a plugin is asked to stop. Default 3 s.
    #[serde(with = "duration::one")]
    pub drain_grace: Duration,
    /// From the Shutdown call to TERM. Default 2 s.
    #[serde(with = "duration::one")]
    pub stop_grace: Duration,
    /// From TERM to KILL. Default 1 s.
    #[serde(with = "duration::one")]
    pub term_grace: Duration,
    /// How long output pipes are still read after the process ended (a grandchild may hold them). Default 1 s.
    #[serde(with = "duration::one")]
    pub pipe_grace: Duration,
    /// The waits before the automatic restarts of one row; their number is the number of attempts.
    /// Default 1, 2, 4, 8, 16 s.
    #[serde(with = "duration::many")]
    pub restart_delays: Vec<Duration>,
    /// How long a plugin must be healthy before a row of restarts counts as ended. Default 60 s.
    #[serde(with = "duration::one")]
    pub restart_stability: Duration,
    /// One delivery attempt of an event. Default 10 s.
    #[serde(with = "duration::one")]
    pub delivery_timeout: Duration,
    /// The waits before the repeated attempts of one event; after the last it is failed. Default 5, 15, 45 s.
    #[serde(with = "duration::many")]
    pub delivery_retries: Vec<Duration>,
    /// How long an event may wait in the ring buffer, counted from its publishing. Default 5 min.
    #[serde(with = "duration::one")]
    pub buffer_ttl: Duration,
    /// At most one aggregated warning a plugin about dropped events in this time. Default 60 s.
    #[serde(with = "duration::one")]
    pub warning_interval: Duration,
    /// One public webhook call. Later: 504. Default 30 s.
    #[serde(with = "duration::one")]
    pub webhook_timeout: Duration,
    /// One webhook call with `access: authenticated`. Later: 504. Default 150 s.
    #[serde(with = "duration::one")]
    pub webhook_timeout_authenticated: Duration,
    /// An answer from an actor that only looks something up. Default 5 s.
    #[serde(with = "duration::one")]
    pub ask_timeout: Duration,
    /// How long a save of a plugin's settings waits for earlier saves of the same plugin; later: 409. Default 60 s.
    #[serde(with = "duration::one")]
    pub config_wait: Duration,
    /// How long a sync waits for the one that runs; later: 409. Default 60 s.
    #[serde(with = "duration::one")]
    pub sync_wait: Duration,
    /// One call of a plugin to the host: its turn among `limits.host_calls`, receiving it and working on it. Later:
    /// `DEADLINE_EXCEEDED`. Default 30 s.
    #[serde(with = "duration::one")]
    pub host_call_timeout: Duration,
    /// One piece of database work: waiting for a connection, and repeating it on another when one is lost. Default 10 s.
    #[serde(with = "duration::one")]
    pub database_timeout: Duration,
    /// Between two attempts of database work whose connection was lost. Default 100 ms.
    #[serde(with = "duration::one")]
    pub database_retry: Duration,
    /// Between two attempts to write to the inbox while the database is down. Default 1 s.
    #[serde(with = "duration::one")]
    pub inbox_retry: Duration,
    /// How long an event that a plugin emits or the operator publishes may take into the event log, its turn included; later:
    /// `UNAVAILABLE`, 503. Longer than `database_timeout`, so that the database's own answer comes first. Default 15 s.
    #[serde(with = "duration::one")]
    pub event_timeout: Duration,
    /// Between two looks at the event log that nobody asked for. Default 1 s.
    #[serde(with = "duration::one")]
    pub event_poll: Duration,
    /// How old an event of the log may get; then it is deleted. Default 72 h.
    #[serde(with = "duration::one")]
    pub event_log_age: Duration,
    /// Between two rounds of deleting old events and idempotency keys. Default 1 min.
    #[serde(with = "duration::one")]
    pub housekeeping_interval: Duration,
    /// How long an idempotency key is known. Default 24 h.
    #[serde(with = "duration::one")]
    pub idempotency_age: Duration,
    /// A whole package download. Default 60 s.
    #[serde(with = "duration::one")]
    pub download_timeout: Duration,
    /// Connecting to a download's server. Default 10 s.
    #[serde(with = "duration::one")]
    pub connect_timeout: Duration,
    /// Silence of a client that is sending a request body; later: 408. Default 30 s.
    #[serde(with = "duration::one")]
    pub body_idle_timeout: Duration,
    /// A whole request body, however steadily it comes; later: 408. Default 10 min.
    #[serde(with = "duration::one")]
    pub body_timeout: Duration,
    /// A client's request line and headers; later: 408. Default 10 s.
    #[serde(with = "duration::one")]
    pub header_timeout: Duration,
    /// How long an idle client connection is kept. Default 75 s.
    #[serde(with = "duration::one")]
    pub keep_alive: Duration,
    /// How long what a client still sends after its request was refused is read and thrown away, so that it sees the
    /// answer instead of a reset connection. Default 5 s.
    #[serde(with = "duration::one")]
    pub linger: Duration,
    /// The whole stop of the host; later it ends with what is left, and says so. Default 20 s.
    #[serde(with = "duration::one")]
    pub shutdown_timeout: Duration,
    /// Between two comments on a stream of log lines that has nothing to say. Default 15 s.
    #[serde(with = "duration::one")]
    pub log_keep_alive: Duration,
    /// How old the memory and CPU figures of processes may be before they are read again. Default 1 s.
    #[serde(with = "duration::one")]
    pub usage_age: Duration,
    /// Sending one batch of spans to the collector; later it is lost. Default 5 s.
    #[serde(with = "duration::one")]
    pub telemetry_timeout: Duration,
    /// Between two batches of spans. Default 5 s.
    #[serde(with = "duration::one")]
    pub telemetry_interval: Duration,
    /// Rest of the thread that writes the log after it wrote what there was: as much of the log is lost when the host is
    /// killed. Default 5 ms.
    #[serde(with = "duration::one")]
    pub log_rest: Duration,
    /// How far away the next timer of a runtime is at most. Default 1 s.
    #[serde(with = "duration::one")]
    pub timer_pace: Duration,
    /// How long the end of the program waits until the last lines of the log are written. Default 1 s.
    #[serde(with = "duration::one")]
    pub log_close: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        let secs = Duration::from_secs;
        Self {
            ping_interval: secs(30),
            ping_timeout: secs(5),
            ping_failures: 3,
            start_timeout: secs(30),
            dial_timeout: secs(5),
            accept_timeout: secs(10),
            drain_grace: secs(3),
            stop_grace: secs(2),
            term_grace: secs(1),
            pipe_grace: secs(1),
            restart_delays: [1, 2, 4, 8, 16].map(secs).to_vec(),
            restart_stability: secs(60),
            delivery_timeout: secs(10),
            delivery_retries: [5, 15, 45].map(secs).to_vec(),
            buffer_ttl: secs(300),
            warning_interval: secs(60),
            webhook_timeout: secs(30),
            webhook_timeout_authenticated: secs(150),
            ask_timeout: secs(5),
            config_wait: secs(60),
            sync_wait: secs(60),
            host_call_timeout: secs(30),
            database_timeout: secs(10),
            database_retry: Duration::from_millis(100),
            inbox_retry: secs(1),
            event_timeout: secs(15),
            event_poll: secs(1),
            event_log_age: secs(72 * 3600),
            housekeeping_interval: secs(60),
            idempotency_age: secs(24 * 3600),
            download_timeout: secs(60),
            connect_timeout: secs(10),
            body_idle_timeout: secs(30),
            body_timeout: secs(600),
            header_timeout: secs(10),
            keep_alive: secs(75),
            linger: secs(5),
            shutdown_timeout: secs(20),
            log_keep_alive: secs(15),
            usage_age: secs(1),
            telemetry_timeout: secs(5),
            telemetry_interval: secs(5),
            log_rest: Duration::from_millis(5),
            log_close: secs(1),
            timer_pace: secs(1),
        }
    }
}

impl Timing {
    /// The longest a stop of one plugin can take: drain, Shutdown, TERM, KILL and the pipes.
    pub fn longest_stop(&self) -> Duration {
        self.drain_grace + self.stop_grace + self.term_grace + self.pipe_grace
    }

    /// How long an operator command may wait for its plugin: one stop, one start, one look-up.
    pub fn command_timeout(&self) -> Duration {
        self.longest_stop() + self.start_timeout + self.dial_timeout + self.ping_timeout + self.ask_timeout
    }
}

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// Every bound. Sizes are bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Events kept for a plugin that is not healthy; the oldest goes first. Default 100.
    pub buffer_events: usize,
    /// Events that wait for a healthy but slow plugin; the oldest goes first. Default 1000.
    pub queue_events: usize,
    /// Payload of one published event. Default 1 MiB.
    pub event_bytes: u64,
    /// Events of the log together; the oldest are deleted. Default 256 MiB.
    pub event_log_bytes: u64,
    /// Idempotency keys and their answers together; the oldest are forgotten. Default 256 MiB.
    pub idempotency_bytes: u64,
    /// Events of plugins and of the operator that wait to be written to the log; one more waits for room, for
    /// `timing.event_timeout` at most. Default 1000.
    pub event_queue: usize,
    /// Their payloads together. Default 32 MiB.
    pub event_queue_bytes: u64,
    /// Lifecycle events that wait to be written to the log; the oldest goes first. Default 1000.
    pub lifecycle_queue: usize,
    /// Webhook calls of one plugin at once; one more is answered 429. Default 64.
    pub webhook_concurrency: usize,
    /// Webhook bodies of all plugins held in memory together; one that finds no room is answered 503. Default 256 MiB.
    pub webhook_room_bytes: u64,
    /// One gRPC message in either direction. Default 17 MiB.
    pub message_bytes: u64,
    /// A package as uploaded or downloaded. Default 100 MiB.
    pub package_compressed: u64,
    /// Redirects followed for one package download. Default 5.
    pub download_redirects: usize,
    /// A package's files together, unpacked. Default 512 MiB.
    pub package_expanded: u64,
    /// Entries of a package. Default 10 000.
    pub package_files: u64,
    /// `manifest.yaml`. Default 2 MiB.
    pub manifest_bytes: u64,
    /// `checksums.txt`. Default 2 MiB.
    pub checksums_bytes: u64,
    /// `checksums.txt.sig`. Default 4 KiB.
    pub signature_bytes: u64,
    /// Trusted keys; further files are skipped, further keys refused. Default 100.
    pub trusted_keys: usize,
    /// The file of a trusted key; a larger one is skipped. Default 16 KiB.
    pub trusted_key_bytes: u64,
    /// Installs worked on at once; one more is answered 429. Default 4.
    pub installs: usize,
    /// Syncs that run or wait for their turn; one more is answered 429. Default 4.
    pub syncs: usize,
    /// Folders of unregistered plugins, versions in one of them, and dropped packages that one sync looks at, each; the
    /// rest waits for the next one. Default 1000.
    pub sync_items: usize,
    /// Items of the inbox whose incident is over; the oldest goes first. Default 1000.
    pub inbox_resolved: usize,
    /// Changes that wait to be written to the inbox; beyond it the inbox is brought up to date from the plugins'
    /// statuses. Default 1000.
    pub inbox_queue: usize,
    /// Key, scope and scope id of a state entry, each. Default 512.
    pub state_key_bytes: u64,
    /// Value of a state entry as JSON. Default 4 MiB.
    pub state_value_bytes: u64,
    /// All state of one plugin: keys, scopes and values. Default 64 MiB.
    pub state_plugin_bytes: u64,
    /// Body of a request that stores something for a user of a plugin. Default 256 KiB.
    pub user_state_body_bytes: u64,
    /// All that one plugin stores for one user: keys, scopes and values. Default 8 MiB.
    pub user_state_bytes: u64,
    /// Files of plugins' user interfaces kept in memory, of all together; the one longest not asked for goes. One larger
    /// than an eighth of it is read from disk each time. Default 64 MiB.
    pub ui_cache_bytes: u64,
    /// Value of one secret. Default 64 KiB.
    pub secret_value_bytes: u64,
    /// Secrets that one plugin may store by SetSecret. Default 1000.
    pub plugin_secrets: usize,
    /// Secrets that the operator may keep for sharing. Default 1000.
    pub shared_secrets: usize,
    /// Connections that read from SQLite (one more writes), or all connections to PostgreSQL. Default 8.
    pub database_connections: u32,
    /// Host calls of one plugin worked on at once; more wait in its connection. Default 64.
    pub host_calls: usize,
    /// Log lines of a plugin that are answered unless the request says how many. Default 200.
    pub log_lines: usize,
    /// Log lines kept in memory for each plugin, never fewer than `log_lines`; the oldest goes first. Default 1000.
    pub log_buffer_lines: usize,
    /// Their texts together; the oldest goes first. Default 4 MiB.
    pub log_buffer_bytes: u64,
    /// One log file on disk; then the next one is begun. Default 1 MiB.
    pub log_file_bytes: u64,
    /// Log files of each plugin; the oldest is deleted. Default 4.
    pub log_files: usize,
    /// Log lines of all plugins that wait to be written to disk; the oldest goes first. Default 2000.
    pub log_queue: usize,
    /// Clients that follow log lines at once; one more is answered 429. Default 64.
    pub log_followers: usize,
    /// Spans that wait to be sent to the collector; a new one is dropped. Default 2048.
    pub telemetry_spans: usize,
    /// Plugins started side by side when the host starts. Default 4.
    pub boot_parallelism: usize,
    /// Saves of one plugin's settings that are under way or wait; one more: 429. Default 100.
    pub config_saves: usize,
    /// JSON body of a request that is about neither a package, an event nor the platform. Default 64 KiB.
    pub request_bytes: u64,
    /// JSON body of a request about the platform. Default 4 MiB: the longest message with every character escaped.
    pub platform_bytes: u64,
    /// Threads that serve REST requests. Default 2: they parse and wait, the work is done elsewhere.
    pub http_workers: usize,
    /// Client connections of one worker; more wait to be accepted. Default 4096.
    pub http_connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            buffer_events: 100,
            queue_events: 1000,
            event_bytes: MIB,
            event_log_bytes: 256 * MIB,
            idempotency_bytes: 256 * MIB,
            event_queue: 1000,
            event_queue_bytes: 32 * MIB,
            lifecycle_queue: 1000,
            webhook_concurrency: 64,
            webhook_room_bytes: 256 * MIB,
            message_bytes: 17 * MIB,
            package_compressed: 100 * MIB,
            download_redirects: 5,
            package_expanded: 512 * MIB,
            package_files: 10_000,
            manifest_bytes: 2 * MIB,
            checksums_bytes: 2 * MIB,
            signature_bytes: 4 * KIB,
            trusted_keys: 100,
            trusted_key_bytes: 16 * KIB,
            installs: 4,
            syncs: 4,
            sync_items: 1000,
            inbox_resolved: 1000,
            inbox_queue: 1000,
            state_key_bytes: 512,
            state_value_bytes: 4 * MIB,
            state_plugin_bytes: 64 * MIB,
            user_state_body_bytes: 256 * KIB,
            user_state_bytes: 8 * MIB,
            ui_cache_bytes: 64 * MIB,
            secret_value_bytes: 64 * KIB,
            plugin_secrets: 1000,
            shared_secrets: 1000,
            database_connections: 8,
            host_calls: 64,
            log_lines: 200,
            log_buffer_lines: 1000,
            log_buffer_bytes: 4 * MIB,
            log_file_bytes: MIB,
            log_files: 4,
            log_queue: 2000,
            log_followers: 64,
            telemetry_spans: 2048,
            boot_parallelism: 4,
            config_saves: 100,
            request_bytes: 64 * KIB,
            platform_bytes: 4 * MIB,
            http_workers: 2,
            http_connections: 4096,
        }
    }
}

impl Limits {
    /// The bounds of a package.
    pub fn package(&self) -> package::Limits {
        package::Limits {
            compressed: self.package_compressed,
            expanded: self.package_expanded,
            files: usize::try_from(self.package_files).unwrap_or(usize::MAX),
            manifest: self.manifest_bytes,
            checksums: self.checksums_bytes,
            signature: self.signature_bytes,
        }
    }
}

impl Config {
    /// Folder of the plugins' log files.
    pub fn logs_dir(&self) -> PathBuf {
        self.home.join("logs")
    }

    /// Folder of records and packages.
    pub fn plugins_dir(&self) -> PathBuf {
        self.home.join("plugins")
    }

    /// Folder of the trusted keys.
    pub fn trust_dir(&self) -> PathBuf {
        self.home.join("trust")
    }

    /// Folder of `host.json` and the lock.
    pub fn run_dir(&self) -> PathBuf {
        self.home.join("run")
    }
}
