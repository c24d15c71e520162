//! The actors under a paused clock: the real registry, plugin actors, event bus, records and packages, with a recording
//! fake in place of processes. Minutes of supervision pass in milliseconds and every call is asserted with its time.
//!
//! Real processes are the end-to-end tests' part; every pair of state and input is `domain::lifecycle`'s.

mod support;

mod boot;
mod buffer;
mod commands;
mod delivery;
mod health;
mod leases;
mod lifecycle_events;
mod loss;
mod owners;
mod restart;
mod stop;
