//! The plugin itself: the webhook `in` becomes the event `plugin.webhook-relay.received`, when its signature is right.

use kandev_plugin_sdk::{Error, ExposeSecret, Host, Plugin, Result, WebhookRequest, WebhookResponse};
use serde_json::{Value, json};

use crate::signature;

/// The event's name; the host puts `plugin.<id>.` before it.
const EVENT: &str = "received";

/// Relays webhooks as events.
pub struct Relay;

impl Plugin for Relay {
    async fn on_start(&self, host: &Host) -> Result<()> {
        if let Err(error) = host.config().await?.secret("secret") {
            tracing::warn!(%error, "every webhook will be refused");
        }
        Ok(())
    }

    async fn handle_webhook(&self, host: &Host, request: WebhookRequest) -> Result<WebhookResponse> {
        if request.key != "in" {
            return Ok(WebhookResponse::new(404));
        }
        match relay(host, &request).await {
            Ok(()) => Ok(WebhookResponse::new(202)),
            // The sender tries again later; what the host said is not for it.
            Err(error) if error.is_from_host() => {
                tracing::warn!(%error, "the webhook was not relayed");
                Ok(WebhookResponse::new(503).with_header("Retry-After", "10"))
            }
            Err(error) => {
                tracing::info!(%error, path = request.path, "the webhook was refused");
                Ok(WebhookResponse::from(&error))
            }
        }
    }
}

async fn relay(host: &Host, request: &WebhookRequest) -> Result<()> {
    // The manifest's method is a description; nobody but the plugin enforces it.
    if request.method != "POST" {
        return Err(Error::invalid_argument("send it with POST"));
    }
    // Read at each request, so that a changed secret counts at once.
    let secret = host.config().await?.secret("secret")?;
    let given = request.header(signature::HEADER).unwrap_or_default();
    if !signature::is_valid(secret.expose_secret(), &request.body, given) {
        let header = signature::HEADER;
        return Err(Error::unauthenticated(format!("{header} is not the signature of the body")));
    }
    let body: Value = request.json()?;
    let payload = json!({"path": request.path, "query": request.query, "body": body});
    host.emit(EVENT, &payload).await?;
    tracing::info!(path = request.path, bytes = request.body.len(), "relayed");
    Ok(())
}
