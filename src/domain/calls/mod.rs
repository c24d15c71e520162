//! Calls of users and agents into a plugin: actions (contract/rest.md §7), agent tools (manifest.md §2, wire.md §2.1),
//! references and git credentials (wire.md §2.1).
//!
//! Decides what a caller may name, what it takes to verify that, and which answers pass. Nothing is looked up here and
//! nothing is sent: who calls is the edge's knowledge, what exists is the platform's.

pub mod answer;
pub mod branches;
pub mod envelope;
pub mod exposed;
pub mod git;
pub mod helper;
pub mod place;
pub mod reference;
pub mod tool;
