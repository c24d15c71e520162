//! The queries of the host's own routes, with one rule for all: a parameter that the route does not know, or a second
//! one of a name, is refused. A misspelt one would otherwise silently do something else than what was asked for.
//!
//! Each route of the table says what it takes. Its handler reads the parameters by the extractor [`Query`], whose types
//! deny unknown fields; a route that takes none is held to it here. A plugin's webhooks are the plugin's own.

use std::future::{Ready, ready};

use actix_web::{FromRequest, HttpRequest, dev::Payload, error::QueryPayloadError, web};
use serde::de::DeserializeOwned;
use url::form_urlencoded;

use super::ApiError;
use crate::domain::{clean, percent::decoded_bytes};

/// Longest reason of a refused query, in bytes.
const SHOWN_BYTES: usize = 300;

/// What a route takes behind the question mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Nothing.
    Nothing,
    /// What its handler's [`Query`] names.
    Parameters,
    /// Whatever comes: it is the plugin's.
    Anything,
}

/// The parameters of a request. `T` must deny unknown fields.
#[derive(Debug)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned> FromRequest for Query<T> {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(read(request.query_string()).map(Self))
    }
}

/// Reads a query. One that is not UTF-8 is refused: its parameters would be read with other characters in them.
pub fn read<T: DeserializeOwned>(query: &str) -> Result<T, ApiError> {
    if query.contains('%') && std::str::from_utf8(&decoded_bytes(query.as_bytes())).is_err() {
        return Err(ApiError::Query("invalid query: it is not UTF-8".to_owned()));
    }
    let read = web::Query::<T>::from_query(query);
    read.map(web::Query::into_inner).map_err(|error| {
        let reason = match &error {
            QueryPayloadError::Deserialize(reason) => reason.to_string(),
            other => other.to_string(),
        };
        ApiError::Query(format!("invalid query: {}", clean::single_line(&reason, SHOWN_BYTES)))
    })
}

/// Whether a query fits what its route takes. What a handler reads, its [`Query`] judges.
pub fn check(takes: Takes, query: &str) -> Result<(), ApiError> {
    match takes {
        Takes::Nothing if form_urlencoded::parse(query.as_bytes()).next().is_some() => {
            Err(ApiError::Query("invalid query: this route takes no parameters".to_owned()))
        }
        Takes::Nothing | Takes::Parameters | Takes::Anything => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_query_that_is_not_utf_8_is_refused_as_such() {
        let taken = |query: &str| read::<BTreeMap<String, String>>(query).map_err(|error| error.to_string());
        for query in ["a=%ff", "a=%c3", "%ff=a", "a=x&b=%C3%28"] {
            assert_eq!(taken(query), Err("invalid query: it is not UTF-8".to_owned()), "{query}");
        }
        for (query, value) in
            [("a=%c3%a9", "\u{e9}"), ("a=\u{e9}", "\u{e9}"), ("a=%ef%bf%bd", "\u{fffd}"), ("a=%", "%")]
        {
            assert_eq!(taken(query), Ok(BTreeMap::from([("a".to_owned(), value.to_owned())])), "{query}");
        }
    }
}
