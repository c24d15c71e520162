//! The rows of the table, one file for each kind of measurement.

mod delivery;
mod exit;
mod frozen;
mod install;
mod memory;
mod spawn;
mod state;
mod webhook;

use std::{future::Future, pin::Pin};

use crate::{Options, Outcome, report::Line};

type Run = fn(Options) -> Pin<Box<dyn Future<Output = Outcome<Vec<Line>>>>>;

/// One measurement, which may fill several lines.
pub struct Row {
    pub name: &'static str,
    pub run: Run,
}

static ROWS: [Row; 9] = [
    Row { name: "delivery", run: |options| Box::pin(delivery::one(options)) },
    Row { name: "delivery-8", run: |options| Box::pin(delivery::eight(options)) },
    Row { name: "get-state", run: |options| Box::pin(state::run(options)) },
    Row { name: "webhook", run: |options| Box::pin(webhook::run(options)) },
    Row { name: "exit", run: |options| Box::pin(exit::run(options)) },
    Row { name: "spawn", run: |options| Box::pin(spawn::run(options)) },
    Row { name: "memory", run: |options| Box::pin(memory::run(options)) },
    Row { name: "install", run: |options| Box::pin(install::run(options)) },
    Row { name: "frozen", run: |options| Box::pin(frozen::run(options)) },
];

/// The rows with these names, or all.
pub fn chosen(names: &[String]) -> Outcome<Vec<&'static Row>> {
    if let Some(unknown) = names.iter().find(|name| ROWS.iter().all(|row| row.name != **name)) {
        let known: Vec<_> = ROWS.iter().map(|row| row.name).collect();
        return Err(format!("there is no row {unknown}; there are {}", known.join(", ")).into());
    }
    Ok(ROWS.iter().filter(|row| names.is_empty() || names.iter().any(|name| name == row.name)).collect())
}
