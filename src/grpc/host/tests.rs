//! The Host service as a plugin meets it: over gRPC, with a real database and a fake event bus.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use kandev_proto::{
    FILE_DESCRIPTOR_SET, struct_from_json,
    v1::{StateEntry, host_client::HostClient},
};
use prost::Message;
use prost_types::{FileDescriptorSet, Struct};
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::Semaphore,
};
use tonic::{
    Code,
    client::Grpc,
    codegen::http::uri::PathAndQuery,
    transport::{Channel, Uri},
};
use tonic_prost::ProstCodec;

use super::*;
use crate::{
    actors::PublishError,
    domain::capability::{Capability, CapabilitySet},
    grpc::testing::{channel, serve},
    platform::event_writer::WriteError,
    store::{
        db::{self, DbFault},
        platform::PlatformStore,
    },
    vault::KeySource,
};

mod data;
mod secrets;

/// Records the names; `panic` panics, `big`, `foreign`, `gone` and `bad` are refused, `full`, `late` and `down` not
/// written, `wait` waits for a permit.
#[derive(Default)]
struct FakeBus {
    names: std::sync::Mutex<Vec<String>>,
    waiting: AtomicUsize,
    release: Option<Semaphore>,
}

#[async_trait]
impl EventSink for FakeBus {
    async fn emit(&self, emitter: &PluginId, name: &str, _: Option<Struct>) -> Result<(), WriteError> {
        match name {
            "panic" => panic!("hunter2"),
            "bad" => return Err(PublishError::InvalidName(name.to_owned()).into()),
            "foreign" => {
                return Err(PublishError::ForeignPrefix { name: name.to_owned(), owner: "other".to_owned() }.into());
            }
            "big" => return Err(PublishError::TooLarge { size: 2, limit: 1 }.into()),
            "full" => return Err(WriteError::Full),
            "late" => return Err(WriteError::TooLate(Duration::from_secs(15))),
            "down" => return Err(DbFault::Unavailable("hunter2".to_owned()).into()),
            "wait" => {
                self.waiting.fetch_add(1, Ordering::SeqCst);
                if let Some(release) = &self.release {
                    release.acquire().await.unwrap().forget();
                }
            }
            _ => self.names.lock().unwrap().push(format!("{emitter}/{name}")),
        }
        Ok(())
    }
}

struct World {
    services: HostServices,
    db: db::Db,
    vault: Vault,
    bus: Arc<FakeBus>,
    tenancy: Tenancy,
    folder: TempDir,
}

async fn world(limits: Limits, bus: FakeBus) -> World {
    timed_world(&Timing::default(), limits, bus).await
}

async fn timed_world(timing: &Timing, limits: Limits, bus: FakeBus) -> World {
    let (folder, db) = db::tests::sqlite().await;
    world_on(folder, db, timing, limits, bus).await
}

async fn world_on(folder: TempDir, db: db::Db, timing: &Timing, limits: Limits, bus: FakeBus) -> World {
    let bus = Arc::new(bus);
    let configs = PluginConfigs::new(folder.path().to_owned(), &limits);
    let key = KeySource::File(folder.path().join("vault.key"));
    let vault = Vault::open(db.clone(), key, &limits).await.unwrap();
    let platform = Platform::new(&PlatformStore::new(db.clone()));
    let state = StateStore::new(db.clone(), &limits);
    let services = HostServices::new(state, configs, vault.clone(), platform, bus.clone(), timing, &limits);
    World { services, db, vault, bus, tenancy: Tenancy::default(), folder }
}

impl World {
    async fn channel(&self, capabilities: impl IntoIterator<Item = Capability>) -> Channel {
        channel(self.pipe(capabilities), "http://localhost").await
    }

    fn pipe(&self, capabilities: impl IntoIterator<Item = Capability>) -> tokio::io::DuplexStream {
        let granted = Granted { capabilities: CapabilitySet::from_iter(capabilities), ..Granted::default() };
        serve(self.services.routes(&PluginId::new("acme").unwrap(), &granted, &self.tenancy)).0
    }

    async fn client(&self) -> HostClient<Channel> {
        let channel = self.channel([Capability::State]).await;
        HostClient::new(channel).max_decoding_message_size(64 << 20).max_encoding_message_size(64 << 20)
    }
}

