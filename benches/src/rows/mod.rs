//! The rows of the table, one file for each kind of measurement.

mod action;
mod bundle;
mod config;
mod create;
mod delivery;
mod event;
mod exit;
mod frozen;
mod install;
mod live;
mod memory;
mod mixed;
mod reads;
mod savers;
mod spawn;
mod state;
mod upgrade;
mod user_state;
mod webhook;

use std::{future::Future, pin::Pin};

use crate::{Options, Outcome, report::Line};

type Run = fn(Options) -> Pin<Box<dyn Future<Output = Outcome<Vec<Line>>>>>;

/// One measurement, which may fill several lines.
pub struct Row {
    pub name: &'static str,
    pub run: Run,
}

static ROWS: &[Row] = &[
    Row { name: "delivery", run: |options| Box::pin(delivery::one(options)) },
    Row { name: "delivery-8", run: |options| Box::pin(delivery::eight(options)) },
    Row { name: "get-state", run: |options| Box::pin(state::run(options)) },
    Row { name: "webhook", run: |options| Box::pin(webhook::small(options)) },
    Row { name: "webhook-4m", run: |options| Box::pin(webhook::large(options)) },
    Row { name: "action", run: |options| Box::pin(action::run(options)) },
    Row { name: "exit", run: |options| Box::pin(exit::run(options)) },
    Row { name: "spawn", run: |options| Box::pin(spawn::run(options)) },
    Row { name: "memory", run: |options| Box::pin(memory::run(options)) },
    Row { name: "install", run: |options| Box::pin(install::run(options)) },
    Row { name: "frozen", run: |options| Box::pin(frozen::run(options)) },
    Row { name: "get-config", run: |options| Box::pin(config::run(options)) },
    Row { name: "savers", run: |options| Box::pin(savers::run(options)) },
    Row { name: "tasks-page", run: |options| Box::pin(reads::tasks_page(options)) },
    Row { name: "messages", run: |options| Box::pin(reads::messages(options)) },
    Row { name: "code-stats", run: |options| Box::pin(reads::code_stats(options)) },
    Row { name: "event", run: |options| Box::pin(event::run(options)) },
    Row { name: "create", run: |options| Box::pin(create::run(options)) },
    Row { name: "user-state", run: |options| Box::pin(user_state::run(options)) },
    Row { name: "bundle", run: |options| Box::pin(bundle::run(options)) },
    Row { name: "ws-1000", run: |options| Box::pin(live::run(options)) },
    Row { name: "memory-load", run: |options| Box::pin(mixed::run(options)) },
    Row { name: "upgrade", run: |options| Box::pin(upgrade::run(options)) },
];

/// The rows with these names, or all.
pub fn chosen(names: &[String]) -> Outcome<Vec<&'static Row>> {
    if let Some(unknown) = names.iter().find(|name| ROWS.iter().all(|row| row.name != **name)) {
        let known: Vec<_> = ROWS.iter().map(|row| row.name).collect();
        return Err(format!("there is no row {unknown}; there are {}", known.join(", ")).into());
    }
    Ok(ROWS.iter().filter(|row| names.is_empty() || names.iter().any(|name| name == row.name)).collect())
}
