//! The plugin of the SDK's real-process tests. What it does is told by `KANDEV_SDK_TEST`: `full` answers every call and
//! makes every Host call when asked, `defaults` writes no method, `slow-stop` never ends its stop hook.

mod host_calls;

use std::{process::ExitCode, time::Duration};

use kandev_plugin_sdk::{
    ActionRequest, ActionResponse, Authorization, Error, Event, GitCredential, GitRequest, Host, LevelFilter, Plugin,
    ReferenceCandidate, ReferenceSearch, ReferenceUse, Result, SecretString, Settings, ToolRequest, ToolResponse,
    WebhookRequest, WebhookResponse, serve, serve_with,
};
use serde_json::{Value, json};

struct Defaults;

impl Plugin for Defaults {}

struct SlowStop;

impl Plugin for SlowStop {
    async fn on_stop(&self, _host: &Host) -> Result<()> {
        std::future::pending().await
    }
}

struct Full;

impl Plugin for Full {
    async fn on_start(&self, host: &Host) -> Result<()> {
        host.state("life").set("start", &json!({"n": 1})).await
    }

    async fn on_stop(&self, host: &Host) -> Result<()> {
        host.state("life").set("stop", &json!({"n": 2})).await
    }

    async fn on_event(&self, _host: &Host, event: Event) -> Result<()> {
        match event.kind.as_str() {
            "test.panic" => panic!("boom at event {}", event.id),
            "test.fail" => Err(Error::unavailable("not now")),
            _ => {
                let span = tracing::info_span!("delivery", event_id = event.id);
                span.in_scope(
                    || tracing::warn!(workspace = event.workspace_id, n = 3, payload = %event.payload, "seen"),
                );
                tracing::debug!("not written");
                Ok(())
            }
        }
    }

    async fn handle_webhook(&self, host: &Host, request: WebhookRequest) -> Result<WebhookResponse> {
        match request.key.as_str() {
            "host" => WebhookResponse::json(&host_calls::all(host).await),
            "panic" => panic!("boom in a webhook"),
            "echo" => WebhookResponse::json(&json!({
                "method": request.method, "path": request.path, "query": request.query,
                "x": request.header("x-test"), "body": request.json::<Value>()?,
            })),
            _ => Ok(WebhookResponse::new(404)),
        }
    }

    async fn handle_action(&self, host: &Host, request: ActionRequest) -> Result<ActionResponse> {
        match request.key.as_str() {
            "refuse" => Err(Error::conflict("somebody else was faster")),
            "bug" => Err(Error::internal("an index was wrong")),
            "denied" => host.task("none").await.map(|_| Err(Error::internal("no such task is there")))?,
            _ => Ok(ActionResponse::json(&json!({
                "actor": request.context.actor_id, "branch": request.context.head_branch,
                "body": request.json::<Value>()?,
            }))?
            .with_status(202)
            .with_header("X-Test", "1")),
        }
    }

    async fn search_references(&self, _: &Host, search: ReferenceSearch) -> Result<Vec<ReferenceCandidate>> {
        let candidate = |n: usize| ReferenceCandidate {
            provider_local_id: n.to_string(),
            title: format!("{} in {} of {}", search.query, search.source, search.workspace_id),
            url: format!("https://tracker.example/{n}"),
            attributes: [("n".to_owned(), json!(n))].into_iter().collect(),
        };
        Ok((0..search.limit).map(candidate).collect())
    }

    async fn authorize_reference(&self, _: &Host, request: ReferenceUse) -> Result<Authorization> {
        Ok(match request.reference.get("scope") {
            Some(scope) if scope == "public" => Authorization::Allowed,
            scope => Authorization::Denied(format!("{} of {scope:?}", request.purpose)),
        })
    }

    async fn resolve_git_credential(&self, _: &Host, request: GitRequest) -> Result<GitCredential> {
        let secret = SecretString::from(format!("{}{}", request.host, request.path));
        Ok(GitCredential { username: request.provider_id, secret, expires_at: Some("2030-01-01T00:00:00Z".into()) })
    }

    async fn git_credential_binding(&self, _: &Host, request: GitRequest) -> Result<Option<String>> {
        Ok((request.host == "git.example").then(|| format!("rev-{}", request.repository_id)))
    }

    async fn invoke_tool(&self, _: &Host, request: ToolRequest) -> Result<ToolResponse> {
        match request.name.as_str() {
            "fail" => Ok(ToolResponse::error("it rains")),
            name => ToolResponse::text(format!("{name} on {}", request.context.surface))
                .with_structured(&json!({"id": request.invocation_id, "arguments": request.arguments})),
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    match std::env::var("KANDEV_SDK_TEST").as_deref() {
        Ok("defaults") => serve(Defaults).await,
        Ok("slow-stop") => {
            let settings =
                Settings { stop_limit: Duration::from_millis(200), log_level: LevelFilter::WARN, ..Default::default() };
            if serve_with(SlowStop, settings).await.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        _ => serve(Full).await,
    }
}
