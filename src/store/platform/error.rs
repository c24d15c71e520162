//! Why a call of the platform failed: refused by a rule, or by the database.

use crate::{
    domain::platform::refusal::Refusal,
    store::db::{DbFault, MayBeFault},
};

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlatformError {
    /// A rule is against it; the text is for the caller.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The database failed, or holds a row that cannot be read.
    #[error(transparent)]
    Database(#[from] DbFault),
}

impl From<sea_orm::DbErr> for PlatformError {
    fn from(error: sea_orm::DbErr) -> Self {
        Self::Database(error.into())
    }
}

impl MayBeFault for PlatformError {
    fn fault(&self) -> Option<&DbFault> {
        match self {
            Self::Database(fault) => Some(fault),
            Self::Refused(_) => None,
        }
    }
}
