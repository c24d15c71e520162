//! What the host keeps, on disk and in the database. Rows and file formats stay inside; the rest of the host sees
//! domain types.
//!
//! Layout on disk (contract/manifest.md §10): `<id>.yml`, `<id>.config.yml`, `<id>/<version>/`, `<id>/data/`; names
//! that start with a dot are the host's own: `.staging/`, `.tmp-*`, `.removing-*`. Decisions are `domain`'s; order and
//! locking are the registry's: for one id there is one writer at a time.

pub mod admin_token;
pub mod backup;
pub mod db;
pub mod fs;
pub mod inbox;
pub mod log_files;
pub mod marketplace;
pub mod packages;
pub mod platform;
pub mod plugin_config;
pub mod plugin_state;
pub mod records;
pub mod run_folder;
pub mod schema;
pub mod trust;
pub mod ui_files;
pub mod user_state;