async fn default_world() -> World {
    world(Limits::default(), FakeBus::default()).await
}

async fn world_of(db: db::Db) -> World {
    world_with(db, Limits::default()).await
}

async fn world_with(db: db::Db, limits: Limits) -> World {
    world_on(TempDir::new().unwrap(), db, &Timing::default(), limits, FakeBus::default()).await
}

/// Calls any RPC with an empty request.
async fn call(channel: &Channel, rpc: &str) -> Result<(), Status> {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.unwrap();
    let path = PathAndQuery::try_from(format!("/kandev.plugin.v1.Host/{rpc}")).unwrap();
    grpc.unary(Request::new(()), path, ProstCodec::<(), ()>::default()).await.map(|_| ())
}

#[test]
fn every_rpc_of_the_proto_has_one_row_and_no_row_is_without_an_rpc() {
    let files = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap();
    let services = files.file.iter().flat_map(|file| &file.service);
    let host = services.filter(|service| service.name() == "Host").flat_map(|service| &service.method);
    let rpcs: BTreeSet<&str> = host.map(|method| method.name()).collect();
    let rows: BTreeSet<&str> = table::RULES.iter().map(|rule| rule.rpc).collect();
    assert_eq!(rows, rpcs);
    assert_eq!(table::RULES.len(), rpcs.len());
}

/// wire.md §3, copied: what each RPC needs.
const NEEDS: [(&str, &str); 27] = [
    ("GetState", "state"),
    ("SetState", "state"),
    ("DeleteState", "state"),
    ("ListState", "state"),
    ("RevealSecret", "secrets"),
    ("EmitEvent", ""),
    ("GetConfig", ""),
    ("GetSecret", "secrets"),
    ("SetSecret", "secrets"),
    ("DeleteSecret", "secrets"),
    ("ListTasks", "api_read:tasks"),
    ("GetTask", "api_read:tasks"),
    ("ListWorkspaces", "api_read:workspaces"),
    ("ListWorkflows", "api_read:workflows"),
    ("ListWorkflowSteps", "api_read:workflows"),
    ("ListAgentProfiles", "api_read:agent_profiles"),
    ("ListExecutorProfiles", "api_read:executor_profiles"),
    ("ListRepositories", "api_read:repositories"),
    ("ListSessions", "api_read:sessions"),
    ("ListSessionCodeStats", "api_read:sessions"),
    ("ListMessages", "api_read:messages"),
    ("InvokeUtilityAgent", "agent_invoke"),
    ("CreateTask", "api_write:tasks"),
    ("UpdateTask", "api_write:tasks"),
    ("SendMessage", "api_write:messages"),
    ("PreviewPluginOwnedTaskTree", "api_write:tasks"),
    ("DeletePluginOwnedTaskTree", "api_write:tasks"),
];

#[tokio::test]
async fn each_rpc_passes_with_its_capability_and_with_no_other() {
    let world = default_world().await;
    for granted in Capability::all() {
        let channel = world.channel([granted]).await;
        for (rpc, needed) in NEEDS {
            let answer = call(&channel, rpc).await;
            if needed.is_empty() || needed == granted.name() {
                assert_ne!(answer.map_err(|status| status.code()), Err(Code::PermissionDenied), "{rpc} with {granted}");
            } else {
                let refused = answer.unwrap_err();
                assert_eq!(refused.code(), Code::PermissionDenied, "{rpc} with {granted}");
                assert_eq!(refused.message(), format!("capability '{needed}' not declared"));
            }
        }
    }
}

#[tokio::test]
async fn an_rpc_that_comes_later_says_which_resource_is_missing() {
    let world = default_world().await;
    let channel = world.channel(Capability::all()).await;
    let expected = [("SendMessage", "messages"), ("InvokeUtilityAgent", "utility_agent")];
    for (rpc, resource) in expected {
        let refused = call(&channel, rpc).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unimplemented);
        assert_eq!(refused.message(), format!("pluginsdk: Host data API \"{resource}\" not implemented"));
    }
    for rule in table::RULES.iter().filter(|rule| rule.served.is_ok()) {
        let answer = call(&channel, rule.rpc).await.map_err(|status| status.code());
        assert_ne!(answer, Err(Code::Unimplemented), "{} has a row and no handler", rule.rpc);
    }
    assert_eq!(call(&channel, "Nonsense").await.unwrap_err().code(), Code::Unimplemented);
}

