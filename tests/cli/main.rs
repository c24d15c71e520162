//! The command line on the real binary: help, results as text and JSON, and exit codes (docs/cli.md). Commands that ask
//! a host ask a real one.

#[path = "../e2e/support/mod.rs"]
mod support;

mod backup;
mod check;
mod command;
mod database;
mod git;
mod help;
mod pack;
mod project;
mod python;
mod remote;
mod secrets;
mod seed;
mod settings;
mod signing;
