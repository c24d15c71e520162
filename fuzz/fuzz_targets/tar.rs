//! Any bytes as a tar archive; header checksums are repaired first so that the fuzzer gets past them. Where the bytes
//! are cut must not change the verdict, and no accepted name may leave its folder.
#![no_main]

use kandev_host::domain::package::{Limits, Member, PackageError, TarGuard};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    bytes.chunks_exact_mut(512).for_each(repair);
    let whole = read(&bytes, usize::MAX);
    assert_eq!(whole, read(&bytes, 100));
    for path in whole.into_iter().flatten().filter_map(|member| member.path) {
        assert!(path.as_str().split('/').all(|part| !matches!(part, "" | "." | "..")));
    }
});

fn read(bytes: &[u8], piece: usize) -> Result<Vec<Member>, PackageError> {
    let mut guard = TarGuard::new(Limits::default());
    bytes.chunks(piece).try_for_each(|part| guard.feed(part))?;
    guard.finish()?;
    Ok(std::iter::from_fn(|| guard.take_member()).collect())
}

/// Puts the right checksum into what may be a header.
fn repair(block: &mut [u8]) {
    if !block[257..].starts_with(b"ustar") {
        return;
    }
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}
