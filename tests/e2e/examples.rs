//! The examples on the real host, packed by `scripts/pack.sh` as their README says.

use std::{path::PathBuf, process::Command, sync::OnceLock};

use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Host, eventually_some, package::hex};

const EXAMPLES: [&str; 3] = ["event-logger", "every-call", "webhook-relay"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Builds the examples, once in a test process; returns the folder of their executables.
fn built() -> &'static PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(root()).args(["build", "--quiet"]);
        cargo.args(EXAMPLES.iter().flat_map(|name| ["-p".to_owned(), format!("{name}-plugin")]));
        assert!(cargo.status().expect("cargo runs").success(), "the examples do not build");
        PathBuf::from(env!("CARGO_BIN_EXE_kandev-host")).parent().expect("a folder").to_owned()
    })
}

/// Packs and installs an example.
async fn install(host: &Host, name: &str) {
    let package = host.home().join("package.tar.gz");
    let mut pack = Command::new("sh");
    pack.arg(root().join("scripts/pack.sh")).arg(root().join(format!("examples/{name}/manifest.yaml")));
    pack.arg(built().join(format!("{name}-plugin"))).arg(&package);
    assert!(pack.status().expect("sh runs").success(), "{name} cannot be packed");
    let body = host.upload(std::fs::read(&package).expect("a package")).await.expect(201);
    assert_eq!(body["plugin"]["status"], "active", "{body}");
}

async fn webhook(host: &Host, path: &str) -> Value {
    host.anonymous(Method::GET, &format!("/api/plugins/{path}")).await.expect(200)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn event_logger_counts_what_is_published() {
    let host = Host::start().await;
    install(&host, "event-logger").await;
    host.publish("demo.hello", json!({"n": 1})).await;
    host.publish("demo.hello", json!({"n": 2})).await;
    let expected = json!({"total": 2, "events": {"demo.hello": 2}});
    eventually_some("both events", || async {
        (webhook(&host, "event-logger/webhooks/stats").await == expected).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_is_served_by_this_host() {
    let host = Host::start().await;
    install(&host, "every-call").await;
    std::fs::write(host.plugins().join("every-call.config.yml"), "greeting: hi\n").expect("a config");
    let told = webhook(&host, "every-call/webhooks/run?note=x").await;
    let stored = json!({"text": "x", "greeting": "hi"});
    let mut platform = json!({"task": null});
    let kinds = ["workspaces", "workflows", "steps", "repositories", "agent_profiles", "executor_profiles", "tasks"];
    for kind in kinds.into_iter().chain(["sessions", "sessions_with_statistics", "messages"]) {
        platform[kind] = json!(0);
    }
    let expected = json!({"before": null, "stored": stored, "keys": ["note"], "after": null, "platform": platform});
    assert_eq!(told, expected);

    let event_id = host.publish("demo.hello", json!({"n": 1})).await;
    let seen = eventually_some("both events", || async {
        let seen = webhook(&host, "every-call/webhooks/seen").await;
        seen["events"].as_object().is_some_and(|events| events.len() == 2).then_some(seen)
    })
    .await;
    assert_eq!(seen["events"]["demo.hello"]["id"], event_id);
    assert_eq!(seen["events"]["plugin.every-call.ran"]["payload"], json!({"greeting": "hi"}));

    host.command("every-call", "disable").await.expect(200);
    host.command("every-call", "enable").await.expect(200);
    eventually_some("a second start", || async {
        let life = webhook(&host, "every-call/webhooks/seen").await["life"].clone();
        (life == json!({"starts": 2, "clean_stops": 1})).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhook_relay_publishes_what_is_signed_and_refuses_the_rest() {
    let host = Host::start().await;
    install(&host, "webhook-relay").await;
    let send = async |body: &'static str, signature: String| {
        let url = format!("{}/api/plugins/webhook-relay/webhooks/in/forge?a=1", host.url());
        let request = host.client().post(url).header("X-Hub-Signature-256", signature).body(body);
        request.send().await.expect("an answer").status().as_u16()
    };
    let signature = |body: &str| {
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(b"shared").expect("any key");
        mac.update(body.as_bytes());
        format!("sha256={}", hex(&mac.finalize().into_bytes()))
    };
    let body = r#"{"action": "opened"}"#;
    assert_eq!(send(body, signature(body)).await, 409, "no secret is set");

    std::fs::write(host.plugins().join("webhook-relay.config.yml"), "secret: shared\n").expect("a config");
    // A subscriber that shows what was published.
    install_listener(&host).await;
    assert_eq!(send(body, signature("another")).await, 401);
    assert_eq!(send(body, String::new()).await, 401);
    assert_eq!(send("no json", signature("no json")).await, 400);
    assert_eq!(send(body, signature(body)).await, 202);
    let seen = eventually_some("the event", || async {
        let seen = webhook(&host, "every-call/webhooks/seen").await;
        seen["events"].get("plugin.webhook-relay.received").cloned()
    })
    .await;
    assert_eq!(seen["payload"], json!({"path": "/forge", "query": "a=1", "body": {"action": "opened"}}));
}

/// `every-call`, subscribed to the relay.
async fn install_listener(host: &Host) {
    let manifest = std::fs::read_to_string(root().join("examples/every-call/manifest.yaml")).expect("a manifest");
    let manifest = manifest.replace("plugin.every-call.*", "plugin.webhook-relay.*");
    let file = host.home().join("manifest.yaml");
    std::fs::write(&file, manifest).expect("a manifest");
    let package = host.home().join("listener.tar.gz");
    let mut pack = Command::new("sh");
    pack.arg(root().join("scripts/pack.sh")).arg(file).arg(built().join("every-call-plugin")).arg(&package);
    assert!(pack.status().expect("sh runs").success(), "the listener cannot be packed");
    host.upload(std::fs::read(&package).expect("a package")).await.expect(201);
}
