//! gRPC, two halves on purpose (architecture.md §2): [`client`] calls a plugin and lies below the actors, [`host`]
//! serves a plugin's calls and lies above them.

pub mod client;
pub mod host;
#[cfg(test)]
pub(crate) mod testing;
