//! Decisions without I/O, clock, async or framework: what is lawful, what a text means, what the host says about it.

pub mod action;
pub mod address;
pub mod authorize;
pub mod capability;
pub mod clean;
pub mod delivery;
pub mod drop_report;
pub mod home_id;
pub mod id;
pub mod inbox;
pub mod lifecycle;
pub mod lifecycle_event;
pub mod log_line;
pub mod manifest;
pub mod package;
pub mod platform;
pub mod principal;
pub mod record;
pub mod redaction;
pub mod relay;
pub mod signature;
pub mod subject;
pub mod sync;
pub mod version;
