//! The files of a deployment say what the host understands: image, Compose, systemd unit, nginx.
//!
//! There is no engine here: the files are parsed, and every variable, path, limit and time in them is compared with the
//! host's own. Whether an engine likes them is seen where there is one.

mod compose;
mod dockerfile;
mod services;

use std::{fs, path::PathBuf};

use kandev_host::config::{Holds, VARIABLES};

/// User and group of the host in its container.
const USER: &str = "10001:10001";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What a variable of the host holds; fails for one that the host does not know.
#[track_caller]
fn holds(name: &str) -> Holds {
    let known = VARIABLES.iter().find(|variable| variable.name == name);
    known.unwrap_or_else(|| panic!("{name} is no variable of the host (config::VARIABLES)")).holds
}

/// A tag that names one release: a full version, or a version with the date of its build.
fn is_pinned(image: &str) -> bool {
    let Some((_, tag)) = image.rsplit_once(':') else { return false };
    let (version, rest) = tag.split_once('-').unwrap_or((tag, ""));
    let numbers = version.split('.').filter(|part| part.parse::<u32>().is_ok()).count();
    let dated = rest.split('-').any(|part| part.len() == 8 && part.parse::<u32>().is_ok());
    numbers == version.split('.').count() && numbers >= 2 || dated
}

#[test]
fn a_pinned_tag_is_told_from_a_moving_one() {
    for pinned in ["rust:1.95.0-slim-bookworm", "debian:bookworm-20251229-slim", "postgres:17.6-bookworm"] {
        assert!(is_pinned(pinned), "{pinned}");
    }
    for moving in ["rust", "rust:latest", "rust:1-slim", "debian:bookworm-slim", "postgres:17", "postgres:17-bookworm"]
    {
        assert!(!is_pinned(moving), "{moving}");
    }
}
