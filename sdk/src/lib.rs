//! Write a kandev plugin in Rust: implement [`Plugin`], call the [`Host`], and let [`serve()`] do the rest.
//!
//! ```no_run
//! use kandev_plugin_sdk::{Event, Host, Plugin, Result, serve};
//!
//! struct Counter;
//!
//! impl Plugin for Counter {
//!     async fn on_event(&self, host: &Host, event: Event) -> Result<()> {
//!         let state = host.state("counts");
//!         let count = state.get::<serde_json::Value>(&event.kind).await?.map_or(0, |value|
//!         value["n"].as_u64().unwrap_or(0)); state.set(&event.kind, &serde_json::json!({"n": count + 1})).await?;
//!         tracing::info!(kind = event.kind, count = count + 1, "counted");
//!         Ok(())
//!     }
//! }
//!
//! #[tokio::main]
//! async fn main() -> std::process::ExitCode {
//!     serve(Counter).await
//! }
//! ```
//!
//! The program is started by a kandev host, from a package whose `manifest.yaml` names it; started by hand it says so
//! and ends. `docs/plugin-author.md` goes from an empty folder to an installed plugin.
//!
//! | To | Use |
//! |---|---|
//! | answer the host's calls | [`Plugin`]: a default for each; write the ones you need as `async fn` |
//! | call the host | [`Host`], given to every call: state, settings, secrets, events, tasks, sessions, messages |
//! | fail | [`Error`] with a [`Code`]; a panic is answered as one and logged |
//! | log | `tracing`: lines reach the host's log of the plugin with level and fields ([`HclogLayer`]) |
//! | start and stop | [`Plugin::on_start`], [`Plugin::on_stop`], [`Settings`] with [`serve_with`] |
//!
//! Absent on purpose: the wire types (they are `kandev-proto`'s), and anything but Linux (as the host).

mod action;
mod config;
mod data;
mod error;
mod event;
mod git;
mod host;
mod json;
mod log;
mod plugin;
mod reference;
mod requests;
mod serve;
mod service;
mod tool;
mod webhook;
mod wire;

pub use action::{ActionContext, ActionRequest, ActionResponse};
pub use config::Config;
pub use data::{
    AgentProfile, ExecutorProfile, Message, Repository, SentMessage, Session, SessionCodeStats, Task, TaskRepository,
    Workflow, WorkflowStep, Workspace,
};
pub use error::{Code, Error, Result};
pub use event::Event;
pub use git::{GitCredential, GitRequest};
pub use host::{Host, Items, State, StateEntry, TreeError};
pub use json::Object;
pub use log::HclogLayer;
pub use plugin::Plugin;
pub use reference::{Authorization, ReferenceCandidate, ReferenceSearch, ReferenceUse};
pub use requests::{
    LaunchOptions, MessageFilter, NewTask, NewTaskRepository, RemoteRepository, SessionFilter, TaskFilter, TaskUpdate,
};
pub use secrecy::{ExposeSecret, SecretString};
pub use serve::{LevelFilter, ServeError, Settings, serve, serve_with};
pub use tool::{ToolContext, ToolRequest, ToolResponse};
pub use webhook::{WebhookRequest, WebhookResponse};

/// Compiles what the guide shows.
#[cfg(doctest)]
#[doc = include_str!("../../docs/plugin-author.md")]
struct PluginAuthorGuide;
