//! Packages around the bench plugin, made with the system's tar and gzip as an author would.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use kandev_host::domain::target::host_platform;
use sha2::{Digest, Sha256};

use crate::Outcome;

/// Path of the executable inside a package.
pub fn executable_path() -> String {
    format!("server/plugin-{}", host_platform())
}

/// What a package says of itself.
#[derive(Clone, Copy)]
pub struct Of<'a> {
    pub id: &'a str,
    pub version: &'a str,
    /// More of the manifest, as YAML.
    pub more: &'a str,
}

impl<'a> Of<'a> {
    /// The first version of this plugin.
    pub fn id(id: &'a str) -> Self {
        Self { id, version: "1.0.0", more: "" }
    }
}

/// A package of `executable` and `extra` files, at `target`.
pub fn pack(target: &Path, of: Of<'_>, executable: &Path, extra: &[PathBuf], level: u32) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let root = folder.path();
    fs::create_dir_all(root.join("server"))?;
    fs::create_dir_all(root.join("lib"))?;
    fs::write(root.join("manifest.yaml"), manifest(of))?;
    link_or_copy(executable, &root.join(executable_path()))?;
    let mut files = vec!["manifest.yaml".to_owned(), executable_path()];
    for file in extra {
        let name = file.file_name().and_then(|name| name.to_str()).ok_or("a file without a name")?;
        link_or_copy(file, &root.join("lib").join(name))?;
        files.push(format!("lib/{name}"));
    }
    let mut checksums = String::new();
    for file in &files {
        let digest = sha256(&root.join(file))?;
        checksums.push_str(&format!("{digest}  {file}\n"));
    }
    fs::write(root.join("checksums.txt"), checksums)?;
    files.insert(0, "checksums.txt".to_owned());
    let status = Command::new("tar")
        .arg("-C")
        .arg(root)
        .args(["--dereference", "--owner=0", "--group=0", "--numeric-owner", "-I"])
        .arg(format!("gzip -{level}"))
        .arg("-cf")
        .arg(target)
        .args(&files)
        .status()?;
    if !status.success() {
        return Err("tar failed".into());
    }
    Ok(())
}

fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(fs::canonicalize(from)?, to)
}

fn sha256(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut file = fs::File::open(path)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = io::Read::read(&mut file, &mut buffer)?;
        if count == 0 {
            break;
        }
        hash.update(&buffer[..count]);
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn manifest(Of { id, version, more }: Of<'_>) -> String {
    format!(
        "id: {id}\n\
         api_version: 1\n\
         version: {version}\n\
         display_name: Bench\n\
         description: Answers at once\n\
         author: kandev-host\n\
         categories: [tools]\n\
         runtime:\n\
         \x20 type: binary\n\
         \x20 executables:\n\
         \x20   {platform}: {executable}\n\
         capabilities:\n\
         \x20 events: [\"bench.*\", \"bench.{id}.*\", \"task.created\"]\n\
         \x20 state: true\n\
         \x20 user_state: true\n\
         webhooks:\n\
         \x20 - key: echo\n\
         \x20   description: Answers its body\n\
         \x20 - key: count\n\
         \x20   description: Answers how many bytes its body has\n\
         \x20 - key: state\n\
         \x20   description: Makes GetState calls\n\
         \x20 - key: config\n\
         \x20   description: Makes GetConfig calls\n\
         \x20 - key: set\n\
         \x20   description: Makes a SetState call\n\
         \x20 - key: get\n\
         \x20   description: Makes a GetState call\n\
         {more}",
        platform = host_platform(),
        executable = executable_path(),
    )
}
