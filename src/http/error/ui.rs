//! The part of the map that is about what browsers get of plugins: files, and what is stored for users.

use actix_web::http::StatusCode;

use super::{Described, describe_fault, plain, trouble};
use crate::{
    http::{ui::UiError, user_state::Refused},
    store::{ui_files::UiFileError, user_state::UserStateError},
};

pub(super) fn file(error: &UiError) -> Described {
    match error {
        UiError::NotActive(_) => plain(StatusCode::SERVICE_UNAVAILABLE, "plugin_not_active", error),
        UiError::NoBundle => plain(StatusCode::NOT_FOUND, "no_ui_bundle", error),
        UiError::Unsatisfiable(_) => plain(StatusCode::RANGE_NOT_SATISFIABLE, "invalid_range", error),
        UiError::File(UiFileError::NotFound) => plain(StatusCode::NOT_FOUND, "ui_file_not_found", error),
        UiError::File(UiFileError::TooLate(_)) => {
            plain(StatusCode::GATEWAY_TIMEOUT, "timed_out", "the host's disk does not answer in time")
                .with_note(error.to_string())
        }
        UiError::File(UiFileError::Disk(_)) => trouble(error),
    }
}

pub(super) fn user_state(error: &Refused) -> Described {
    match error {
        Refused::NotActive(_) => plain(StatusCode::NOT_FOUND, "plugin_not_active", error),
        Refused::NotDeclared(_) => plain(StatusCode::FORBIDDEN, "capability_missing", error),
        Refused::Place(_) => plain(StatusCode::BAD_REQUEST, "invalid_place", error),
        Refused::NoEntry => plain(StatusCode::NOT_FOUND, "user_state_not_found", error),
        Refused::Store(UserStateError::Conflict) => plain(StatusCode::CONFLICT, "user_state_conflict", error),
        Refused::Store(UserStateError::QuotaExceeded { .. }) => {
            plain(StatusCode::PAYLOAD_TOO_LARGE, "user_state_full", error)
        }
        Refused::Store(UserStateError::Uninstalled) => plain(StatusCode::NOT_FOUND, "plugin_not_found", error),
        Refused::Store(UserStateError::Database(fault)) => describe_fault(fault),
    }
}
