//! The upload form, piece by piece, into a real staging folder.

use actix_web::{
    ResponseError,
    error::PayloadError,
    http::header::{HeaderMap, HeaderValue},
    web::Bytes,
};
use proptest::prelude::*;

use super::*;

const IDLE: Duration = Duration::from_secs(5);
const SPARE: u64 = 64;

fn field(name: &str, content: &str) -> String {
    format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"x\"\r\n\r\n{content}\r\n")
}

/// Takes in a body that arrives in the given pieces; gives the staged size.
async fn take(pieces: Vec<Vec<u8>>, limit: u64) -> Result<u64, ApiError> {
    let root = tempfile::tempdir().unwrap();
    let packages = PackageStore::new(root.path());
    let limits = Limits { compressed: limit, ..Limits::default() };
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("multipart/form-data; boundary=b"));
    let body = stream::iter(pieces.into_iter().map(|piece| Ok::<_, PayloadError>(Bytes::from(piece))));
    let desk = Desk { packages: &packages, limits: &limits, idle: IDLE };
    desk.take(Multipart::new(&headers, body), SPARE).await.map(|staged| staged.size)
}

async fn refused(body: &str) -> (u16, String) {
    let error = take(vec![body.as_bytes().to_vec()], 10).await.unwrap_err();
    (error.status_code().as_u16(), error.to_string())
}

#[actix_web::test]
async fn the_package_is_found_among_other_fields() {
    let body = format!("{}{}{}--b--\r\n", field("note", "hi"), field("package", "0123456789"), field("more", "x"));
    assert_eq!(take(vec![body.into_bytes()], 10).await.unwrap(), 10);
}

#[actix_web::test]
async fn a_package_of_exactly_the_limit_passes_and_one_byte_more_is_413() {
    let body = |content: &str| format!("{}--b--\r\n", field("package", content));
    assert_eq!(take(vec![body("0123456789").into_bytes()], 10).await.unwrap(), 10);
    let expected = (413, "pkgtar: package exceeds max compressed size of 10 bytes".to_owned());
    assert_eq!(refused(&body("0123456789A")).await, expected);
}

#[actix_web::test]
async fn a_form_without_a_package_is_named_as_such() {
    let expected = (400, "missing multipart field \"package\"".to_owned());
    assert_eq!(refused(&format!("{}--b--\r\n", field("file", "x"))).await, expected);
    assert_eq!(refused("--b--\r\n").await, expected);
}

#[actix_web::test]
async fn two_packages_are_refused() {
    let body = format!("{}{}--b--\r\n", field("package", "1"), field("package", "2"));
    let expected = (400, "more than one multipart field \"package\": upload one package".to_owned());
    assert_eq!(refused(&body).await, expected);
}

#[actix_web::test]
async fn too_much_beside_the_package_is_refused() {
    let body = format!("{}--b--\r\n", field("note", &"x".repeat(65)));
    let expected = (413, "too many bytes in fields other than \"package\"".to_owned());
    assert_eq!(refused(&body).await, expected);
}

#[actix_web::test]
async fn an_upload_that_breaks_off_is_400_and_leaves_nothing_staged() {
    let whole = format!("{}--b--\r\n", field("package", "0123456789"));
    for end in [10, whole.len() - 12, whole.len() - 8] {
        let expected = (400, "failed to read request body".to_owned());
        assert_eq!(refused(&whole[..end]).await, expected, "{end}");
    }
}

#[actix_web::test]
async fn a_body_that_is_not_multipart_is_400() {
    let headers = HeaderMap::new();
    let packages = PackageStore::new(tempfile::tempdir().unwrap().path());
    let desk = Desk { packages: &packages, limits: &Limits::default(), idle: IDLE };
    let body = stream::iter([Ok::<_, PayloadError>(Bytes::from_static(b"x"))]);
    let error = desk.take(Multipart::new(&headers, body), SPARE).await.unwrap_err();
    assert_eq!(error.status_code(), 400);
}

#[actix_web::test]
async fn a_client_that_falls_silent_is_408() {
    let packages = PackageStore::new(tempfile::tempdir().unwrap().path());
    let desk = Desk { packages: &packages, limits: &Limits::default(), idle: Duration::from_millis(20) };
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("multipart/form-data; boundary=b"));
    let body = stream::pending::<Result<Bytes, PayloadError>>();
    let error = desk.take(Multipart::new(&headers, body), SPARE).await.unwrap_err();
    assert_eq!(error.status_code(), 408);
}

proptest! {
    #[test]
    fn any_body_in_any_pieces_gets_a_verdict_that_is_not_500(
        noise in prop::collection::vec(any::<u8>(), 0..40), cut in 0usize..200, flip in 0usize..200,
    ) {
        let mut body = format!("{}--b--\r\n", field("package", "0123456789")).into_bytes();
        let at = flip.min(body.len());
        body.splice(at..at, noise);
        let tail = body.split_off(cut.min(body.len()));
        let verdict = actix_web::rt::System::new().block_on(take(vec![body, tail], 1 << 20));
        if let Err(error) = verdict {
            prop_assert!(error.status_code().is_client_error(), "{}", error);
        }
    }
}
