//! Every bound.

use serde::{Deserialize, Serialize};

use crate::domain::package;

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
    /// Actions of one plugin at once; one more is answered 429. Default 32.
    pub action_concurrency: usize,
    /// Tool calls of one plugin at once; one more is answered 429. Default 32.
    pub tool_concurrency: usize,
    /// Searches for references, and questions whether some may be used, of one plugin at once; one more is answered
    /// 429. Default 32.
    pub reference_concurrency: usize,
    /// Git credentials asked of one plugin at once; one more is answered 429. Default 16.
    pub credential_concurrency: usize,
    /// Webhook bodies of all plugins held in memory together; one that finds no room is answered 503. Default 256 MiB.
    pub webhook_room_bytes: u64,
    /// One gRPC message in either direction. Default 17 MiB.
    pub message_bytes: u64,
    /// A package as uploaded or downloaded. Default 100 MiB.
    pub package_compressed: u64,
    /// Redirects followed for one package download. Default 5.
    pub download_redirects: usize,
    /// The index of a marketplace source. Default 5 MiB.
    pub marketplace_index_bytes: u64,
    /// Marketplace sources that the operator may add; one more is refused. Default 20.
    pub marketplace_sources: usize,
    /// Indexes fetched at once; more wait. Default 4.
    pub marketplace_fetches: usize,
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
    /// Files of plugins' user interfaces kept in memory, of all together; the one longest not asked for goes. One
    /// larger than an eighth of it is read from disk each time. Default 64 MiB.
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
    /// Connections of `/ws` at once; one more is answered 429. Default 4096.
    pub ws_connections: usize,
    /// Events that wait to be handed out to them; of more they are told the number only. Default 1000.
    pub ws_hub_queue: usize,
    /// Frames that wait for one of them to read; beyond it the connection is ended. Default 256.
    pub ws_queue: usize,
    /// One frame of `/ws` in either direction. Default 32 MiB.
    pub ws_frame_bytes: u64,
    /// Sessions and subscriptions of `/mcp` together; one more is answered 429. Default 256.
    pub mcp_sessions: usize,
    /// One message of a client of `/mcp`. Default 1088 KiB: the largest arguments of a tool, and what goes with them.
    pub mcp_message_bytes: u64,
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
            action_concurrency: 32,
            tool_concurrency: 32,
            reference_concurrency: 32,
            credential_concurrency: 16,
            webhook_room_bytes: 256 * MIB,
            message_bytes: 17 * MIB,
            package_compressed: 100 * MIB,
            download_redirects: 5,
            marketplace_index_bytes: 5 * MIB,
            marketplace_sources: 20,
            marketplace_fetches: 4,
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
            ws_connections: 4096,
            ws_hub_queue: 1000,
            ws_queue: 256,
            ws_frame_bytes: 32 * MIB,
            mcp_sessions: 256,
            mcp_message_bytes: MIB + 64 * KIB,
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
