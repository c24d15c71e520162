//! Any bytes as `checksums.txt`.
#![no_main]

use kandev_host::domain::package::Checksums;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = Checksums::parse(bytes);
});
