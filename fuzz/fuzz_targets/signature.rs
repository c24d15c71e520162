//! Any bytes as `checksums.txt.sig`.
#![no_main]

use kandev_host::domain::signature;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = signature::parse(bytes);
});
