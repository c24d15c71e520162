//! Archives built by hand for tests, lawful and broken ones.

use sha2::{Digest as _, Sha256};

use super::tar_header::BLOCK;

/// A tar archive under construction. Every entry is a ustar header with a right checksum unless said otherwise.
#[derive(Default)]
pub(crate) struct Tar(Vec<u8>);

/// A header with the fields given, summed up.
pub(crate) fn header(name: &str, flag: u8, size: &[u8; 12]) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[100..108].copy_from_slice(b"0006755\0");
    block[124..136].copy_from_slice(size);
    block[156] = flag;
    block[257..265].copy_from_slice(b"ustar\x0000");
    sum_up(&mut block);
    block
}

/// Puts the right checksum into a header.
pub(crate) fn sum_up(block: &mut [u8; BLOCK]) {
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|b| u32::from(*b)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

fn octal(size: usize) -> [u8; 12] {
    let mut field = [0; 12];
    field[..11].copy_from_slice(format!("{size:011o}").as_bytes());
    field
}

/// One PAX record with the right length.
pub(crate) fn pax_record(key: &str, value: &str) -> String {
    let body = key.len() + value.len() + 3;
    let length = (body..).find(|n| n.to_string().len() + body == *n).unwrap();
    format!("{length} {key}={value}\n")
}

impl Tar {
    /// Bytes as they are.
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Data with its padding.
    pub fn data(mut self, data: &[u8]) -> Self {
        self.0.extend_from_slice(data);
        self.0.resize(self.0.len().next_multiple_of(BLOCK), 0);
        self
    }

    /// An entry of any type.
    pub fn entry(self, flag: u8, name: &str, data: &[u8]) -> Self {
        self.raw(&header(name, flag, &octal(data.len()))).data(data)
    }

    /// A regular file.
    pub fn file(self, name: &str, data: &[u8]) -> Self {
        self.entry(b'0', name, data)
    }

    /// A folder.
    pub fn folder(self, name: &str) -> Self {
        self.entry(b'5', name, b"")
    }

    /// A symbolic link.
    pub fn link(self, name: &str, target: &str) -> Self {
        let mut block = header(name, b'2', &octal(0));
        block[157..157 + target.len()].copy_from_slice(target.as_bytes());
        sum_up(&mut block);
        self.raw(&block)
    }

    /// A PAX header for the next entry.
    pub fn pax(self, records: &str) -> Self {
        self.entry(b'x', "PaxHeaders/x", records.as_bytes())
    }

    /// A GNU long name for the next entry.
    pub fn long_name(self, name: &str) -> Self {
        self.entry(b'L', "././@LongLink", format!("{name}\0").as_bytes())
    }

    /// The archive with its end.
    pub fn end(self) -> Vec<u8> {
        self.raw(&[0; 2 * BLOCK]).0
    }

    /// The archive cut off here.
    pub fn cut(self) -> Vec<u8> {
        self.0
    }
}

/// A manifest for the plugin `acme` with its program for this host.
pub(crate) fn manifest(version: &str) -> String {
    let platform = crate::domain::target::host_platform();
    format!(
        "id: acme\napi_version: 1\nversion: {version}\nruntime:\n  type: binary\n  executables:\n    {platform}: server/plugin\n"
    )
}

/// The `checksums.txt` of the given files.
pub(crate) fn checksums(files: &[(&str, &[u8])]) -> String {
    let line = |(name, data): &(&str, &[u8])| {
        let hex: String = Sha256::digest(data).iter().map(|b| format!("{b:02x}")).collect();
        format!("{hex}  {name}\n")
    };
    files.iter().map(line).collect()
}

/// A lawful package of `acme` with more files, without its end.
pub(crate) fn package(version: &str, more: &[(&str, &[u8])]) -> Tar {
    let manifest = manifest(version);
    let mut files = vec![("manifest.yaml", manifest.as_bytes()), ("server/plugin", b"#!program".as_slice())];
    files.extend_from_slice(more);
    let tar = Tar::default().file("checksums.txt", checksums(&files).as_bytes());
    files.iter().fold(tar, |tar, (name, data)| tar.file(name, data))
}
