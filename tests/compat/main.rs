//! Manifests of every shape and for every rule of contract/manifest.md, each with the verdict that it must get: read by
//! what an install reads with ([`read`]), and installed on the real binary ([`real`]).
//!
//! A case is two files in `cases/`; README.md beside this file tells how to add one.

#[path = "../e2e/support/mod.rs"]
mod support;

mod case;
mod read;
mod real;
