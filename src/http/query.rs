//! The queries of the host's own routes, with one rule for all: a parameter that the route does not know, or a second
//! one of a name, is refused. A misspelt one would otherwise silently do something else than what was asked for.
//!
//! Each route of the table says what it takes. Its handler reads the parameters by the extractor [`Query`], whose types
//! deny unknown fields; a route that takes none is held to it here. A plugin's webhooks are the plugin's own.

use std::future::{Ready, ready};

use actix_web::{
    Error, FromRequest, HttpRequest, ResponseError,
    body::{BoxBody, MessageBody},
    dev::{Payload, ServiceRequest, ServiceResponse},
    error::QueryPayloadError,
    middleware::Next,
    web,
};
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

/// The middleware of one route, behind the gate: who may not ask is not told what may be asked.
pub async fn hold(
    takes: Takes,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    if takes == Takes::Nothing && form_urlencoded::parse(request.query_string().as_bytes()).next().is_some() {
        let refusal = ApiError::Query("invalid query: this route takes no parameters".to_owned());
        return Ok(request.into_response(refusal.error_response()));
    }
    Ok(next.call(request).await?.map_into_boxed_body())
}
