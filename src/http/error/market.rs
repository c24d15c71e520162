//! The part of the map that is about the marketplace.

use actix_web::http::StatusCode;
use serde_json::json;

use super::{Described, describe_fault, plain};
use crate::{marketplace::MarketError, store::marketplace::SourceStoreError};

pub(super) fn market(error: &MarketError) -> Described {
    match error {
        MarketError::Source(error) => plain(StatusCode::BAD_REQUEST, "invalid_source", error),
        MarketError::Store(error) => source(error),
        MarketError::Digest(fault) => plain(StatusCode::UNPROCESSABLE_ENTITY, "digest_mismatch", fault)
            .with_details(json!({"found": fault.found, "wanted": fault.wanted, "by": fault.by.to_string()})),
    }
}

fn source(error: &SourceStoreError) -> Described {
    match error {
        SourceStoreError::NotFound => plain(StatusCode::NOT_FOUND, "source_not_found", error),
        SourceStoreError::Exists => plain(StatusCode::CONFLICT, "source_exists", error),
        SourceStoreError::BuiltIn => plain(StatusCode::CONFLICT, "source_built_in", error),
        SourceStoreError::Full(_) => plain(StatusCode::CONFLICT, "too_many_sources", error),
        SourceStoreError::Database(fault) => describe_fault(fault),
    }
}
