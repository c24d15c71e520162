//! The example below goplugin's host half, with a state store in memory as its host.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use goplugin::host::{Forker, LaunchSpec, LogLine, LogSink, Plugin, StopLadder, Timing, launch};
use kandev_proto::v1::{self, host_server, plugin_client::PluginClient};
use serde_json::{Value, json};
use tonic::{Request, Response, Status, service::Routes, transport::Channel};

const LIMIT: Duration = Duration::from_secs(20);

/// The host's side of the state RPCs; a key is taken with its scope.
#[derive(Clone, Default)]
struct MemoryHost {
    values: Arc<Mutex<BTreeMap<(String, String), prost_types::Struct>>>,
}

#[tonic::async_trait]
impl host_server::Host for MemoryHost {
    async fn get_state(&self, request: Request<v1::GetStateRequest>) -> Result<Response<v1::GetStateResponse>, Status> {
        let v1::GetStateRequest { scope, key, .. } = request.into_inner();
        let value = self.values.lock().unwrap().get(&(scope, key)).cloned();
        Ok(Response::new(v1::GetStateResponse { found: value.is_some(), value }))
    }

    async fn set_state(&self, request: Request<v1::SetStateRequest>) -> Result<Response<v1::SetStateResponse>, Status> {
        let v1::SetStateRequest { scope, key, value, .. } = request.into_inner();
        self.values.lock().unwrap().insert((scope, key), value.unwrap_or_default());
        Ok(Response::new(v1::SetStateResponse {}))
    }

    async fn list_state(
        &self,
        request: Request<v1::ListStateRequest>,
    ) -> Result<Response<v1::ListStateResponse>, Status> {
        let wanted = request.into_inner().scope;
        let values = self.values.lock().unwrap();
        let of_scope = values.iter().filter(|((scope, _), _)| *scope == wanted);
        let entries = of_scope.map(|((_, key), value)| v1::StateEntry {
            key: key.clone(),
            value: Some(value.clone()),
            updated_at: "2026-01-01T00:00:00Z".into(),
        });
        Ok(Response::new(v1::ListStateResponse { entries: entries.collect() }))
    }
}

async fn start(host: &MemoryHost, folder: &tempfile::TempDir, log: LogSink) -> Plugin {
    let spec = LaunchSpec {
        executable: env!("CARGO_BIN_EXE_event-logger-plugin").into(),
        working_dir: folder.path().into(),
        env: Vec::new(),
        cookie: ("KANDEV_PLUGIN".into(), "kandev-plugin-v1".into()),
        protocol_version: 1,
        socket_root: folder.path().into(),
        program: None,
        max_message_bytes: 1 << 20,
    };
    let timing = Timing {
        start_timeout: LIMIT,
        dial_timeout: LIMIT,
        ping_timeout: LIMIT,
        accept_timeout: LIMIT,
        pipe_grace: LIMIT,
    };
    let service = Routes::new(host_server::HostServer::new(host.clone()));
    launch(&Forker::start().unwrap(), spec, timing, service, log).await.unwrap()
}

async fn deliver(plugin: &mut PluginClient<Channel>, id: &str, kind: &str) {
    let event = v1::Event { event_id: id.into(), event_type: kind.into(), ..Default::default() };
    plugin.deliver_event(event).await.unwrap();
}

async fn stats(plugin: &mut PluginClient<Channel>) -> Value {
    let request = v1::WebhookRequest { webhook_key: "stats".into(), ..Default::default() };
    let response = plugin.handle_webhook(request).await.unwrap().into_inner();
    assert_eq!((response.status, response.headers["Content-Type"].as_str()), (200, "application/json"));
    serde_json::from_slice(&response.body).unwrap()
}

#[tokio::test]
async fn counts_outlive_a_restart_and_a_repeated_event_is_counted_once() {
    let (host, folder) = (MemoryHost::default(), tempfile::tempdir().unwrap());
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = lines.clone();
    let log: LogSink = Arc::new(move |line: LogLine| kept.lock().unwrap().push(line));
    let ladder = StopLadder { stop_grace: LIMIT, term_grace: LIMIT };

    let plugin = start(&host, &folder, log.clone()).await;
    let mut client = PluginClient::new(plugin.channel());
    assert_eq!(stats(&mut client).await, json!({"total": 0, "events": {}}));
    deliver(&mut client, "1", "demo.hello").await;
    deliver(&mut client, "2", "task.created").await;
    deliver(&mut client, "3", "demo.hello").await;
    deliver(&mut client, "3", "demo.hello").await;
    assert_eq!(stats(&mut client).await, json!({"total": 3, "events": {"demo.hello": 2, "task.created": 1}}));
    plugin.stop(ladder).await;

    let plugin = start(&host, &folder, log).await;
    let mut client = PluginClient::new(plugin.channel());
    deliver(&mut client, "4", "task.created").await;
    assert_eq!(stats(&mut client).await, json!({"total": 4, "events": {"demo.hello": 2, "task.created": 2}}));
    plugin.stop(ladder).await;

    let messages: Vec<String> = lines.lock().unwrap().iter().map(|line| line.message.clone()).collect();
    let expected = [
        "event event_type=demo.hello event_id=1 count=1",
        "event event_type=task.created event_id=2 count=1",
        "event event_type=demo.hello event_id=3 count=2",
        "event event_type=demo.hello event_id=3 count=2",
        "event event_type=task.created event_id=4 count=2",
    ];
    assert_eq!(messages, expected);
}

#[tokio::test]
async fn a_webhook_that_is_not_declared_answers_404() {
    let (host, folder) = (MemoryHost::default(), tempfile::tempdir().unwrap());
    let plugin = start(&host, &folder, Arc::new(|_| {})).await;
    let request = v1::WebhookRequest { webhook_key: "other".into(), ..Default::default() };
    let response = PluginClient::new(plugin.channel()).handle_webhook(request).await.unwrap().into_inner();
    assert_eq!(response, v1::WebhookResponse { status: 404, ..Default::default() });
    plugin.stop(StopLadder { stop_grace: LIMIT, term_grace: LIMIT }).await;
}