fn object(value: serde_json::Value) -> Option<Struct> {
    value.as_object().cloned().map(struct_from_json)
}

fn set_request(key: &str, value: Option<Struct>) -> SetStateRequest {
    SetStateRequest { scope: "task".to_owned(), scope_id: "t1".to_owned(), key: key.to_owned(), value }
}

async fn state_is_kept_listed_and_deleted(db: db::Db) {
    let world = world_of(db).await;
    let mut client = world.client().await;
    let value = object(json!({"n": 1, "deep": {"list": [true, null]}}));
    client.set_state(set_request("b", value.clone())).await.unwrap();
    client.set_state(set_request("a", None)).await.unwrap();
    let get = |key: &str| GetStateRequest { scope: "task".to_owned(), scope_id: "t1".to_owned(), key: key.to_owned() };
    let found = client.get_state(get("b")).await.unwrap().into_inner();
    assert_eq!(found, GetStateResponse { found: true, value: value.clone() });
    let empty = client.get_state(get("a")).await.unwrap().into_inner();
    assert_eq!(empty, GetStateResponse { found: true, value: None });
    let list = ListStateRequest { scope: "task".to_owned(), scope_id: "t1".to_owned() };
    let entries = client.list_state(list.clone()).await.unwrap().into_inner().entries;
    let updated_at = entries[0].updated_at.clone();
    assert!(updated_at.len() == 20 && updated_at.ends_with('Z'), "{updated_at}");
    let expected = ["a", "b"].map(|key| StateEntry {
        key: key.to_owned(),
        value: if key == "b" { value.clone() } else { None },
        updated_at: entries.iter().find(|entry| entry.key == key).unwrap().updated_at.clone(),
    });
    assert_eq!(entries, expected);
    for key in ["a", "b", "b"] {
        let delete = DeleteStateRequest { scope: "task".to_owned(), scope_id: "t1".to_owned(), key: key.to_owned() };
        client.delete_state(delete).await.unwrap();
    }
    assert_eq!(client.list_state(list).await.unwrap().into_inner().entries, []);
    assert!(!client.get_state(get("b")).await.unwrap().into_inner().found);
}

/// host-data.md §7: scopes and their ids are compared as they are, and the documented ones are words like any other.
async fn an_entry_is_found_under_its_own_scope_and_id_only(db: db::Db) {
    let world = world_of(db).await;
    let mut client = world.client().await;
    let places = [
        ("", ""),
        ("instance", ""),
        ("workspace", "1"),
        ("task", "1"),
        ("agent", "1"),
        ("task", "2"),
        ("Task", "1"),
        ("my own", ""),
    ];
    for (scope, scope_id) in places {
        let value = object(json!({"at": [scope, scope_id]}));
        let (scope, scope_id, key) = (scope.to_owned(), scope_id.to_owned(), "k".to_owned());
        client.set_state(SetStateRequest { scope, scope_id, key, value }).await.unwrap();
    }
    for (scope, scope_id) in places {
        let value = object(json!({"at": [scope, scope_id]}));
        let (scope, scope_id, key) = (scope.to_owned(), scope_id.to_owned(), "k".to_owned());
        let get = GetStateRequest { scope: scope.clone(), scope_id: scope_id.clone(), key };
        let found = client.get_state(get).await.unwrap().into_inner();
        assert_eq!(found, GetStateResponse { found: true, value: value.clone() }, "{scope:?} {scope_id:?}");
        let entries = client.list_state(ListStateRequest { scope, scope_id }).await.unwrap().into_inner().entries;
        assert_eq!(entries.into_iter().map(|entry| entry.value).collect::<Vec<_>>(), [value]);
    }
    let absent = GetStateRequest { scope: "agent".to_owned(), scope_id: String::new(), key: "k".to_owned() };
    let absent = client.get_state(absent).await.unwrap().into_inner();
    assert_eq!(absent, GetStateResponse { found: false, value: None });
}

