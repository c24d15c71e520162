//! Reading request bodies: bounded in size, in silence and in the memory of all together.

use std::{mem, sync::Arc, time::Duration};

use actix_web::{
    HttpRequest,
    http::header,
    web::{Bytes, BytesMut, Payload},
};
use futures_util::StreamExt;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

use super::ApiError;
use crate::config::Timing;
use crate::domain::{clean, misread};

/// Why a body cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Larger than `limit` bytes.
    #[error("larger than {limit} bytes")]
    TooLarge {
        /// The bound.
        limit: u64,
    },
    /// It ended early or is not HTTP.
    #[error("ended early")]
    Broken,
    /// The client sent nothing for this long.
    #[error("no byte for {} ms", .0.as_millis())]
    Silent(Duration),
    /// It was not complete after this long.
    #[error("not complete after {} ms", .0.as_millis())]
    TooSlow(Duration),
}

/// Bounds of one body.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Bytes; one more is [`BodyError::TooLarge`].
    pub limit: u64,
    /// Longest silence between two pieces.
    pub idle: Duration,
    /// Longest time for the whole body.
    pub total: Duration,
}

impl Bounds {
    /// A body of at most `limit` bytes, with the host's waits.
    pub fn new(limit: u64, timing: &Timing) -> Self {
        Self { limit, idle: timing.body_idle_timeout, total: timing.body_timeout }
    }
}

/// The next piece of a body that must be complete at `end`; `None` at its end. One timer for both waits: it costs as
/// much as the rest of reading a small body.
async fn next_piece(payload: &mut Payload, bounds: Bounds, end: Instant) -> Result<Option<Bytes>, BodyError> {
    let silent = Instant::now() + bounds.idle;
    match timeout_at(silent.min(end), payload.next()).await {
        Err(_) if silent < end => Err(BodyError::Silent(bounds.idle)),
        Err(_) => Err(BodyError::TooSlow(bounds.total)),
        Ok(None) => Ok(None),
        Ok(Some(Ok(piece))) => Ok(Some(piece)),
        Ok(Some(Err(_))) => Err(BodyError::Broken),
    }
}

/// A declared length above the limit is refused before a byte is read.
pub fn check_declared_length(request: &HttpRequest, limit: u64) -> Result<(), BodyError> {
    let declared = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    match declared.and_then(|text| text.parse::<u64>().ok()) {
        Some(length) if length > limit => Err(BodyError::TooLarge { limit }),
        Some(_) | None => Ok(()),
    }
}

/// Room for bodies held in memory by all requests together, counted in KiB as they arrive.
#[derive(Debug)]
pub struct Room(Arc<Semaphore>);

/// What a body that is a list is told.
const NO_LIST: &str = "a JSON object is wanted, not a list";

/// One KiB of [`Room`].
const UNIT: u64 = 1024;

impl Room {
    /// Room for `bytes`, rounded up to whole KiB.
    pub fn new(bytes: u64) -> Self {
        let units = usize::try_from(bytes.div_ceil(UNIT)).unwrap_or(usize::MAX);
        Self(Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS))))
    }

    fn take(&self, units: u64) -> Option<OwnedSemaphorePermit> {
        let units = u32::try_from(units).ok()?;
        self.0.clone().try_acquire_many_owned(units).ok()
    }
}

/// A whole body with the room it takes.
#[derive(Debug)]
pub struct Held {
    /// The bytes as they came.
    pub bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

/// Reads a whole body into `room`.
pub async fn read_into(room: &Room, request: &HttpRequest, payload: Payload, bounds: Bounds) -> Result<Held, ApiError> {
    read(Some(room), request, payload, bounds).await
}

/// Reads a whole body.
pub async fn whole(request: &HttpRequest, payload: Payload, bounds: Bounds) -> Result<Bytes, ApiError> {
    Ok(read(None, request, payload, bounds).await?.bytes)
}

/// Reads a body of JSON. The text of a refusal says where the mistake is.
pub async fn json<T: DeserializeOwned>(request: &HttpRequest, payload: Payload, bounds: Bounds) -> Result<T, ApiError> {
    let body = read(None, request, payload, bounds).await?;
    parse(&body.bytes)
}

/// JSON of the documented fields, and nothing after it. The text of a refusal names the field.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let refused = |text: String| ApiError::Invalid(format!("invalid payload: {}", clean::single_line(&text, 300)));
    if is_list(bytes) {
        return Err(refused(NO_LIST.to_owned()));
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let told = misread::told(error.inner());
        // "." is the body itself, and "?" a place that is not known.
        match error.path().to_string().as_str() {
            "." | "?" => refused(told),
            path => refused(format!("{}: {told}", path.strip_suffix(".?").unwrap_or(path))),
        }
    })?;
    reader.end().map_err(|error| refused(error.to_string()))?;
    Ok(value)
}

