//! A plugin's actions for the signed-in browser (contract/rest.md §7): `POST /api/plugins/{id}/actions/{key}`.
//!
//! What may be named and what passes of an answer is decided by `domain::calls`; here is the order of checks and the
//! call. What the plugin learns of caller and place is the host's own knowledge: no header of the request reaches it.
//!
//! An action belongs to its client's connection: when the client hangs up, the call is cancelled, and the plugin's
//! context with it.

use std::borrow::Cow;

use actix_web::{
    HttpRequest, HttpResponse,
    http::{
        StatusCode,
        header::{self, HeaderName, HeaderValue},
    },
    web,
};
use kandev_proto::v1::{PluginActionRequest, PluginActionResponse, VerifiedActionContext};
use serde::Deserialize;
use serde_json::Value;
use tracing::Instrument as _;
use utoipa::ToSchema;

use super::{
    ApiError, Services,
    body::{self, BodyError, Bounds},
    change::scope,
    endpoint::{Endpoint, post},
    gate,
};
use crate::{
    actors::{CallKind, CallOutcome, CallRefused, PluginHandle},
    domain::{
        action::Action,
        calls::{
            answer::{self, Answer, AnswerFault},
            envelope::{self, EnvelopeError, MAX_ENVELOPE_BYTES},
            place::Misplaced,
        },
        id::PluginId,
        manifest,
    },
    grpc::client::CallError,
    platform::context::PlaceError,
};

/// What the host itself answers in the plugin's place.
const REFUSALS: &[u16] = &[400, 404, 408, 413, 429, 502, 503, 504];

pub static ROUTES: &[Endpoint] = &[post("/api/plugins/{id}/actions/{key}", Action::PluginAction, || web::to(invoke))
    .about("Call a plugin's action on a workspace, task or repository")
    .body::<ActionEnvelope>()
    .relayed()
    .refuses(REFUSALS)];

/// What an action is called with. Which ids must and may be there says the scope that the manifest declares.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what `domain::calls::envelope` reads")]
struct ActionEnvelope {
    #[serde(default)]
    workspace_id: Option<String>,
    #[serde(default)]
    task_id: Option<String>,
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    repository_id: Option<String>,
    /// Whatever the plugin wants; its text reaches the plugin unchanged.
    #[serde(default)]
    body: Option<Value>,
}

/// Why an action was not done.
#[derive(Debug)]
pub enum ActionError {
    /// The plugin does not run, or stops.
    NotActive,
    /// The manifest does not declare the action.
    Unknown,
    /// The whole envelope is too large.
    TooLarge,
    /// It cannot be read, or its body is too large.
    Envelope(EnvelopeError),
    /// Where it is to be done was not verified.
    Place(PlaceError),
    /// The call came to nothing.
    Call(PluginId, CallError),
    /// The plugin's answer cannot be passed on.
    Answer(PluginId, AnswerFault),
}

impl From<Misplaced> for ActionError {
    fn from(misplaced: Misplaced) -> Self {
        Self::Place(misplaced.into())
    }
}

/// The handler. Checks in the contract's order.
async fn invoke(
    services: web::Data<Services>,
    request: HttpRequest,
    path: web::Path<(String, String)>,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let (id, key) = path.into_inner();
    let plugin = services.registry.plugin(&id)?;
    if plugin.run().is_none() {
        return Err(ActionError::NotActive.into());
    }
    let action = declared(&plugin, &key).ok_or(ActionError::Unknown)?;
    let bounds = Bounds::new(MAX_ENVELOPE_BYTES, &services.timing);
    let bytes = body::whole(&request, payload, bounds).await.map_err(too_large)?;
    let envelope = envelope::read(&bytes, action.max_body_bytes).map_err(ActionError::Envelope)?;
    let actor = gate::principal(&request).user_id().ok_or(ApiError::Unauthenticated)?;
    let action_scope = action.parsed_scope().ok_or(ActionError::Unknown)?;
    let wanted = envelope.named.for_action(action_scope).map_err(ActionError::from)?;
    let place = services.platform.place(&scope(&request), &wanted).await.map_err(ActionError::Place)?;
    let call = PluginActionRequest {
        action_key: action.key.clone(),
        context: Some(VerifiedActionContext {
            actor_id: actor.to_owned(),
            workspace_id: place.workspace,
            task_id: place.task,
            repository_id: place.repository,
            session_id: place.session,
            head_branch: place.head_branch,
        }),
        body: match envelope.body {
            "" => web::Bytes::new(),
            body => bytes.slice_ref(body.as_bytes()),
        },
    };
    let span = tracing::debug_span!("action", plugin.id = %plugin.id(), action.key = %action.key);
    let watch = plugin.vitals().begin(CallKind::Action);
    let answer = call_plugin(&services, &plugin, call).instrument(span).await;
    watch.end(outcome(&answer));
    answer
}

