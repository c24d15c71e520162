//! What comes with a change of the platform: its body, who asks, which version was seen (`If-Match`), and the key that
//! makes it happen once (`Idempotency-Key`).

use std::pin::Pin;

use actix_web::{
    FromRequest, HttpMessage, HttpRequest, HttpResponse,
    dev::Payload,
    http::{
        StatusCode,
        header::{self, HeaderMap},
    },
    web,
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};

use super::{ApiError, Services, body};
use crate::{
    domain::{platform::Scope, principal::Principal},
    platform::{By, Once},
};

/// Names the request for the next 24 hours.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Longest key in bytes.
pub(super) const MAX_KEY_BYTES: usize = 255;

/// A request that changes something. No body counts as `{}`.
#[derive(Debug)]
pub struct Change<T> {
    /// What is asked for.
    pub body: T,
    /// Who asks, where, and once.
    pub by: By,
    /// The version that was seen.
    pub expected: Option<i64>,
}

/// What a reader may see: everything, while the operator is the only one who asks.
pub fn scope(_request: &HttpRequest) -> Scope {
    Scope::All
}

impl<T: DeserializeOwned + 'static> FromRequest for Change<T> {
    type Error = ApiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, ApiError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, payload) = (request.clone(), web::Payload::from_request(request, payload));
        Box::pin(async move {
            let services = request.app_data::<web::Data<Services>>().ok_or(ApiError::NotReady)?.clone();
            let payload = payload.await.map_err(|_| ApiError::from(body::BodyError::Broken))?;
            let expected = expected(request.headers())?;
            let key = key(request.headers())?;
            let bounds = body::Bounds::new(services.limits.platform_bytes, &services.timing);
            let bytes = body::whole(&request, payload, bounds).await?;
            let once = key.map(|key| once(&request, key, &bytes));
            let by = By::operator().within(scope(&request)).with(once);
            Ok(Self { body: read(&bytes)?, by, expected })
        })
    }
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let bytes = if bytes.is_empty() { b"{}" } else { bytes };
    body::parse(bytes)
}

/// The same key of the same caller with the same request is the same request.
pub(super) fn once(request: &HttpRequest, key: String, body: &[u8]) -> Once {
    let principal = request.extensions().get::<Principal>().copied().unwrap_or(Principal::Anonymous);
    let mut hash = Sha256::new();
    for part in [request.method().as_str(), request.path(), request.query_string(), if_match(request.headers())] {
        hash.update(part);
        hash.update([0]);
    }
    hash.update(body);
    Once { scope: principal.to_string(), key, fingerprint: URL_SAFE_NO_PAD.encode(hash.finalize()) }
}

/// The key of a request that has one.
pub(super) fn key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let key = value.to_str().unwrap_or_default();
    let lawful = (1..=MAX_KEY_BYTES).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
    if !lawful || headers.get_all(IDEMPOTENCY_KEY).count() > 1 {
        let text = format!("Idempotency-Key must be one word of 1 to {MAX_KEY_BYTES} visible ASCII characters");
        return Err(ApiError::Invalid(text));
    }
    Ok(Some(key.to_owned()))
}

/// Refuses a key where none can be kept: who sends one believes that sending it again is safe.
pub(super) fn no_key(headers: &HeaderMap, why: &str) -> Result<(), ApiError> {
    match headers.contains_key(IDEMPOTENCY_KEY) {
        true => Err(ApiError::Invalid(format!("no Idempotency-Key is taken here: {why}"))),
        false => Ok(()),
    }
}

