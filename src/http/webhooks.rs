//! Relays webhooks to plugins (contract/rest.md §6): `GET` and `POST /api/plugins/{id}/webhooks/{key}` and below.
//!
//! What may pass is decided by `domain::relay`; here is the order of checks and the call. Whether a plugin takes calls
//! and how many at once is its actor's knowledge.
//!
//! A webhook belongs to its client's connection, unlike a command: when the client hangs up, the call is cancelled, and
//! the plugin's context with it. The plugin may have done its work all the same.

use std::time::Duration;

use actix_web::{
    HttpRequest, HttpResponse,
    http::{
        StatusCode,
        header::{HeaderName, HeaderValue},
    },
    web,
};
use kandev_proto::v1::{WebhookRequest, WebhookResponse};
use tracing::Instrument as _;

use super::{
    ApiError, Services,
    body::{self, BodyError, Bounds},
    endpoint::{Content, Endpoint, get, post},
    gate,
    query::Takes,
};
use crate::{
    actors::{CallKind, CallOutcome, PluginHandle},
    domain::{
        action::Action,
        clean,
        id::PluginId,
        manifest::{Webhook, WebhookAccess},
        percent::decoded,
        relay::{self, Answer, AnswerError},
    },
    grpc::client::CallError,
};

/// A webhook's key and what follows it; the handler takes both apart from the raw address.
const PATH: &str = "/api/plugins/{id}/webhooks/{tail:.*}";

/// The same for people.
const SHOWN: &str = "/api/plugins/{id}/webhooks/{key}";

/// What the host itself answers in the plugin's place.
const REFUSALS: &[u16] = &[400, 401, 408, 413, 429, 502, 503, 504];

/// Open to everyone; the handler asks for `PluginWebhookAuthenticated` when the manifest wants a login.
pub static ROUTES: &[Endpoint] = &[
    get(PATH, Action::PluginWebhook, || web::to(relay))
        .about("Call a plugin's webhook; below its key too. A login is needed when the manifest wants one")
        .takes(Takes::Anything)
        .shown_as(SHOWN)
        .may_need_login()
        .relayed()
        .refuses(REFUSALS),
    post(PATH, Action::PluginWebhook, || web::to(relay))
        .about("The same with a body of any kind")
        .takes(Takes::Anything)
        .shown_as(SHOWN)
        .may_need_login()
        .body_of(Content::Media("*/*"))
        .relayed()
        .refuses(REFUSALS),
];

/// Longest part of a foreign key in a message, in bytes.
const SHOWN_KEY_BYTES: usize = 128;

/// The handler. Checks in this order: plugin, key, login, body, running, number of calls.
pub async fn relay(
    services: web::Data<Services>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let path = relay::split_path(request.uri().path()).ok_or(ApiError::NoRoute)?;
    let plugin = services.registry.plugin(&decoded(path.id))?;
    let webhook = declared(&plugin, &decoded(path.key))?;
    let timeout = match webhook.effective_access() {
        WebhookAccess::Public => services.timing.webhook_timeout,
        WebhookAccess::Authenticated => {
            gate::require_for(&request, Action::PluginWebhookAuthenticated)?;
            services.timing.webhook_timeout_authenticated
        }
    };
    let headers: Vec<_> = request.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    let headers = relay::request_headers(headers.iter().copied())?;
    let bounds = Bounds::new(webhook.body_limit(), &services.timing);
    let body = body::read_into(&services.webhook_room, &request, payload, bounds).await.map_err(too_large)?;
    let call = WebhookRequest {
        webhook_key: webhook.key.clone(),
        method: request.method().to_string(),
        path: path.remainder.to_owned(),
        query: request.uri().query().unwrap_or_default().to_owned(),
        headers,
        body: body.bytes.clone(),
    };
    let id = plugin.id();
    let span = tracing::debug_span!("webhook", plugin.id = %id, webhook.key = %webhook.key);
    let watch = plugin.vitals().begin(CallKind::Webhook);
    let answer = call_plugin(&plugin, call, timeout).instrument(span).await;
    watch.end(outcome(&answer));
    answer
}

fn too_large(error: ApiError) -> ApiError {
    match error {
        ApiError::Body(BodyError::TooLarge { limit }) => ApiError::WebhookTooLarge(limit),
        error => error,
    }
}

