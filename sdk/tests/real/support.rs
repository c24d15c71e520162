//! The test plugin below goplugin's host half, with a host in memory that serves every Host RPC.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use goplugin::host::{Forker, LaunchSpec, Level, LogLine, Plugin, StopLadder, Timing, launch};
use kandev_proto::v1::{host_server::HostServer, plugin_client::PluginClient};
use prost::Message;
use prost_types::FileDescriptorSet;
use tonic::{Request, Status, client::Grpc, service::Routes, transport::Channel};
use tonic_prost::ProstCodec;

use crate::memory_host::MemoryHost;

/// Generous: the machine may be busy.
pub const LIMIT: Duration = Duration::from_secs(20);

/// The names of all RPCs of a service of the contract.
pub fn rpcs(service: &str) -> Vec<String> {
    let set = FileDescriptorSet::decode(kandev_proto::FILE_DESCRIPTOR_SET).unwrap();
    let mut services = set.file.into_iter().flat_map(|file| file.service);
    let service = services.find(|found| found.name() == service).expect("a service of the contract");
    service.method.iter().map(|method| method.name().to_owned()).collect()
}

/// A running test plugin and what it logged.
pub struct Guest {
    pub client: PluginClient<Channel>,
    plugin: Plugin,
    lines: Arc<Mutex<Vec<LogLine>>>,
    _folder: tempfile::TempDir,
}

impl Guest {
    /// Starts it in this mode (tests/guest/guest.rs).
    pub async fn start(mode: &str, host: &MemoryHost) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = lines.clone();
        let log = Arc::new(move |line| kept.lock().unwrap().push(line));
        let timing = Timing {
            start_timeout: LIMIT,
            dial_timeout: LIMIT,
            ping_timeout: LIMIT,
            accept_timeout: LIMIT,
            pipe_grace: LIMIT,
        };
        let service = Routes::new(HostServer::new(host.clone()));
        let spec = spec(folder.path(), mode);
        let plugin = launch(&Forker::start().unwrap(), spec, timing, service, log).await.unwrap();
        Self { client: PluginClient::new(plugin.channel()), plugin, lines, _folder: folder }
    }

    /// Calls this RPC of the Plugin service with an empty request.
    pub async fn call(&self, rpc: &str) -> Result<(), Status> {
        let mut client = Grpc::new(self.plugin.channel());
        client.ready().await.unwrap();
        let path = format!("/kandev.plugin.v1.Plugin/{rpc}").parse().unwrap();
        client.unary(Request::new(()), path, ProstCodec::<(), ()>::default()).await.map(|_| ())
    }

    /// What it logged so far.
    pub fn lines(&self) -> Vec<(Level, String)> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(|line| (line.level, line.message.clone())).collect()
    }

    /// Waits until a line holds all of these texts; returns it.
    pub async fn line_with(&self, texts: &[&str]) -> (Level, String) {
        let deadline = tokio::time::Instant::now() + LIMIT;
        loop {
            let found = self.lines().into_iter().find(|(_, line)| texts.iter().all(|text| line.contains(text)));
            if let Some(found) = found {
                return found;
            }
            assert!(tokio::time::Instant::now() < deadline, "no line with {texts:?}: {:?}", self.lines());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Asks it to stop; returns how it ended, and every line.
    pub async fn stop(self) -> (String, Vec<(Level, String)>) {
        let report = self.plugin.stop(StopLadder { stop_grace: LIMIT, term_grace: LIMIT }).await;
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        (report.to_string(), lines.iter().map(|line| (line.level, line.message.clone())).collect())
    }
}

fn spec(folder: &Path, mode: &str) -> LaunchSpec {
    LaunchSpec {
        executable: env!("CARGO_BIN_EXE_kandev-plugin-sdk-test-guest").into(),
        working_dir: folder.into(),
        program: None,
        env: vec![("KANDEV_SDK_TEST".into(), mode.into())],
        cookie: ("KANDEV_PLUGIN".into(), "kandev-plugin-v1".into()),
        protocol_version: 1,
        socket_root: folder.into(),
        max_message_bytes: 1 << 20,
    }
}
