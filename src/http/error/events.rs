//! The part of the map that is about publishing events.

use actix_web::http::StatusCode;

use super::{Described, describe_fault, plain, platform::describe_refusal, stopping};
use crate::{actors::PublishError, platform::event_writer::WriteError};

pub(super) fn write(error: &WriteError) -> Described {
    match error {
        WriteError::Refused(refused) => publish(refused),
        WriteError::Full => plain(StatusCode::SERVICE_UNAVAILABLE, "event_queue_full", error),
        WriteError::TooLate(_) => plain(StatusCode::SERVICE_UNAVAILABLE, "event_not_written", error)
            .with_note("the database is slow, or events wait in a long line".to_owned()),
        WriteError::Stopping => stopping(),
        WriteError::Key(refusal) => describe_refusal(refusal),
        WriteError::Database(fault) => describe_fault(fault),
    }
}

fn publish(error: &PublishError) -> Described {
    match error {
        PublishError::InvalidName(_) => plain(StatusCode::BAD_REQUEST, "invalid_event_name", error),
        PublishError::ForeignPrefix { .. } => plain(StatusCode::BAD_REQUEST, "foreign_event_name", error),
        PublishError::Reserved(_) => plain(StatusCode::BAD_REQUEST, "reserved_event_name", error),
        PublishError::TooLarge { .. } => plain(StatusCode::PAYLOAD_TOO_LARGE, "event_too_large", error),
        PublishError::TooDeep => plain(StatusCode::BAD_REQUEST, "event_too_deep", error),
    }
}