/// Field case 9.
async fn too_much_is_refused_with_the_limit_and_the_connection_stays(db: db::Db) {
    let world = world_of(db).await;
    let mut client = world.client().await;
    let text = |mib: usize| object(json!({"v": "x".repeat(mib << 20)}));
    let cases = [
        (text(5), "value has 5242888 bytes as JSON, at most 4194304 are allowed; split it over several keys"),
        (text(18), "the message is larger than 17825792 bytes"),
    ];
    for (value, message) in cases {
        let refused = client.set_state(set_request("k", value)).await.unwrap_err();
        assert_eq!((refused.code(), refused.message()), (Code::ResourceExhausted, message));
    }
    let refused = client.set_state(set_request(&"k".repeat(513), None)).await.unwrap_err();
    let message = "key has 513 bytes, at most 512 are allowed";
    assert_eq!((refused.code(), refused.message()), (Code::InvalidArgument, message));
    client.set_state(set_request(&"k".repeat(512), text(3))).await.unwrap();
}

async fn the_quota_of_a_plugin_is_named_when_it_is_full(db: db::Db) {
    let world = world_with(db, Limits { state_plugin_bytes: 50, ..Limits::default() }).await;
    let refused = world.client().await.set_state(set_request("k", object(json!({"v": "x".repeat(40)})))).await;
    let refused = refused.unwrap_err();
    let message = "the plugin's state would have 55 bytes, at most 50 are allowed; delete what is not needed";
    assert_eq!((refused.code(), refused.message()), (Code::ResourceExhausted, message));
}

#[tokio::test]
async fn events_reach_the_bus_under_the_bound_plugin_and_refusals_keep_their_text() {
    let world = default_world().await;
    let mut client = world.client().await;
    let emit = |name: &str| EmitEventRequest { event_name: name.to_owned(), payload: None };
    client.emit_event(emit("built")).await.unwrap();
    assert_eq!(*world.bus.names.lock().unwrap(), ["acme/built"]);
    for (name, code) in
        [("bad", Code::InvalidArgument), ("foreign", Code::PermissionDenied), ("big", Code::ResourceExhausted)]
    {
        assert_eq!(client.emit_event(emit(name)).await.unwrap_err().code(), code, "{name}");
    }
    let unwritten = [("full", Code::ResourceExhausted), ("late", Code::Unavailable), ("down", Code::Unavailable)];
    for (name, code) in unwritten {
        let status = client.emit_event(emit(name)).await.unwrap_err();
        assert!(status.code() == code && !status.message().contains("hunter2"), "{name}: {status}");
    }
}

#[tokio::test]
async fn a_panic_is_an_internal_error_without_text_and_the_next_call_works() {
    let world = default_world().await;
    let mut client = world.client().await;
    let emit = |name: &str| EmitEventRequest { event_name: name.to_owned(), payload: None };
    let broken = client.emit_event(emit("panic")).await.unwrap_err();
    assert_eq!((broken.code(), broken.message()), (Code::Internal, "internal error of the host"));
    client.emit_event(emit("fine")).await.unwrap();
}

#[tokio::test]
async fn config_is_an_object_with_and_without_a_file() {
    let world = default_world().await;
    let mut client = world.client().await;
    assert_eq!(client.get_config(GetConfigRequest {}).await.unwrap().into_inner().config, object(json!({})));
    std::fs::write(world.folder.path().join("acme.config.yml"), "url: u\n").unwrap();
    assert_eq!(client.get_config(GetConfigRequest {}).await.unwrap().into_inner().config, object(json!({"url": "u"})));
    std::fs::write(world.folder.path().join("acme.config.yml"), "- hunter2\n").unwrap();
    let broken = client.get_config(GetConfigRequest {}).await.unwrap_err();
    assert_eq!((broken.code(), broken.message()), (Code::Internal, "internal error of the host"));
}

