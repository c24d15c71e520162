//! Whether a browser's page may use this endpoint: the gate has turned away the pages of other origins, as everywhere;
//! here DNS rebinding ends (`domain::origin`). Programs send no `Origin`.

use actix_web::http::header::{self, HeaderMap, HeaderValue};

use super::Refused;
use crate::domain::{clean, origin};

/// Longest origin in a message, in bytes.
const SHOWN_BYTES: usize = 128;

/// # Errors
/// [`Refused::Origin`] when there is an `Origin` whose name somebody else may have lent this machine.
pub fn check(headers: &HeaderMap, allowed: &[String]) -> Result<(), Refused> {
    let mut origins = headers.get_all(header::ORIGIN).map(HeaderValue::as_bytes);
    match origins.find(|origin| !origin::is_certain(origin, allowed)) {
        Some(origin) => Err(Refused::Origin(clean::single_line(&String::from_utf8_lossy(origin), SHOWN_BYTES))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(origins: &[&str], allowed: &[&str]) -> Result<(), Refused> {
        let mut headers = HeaderMap::new();
        for origin in origins {
            headers.append(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        check(&headers, &allowed.iter().map(|origin| (*origin).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn every_origin_that_is_sent_must_be_certain() {
        let (own, evil) = ("http://127.0.0.1", "http://evil.example.test");
        let refused = Err(Refused::Origin(evil.to_owned()));
        assert_eq!(checked(&[], &[]), Ok(()), "a program sends none");
        assert_eq!(checked(&[own], &[]), Ok(()));
        assert_eq!(checked(&[own, evil], &[]), refused);
        assert_eq!(checked(&[own, evil], &["http://evil.example.test:80"]), refused);
        assert_eq!(checked(&[own, evil], &[evil]), Ok(()), "the operator says so");
    }
}
