//! `GET /ws`: the live connection of user interfaces (platform-rest.md §12).
//!
//! `hub` knows who is connected and hands events out; `connection` is the life of one; `inside` asks REST what a client
//! asks. What frames say and who is told what is `domain::gateway`'s part.

mod connection;
mod hub;
mod inside;

use std::rc::Rc;

use actix_web::{
    FromRequest, HttpMessage, HttpRequest, HttpResponse,
    dev::Payload,
    error::PayloadError,
    web::{self, Data},
};
use futures_util::StreamExt;

pub use hub::Hub;
pub(super) use inside::Inside;

use super::{
    ApiError, Services,
    endpoint::{Content, Endpoint, get},
    query::Query,
};
use crate::domain::{action::Action, gateway::lengths::Lengths, principal::Principal};

/// Where it is.
pub const PATH: &str = "/ws";

pub static ROUTES: &[Endpoint] = &[get(PATH, Action::GatewayConnect, || web::to(open))
    .about("Live news and requests over a WebSocket")
    .query::<Parameters>()
    .gives_of(101, Content::Empty)
    .refuses(&[400, 426, 429])];

/// For clients that cannot set headers.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the gate has looked at it; here it is only lawful")]
struct Parameters {
    /// What `Authorization: Bearer` would hold.
    token: Option<String>,
}

async fn open(
    services: Data<Services>,
    request: HttpRequest,
    Query(_): Query<Parameters>,
    body: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let principal = request.extensions().get::<Principal>().copied().unwrap_or(Principal::Anonymous);
    let inside = request.app_data::<Rc<Inside>>().ok_or(ApiError::NotReady)?;
    let seat = services.hub.sit(principal.user_id().unwrap_or_default()).ok_or(ApiError::TooManyConnections)?;
    let no_upgrade = |error: actix_web::Error| ApiError::NoUpgrade(error.to_string());
    let body = bounded(body, services.limits.ws_frame_bytes);
    let body = web::Payload::from_request(&request, &mut { body }).await.map_err(no_upgrade)?;
    let (answer, session, messages) = actix_ws::handle(&request, body).map_err(no_upgrade)?;
    let connection = connection::Connection::new(seat, session, &services, Rc::clone(inside), principal);
    #[expect(clippy::disallowed_methods, reason = "it ends with the connection, and every connection with the host")]
    actix_web::rt::spawn(connection.run(messages));
    Ok(answer)
}

/// The bytes of frames, up to one that is to have more than `most`: the library waits for the whole of a frame before
/// it looks how long it is.
fn bounded(body: web::Payload, most: u64) -> Payload {
    let mut lengths = Lengths::new(most);
    let look = move |piece: Result<web::Bytes, PayloadError>| {
        let piece = piece?;
        lengths.look(&piece).map(|()| piece).map_err(|_| PayloadError::Overflow)
    };
    Payload::Stream { payload: Box::pin(body.into_inner().map(look)) }
}
