//! Any bytes as a file of a key, public or private; what is accepted survives being written and read.
#![no_main]

use kandev_host::domain::{
    key::PrivateKey,
    trust::{KeyFile, KeyName, TrustedKey},
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = KeyFile::parse(bytes);
    let _ = std::str::from_utf8(bytes).map(PrivateKey::parse);
    let Ok(name) = KeyName::new("k") else { return };
    if let Ok(key) = TrustedKey::parse(name.clone(), bytes) {
        assert_eq!(TrustedKey::parse(name, key.to_text().as_bytes()), Ok(key));
    }
});
