//! kandev-host: a plugin host.
//!
//! Imports go down only; `tests/architecture.rs` checks it.
//!
//! ```text
//! 5  main, cli, app, probe     the program, its command line, composition root, asking a running host
//! 4  http, grpc::host          edges: parse, authorize, ask, map the reply
//! 3  platform                  services: rows and events, no HTTP, no gRPC
//! 3  marketplace               indexes of plugins, and updates by them
//! 3  actors                    own behaviour and order; the only place beside app that names actix
//! 2  store, vault, fetch, process, grpc::client   talk to the world
//! 1  config, entities          shapes only (and kandev_proto)
//! 0  domain                    decisions: no I/O, no clock, no async
//! ```

pub mod actors;
pub mod app;
pub mod cli;
pub mod config;
pub mod domain;
pub mod entities;
pub mod failpoint;
pub mod fetch;
pub mod grpc;
pub mod http;
pub mod marketplace;
pub mod pace;
pub mod platform;
pub mod probe;
pub mod process;
pub mod store;
pub mod vault;
