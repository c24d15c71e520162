//! Stands before every handler: who asks, may they, and what becomes of a handler that panics or outlives the grace of
//! the host's stop.
//!
//! It runs before anything of the body is read. Wrapped around each route by [`super::routes`] with the route's action.

use std::panic::AssertUnwindSafe;

use actix_web::{
    Error, HttpMessage, HttpRequest, ResponseError,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::{ConnectionType, header},
    middleware::Next,
    web::Data,
};
use futures_util::FutureExt;

use super::{
    ApiError, OperatorToken, Services, Stop,
    query::{self, Takes},
};
use crate::domain::{
    action::Action,
    authorize::{Decision, authorize, is_for_every_page},
    origin,
    principal::Principal,
};

/// Finds out who asks, for every decision about this request.
pub fn identify(request: &ServiceRequest) -> Principal {
    let principal = match request.app_data::<Data<OperatorToken>>() {
        Some(token) => token.principal_of(request.headers(), request.query_string()),
        None => Principal::Anonymous,
    };
    request.extensions_mut().insert(principal);
    principal
}

/// The middleware of one route.
pub async fn admit(
    action: Action,
    takes: Takes,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let http = request.request().clone();
    if !http.extensions().contains::<Principal>() {
        identify(&request);
    }
    // Who may not ask is not told what may be asked.
    if let Err(error) = require_for(&http, action).and_then(|()| query::check(takes, http.query_string())) {
        return Ok(request.into_response(error.error_response()));
    }
    let work = AssertUnwindSafe(next.call(request)).catch_unwind();
    let done = match http.app_data::<Stop>() {
        Some(stop) => stop.within_grace(work).await,
        None => Some(work.await),
    };
    match done {
        Some(Ok(answer)) => Ok(answer?.map_into_boxed_body()),
        Some(Err(_)) => {
            tracing::error!(action = %action, "handler panicked");
            Ok(ServiceResponse::new(http, ApiError::Lost.error_response()))
        }
        // The handler is dropped, and with it a call into a plugin; a command goes on without its client.
        None => {
            let mut answer = ApiError::Stopping.error_response();
            answer.head_mut().set_connection_type(ConnectionType::Close);
            Ok(ServiceResponse::new(http, answer))
        }
    }
}

/// Refuses what a page of another origin sends, `/ws` and `/mcp` among it: a browser might add its reader's
/// credentials, and a page might have been given a token. What everyone may do without one, every page may.
fn own_page(request: &HttpRequest, action: Action) -> Result<(), ApiError> {
    let mut origins = request.headers().get_all(header::ORIGIN).peekable();
    if origins.peek().is_none() || is_for_every_page(action) {
        return Ok(());
    }
    let asked = request.connection_info();
    let services = request.app_data::<Data<Services>>();
    let allowed = services.map(|services| services.allowed_origins.as_slice()).unwrap_or_default();
    match origins.all(|origin| origin::may_ask(origin.as_bytes(), asked.host(), allowed)) {
        true => Ok(()),
        false => Err(ApiError::ForeignOrigin),
    }
}

/// A decision; a handler asks for a second one, when the action depends on what is asked for.
pub fn require_for(request: &HttpRequest, action: Action) -> Result<(), ApiError> {
    own_page(request, action)?;
    require(principal(request), action)
}

/// Who asks.
pub fn principal(request: &HttpRequest) -> Principal {
    request.extensions().get::<Principal>().copied().unwrap_or(Principal::Anonymous)
}

fn require(principal: Principal, action: Action) -> Result<(), ApiError> {
    match authorize(principal, action) {
        Decision::Allow => Ok(()),
        Decision::Unauthenticated => Err(ApiError::Unauthenticated),
        Decision::Forbidden => Err(ApiError::Forbidden),
    }
}
