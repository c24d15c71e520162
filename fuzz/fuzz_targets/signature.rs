//! Any bytes as `checksums.txt.sig`: read, and judged by a key that did not make it.
#![no_main]

use kandev_host::domain::{
    key::PrivateKey,
    signature::{PackageSignature, SignatureFile},
    trust::{KeyName, KeyRing, Scope, TrustedKey},
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(file) = SignatureFile::parse(bytes) {
        assert_eq!(SignatureFile::parse(file.to_text().as_bytes()), Ok(file));
    }
    let Ok(name) = KeyName::new("k") else { return };
    let key = PrivateKey::from_seed(&[1; 32]).public();
    let ring = KeyRing::new(vec![TrustedKey { name, key, plugins: Scope::Every }]);
    let judged = PackageSignature::judge(Some(bytes), b"00  manifest.yaml\n", "acme", &ring);
    assert!(!matches!(judged, Ok(PackageSignature::Trusted(_))));
});
