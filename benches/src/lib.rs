//! What the bench calculates: rounds, ratios, verdicts, the table, and the picture of a profile. It measures nothing;
//! that is the program's part (`main`), so that this is tested without building the host.

pub mod flame;
pub mod report;
pub mod rounds;

/// Any failure ends the run: a bench that could not measure has no figures.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;
