//! Any bytes as `manifest.yaml`; an accepted manifest stays the same through its own JSON, which is YAML as well.
#![no_main]

use kandev_host::domain::manifest;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(parsed) = manifest::parse(bytes) {
        let json = serde_json::to_vec(&parsed.manifest).expect("a manifest is JSON");
        if json.len() <= manifest::MAX_MANIFEST_BYTES {
            assert_eq!(manifest::parse(&json).expect("it stays accepted").manifest, parsed.manifest);
        }
    }
});