async fn call_plugin(plugin: &PluginHandle, call: WebhookRequest, timeout: Duration) -> Result<HttpResponse, ApiError> {
    let id = plugin.id();
    let permit = plugin.begin(CallKind::Webhook).map_err(|refused| ApiError::CallRefused(id.clone(), refused))?;
    let answer = permit.client().handle_webhook(call, timeout).await;
    send(id, answer.map_err(|error| ApiError::Call(id.clone(), plugin.without_secrets(error)))?)
}

fn outcome(answer: &Result<HttpResponse, ApiError>) -> CallOutcome {
    match answer {
        Ok(_) => CallOutcome::Answered,
        Err(ApiError::CallRefused(..)) => CallOutcome::Refused,
        Err(ApiError::Call(_, CallError::TimedOut(_))) => CallOutcome::TimedOut,
        Err(_) => CallOutcome::Failed,
    }
}

fn declared<'a>(plugin: &'a PluginHandle, key: &str) -> Result<&'a Webhook, ApiError> {
    plugin
        .manifest()
        .webhooks
        .iter()
        .find(|webhook| webhook.key == key)
        .ok_or_else(|| ApiError::NoWebhook { id: plugin.id().clone(), key: clean::single_line(key, SHOWN_KEY_BYTES) })
}

/// Turns the plugin's answer into ours; the body's bytes are moved.
fn send(id: &PluginId, WebhookResponse { status, headers, body }: WebhookResponse) -> Result<HttpResponse, ApiError> {
    let invalid = |error| ApiError::Answer(id.clone(), error);
    let Answer { status, headers, with_body } = relay::answer(status, headers).map_err(invalid)?;
    let code = StatusCode::from_u16(status).map_err(|_| invalid(AnswerError::Status(status.into())))?;
    let mut answer = HttpResponse::build(code);
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid(AnswerError::Header))?;
        let value = HeaderValue::try_from(value).map_err(|_| invalid(AnswerError::Header))?;
        answer.append_header((name, value));
    }
    Ok(if with_body { answer.body(body) } else { answer.finish() })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use actix_web::{
        ResponseError,
        body::{MessageBody, to_bytes},
    };
    use proptest::prelude::*;

    use super::*;

    fn answer(status: i32, headers: &[(&str, &str)], body: &'static [u8]) -> Result<HttpResponse, ApiError> {
        let headers: HashMap<_, _> = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        send(&PluginId::new("acme").unwrap(), WebhookResponse { status, headers, body: body.into() })
    }

    #[tokio::test]
    async fn status_headers_and_body_pass_unchanged() {
        let sent = answer(418, &[("X-A", "é"), ("Content-Type", "text/x-own")], b"\x00\xff").unwrap();
        assert_eq!(sent.status(), 418);
        let lines: Vec<_> = sent.headers().iter().map(|(n, v)| (n.as_str(), v.as_bytes())).collect();
        assert_eq!(lines.len(), 2);
        assert!(lines.contains(&("x-a", "é".as_bytes())) && lines.contains(&("content-type", b"text/x-own")));
        assert_eq!(to_bytes(sent.into_body()).await.unwrap(), b"\x00\xff"[..]);
    }

    #[tokio::test]
    async fn a_status_without_body_leaves_the_body_out() {
        for status in [204, 205, 304] {
            let sent = answer(status, &[], b"body").unwrap();
            assert_eq!(sent.status().as_u16(), status as u16);
            assert!(sent.into_body().size().is_eof());
        }
    }

    #[test]
    fn an_answer_that_cannot_be_sent_is_502_with_the_reason() {
        let error = answer(99, &[], b"").unwrap_err();
        assert_eq!(error.status_code(), 502);
        assert_eq!(answer(200, &[("X", "a\r\nb")], b"").unwrap_err().status_code(), 502);
    }

    proptest! {
        #[test]
        fn every_answer_of_a_plugin_gets_a_verdict(status in any::<i32>(),
            headers in prop::collection::hash_map(".{0,6}", ".{0,6}", 0..4)) {
            let answer = send(&PluginId::new("acme").unwrap(), WebhookResponse { status, headers, body: "x".into() });
            let code = answer.map_or_else(|error| error.status_code(), |answer| answer.status());
            prop_assert!(code.as_u16() == 502 || (200..600).contains(&status));
        }
    }
}