#[tokio::test]
async fn calls_beyond_the_bound_wait_and_are_answered_later() {
    let bus = FakeBus { release: Some(Semaphore::new(0)), ..FakeBus::default() };
    let world = world(Limits { host_calls: 3, ..Limits::default() }, bus).await;
    let client = world.client().await;
    let emit = EmitEventRequest { event_name: "wait".to_owned(), payload: None };
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let (mut client, emit) = (client.clone(), emit.clone());
            tokio::spawn(async move { client.emit_event(emit).await })
        })
        .collect();
    // A call that needs no permit of the bus still needs one of the gate; it is answered only when one is free.
    let late = tokio::spawn({
        let mut client = client.clone();
        async move { client.get_config(GetConfigRequest {}).await }
    });
    let three = async {
        while world.bus.waiting.load(Ordering::SeqCst) < 3 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), three).await.unwrap();
    assert!(
        tokio::time::timeout(Duration::from_millis(200), async {
            while !late.is_finished() {
                tokio::task::yield_now().await
            }
        })
        .await
        .is_err()
    );
    assert_eq!(world.bus.waiting.load(Ordering::SeqCst), 3);
    world.bus.release.as_ref().unwrap().add_permits(10);
    for call in calls {
        call.await.unwrap().unwrap();
    }
    late.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_call_and_the_one_that_waits_behind_it_end_with_their_deadline() {
    let bus = FakeBus { release: Some(Semaphore::new(0)), ..FakeBus::default() };
    let timing = Timing { host_call_timeout: Duration::from_secs(1), ..Timing::default() };
    let world = timed_world(&timing, Limits { host_calls: 1, ..Limits::default() }, bus).await;
    let client = world.client().await;
    let emit = EmitEventRequest { event_name: "wait".to_owned(), payload: None };
    let calls = (0..3).map(|_| {
        let (mut client, emit) = (client.clone(), emit.clone());
        async move { client.emit_event(emit).await.unwrap_err() }
    });
    let ended = tokio::time::timeout(Duration::from_secs(10), futures_util::future::join_all(calls)).await.unwrap();
    for status in ended {
        let text = "the host call took too long, its turn among the plugin's other calls included";
        assert_eq!((status.code(), status.message()), (Code::DeadlineExceeded, text));
    }
    let answer = client.clone().get_config(GetConfigRequest {}).await;
    answer.expect("the turns are free again");
}

/// Field case 5.
#[tokio::test]
async fn any_authority_is_served_or_cleanly_refused() {
    let world = default_world().await;
    for authority in ["http://unused", "http://localhost:0", "http://%2Ftmp%2Fx.sock", "http://[::1]:1"] {
        let Ok(_) = authority.parse::<Uri>() else { continue };
        let channel = channel(world.pipe([]), authority).await;
        call(&channel, "GetConfig").await.unwrap();
    }
    for authority in ["/tmp/x.sock", "", "%2Ftmp%2Fx.sock", "unused"] {
        let answer = tokio::time::timeout(Duration::from_secs(5), raw_call(world.pipe([]), authority)).await;
        assert!(answer.is_ok(), "no answer for authority {authority:?}");
    }
}

/// One call in raw HTTP/2 frames; returns at the first frame that answers or ends it.
async fn raw_call(mut pipe: tokio::io::DuplexStream, authority: &str) {
    let frame = |kind: u8, flags: u8, stream: u8, payload: &[u8]| {
        let mut frame = vec![0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream];
        frame.extend_from_slice(payload);
        frame
    };
    let mut headers = Vec::new();
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/kandev.plugin.v1.Host/GetConfig"),
        (":authority", authority),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    for (name, value) in fields {
        headers.extend_from_slice(&[0, name.len() as u8]);
        headers.extend_from_slice(name.as_bytes());
        headers.push(value.len() as u8);
        headers.extend_from_slice(value.as_bytes());
    }
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, &[]));
    bytes.extend(frame(1, 4, 1, &headers));
    bytes.extend(frame(0, 1, 1, &[0; 5]));
    pipe.write_all(&bytes).await.unwrap();
    loop {
        let mut head = [0; 9];
        if pipe.read_exact(&mut head).await.is_err() {
            return;
        }
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        pipe.read_exact(&mut payload).await.unwrap();
        // HEADERS or RST_STREAM of the call, or GOAWAY.
        if matches!((head[3], head[8]), (1 | 3, 1) | (7, _)) {
            return;
        }
    }
}

db::tests::on_both_databases!(
    state_is_kept_listed_and_deleted,
    an_entry_is_found_under_its_own_scope_and_id_only,
    too_much_is_refused_with_the_limit_and_the_connection_stays,
    the_quota_of_a_plugin_is_named_when_it_is_full,
);
