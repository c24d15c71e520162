//! The one map from errors to gRPC status. Texts written for the plugin pass; anything else is logged here and
//! answered with a fixed text.

use std::any::Any;

use tonic::{Code, Status};
use tracing::{error, warn};

use crate::{
    actors::PublishError,
    domain::{
        clean,
        platform::refusal::{Class, Refusal},
    },
    platform::{PlatformError, event_writer::WriteError},
    store::{db::DbFault, plugin_config::ConfigError, plugin_state::StateError},
    vault::VaultError,
};

/// An RPC of the contract that this host does not serve yet (wire.md §4).
pub fn not_served(resource: &str) -> Status {
    Status::unimplemented(format!("pluginsdk: Host data API \"{resource}\" not implemented"))
}

/// Something broke inside the host.
pub fn internal() -> Status {
    Status::internal("internal error of the host")
}

/// The call had no turn among the plugin's others, was not received or not worked on in time. What it wanted may have
/// been done.
pub fn too_late() -> Status {
    Status::deadline_exceeded("the host call took too long, its turn among the plugin's other calls included")
}

/// Answer to a failed state call.
pub fn of_state(error: StateError) -> Status {
    match error {
        StateError::Invalid { .. } => Status::invalid_argument(error.to_string()),
        StateError::ValueTooLarge { .. } | StateError::QuotaExceeded { .. } | StateError::ListTooLarge { .. } => {
            Status::resource_exhausted(error.to_string())
        }
        StateError::Uninstalled => Status::failed_precondition(error.to_string()),
        StateError::Database(fault) => of_database(&fault),
    }
}

fn of_database(fault: &DbFault) -> Status {
    match fault {
        DbFault::Unavailable(cause) | DbFault::Lost(cause) => {
            warn!(cause, "the database is not available");
            Status::unavailable("the host's database is not available, try again")
        }
        DbFault::Conflict(cause) => {
            warn!(cause, "rows that are or are not there are in the way of a call");
            Status::failed_precondition("another change is in the way: read what is there, and try again")
        }
        DbFault::Statement(cause) => {
            error!(cause, "a database statement failed");
            internal()
        }
    }
}

/// Answer to a preview of more tasks than one message may carry (`limits.message_bytes`).
pub fn too_large_a_tree(tasks: usize, size: usize, limit: u64) -> Status {
    Status::resource_exhausted(format!(
        "the tree has {tasks} tasks of {size} bytes, one answer may carry {limit}; list its parts by parent_id"
    ))
}

/// Answer to what the platform refused or could not do.
pub fn of_platform(error: PlatformError) -> Status {
    match error {
        PlatformError::Refused(refusal) => of_refusal(refusal),
        PlatformError::Database(fault) => of_database(&fault),
    }
}

/// Answer to what a rule of the platform is against: its text is the contract's and for the plugin.
pub fn of_refusal(refusal: Refusal) -> Status {
    let code = match refusal.class() {
        Class::Invalid => Code::InvalidArgument,
        Class::NotFound => Code::NotFound,
        Class::Stale => Code::Aborted,
        Class::Conflict => Code::FailedPrecondition,
        Class::Forbidden => Code::PermissionDenied,
        Class::Gone => Code::OutOfRange,
    };
    Status::new(code, refusal.to_string())
}

/// Answer to an event that is not known to be in the log.
pub fn of_event(error: WriteError) -> Status {
    match error {
        WriteError::Refused(refused) => of_publish(refused),
        WriteError::Full => {
            warn!("a plugin's event found no room among those that wait to be written");
            Status::resource_exhausted(error.to_string())
        }
        WriteError::TooLate(_) => {
            warn!("a plugin's event was not written in time");
            Status::unavailable(error.to_string())
        }
        WriteError::Stopping => Status::unavailable(error.to_string()),
        WriteError::Key(refusal) => of_refusal(refusal),
        WriteError::Database(fault) => of_database(&fault),
    }
}

/// Answer to an event that may not be published.
fn of_publish(error: PublishError) -> Status {
    match error {
        PublishError::InvalidName { .. } | PublishError::TooDeep => Status::invalid_argument(error.to_string()),
        PublishError::ForeignPrefix { .. } | PublishError::Reserved(_) => Status::permission_denied(error.to_string()),
        PublishError::TooLarge { .. } => Status::resource_exhausted(error.to_string()),
    }
}

/// Answer to a failed reading of the operator's config.
pub fn of_config(error: ConfigError) -> Status {
    match error {
        ConfigError::Io(_) | ConfigError::TooLarge { .. } | ConfigError::Unwritable | ConfigError::Malformed(_) => {
            error!(cause = %error, "a plugin's config cannot be read");
            internal()
        }
    }
}

/// Answer to a secret that could not be read or written. It is never "not found" (field case 58).
pub fn of_vault(error: VaultError) -> Status {
    match error {
        VaultError::TooLarge { .. } | VaultError::TooMany { .. } => Status::resource_exhausted(error.to_string()),
        VaultError::Id => Status::invalid_argument(error.to_string()),
        VaultError::Uninstalled => Status::failed_precondition(error.to_string()),
        VaultError::ForeignKey { .. } | VaultError::Damaged { .. } => {
            error!(cause = %error, "a secret cannot be decrypted");
            Status::data_loss("the secret cannot be decrypted, the host's log has the reason")
        }
        VaultError::Random(_) => {
            error!(cause = %error, "a secret cannot be encrypted");
            internal()
        }
        VaultError::Database(fault) => of_database(&fault),
    }
}

/// Answer to a config with a secret field that cannot be had (wire.md §4): none of it is told.
pub fn of_unresolved(field: &str, cause: Option<VaultError>) -> Status {
    let cause = match cause {
        None => Status::failed_precondition("secret not found; the operator must set the field again"),
        Some(error) => of_vault(error),
    };
    let field = clean::quote(field);
    Status::new(cause.code(), format!("plugins: resolve secret config field {field}: {}", cause.message()))
}

/// The text of a panic, for the log.
pub fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("unknown")
}
