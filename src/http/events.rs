//! `POST /api/v1/events`: an operator publishes an event.

use actix_web::{HttpRequest, HttpResponse, web};
use kandev_proto::struct_from_json;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    ApiError, Services,
    body::{self, Bounds},
    change,
    endpoint::{Endpoint, post},
};
use crate::{
    actors::NewEvent,
    domain::{action::Action, subject::Subject},
};

pub static ROUTES: &[Endpoint] = &[post("/api/v1/events", Action::EventPublish, || web::to(publish))
    .about("Publish an event to the plugins that subscribe to it")
    .body::<Publication>()
    .gives::<Published>(202)
    .once()];

/// Longest workspace id in bytes; the platform's own are much shorter.
const MAX_WORKSPACE_ID_BYTES: usize = 512;

/// An event to be published.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Publication {
    /// Words separated by single dots; `plugin` as the first word is for plugins and the host only.
    #[schema(max_length = 512, pattern = "^[^\\s\\x00-\\x1f\\x7f-\\x9f.*>]+(\\.[^\\s\\x00-\\x1f\\x7f-\\x9f.*>]+)*$")]
    subject: String,
    /// Empty or left out: derived from the payload's `workspace_id`, `task_id` or `session_id`, when it has one.
    #[serde(default)]
    #[schema(max_length = 512, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*$")]
    workspace_id: Option<String>,
    #[schema(value_type = Object)]
    payload: Map<String, Value>,
}

/// It is on its way.
#[derive(Serialize, ToSchema)]
struct Published {
    event_id: Uuid,
}

/// Answers 202 when the event is in the log and will survive the host; delivery goes on after that. With a key it is
/// published once, also when the client hangs up and asks again.
pub async fn publish(
    services: web::Data<Services>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    // The payload is measured as it goes over the wire; this bound is for its JSON with the envelope.
    let limit = services.limits.event_bytes.saturating_add(services.limits.request_bytes);
    let bounds = Bounds::new(limit, &services.timing);
    let key = change::key(request.headers())?;
    let bytes = body::whole(&request, payload, bounds).await?;
    let event = checked(body::parse(&bytes)?)?;
    let event_id = match key.map(|key| change::once(&request, key, &bytes)) {
        None => services.events.publish(event).await?,
        Some(once) => {
            let events = services.events.clone();
            services.tasks.finish(async move { events.publish_once(event, &once).await }).await?
        }
    };
    Ok(HttpResponse::Accepted().json(Published { event_id }))
}

fn checked(Publication { subject, workspace_id, payload }: Publication) -> Result<NewEvent, ApiError> {
    let subject = Subject::new(subject)?;
    if subject.as_str().split('.').next() == Some("plugin") {
        return Err(ApiError::ReservedSubject);
    }
    let workspace_id = workspace_id.unwrap_or_default();
    if workspace_id.len() > MAX_WORKSPACE_ID_BYTES || workspace_id.contains(char::is_control) {
        let text = format!("workspace_id must be at most {MAX_WORKSPACE_ID_BYTES} bytes without control characters");
        return Err(ApiError::Invalid(text));
    }
    Ok(NewEvent { subject, workspace_id, payload: Some(struct_from_json(payload)) })
}

#[cfg(test)]
mod tests {
    use actix_web::ResponseError;

    use super::*;

    fn check(json: &str) -> Result<NewEvent, ApiError> {
        checked(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn a_lawful_event_keeps_its_parts() {
        let event = check(r#"{"subject":"task.created","workspace_id":"w","payload":{"a":1}}"#).unwrap();
        assert_eq!((event.subject.as_str(), event.workspace_id.as_str()), ("task.created", "w"));
        assert_eq!(kandev_proto::json_from_struct(event.payload.unwrap())["a"], 1);
    }

    #[test]
    fn subjects_of_plugins_and_broken_subjects_are_refused() {
        for subject in ["plugin.a.b", "plugin", "", "a..b", "a.*", "a b"] {
            let error = check(&format!(r#"{{"subject":"{subject}","payload":{{}}}}"#)).unwrap_err();
            assert_eq!(error.status_code(), 400, "{subject}");
        }
        assert!(check(r#"{"subject":"plugins.x","payload":{}}"#).is_ok());
    }

    #[test]
    fn a_payload_that_is_no_object_and_unknown_fields_are_refused() {
        for json in [r#"{"subject":"a","payload":[]}"#, r#"{"subject":"a"}"#, r#"{"subject":"a","payload":{},"x":1}"#] {
            assert!(serde_json::from_str::<Publication>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn a_workspace_id_with_control_characters_is_refused() {
        assert!(check(r#"{"subject":"a","workspace_id":"x\ny","payload":{}}"#).is_err());
    }
}
