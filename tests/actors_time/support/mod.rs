//! The world of one test: a paused runtime, a throw-away home and the fakes.

mod fakes;
mod world;

pub use fakes::{Answer, Fakes, Launch, Stop};
pub use world::{World, record, run, run_with};
