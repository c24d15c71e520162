//! Frames: JSON texts `{id?, type, action, payload, timestamp, metadata?}`.
//!
//! A client sends requests; it gets a response or an error with the request's id and action, and notifications without
//! an id. What is no request gets an error, and nothing is closed for it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};
use time::OffsetDateTime;

/// Longest id and action of a request, in bytes.
pub const MAX_NAME_BYTES: usize = 128;

/// What a client asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The client's own name for it; `None` when it did not give one.
    pub id: Option<String>,
    /// What is asked for.
    pub action: String,
    /// With what.
    pub payload: Map<String, Value>,
    /// What goes with a change of something.
    pub metadata: Metadata,
}

/// What REST has in headers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Metadata {
    /// The entity tag that was seen.
    pub if_match: Option<String>,
    /// Makes a change happen once in 24 hours.
    pub idempotency_key: Option<String>,
}

/// Why something went wrong, for programs (platform-rest.md §12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    /// It is no request.
    BadRequest,
    /// There is no such thing.
    NotFound,
    /// The host's fault; again later may help.
    InternalError,
    /// Who asks proved nothing.
    Unauthorized,
    /// Who asks may not.
    Forbidden,
    /// Something in the payload is not lawful.
    ValidationError,
    /// It does not go with what is there.
    Conflict,
    /// Nobody knows that action.
    UnknownAction,
}

impl Code {
    /// Of a refusal by REST.
    pub fn of_status(status: u16) -> Self {
        match status {
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 | 410 => Self::NotFound,
            409 | 412 => Self::Conflict,
            400..500 => Self::ValidationError,
            _ => Self::InternalError,
        }
    }
}

/// A frame that is no request: what to say, and to which request when that much could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadFrame {
    /// The request's id.
    pub id: Option<String>,
    /// The request's action; may be empty.
    pub action: String,
    /// What is wrong, and what would be right.
    pub message: String,
}

/// Every part as it came.
#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    id: Value,
    #[serde(default, rename = "type")]
    kind: Value,
    #[serde(default)]
    action: Value,
    #[serde(default)]
    payload: Value,
    #[serde(default)]
    metadata: Value,
}

/// Reads what a client sent.
///
/// # Errors
/// [`BadFrame`] says what is wrong with it.
pub fn parse(text: &str) -> Result<Request, BadFrame> {
    let bad = |id: &Option<String>, action: &str, message: &str| BadFrame {
        id: id.clone(),
        action: action.to_owned(),
        message: message.to_owned(),
    };
    let shape = "a frame must be a JSON object with type, action and payload";
    // A list would be read as the fields of an object in their order.
    if !text.trim_start().starts_with('{') {
        return Err(bad(&None, "", shape));
    }
    let raw: Raw = serde_json::from_str(text).map_err(|_| bad(&None, "", shape))?;
    // What was read of the one is told with what is wrong with the other.
    let action = name("action", raw.action);
    let id = match raw.id {
        Value::Null => None,
        id => {
            let told = action.as_deref().unwrap_or_default();
            Some(name("id", id).map_err(|message| bad(&None, told, &message))?).filter(|id| !id.is_empty())
        }
    };
    let action = action.map_err(|message| bad(&id, "", &message))?;
    if !matches!(raw.kind.as_str(), Some("request")) {
        return Err(bad(&id, &action, "type must be \"request\""));
    }
    let payload = match raw.payload {
        Value::Null => Map::new(),
        Value::Object(payload) => payload,
        _ => return Err(bad(&id, &action, "payload must be an object")),
    };
    let metadata = match raw.metadata {
        Value::Null => Metadata::default(),
        metadata => serde_json::from_value(metadata).map_err(|_| {
            bad(&id, &action, "metadata must be an object; if_match and idempotency_key in it are texts")
        })?,
    };
    Ok(Request { id, action, payload, metadata })
}

/// The name under this key, or what is wrong with it.
fn name(key: &str, value: Value) -> Result<String, String> {
    match value {
        Value::String(name) if name.len() <= MAX_NAME_BYTES => Ok(name),
        Value::String(_) => Err(format!("{key} must have at most {MAX_NAME_BYTES} bytes")),
        _ => Err(format!("{key} must be a text")),
    }
}

#[derive(Serialize)]
struct Frame<'a, P> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(rename = "type")]
    kind: &'static str,
    action: &'a str,
    payload: P,
    #[serde(with = "time::serde::rfc3339")]
    timestamp: OffsetDateTime,
}

/// What an error says.
#[derive(Serialize)]
struct Refusal<'a> {
    code: Code,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a RawValue>,
}

