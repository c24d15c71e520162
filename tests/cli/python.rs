//! The Python that has the SDK, and the Python fixture (tests/fixtures/README.md).

use std::{process::Command, sync::OnceLock};

/// The interpreter of the environment that `scripts/ensure-python.sh` makes, once in a test process. `None` when Python
/// cannot be had here: the case prints `skipped: needs python`, and with `CI=true` it fails instead.
pub fn interpreter() -> Option<&'static str> {
    static FOUND: OnceLock<Option<String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/ensure-python.sh");
        let output = Command::new("sh").arg(script).output().expect("sh runs scripts/ensure-python.sh");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() || std::env::var("CI").as_deref() != Ok("true"), "CI needs Python:\n{said}");
        let path = String::from_utf8(output.stdout).expect("a path in UTF-8").trim().to_owned();
        output.status.success().then_some(path)
    });
    if found.is_none() {
        println!("skipped: needs python");
    }
    found.as_deref()
}

/// The fixture's executable: a script that starts it.
pub fn fixture() -> Option<String> {
    let main = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/python/main.py");
    interpreter().map(|python| format!("#!/bin/sh\nexec \"{python}\" -B \"{main}\"\n"))
}
