//! The operator's token as the edge needs it: compared, never shown.

use actix_web::http::header::{self, HeaderMap};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use url::form_urlencoded;

use crate::domain::principal::Principal;

/// The digest of the operator's token. Comparing digests in constant time tells nothing about the token or its length.
#[derive(Clone)]
pub struct OperatorToken([u8; 32]);

impl std::fmt::Debug for OperatorToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OperatorToken(hidden)")
    }
}

impl OperatorToken {
    /// Takes the token; only its digest is kept.
    pub fn new(token: &SecretString) -> Self {
        Self(Sha256::digest(token.expose_secret()).into())
    }

    /// Who sent this. A client that opens a WebSocket may say its token in the query, since browsers cannot set headers
    /// there (platform-rest.md §1); nobody else may, for addresses are written down in many places.
    pub fn principal_of(&self, headers: &HeaderMap, query: &str) -> Principal {
        let upgrades = headers.get(header::UPGRADE).is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket"));
        if !upgrades || headers.contains_key(header::AUTHORIZATION) {
            return self.principal(headers);
        }
        let mut tokens = form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == "token");
        match (tokens.next(), tokens.next()) {
            (Some((_, token)), None) if self.matches(token.as_bytes()) => Principal::Operator,
            _ => Principal::Anonymous,
        }
    }

    /// Who sent these headers. A missing, foreign, doubled or malformed `Authorization` makes an anonymous caller: on
    /// a public webhook the header may be meant for the plugin's own service, and elsewhere `authorize` refuses.
    fn principal(&self, headers: &HeaderMap) -> Principal {
        match bearer_of(headers) {
            Some(token) if self.matches(token) => Principal::Operator,
            Some(_) | None => Principal::Anonymous,
        }
    }

    fn matches(&self, presented: &[u8]) -> bool {
        let digest: [u8; 32] = Sha256::digest(presented).into();
        digest.ct_eq(&self.0).into()
    }
}

/// The one bearer token of a request.
pub fn bearer_of(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(header::AUTHORIZATION);
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    bearer(value.as_bytes())
}

/// The credentials of `Bearer <token>`; the scheme's case does not matter (RFC 9110 §11.1).
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(6)?;
    let token = rest.strip_prefix(b" ")?.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    fn principal(values: &[&[u8]]) -> Principal {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
        }
        OperatorToken::new(&"t0ken".to_owned().into()).principal(&headers)
    }

    #[test]
    fn only_the_whole_token_makes_an_operator() {
        assert_eq!(principal(&[b"Bearer t0ken"]), Principal::Operator);
        assert_eq!(principal(&[b"bEARER  t0ken "]), Principal::Operator);
        let refused: [&[u8]; 9] = [
            b"",
            b"Bearer",
            b"Bearer ",
            b"Bearer t0ke",
            b"Bearer t0kenX",
            b"Basic t0ken",
            b"t0ken",
            b"Bearer\xff t0ken",
            b"Bearer t0ken\xe9",
        ];
        for value in refused {
            assert_eq!(principal(&[value]), Principal::Anonymous, "{value:?}");
        }
        assert_eq!(principal(&[]), Principal::Anonymous);
    }

    #[test]
    fn a_websocket_may_have_the_token_in_its_query_and_nothing_else_may() {
        let token = OperatorToken::new(&"t0ken".to_owned().into());
        let of = |lines: &[(header::HeaderName, &str)], query: &str| {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(name.clone(), HeaderValue::from_str(value).unwrap());
            }
            token.principal_of(&headers, query)
        };
        let upgrade = (header::UPGRADE, "WebSocket");
        assert_eq!(of(std::slice::from_ref(&upgrade), "x=1&token=t0ken"), Principal::Operator);
        assert_eq!(of(&[], "token=t0ken"), Principal::Anonymous);
        assert_eq!(of(std::slice::from_ref(&upgrade), "token=t0ken&token=t0ken"), Principal::Anonymous);
        assert_eq!(of(std::slice::from_ref(&upgrade), "token=else"), Principal::Anonymous);
        let wrong = (header::AUTHORIZATION, "Bearer else");
        assert_eq!(of(&[upgrade, wrong], "token=t0ken"), Principal::Anonymous);
    }

    #[test]
    fn two_authorization_headers_prove_nothing() {
        assert_eq!(principal(&[b"Bearer t0ken", b"Bearer t0ken"]), Principal::Anonymous);
    }

    #[test]
    fn the_token_does_not_appear_in_debug_output() {
        let token = OperatorToken::new(&"t0ken".to_owned().into());
        assert_eq!(format!("{token:?}"), "OperatorToken(hidden)");
    }
}
