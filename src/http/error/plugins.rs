//! The part of the map that is about plugins: the registry, their settings and packages, and calls to them.

use actix_web::http::StatusCode;
use serde_json::json;

use super::{Described, plain, stopping, trouble};
use crate::{
    actors::{AskError, CallRefused, RegistryError, SettingsError},
    domain::{id::PluginId, package::PackageError, redaction},
    grpc::client::CallError,
    store::plugin_config::ConfigError,
    vault::VaultError,
};

pub(super) fn registry(error: &RegistryError) -> Described {
    match error {
        RegistryError::NotFound(_) => plain(StatusCode::NOT_FOUND, "plugin_not_found", "plugin not found"),
        RegistryError::RecordUnreadable(_) => plain(StatusCode::SERVICE_UNAVAILABLE, "record_unreadable", error),
        RegistryError::Busy(_) => plain(StatusCode::CONFLICT, "plugin_busy", error),
        RegistryError::AlreadyInstalled { .. } => plain(StatusCode::CONFLICT, "already_installed", error),
        RegistryError::Owned(_) => plain(StatusCode::CONFLICT, "already_owned", error),
        RegistryError::Overtaken { .. } => plain(StatusCode::CONFLICT, "overtaken", error),
        RegistryError::Package(error) => package(error),
        RegistryError::ConsentNeeded { difference, sha256, .. } => {
            let accept = difference.needs.to_string();
            let details = json!({"difference": difference, "accept": accept, "sha256": sha256});
            plain(StatusCode::CONFLICT, "consent_needed", error).with_details(details)
        }
        RegistryError::OtherPlugin(other) => plain(StatusCode::UNPROCESSABLE_ENTITY, "other_plugin", error)
            .with_details(json!({"listed": other.listed.plugin, "found": other.found})),
        RegistryError::NotUnattended { .. } => plain(StatusCode::CONFLICT, "not_unattended", error),
        RegistryError::OtherPackage { wanted, found } => plain(StatusCode::CONFLICT, "package_differs", error)
            .with_details(json!({"wanted": wanted, "found": found})),
        // The operator's own plugin, as with `StartFailed`.
        RegistryError::ChangeFailed { version, back, reason, .. } => {
            let details = json!({"version": version, "now": back, "reason": reason});
            plain(StatusCode::UNPROCESSABLE_ENTITY, "upgrade_failed", error).with_details(details)
        }
        RegistryError::NoEarlierVersion(_) => plain(StatusCode::CONFLICT, "no_earlier_version", error),
        RegistryError::EarlierVersionBroken { .. } => plain(StatusCode::CONFLICT, "earlier_version_broken", error),
        RegistryError::NotVouchedFor { .. } => plain(StatusCode::BAD_REQUEST, "signature_required", error),
        RegistryError::TooOld(_) => plain(StatusCode::BAD_REQUEST, "host_too_old", error),
        // The operator's own plugin failed: its diagnostic is meant to be read (rest.md §2), and was redacted.
        RegistryError::StartFailed { .. } => plain(StatusCode::INTERNAL_SERVER_ERROR, "start_failed", error),
        RegistryError::Storage(_) | RegistryError::Unreadable(_) | RegistryError::Vault(_) => trouble(error),
        RegistryError::DiskFull(cause) => {
            plain(StatusCode::INSUFFICIENT_STORAGE, "disk_full", error).with_note(cause.clone())
        }
        RegistryError::TooManySyncs => plain(StatusCode::TOO_MANY_REQUESTS, "too_many_syncs", error),
        RegistryError::SyncUnderWay => plain(StatusCode::CONFLICT, "sync_under_way", error),
        RegistryError::Stopping => stopping(),
        RegistryError::Ask(error) => ask(error),
    }
}

pub(super) fn settings(error: &SettingsError) -> Described {
    match error {
        SettingsError::Invalid(_) => plain(StatusCode::BAD_REQUEST, "config_invalid", error),
        SettingsError::Changed => plain(StatusCode::PRECONDITION_FAILED, "config_changed", error),
        SettingsError::TooMany => plain(StatusCode::TOO_MANY_REQUESTS, "too_many_saves", error),
        SettingsError::TooLate => plain(StatusCode::CONFLICT, "plugin_busy", error),
        SettingsError::Damaged { cause, .. } => {
            plain(StatusCode::CONFLICT, "config_damaged", error).with_note(redaction::diagnostic(cause, ""))
        }
        // As for a start: the operator's own plugin, its diagnostic redacted.
        SettingsError::RestartFailed { .. } => plain(StatusCode::INTERNAL_SERVER_ERROR, "restart_failed", error),
        SettingsError::File(ConfigError::TooLarge { .. } | ConfigError::Unwritable)
        | SettingsError::Vault(VaultError::TooLarge { .. } | VaultError::TooMany { .. } | VaultError::Id) => {
            plain(StatusCode::BAD_REQUEST, "config_invalid", format!("plugin config invalid: {error}"))
        }
        SettingsError::File(_) | SettingsError::Vault(_) => trouble(error),
        SettingsError::Registry(error) => registry(error),
    }
}

