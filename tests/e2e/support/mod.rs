//! What the cases share: a host process, a client for its API, packages, and waiting on a condition.

#![allow(dead_code, unused_imports, reason = "a tool box: which tools are used is up to the cases")]

pub mod board;
pub mod database;
pub mod files;
pub mod guest;
pub mod host;
pub mod live;
pub mod mcp;
pub mod openssl;
pub mod package;
pub mod process;
pub mod raw;
pub mod wait;

pub use board::{Board, callable, provider};
pub use database::Database;
pub use files::FileServer;
pub use guest::Guest;
pub use host::{Host, Settings, TOKEN};
pub use openssl::{OpensslKey, has_openssl};
pub use package::Package;
pub use process::{Signal, alive, kill};
pub use wait::{eventually, eventually_some};
