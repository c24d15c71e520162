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
use crate::domain::clean;

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

/// Reads a query.
pub fn read<T: DeserializeOwned>(query: &str) -> Result<T, ApiError> {
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
