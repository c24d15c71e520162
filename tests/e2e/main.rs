//! End to end: the real server binary, real subprocesses, the public API only.
//!
//! A case that is written for both guests runs once with the Go fixture (on the real go-plugin library) and once with
//! the Rust fixture: see [`support::guest`].

mod support;

mod actions;
mod confidential;
mod config;
#[cfg(feature = "failpoints")]
mod crashes;
mod database;
mod diagnosis;
mod disk;
mod event_log;
mod events;
mod examples;
mod git_credentials;
mod host_calls;
mod host_data;
mod host_lists;
mod inbox;
mod leaks;
mod lifecycle;
mod live;
mod logs;
mod marketplace;
mod mcp;
mod open_files;
mod packages;
mod platform_rest;
mod platform_writes;
mod references;
mod rest;
mod secrets;
mod stop;
mod sync;
mod tools;
mod traces;
mod trust;
mod ui;
mod upgrade;
mod user_state;
mod webhooks;
