//! The log files of one plugin: appending, rotation by size, their bound, reading the newest lines back. All functions
//! block.

use std::{
    fs::{self as std_fs, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use crate::{
    domain::{id::PluginId, log_line::LogLine},
    store::fs,
};

/// `<home>/logs/<id>`.
#[derive(Debug)]
pub struct LogFolder {
    path: PathBuf,
}

impl LogFolder {
    /// Nothing is made yet.
    pub fn new(root: &Path, id: &PluginId) -> Self {
        Self { path: root.join(id.as_str()) }
    }

    /// The present file for 0, else the n-th before it.
    fn file(&self, age: usize) -> PathBuf {
        match age {
            0 => self.path.join("plugin.log"),
            age => self.path.join(format!("plugin.{age}.log")),
        }
    }

    /// Appends whole lines, beginning a new file where the present one would grow beyond `file_bytes`. Gives how many
    /// lines were written, and the fault that ended it. A line is there whole or not at all.
    pub fn append(&self, lines: &[String], file_bytes: u64, files: usize) -> (usize, io::Result<()>) {
        let mut written = 0;
        while written < lines.len() {
            match self.append_to_present(&lines[written..], file_bytes, files) {
                Ok(count) => written += count,
                Err(error) => return (written, Err(error)),
            }
        }
        (written, Ok(()))
    }

    /// Writes as many lines as the present file has room for, at least one.
    fn append_to_present(&self, lines: &[String], file_bytes: u64, files: usize) -> io::Result<usize> {
        let (mut file, mut length) = self.open()?;
        if length > 0 && length + lines[0].len() as u64 > file_bytes {
            self.rotate(files)?;
            (file, length) = self.open()?;
        }
        let mut text = lines[0].clone();
        let mut count = 1;
        for line in &lines[1..] {
            if length + (text.len() + line.len()) as u64 > file_bytes {
                break;
            }
            text.push_str(line);
            count += 1;
        }
        if let Err(error) = file.write_all(text.as_bytes()) {
            // A part of it would spoil the next line; nothing can be done when this fails too.
            let _ = file.set_len(length);
            return Err(error);
        }
        Ok(count)
    }

    fn open(&self) -> io::Result<(std_fs::File, u64)> {
        let open = || OpenOptions::new().append(true).create(true).mode(0o600).open(self.file(0));
        let file = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_private_folder(&self.path).map_err(io::Error::other)?;
                open()?
            }
            opened => opened?,
        };
        let length = file.metadata()?.len();
        Ok((file, length))
    }

    /// The age of the file with this name; `None` for a name that is none of ours.
    fn age(name: &str) -> Option<usize> {
        match name.strip_prefix("plugin.")?.strip_suffix("log")? {
            "" => Some(0),
            age => age.strip_suffix('.')?.parse().ok(),
        }
    }

    /// Deletes all but the newest `files`: there are more when an earlier host was allowed more.
    pub fn trim(&self, files: usize) -> io::Result<()> {
        for name in fs::names_in(&self.path).map_err(io::Error::other)? {
            if Self::age(&name).is_some_and(|age| age >= files) {
                remove_if_there(&self.path.join(name))?;
            }
        }
        Ok(())
    }

    /// Every file becomes one older; the oldest is deleted.
    fn rotate(&self, files: usize) -> io::Result<()> {
        self.trim(files - 1)?;
        for age in (0..files - 1).rev() {
            match std_fs::rename(self.file(age), self.file(age + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// The newest lines, at most `limit`, oldest first; no more than the newest `bytes` of the two newest files are
    /// read.
    pub fn newest(&self, limit: usize, bytes: u64) -> Vec<LogLine> {
        let mut newest: Vec<LogLine> = Vec::new();
        for age in 0..2 {
            let text = tail(&self.file(age), bytes).unwrap_or_default();
            let wanted = limit - newest.len();
            let lines = text.lines().rev().filter_map(|line| serde_json::from_str(line).ok());
            newest.extend(lines.take(wanted));
        }
        newest.reverse();
        newest
    }

    /// Deletes everything of the plugin.
    pub fn remove(&self) -> io::Result<()> {
        fs::remove_any(&self.path).map_err(io::Error::other)
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match std_fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The end of a file, with a first line that may be cut.
fn tail(path: &Path, bytes: u64) -> io::Result<String> {
    let mut file = std_fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(bytes)))?;
    let mut text = Vec::new();
    file.take(bytes).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
