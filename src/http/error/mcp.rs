//! The part of the map that is about clients of the Model Context Protocol, as far as HTTP answers them; what JSON-RPC
//! answers is `http::mcp::shapes`' part.

use actix_web::http::StatusCode;

use super::{Described, plain};
use crate::http::mcp::Refused;

pub(super) fn refused(error: &Refused) -> Described {
    match error {
        Refused::Origin(_) => plain(StatusCode::FORBIDDEN, "origin_refused", error),
        Refused::TooMany => plain(StatusCode::TOO_MANY_REQUESTS, "too_many_mcp_sessions", error),
        Refused::NoSession => plain(StatusCode::NOT_FOUND, "mcp_session_not_found", error),
        Refused::Busy => plain(StatusCode::SERVICE_UNAVAILABLE, "mcp_session_busy", error),
        Refused::Message(_) => plain(StatusCode::BAD_REQUEST, "invalid_mcp_message", error),
        Refused::Accept(_) => plain(StatusCode::NOT_ACCEPTABLE, "not_acceptable", error),
        Refused::Media => plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", error),
    }
}
