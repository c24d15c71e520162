//! Any bytes as what git says to a credential helper, and any texts as what it is told.
#![no_main]

use kandev_host::domain::calls::helper::{answer, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|said: (&[u8], &str, &str)| {
    let (input, username, secret) = said;
    if let Ok(remote) = parse(input) {
        assert!(remote.is_plain());
    }
    if let Some(text) = answer(username, &secret.to_owned().into(), None) {
        assert_eq!(text.lines().count(), 2);
    }
});