pub(super) fn package(error: &PackageError) -> Described {
    match error {
        PackageError::CompressedTooLarge(_) => plain(StatusCode::PAYLOAD_TOO_LARGE, error.code(), error),
        _ => plain(StatusCode::BAD_REQUEST, error.code(), error),
    }
}

fn ask(error: &AskError) -> Described {
    match error {
        AskError::NotDelivered => stopping(),
        AskError::Died => trouble(error),
        AskError::TimedOut => plain(StatusCode::GATEWAY_TIMEOUT, "timed_out", error),
    }
}

pub(super) fn refusal(id: &PluginId, refused: &CallRefused) -> Described {
    match refused {
        CallRefused::NotRunning => {
            let text = format!("plugin \"{id}\" is not running");
            plain(StatusCode::SERVICE_UNAVAILABLE, "plugin_not_running", text)
        }
        CallRefused::TooMany(kind) => {
            let text = format!("plugin \"{id}\" has too many {} under way", kind.noun());
            plain(StatusCode::TOO_MANY_REQUESTS, "too_many_calls", text)
        }
    }
}

/// The same of a webhook, in the contract's words (rest.md §6).
pub(super) fn webhook_refusal(id: &PluginId, refused: &CallRefused) -> Described {
    let described = refusal(id, refused);
    match refused {
        CallRefused::NotRunning => Described { text: format!("plugins: {}", described.text), ..described },
        CallRefused::TooMany(_) => described,
    }
}

pub(super) fn call(id: &PluginId, error: &CallError) -> Described {
    let described = match error {
        CallError::TimedOut(_) => {
            let text = format!("plugin \"{id}\" did not answer the webhook in time");
            plain(StatusCode::GATEWAY_TIMEOUT, "webhook_timeout", text)
        }
        CallError::Disconnected | CallError::Refused { .. } => {
            let text = format!("plugin \"{id}\" failed to handle the webhook");
            plain(StatusCode::SERVICE_UNAVAILABLE, "webhook_failed", text)
        }
        CallError::TooLarge(bytes) => {
            let text = format!("plugin returned a webhook answer of more than {bytes} bytes");
            plain(StatusCode::BAD_GATEWAY, "invalid_webhook_answer", text)
        }
    };
    // The text is the plugin's and may hold what it should not tell (field case 57).
    described.with_note(redaction::diagnostic(error.to_string(), ""))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::{actors::CallKind, store::fs::FileError};

    #[test]
    fn a_webhook_of_a_plugin_that_does_not_run_is_refused_in_the_contracts_words() {
        let acme = PluginId::new("acme").unwrap();
        let shown = |described: Described| (described.status.as_u16(), described.code, described.text);
        let refused = |text: &str| (503, "plugin_not_running", text.to_owned());
        let not_running = CallRefused::NotRunning;
        assert_eq!(shown(webhook_refusal(&acme, &not_running)), refused("plugins: plugin \"acme\" is not running"));
        assert_eq!(shown(refusal(&acme, &not_running)), refused("plugin \"acme\" is not running"));
        let too_many = CallRefused::TooMany(CallKind::Webhook);
        assert_eq!(shown(webhook_refusal(&acme, &too_many)), shown(refusal(&acme, &too_many)));
    }

    #[test]
    fn a_full_disk_is_507_and_another_fault_500_and_neither_shows_a_path() {
        for (kind, status, code) in [
            (std::io::ErrorKind::StorageFull, 507, "disk_full"),
            (std::io::ErrorKind::QuotaExceeded, 507, "disk_full"),
            (std::io::ErrorKind::PermissionDenied, 500, "internal"),
        ] {
            let error = FileError { action: "write", path: PathBuf::from("/secret/path"), source: kind.into() };
            let described = registry(&error.into());
            assert_eq!((described.status.as_u16(), described.code), (status, code));
            assert!(!described.text.contains("/secret/path"), "{}", described.text);
            assert!(described.note.is_some_and(|note| note.contains("/secret/path")), "{kind}");
        }
    }
}