fn written(frame: &Frame<'_, impl Serialize>) -> String {
    // Maps with text keys and numbers: nothing that JSON cannot say.
    serde_json::to_string(frame).unwrap_or_default()
}

/// The answer to a request.
pub fn response(request: &Request, payload: &RawValue, timestamp: OffsetDateTime) -> String {
    let id = request.id.as_deref();
    written(&Frame { id, kind: "response", action: &request.action, payload, timestamp })
}

/// The refusal of a request, with what else the refusal of REST says.
pub fn refusal(
    request: &Request,
    code: Code,
    message: &str,
    details: Option<&RawValue>,
    timestamp: OffsetDateTime,
) -> String {
    let payload = Refusal { code, message, details };
    written(&Frame { id: request.id.as_deref(), kind: "error", action: &request.action, payload, timestamp })
}

/// The refusal of what is no request.
pub fn refusal_of(bad: &BadFrame, timestamp: OffsetDateTime) -> String {
    let payload = Refusal { code: Code::BadRequest, message: &bad.message, details: None };
    written(&Frame { id: bad.id.as_deref(), kind: "error", action: &bad.action, payload, timestamp })
}

/// News that nobody asked for just now.
pub fn notification(action: &str, payload: &impl Serialize, timestamp: OffsetDateTime) -> String {
    written(&Frame { id: None, kind: "notification", action, payload, timestamp })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_is_read_with_all_its_parts() {
        let text = r#"{"id":"7","type":"request","action":"task.get","payload":{"id":"t"},"timestamp":"x",
            "metadata":{"if_match":"\"3\"","idempotency_key":"k","else":1}}"#;
        let metadata = Metadata { if_match: Some("\"3\"".to_owned()), idempotency_key: Some("k".to_owned()) };
        let payload = json!({"id": "t"}).as_object().unwrap().clone();
        let request = Request { id: Some("7".to_owned()), action: "task.get".to_owned(), payload, metadata };
        assert_eq!(parse(text), Ok(request));
    }

    #[test]
    fn what_can_do_without_may_be_left_out() {
        let bare = parse(r#"{"type":"request","action":"health.check"}"#).unwrap();
        assert_eq!((bare.id, bare.payload.len(), bare.metadata), (None, 0, Metadata::default()));
    }

    #[test]
    fn what_is_no_request_is_told_with_as_much_of_its_name_as_was_read() {
        let long = format!(r#"{{"id":"{}","type":"request","action":"a"}}"#, "x".repeat(129));
        let cases = [
            ("", None, "", "a frame must be a JSON object with type, action and payload"),
            ("[1]", None, "", "a frame must be a JSON object with type, action and payload"),
            (r#"{"id":7,"type":"request","action":"a"}"#, None, "a", "id must be a text"),
            (long.as_str(), None, "a", "id must have at most 128 bytes"),
            (r#"{"id":"7","type":"request"}"#, Some("7"), "", "action must be a text"),
            (r#"{"id":"7","type":"response","action":"a"}"#, Some("7"), "a", "type must be \"request\""),
            (r#"{"id":"7","type":"request","action":"a","payload":[]}"#, Some("7"), "a", "payload must be an object"),
        ];
        for (text, id, action, message) in cases {
            let bad = BadFrame { id: id.map(str::to_owned), action: action.to_owned(), message: message.to_owned() };
            assert_eq!(parse(text), Err(bad), "{text}");
        }
    }

    #[test]
    fn answers_and_news_have_the_fields_of_the_contract() {
        let at = OffsetDateTime::UNIX_EPOCH;
        let request = parse(r#"{"id":"7","type":"request","action":"task.get"}"#).unwrap();
        let body = RawValue::from_string(r#"{"id":"t"}"#.to_owned()).unwrap();
        let time = "1970-01-01T00:00:00Z";
        let read = |text: String| serde_json::from_str::<Value>(&text).unwrap();
        assert_eq!(
            read(response(&request, &body, at)),
            json!({"id": "7", "type": "response", "action": "task.get", "payload": {"id": "t"}, "timestamp": time})
        );
        assert_eq!(
            read(refusal(&request, Code::of_status(412), "task was changed", None, at)),
            json!({"id": "7", "type": "error", "action": "task.get", "timestamp": time,
                "payload": {"code": "CONFLICT", "message": "task was changed"}})
        );
        assert_eq!(
            read(notification("task.created", &json!({"task_id": "t"}), at)),
            json!({"type": "notification", "action": "task.created", "payload": {"task_id": "t"}, "timestamp": time})
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_request_or_told_what_is_wrong(text in ".{0,200}") {
            if let Err(bad) = parse(&text) {
                proptest::prop_assert!(!bad.message.is_empty());
            }
        }
    }
}