/// serde would read a list as the fields of a body in their order, which is nobody's business.
pub(super) fn is_list(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().first() == Some(&b'[')
}

/// For a field with a default: `null` is as good as left out.
pub fn or_default<'de, T: Default + Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// As [`json`], of a body that holds secrets: the text of a refusal has the place alone.
pub async fn secret_json<T: DeserializeOwned>(
    request: &HttpRequest,
    payload: Payload,
    bounds: Bounds,
) -> Result<T, ApiError> {
    let body = read(None, request, payload, bounds).await?;
    if is_list(&body.bytes) {
        return Err(ApiError::Invalid(format!("invalid payload: {NO_LIST}")));
    }
    serde_json::from_slice(&body.bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let text = format!("invalid payload: not JSON of the documented fields, at line {line} column {column}");
        ApiError::Invalid(text)
    })
}

async fn read(
    room: Option<&Room>,
    request: &HttpRequest,
    mut payload: Payload,
    bounds: Bounds,
) -> Result<Held, ApiError> {
    check_declared_length(request, bounds.limit)?;
    let end = Instant::now() + bounds.total;
    let (mut only, mut gathered) = (Bytes::new(), BytesMut::new());
    let mut permit: Option<OwnedSemaphorePermit> = None;
    while let Some(piece) = next_piece(&mut payload, bounds, end).await? {
        let size = (only.len() + gathered.len() + piece.len()) as u64;
        if size > bounds.limit {
            return Err(BodyError::TooLarge { limit: bounds.limit }.into());
        }
        if let Some(room) = room {
            let held = permit.as_ref().map_or(0, |permit| permit.num_permits() as u64);
            let more = room.take(size.div_ceil(UNIT).saturating_sub(held)).ok_or(ApiError::NoRoom)?;
            match &mut permit {
                Some(permit) => permit.merge(more),
                None => permit = Some(more),
            }
        }
        // Most bodies are one piece, which is kept as it came.
        if gathered.is_empty() && only.is_empty() {
            only = piece;
        } else {
            gathered.extend_from_slice(&mem::take(&mut only));
            gathered.extend_from_slice(&piece);
        }
    }
    let bytes = if gathered.is_empty() { only } else { gathered.freeze() };
    Ok(Held { bytes, _room: permit })
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use actix_web::{FromRequest, ResponseError, dev, error::PayloadError, test::TestRequest};
    use futures_util::{Stream, stream};
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    const IDLE: Duration = Duration::from_secs(5);

    async fn payload(pieces: impl Stream<Item = Result<Bytes, PayloadError>> + 'static) -> (HttpRequest, Payload) {
        let request = TestRequest::post().to_http_request();
        let pieces: Pin<Box<dyn Stream<Item = Result<Bytes, PayloadError>>>> = Box::pin(pieces);
        let mut raw = dev::Payload::from(pieces);
        let payload = Payload::from_request(&request, &mut raw).await.unwrap();
        (request, payload)
    }

    async fn read_pieces(room: &Room, pieces: Vec<Vec<u8>>, limit: u64) -> Result<Held, ApiError> {
        let pieces = stream::iter(pieces.into_iter().map(|piece| Ok(piece.into())));
        let (request, payload) = payload(pieces).await;
        read_into(room, &request, payload, Bounds { limit, idle: IDLE, total: IDLE }).await
    }

    #[actix_web::test]
    async fn exactly_the_limit_passes_and_one_byte_more_does_not() {
        let room = Room::new(1 << 20);
        let held = read_pieces(&room, vec![vec![1; 6], vec![2; 4]], 10).await.unwrap();
        assert_eq!(held.bytes, [[1; 6].as_slice(), &[2; 4]].concat());
        let error = read_pieces(&room, vec![vec![1; 6], vec![2; 5]], 10).await.unwrap_err();
        assert!(matches!(error, ApiError::Body(BodyError::TooLarge { limit: 10 })));
    }

    #[actix_web::test]
    async fn a_declared_length_over_the_limit_is_refused_before_a_byte_is_read() {
        let request = TestRequest::post().insert_header((header::CONTENT_LENGTH, "11")).to_http_request();
        assert_eq!(check_declared_length(&request, 10), Err(BodyError::TooLarge { limit: 10 }));
        assert_eq!(check_declared_length(&request, 11), Ok(()));
    }

    #[actix_web::test]
    async fn a_body_that_breaks_off_is_broken_and_a_silent_one_times_out() {
        let broken = stream::iter([Ok(Bytes::from_static(b"x")), Err(PayloadError::Incomplete(None))]);
        let (request, body) = payload(broken).await;
        let error = read_into(&Room::new(1024), &request, body, Bounds { limit: 10, idle: IDLE, total: IDLE })
            .await
            .unwrap_err();
        assert!(matches!(error, ApiError::Body(BodyError::Broken)));
        let (request, body) = payload(stream::pending()).await;
        let bounds = Bounds { limit: 10, idle: Duration::from_millis(10), total: IDLE };
        let error = read_into(&Room::new(1024), &request, body, bounds).await.unwrap_err();
        assert_eq!(error.status_code(), 408);
    }

    #[actix_web::test]
    async fn a_body_that_comes_piece_by_piece_without_an_end_is_too_slow() {
        let pieces = stream::repeat_with(|| Ok(Bytes::from_static(b"x"))).then(|piece| async {
            tokio::time::sleep(Duration::from_millis(2)).await;
            piece
        });
        let (request, body) = payload(pieces).await;
        let bounds = Bounds { limit: 1 << 20, idle: IDLE, total: Duration::from_millis(20) };
        let error = read_into(&Room::new(1 << 20), &request, body, bounds).await.unwrap_err();
        let ApiError::Body(BodyError::TooSlow(total)) = error else { panic!("{error:?}") };
        assert_eq!(total, bounds.total);
    }

    #[actix_web::test]
    async fn bodies_share_one_room_and_give_it_back() {
        let room = Room::new(4096);
        let first = read_pieces(&room, vec![vec![0; 2000], vec![0; 1000]], 4096).await.unwrap();
        let error = read_pieces(&room, vec![vec![0; 1025]], 4096).await.unwrap_err();
        assert!(matches!(error, ApiError::NoRoom));
        drop(first);
        assert_eq!(read_pieces(&room, vec![vec![0; 4096]], 4096).await.unwrap().bytes.len(), 4096);
    }

    #[actix_web::test]
    async fn a_json_mistake_is_told_with_its_place_and_without_control_characters() {
        let (request, body) = payload(stream::iter([Ok(Bytes::from_static(b"{\"a\x00\":1}"))])).await;
        let error = json::<Value>(&request, body, Bounds { limit: 100, idle: IDLE, total: IDLE }).await.unwrap_err();
        assert_eq!(error.status_code(), 400);
        let text = error.to_string();
        assert!(text.starts_with("invalid payload: ") && text.ends_with("line 1 column 4"), "{text}");
    }

    #[test]
    fn a_list_is_not_read_as_the_fields_of_a_body_in_their_order() {
        #[derive(Debug, Deserialize)]
        struct Fields {
            #[expect(dead_code, reason = "only read")]
            name: String,
        }
        assert!(parse::<Fields>(br#"{"name":"x"}"#).is_ok());
        for list in [r#"["x"]"#, " \n[\"x\"]", "[]", "["] {
            let error = parse::<Fields>(list.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), format!("invalid payload: {NO_LIST}"), "{list}");
        }
    }

    #[test]
    fn a_mistake_is_told_by_the_field_and_the_kind_of_json_that_is_wanted_there() {
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "only read")]
        struct Outer {
            inner: Inner,
        }
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "only read")]
        struct Inner {
            count: u32,
        }
        for (text, told) in [
            ("7", "invalid type: integer `7`, expected an object at line 1 column 1"),
            (r#"{"inner":7}"#, "inner: invalid type: integer `7`, expected an object at line 1 column 10"),
            (
                r#"{"inner":{"count":"x"}}"#,
                "inner.count: invalid type: string \"x\", expected a whole number at line 1 column 21",
            ),
            ("", "EOF while parsing a value at line 1 column 0"),
            ("{", "EOF while parsing an object at line 1 column 1"),
            ("{\"inner\":{", "inner: EOF while parsing an object at line 1 column 10"),
        ] {
            let error = parse::<Outer>(text.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), format!("invalid payload: {told}"), "{text}");
        }
    }

    #[actix_web::test]
    async fn a_list_of_secrets_is_refused_alike() {
        let (request, body) = payload(stream::iter([Ok(Bytes::from_static(b"[\"hunter2\"]"))])).await;
        let bounds = Bounds { limit: 100, idle: IDLE, total: IDLE };
        let error = secret_json::<Value>(&request, body, bounds).await.unwrap_err();
        assert_eq!(error.to_string(), format!("invalid payload: {NO_LIST}"));
    }

    proptest! {
        #[test]
        fn pieces_are_joined_whole_or_refused_at_the_limit(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..8), limit in 0u64..200,
        ) {
            let whole = pieces.concat();
            let room = Room::new(1 << 20);
            match actix_web::rt::System::new().block_on(read_pieces(&room, pieces, limit)) {
                Ok(held) => {
                    prop_assert!(whole.len() as u64 <= limit);
                    prop_assert_eq!(held.bytes, whole);
                }
                Err(error) => {
                    prop_assert_eq!(error.status_code().as_u16(), 413);
                    prop_assert!(whole.len() as u64 > limit);
                }
            }
        }
    }
}