fn declared<'a>(plugin: &'a PluginHandle, key: &str) -> Option<&'a manifest::Action> {
    plugin.manifest().actions.iter().find(|action| action.key == key)
}

fn too_large(error: ApiError) -> ApiError {
    match error {
        ApiError::Body(BodyError::TooLarge { .. }) => ActionError::TooLarge.into(),
        error => error,
    }
}

async fn call_plugin(
    services: &Services,
    plugin: &PluginHandle,
    call: PluginActionRequest,
) -> Result<HttpResponse, ApiError> {
    let permit = services.registry.begin(plugin, CallKind::Action).map_err(|refused| match refused {
        CallRefused::NotRunning => ActionError::NotActive.into(),
        refused @ CallRefused::TooMany(_) => ApiError::CallRefused(plugin.id().clone(), refused),
    })?;
    let answer = permit.client().handle_action(call, services.timing.action_timeout).await;
    let failed = |error| ActionError::Call(plugin.id().clone(), plugin.without_secrets(error));
    Ok(send(plugin.id(), answer.map_err(failed)?)?)
}

fn outcome(answer: &Result<HttpResponse, ApiError>) -> CallOutcome {
    match answer {
        Ok(_) => CallOutcome::Answered,
        Err(ApiError::CallRefused(..) | ApiError::Action(ActionError::NotActive)) => CallOutcome::Refused,
        Err(ApiError::Action(ActionError::Call(_, CallError::TimedOut(_)))) => CallOutcome::TimedOut,
        Err(_) => CallOutcome::Failed,
    }
}

/// Turns the plugin's answer into ours; the body's bytes are moved.
fn send(id: &PluginId, response: PluginActionResponse) -> Result<HttpResponse, ActionError> {
    let PluginActionResponse { status, headers, body } = response;
    let fault = |fault| ActionError::Answer(id.clone(), fault);
    let Answer { status, headers, with_body } = answer::check(status, headers, body.len()).map_err(fault)?;
    let mut sent = HttpResponse::build(StatusCode::from_u16(status).map_err(|_| fault(AnswerFault::Status))?);
    // The host's origin: what a browser makes of it must not depend on its content.
    sent.insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"));
    for (name, value) in headers {
        let value = match value {
            Cow::Borrowed(value) => Ok(HeaderValue::from_static(value)),
            Cow::Owned(value) => HeaderValue::try_from(value),
        };
        if let Ok(value) = value {
            sent.insert_header((HeaderName::from_static(name), value));
        }
    }
    Ok(if with_body { sent.body(body) } else { sent.finish() })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use actix_web::body::{MessageBody, to_bytes};
    use proptest::prelude::*;

    use super::*;

    fn sent(response: PluginActionResponse) -> Result<HttpResponse, ActionError> {
        send(&PluginId::new("acme").unwrap(), response)
    }

    #[tokio::test]
    async fn the_body_passes_unchanged_with_the_headers_that_may() {
        let headers = [("ETag", "\"1\""), ("Set-Cookie", "a=b")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        let answer =
            sent(PluginActionResponse { status: 0, headers: headers.into(), body: b"\x00\xff"[..].into() }).unwrap();
        assert_eq!(answer.status(), 200);
        let mut lines: Vec<_> =
            answer.headers().iter().map(|(n, v)| (n.as_str(), v.to_str().unwrap().to_owned())).collect();
        lines.sort();
        let expected = [
            ("content-type", "application/json; charset=utf-8"),
            ("etag", "\"1\""),
            ("x-content-type-options", "nosniff"),
        ];
        assert_eq!(lines, expected.map(|(name, value)| (name, value.to_owned())));
        assert_eq!(to_bytes(answer.into_body()).await.unwrap(), b"\x00\xff"[..]);
    }

    #[test]
    fn a_status_without_body_leaves_the_body_out() {
        let answer = sent(PluginActionResponse { status: 204, body: "x".into(), ..Default::default() }).unwrap();
        assert!(answer.into_body().size().is_eof());
    }

    proptest! {
        #[test]
        fn every_answer_of_a_plugin_gets_a_verdict(status in any::<i32>(),
            headers in prop::collection::hash_map("(?i:etag|.{0,4})", "(?s:.{0,6})", 0..4)) {
            let headers: HashMap<String, String> = headers;
            match sent(PluginActionResponse { status, headers, body: "x".into() }) {
                Ok(answer) => prop_assert!((200..600).contains(&answer.status().as_u16())),
                Err(error) => prop_assert!(matches!(error, ActionError::Answer(_, AnswerFault::Status))),
            }
        }
    }
}