fn if_match(headers: &HeaderMap) -> &str {
    headers.get(header::IF_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// The version in `If-Match`. `*` and no header stand for any. A tag that this host never gave matches nothing
/// (RFC 9110 §13.1.1), a weak one neither.
fn expected(headers: &HeaderMap) -> Result<Option<i64>, ApiError> {
    if !headers.contains_key(header::IF_MATCH) {
        return Ok(None);
    }
    let tag = if_match(headers).trim();
    if tag == "*" {
        return Ok(None);
    }
    if tag.contains(',') || headers.get_all(header::IF_MATCH).count() > 1 {
        return Err(ApiError::Invalid("If-Match must have one entity tag, as the ETag of an answer".to_owned()));
    }
    let quoted = tag.strip_prefix("W/").unwrap_or(tag);
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let Some(inner) = inner else {
        return Err(ApiError::Invalid("If-Match must be an entity tag in quotes, as \"3\"".to_owned()));
    };
    let version = inner.parse().ok().filter(|version: &i64| quoted == tag && version.to_string() == inner);
    Ok(Some(version.unwrap_or(NO_VERSION)))
}

/// No thing has it: versions begin at 1.
const NO_VERSION: i64 = 0;

/// An answer about one thing, with its version.
pub fn versioned(status: StatusCode, version: i64, body: &impl Serialize) -> HttpResponse {
    HttpResponse::build(status).insert_header((header::ETAG, format!("\"{version}\""))).json(body)
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let request = lines.iter().fold(TestRequest::default(), |request, line| request.append_header(*line));
        request.to_http_request().headers().clone()
    }

    #[test]
    fn the_version_is_what_stands_in_quotes() {
        assert_eq!(expected(&headers(&[])).unwrap(), None);
        assert_eq!(expected(&headers(&[("if-match", "*")])).unwrap(), None);
        assert_eq!(expected(&headers(&[("if-match", "\"12\"")])).unwrap(), Some(12));
        for foreign in ["\"abc\"", "\"\"", "W/\"12\"", "\"+12\"", "\"012\"", "\"99999999999999999999\""] {
            assert_eq!(expected(&headers(&[("if-match", foreign)])).unwrap(), Some(NO_VERSION), "{foreign}");
        }
    }

    #[test]
    fn what_is_no_single_tag_is_refused() {
        for bad in ["12", "", "\"12", "\"1\", \"2\""] {
            assert!(matches!(expected(&headers(&[("if-match", bad)])), Err(ApiError::Invalid(_))), "{bad}");
        }
        let twice = headers(&[("if-match", "\"1\""), ("if-match", "\"2\"")]);
        assert!(matches!(expected(&twice), Err(ApiError::Invalid(_))));
    }

    #[test]
    fn a_key_is_one_bounded_word() {
        let of = |value: &str| key(&headers(&[(IDEMPOTENCY_KEY, value)]));
        assert_eq!(key(&headers(&[])).unwrap(), None);
        assert_eq!(of("4f-a").unwrap().as_deref(), Some("4f-a"));
        assert_eq!(of(&"k".repeat(255)).unwrap().map(|key| key.len()), Some(255));
        for bad in ["", "a b", "ä", &"k".repeat(256)] {
            assert!(matches!(of(bad), Err(ApiError::Invalid(_))), "{bad}");
        }
        let twice = headers(&[(IDEMPOTENCY_KEY, "a"), (IDEMPOTENCY_KEY, "a")]);
        assert!(key(&twice).is_err());
    }

    #[test]
    fn where_no_key_can_be_kept_any_is_refused() {
        assert!(no_key(&headers(&[]), "because").is_ok());
        for value in ["4f-a", ""] {
            let refused = no_key(&headers(&[(IDEMPOTENCY_KEY, value)]), "because");
            assert!(
                matches!(refused, Err(ApiError::Invalid(text)) if text == "no Idempotency-Key is taken here: because")
            );
        }
    }

    #[test]
    fn another_path_query_version_or_body_is_another_request() {
        let of = |uri: &str, tag: &'static str, body: &[u8]| {
            let request = TestRequest::post().uri(uri).insert_header(("if-match", tag)).to_http_request();
            once(&request, "k".to_owned(), body).fingerprint
        };
        let all = [
            of("/a", "*", b"x"),
            of("/b", "*", b"x"),
            of("/a?x=1", "*", b"x"),
            of("/a", "\"1\"", b"x"),
            of("/a", "*", b"y"),
        ];
        let unique: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!((unique.len(), of("/a", "*", b"x")), (all.len(), all[0].clone()));
    }
}
