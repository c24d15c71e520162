//! Diagnostics: any bytes become one bounded line, in time that grows with their number, and a secret after a label
//! that the patterns know does not survive.
#![no_main]

use kandev_host::domain::redaction::{MAX_DIAGNOSTIC_BYTES, diagnostic};
use libfuzzer_sys::fuzz_target;

const SECRET: &str = "Zq7Wk2Lm9Xv4";

fuzz_target!(|bytes: &[u8]| {
    let shown = diagnostic(bytes, "/srv/kd");
    assert!(shown.len() <= MAX_DIAGNOSTIC_BYTES);
    assert!(!shown.chars().any(char::is_control));
    let mut labelled = bytes.to_vec();
    labelled.extend_from_slice(format!(" password={SECRET}").as_bytes());
    assert!(!diagnostic(&labelled, "/srv/kd").contains(SECRET));
});
