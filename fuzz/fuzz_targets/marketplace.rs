//! Any bytes as an index of the marketplace; what is offered keeps the rules, and stays the same through its own JSON.
#![no_main]

use std::collections::BTreeMap;

use kandev_host::domain::marketplace::{self, MAX_ENTRIES};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(index) = marketplace::parse(bytes) else { return };
    assert!(index.entries.len() <= MAX_ENTRIES && index.skipped.len() <= index.skipped_count);
    let plugins = serde_json::to_value(&index.entries).expect("entries are JSON");
    let document = serde_json::to_vec(&BTreeMap::from([("plugins", plugins)])).expect("a document is JSON");
    let again = marketplace::parse(&document).expect("it stays an index");
    assert_eq!((again.entries, again.skipped_count), (index.entries, 0));
});
