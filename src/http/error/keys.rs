//! The part of the map that is about keys: the vault, its key, and the keys whose signatures count.

use actix_web::http::StatusCode;

use super::{Described, plain, trouble};
use crate::{
    store::trust::TrustError,
    vault::{RotateError, VaultError},
};

pub(super) fn vault(error: &VaultError) -> Described {
    match error {
        VaultError::TooLarge { .. } => plain(StatusCode::PAYLOAD_TOO_LARGE, "secret_too_large", error),
        VaultError::TooMany { .. } => plain(StatusCode::CONFLICT, "too_many_secrets", error),
        VaultError::Uninstalled => plain(StatusCode::NOT_FOUND, "plugin_not_found", error),
        VaultError::Id => plain(StatusCode::BAD_REQUEST, "invalid_secret", error),
        VaultError::ForeignKey { .. }
        | VaultError::Damaged { .. }
        | VaultError::Random(_)
        | VaultError::Database(_) => trouble(error),
    }
}

pub(super) fn rotation(error: &RotateError) -> Described {
    match error {
        RotateError::Busy => plain(StatusCode::CONFLICT, "rotation_busy", error),
        RotateError::Given { .. } => plain(StatusCode::CONFLICT, "key_from_environment", error),
        RotateError::Text(_) | RotateError::Same => plain(StatusCode::BAD_REQUEST, "invalid_key", error),
        RotateError::Changed => plain(StatusCode::CONFLICT, "key_file_changed", error),
        RotateError::Key(_) => trouble(error),
        // Which secret it is and why is for whoever looks after the host, as the log is; no value is in it.
        RotateError::Unfinished(cause) => plain(StatusCode::INTERNAL_SERVER_ERROR, "rotation_unfinished", error)
            .with_note(format!("{error}: {cause}")),
    }
}

pub(super) fn trust(error: &TrustError) -> Described {
    match error {
        TrustError::NotFound(_) => plain(StatusCode::NOT_FOUND, "trust_key_not_found", error),
        TrustError::Exists(_) => plain(StatusCode::CONFLICT, "trust_key_exists", error),
        TrustError::Full(_) => plain(StatusCode::CONFLICT, "too_many_trust_keys", error),
        TrustError::TooLarge(_) => plain(StatusCode::BAD_REQUEST, "invalid_payload", error),
        TrustError::File(_) => trouble(error),
    }
}
