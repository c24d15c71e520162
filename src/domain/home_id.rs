//! The mark by which a host recognises what belongs to its home folder.

use std::fmt;

use sha2::{Digest, Sha256};

/// Stable for one home folder on one machine; not a secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HomeId(String);

impl HomeId {
    /// Derives the id from random text kept in the home and from the identity of a file that is never replaced there.
    /// The text alone would be copied with the folder, and two hosts would then take each other's processes for their
    /// own; the file alone may get its number from a deleted one.
    pub fn derive(random: &[u8], device: u64, inode: u64) -> Self {
        let hash = Sha256::new()
            .chain_update(device.to_be_bytes())
            .chain_update(inode.to_be_bytes())
            .chain_update(random)
            .finalize();
        Self(hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect())
    }

    /// 32 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first 8 digits, for names that must be short.
    pub fn short(&self) -> &str {
        &self.0[..8]
    }
}

impl fmt::Display for HomeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_stable_and_every_part_counts() {
        let id = HomeId::derive(b"random", 1, 2);
        assert_eq!(id, HomeId::derive(b"random", 1, 2));
        assert_eq!((id.as_str().len(), id.short().len()), (32, 8));
        for other in
            [HomeId::derive(b"random2", 1, 2), HomeId::derive(b"random", 2, 2), HomeId::derive(b"random", 1, 3)]
        {
            assert_ne!(id, other);
        }
    }
}
