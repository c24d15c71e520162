//! Builds packages around a fixture: a lawful one by default, and every way to spoil it.

use std::{collections::BTreeMap, path::Path};

use async_compression::tokio::write::GzipEncoder;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;
use tokio_tar::{Builder, EntryType, Header};

use super::Guest;

/// A package in the making.
#[derive(Clone)]
pub struct Package {
    id: String,
    version: String,
    manifest: String,
    files: BTreeMap<String, Vec<u8>>,
    modes: BTreeMap<String, u32>,
}

/// Path of the executable inside the package.
pub fn executable_path() -> String {
    format!("server/plugin-{}", kandev_host::domain::target::host_platform())
}

impl Package {
    /// The fixture as a lawful package.
    pub fn of(guest: Guest, id: &str, version: &str) -> Self {
        let executable = guest.executable().expect("the case asked whether the guest can be had");
        Self::with_executable(&executable, id, version)
    }

    /// Any executable with the fixture's manifest.
    pub fn with_executable(executable: &Path, id: &str, version: &str) -> Self {
        Self::with_program(std::fs::read(executable).expect("the executable is readable"), id, version)
    }

    /// Any bytes as executable, with the fixture's manifest.
    pub fn with_program(program: impl Into<Vec<u8>>, id: &str, version: &str) -> Self {
        let template = include_str!("../../fixtures/manifest.template.yaml");
        let manifest = template
            .replace("{{id}}", id)
            .replace("{{version}}", version)
            .replace("{{executable}}", &executable_path());
        Self {
            id: id.to_owned(),
            version: version.to_owned(),
            manifest,
            files: BTreeMap::from([(executable_path(), program.into())]),
            modes: BTreeMap::from([(executable_path(), 0o755)]),
        }
    }

    /// Plugin id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The fixture's switches (tests/fixtures/README.md).
    pub fn switches(mut self, switches: &Value) -> Self {
        self.files.insert("fixture.json".into(), switches.to_string().into_bytes());
        self
    }

    /// Adds or replaces a file.
    pub fn file(mut self, path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.insert(path.into(), bytes.into());
        self
    }

    /// Leaves a file out.
    pub fn without(mut self, path: &str) -> Self {
        self.files.remove(path);
        self
    }

    /// Mode in the archive.
    pub fn mode(mut self, path: &str, mode: u32) -> Self {
        self.modes.insert(path.into(), mode);
        self
    }

    /// Changes the manifest's text.
    pub fn manifest(mut self, change: impl FnOnce(String) -> String) -> Self {
        self.manifest = change(self.manifest);
        self
    }

    /// `checksums.txt` of what the package holds now.
    pub fn checksums(&self) -> String {
        let mut text = format!("{}  manifest.yaml\n", hex(&Sha256::digest(self.manifest.as_bytes())));
        for (path, bytes) in self.files.iter().filter(|(path, _)| *path != "checksums.txt.sig") {
            text += &format!("{}  {path}\n", hex(&Sha256::digest(bytes)));
        }
        text
    }

    /// Adds a signature over `checksums.txt`, made of its bytes by `sign`.
    pub fn signed(self, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> Self {
        let signature = sign(self.checksums().as_bytes());
        self.file("checksums.txt.sig", signature)
    }

    /// The archive with a right `checksums.txt`.
    pub async fn archive(&self) -> Vec<u8> {
        self.archive_with_checksums(&self.checksums()).await
    }

    /// The archive with this `checksums.txt`.
    pub async fn archive_with_checksums(&self, checksums: &str) -> Vec<u8> {
        self.archive_of(&[], checksums).await
    }

    /// The archive, begun with entries that `checksums.txt` does not list.
    pub async fn archive_behind(&self, entries: &[Entry]) -> Vec<u8> {
        self.archive_of(entries, &self.checksums()).await
    }

    async fn archive_of(&self, entries: &[Entry], checksums: &str) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for entry in entries {
            builder.append(&entry.header(), entry.bytes.as_slice()).await.expect("an archive in memory");
        }
        append(&mut builder, "manifest.yaml", self.manifest.as_bytes(), 0o644).await;
        for (path, bytes) in &self.files {
            append(&mut builder, path, bytes, self.modes.get(path).copied().unwrap_or(0o644)).await;
        }
        append(&mut builder, "checksums.txt", checksums.as_bytes(), 0o644).await;
        gzip(&builder.into_inner().await.expect("an archive in memory")).await
    }
}

/// An entry as an attacker writes it: nothing is checked.
#[derive(Debug, Clone)]
pub struct Entry {
    /// At most 100 bytes.
    pub name: Vec<u8>,
    /// Type flag.
    pub kind: EntryType,
    /// Where a link leads.
    pub link: &'static str,
    /// Content.
    pub bytes: Vec<u8>,
}

impl Entry {
    /// An entry of a kind.
    pub fn new(kind: EntryType, name: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), kind, link: "", bytes: Vec::new() }
    }

    /// A regular file.
    pub fn file(name: impl Into<Vec<u8>>) -> Self {
        Self { bytes: b"x".to_vec(), ..Self::new(EntryType::Regular, name) }
    }

    /// A link of either kind.
    pub fn link(kind: EntryType, name: &str, link: &'static str) -> Self {
        Self { link, ..Self::new(kind, name) }
    }

    /// Its header; the size is the content's.
    pub fn header(&self) -> Header {
        // Each format knows one kind of extension header only.
        let mut header = if self.kind.is_pax_local_extensions() { Header::new_ustar() } else { Header::new_gnu() };
        header.as_old_mut().name[..self.name.len()].copy_from_slice(&self.name);
        header.as_old_mut().linkname[..self.link.len()].copy_from_slice(self.link.as_bytes());
        header.set_entry_type(self.kind);
        header.set_size(self.bytes.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        header
    }
}

/// Adds one regular file.
pub async fn append(builder: &mut Builder<Vec<u8>>, path: &str, bytes: &[u8], mode: u32) {
    let mut header = Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(mode);
    header.set_mtime(0);
    builder.append_data(&mut header, path, bytes).await.expect("an archive in memory");
}

/// Fast compression: fixtures are large and the tests many.
pub async fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzipEncoder::with_quality(Vec::new(), async_compression::Level::Fastest);
    encoder.write_all(bytes).await.expect("compression in memory");
    encoder.shutdown().await.expect("compression in memory");
    encoder.into_inner()
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
