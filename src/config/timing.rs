//! Every wait on another party.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::duration;

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
    /// How long webhooks and the event in flight may finish before a plugin is asked to stop; at the host's own stop,
    /// actions and tool calls too. Default 3 s.
    #[serde(with = "duration::one")]
    pub drain_grace: Duration,
    /// How long actions, tool calls, references and git credentials in flight may finish before a plugin is asked to
    /// stop. Default 15 s.
    #[serde(with = "duration::one")]
    pub lease_grace: Duration,
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
    /// One action of a plugin. Later: 504. Default 15 s.
    #[serde(with = "duration::one")]
    pub action_timeout: Duration,
    /// One call of an agent's tool. Later: 504. Default 30 s.
    #[serde(with = "duration::one")]
    pub tool_timeout: Duration,
    /// One search for references in a source. Later: 504. Default 5 s.
    #[serde(with = "duration::one")]
    pub reference_search_timeout: Duration,
    /// One question to a plugin whether a reference may be used. Later: it may not. Default 1.5 s.
    #[serde(with = "duration::one")]
    pub reference_authorize_timeout: Duration,
    /// One git credential, with the questions before and after it. Later: 504. Default 10 s.
    #[serde(with = "duration::one")]
    pub git_credential_timeout: Duration,
    /// How long the token of a git credential helper is good, unless its maker says less; also the longest. Default 24
    /// h.
    #[serde(with = "duration::one")]
    pub git_token_age: Duration,
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
    /// One piece of database work: waiting for a connection, and repeating it on another when one is lost. Default 10
    /// s.
    #[serde(with = "duration::one")]
    pub database_timeout: Duration,
    /// Between two attempts of database work whose connection was lost. Default 100 ms.
    #[serde(with = "duration::one")]
    pub database_retry: Duration,
    /// Between two attempts to write to the inbox while the database is down. Default 1 s.
    #[serde(with = "duration::one")]
    pub inbox_retry: Duration,
    /// How long an event that a plugin emits or the operator publishes may take into the event log, its turn included;
    /// later: `UNAVAILABLE`, 503. Longer than `database_timeout`, so that the database's own answer comes first.
    /// Default 15 s.
    #[serde(with = "duration::one")]
    pub event_timeout: Duration,
    /// Between two looks at the event log that nobody asked for. Default 1 s.
    #[serde(with = "duration::one")]
    pub event_poll: Duration,
    /// How old an event of the log may get; then it is deleted. Default 72 h.
    #[serde(with = "duration::one")]
    pub event_log_age: Duration,
    /// Between two rounds of deleting old events and idempotency keys. A deletion that was cut off is gone on with when
    /// nothing was deleted in it for so long. Default 1 min.
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
    /// Fetching the index of a marketplace source, and the longest wait of a request for indexes; later: what is known,
    /// and the source is not `healthy`. Default 20 s.
    #[serde(with = "duration::one")]
    pub marketplace_timeout: Duration,
    /// How long an index is known before it is fetched again. Default 5 min.
    #[serde(with = "duration::one")]
    pub marketplace_cache: Duration,
    /// How long after a fetch that failed the next one comes at the earliest. Default 30 s.
    #[serde(with = "duration::one")]
    pub marketplace_retry: Duration,
    /// Between two looks for newer versions of installed plugins. Default 90 min.
    #[serde(with = "duration::one")]
    pub update_interval: Duration,
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
    /// Rest of the thread that writes the log after it wrote what there was: as much of the log is lost when the host
    /// is killed. Default 5 ms.
    #[serde(with = "duration::one")]
    pub log_rest: Duration,
    /// Between two pings of a connection of `/ws`. Default 54 s.
    #[serde(with = "duration::one")]
    pub ws_ping: Duration,
    /// Silence after which such a connection is ended; longer than `ws_ping`, or every quiet one is. Default 60 s.
    #[serde(with = "duration::one")]
    pub ws_pong_wait: Duration,
    /// How long a frame may wait for the client to read; then the connection is ended. Default 10 s.
    #[serde(with = "duration::one")]
    pub ws_write: Duration,
    /// How long a session of `/mcp` is kept that nobody uses: no message, no call under way, no open stream.
    /// Default 30 min.
    #[serde(with = "duration::one")]
    pub mcp_idle: Duration,
    /// Between two comments on a stream of `/mcp` that has nothing to say. Default 15 s.
    #[serde(with = "duration::one")]
    pub mcp_keep_alive: Duration,
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
            lease_grace: secs(15),
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
            action_timeout: secs(15),
            tool_timeout: secs(30),
            reference_search_timeout: secs(5),
            reference_authorize_timeout: Duration::from_millis(1500),
            git_credential_timeout: secs(10),
            git_token_age: secs(24 * 3600),
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
            marketplace_timeout: secs(20),
            marketplace_cache: secs(300),
            marketplace_retry: secs(30),
            update_interval: secs(90 * 60),
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
            ws_ping: secs(54),
            ws_pong_wait: secs(60),
            ws_write: secs(10),
            mcp_idle: secs(1800),
            mcp_keep_alive: secs(15),
            timer_pace: secs(1),
        }
    }
}

impl Timing {
    /// The longest a stop of one plugin can take: drain, Shutdown, TERM, KILL and the pipes.
    pub fn longest_stop(&self) -> Duration {
        self.drain_grace.max(self.lease_grace) + self.stop_grace + self.term_grace + self.pipe_grace
    }

    /// How long a token of git is good whose maker asks for so many seconds; none when that is too short or too long.
    pub fn git_token_life(&self, seconds: Option<u64>) -> Option<Duration> {
        let wanted = seconds.map_or(self.git_token_age, Duration::from_secs);
        (wanted > Duration::ZERO && wanted <= self.git_token_age).then_some(wanted)
    }

    /// How long an operator command may wait for its plugin: one stop, one start, one look-up.
    pub fn command_timeout(&self) -> Duration {
        self.longest_stop() + self.start_timeout + self.dial_timeout + self.ping_timeout + self.ask_timeout
    }
}
