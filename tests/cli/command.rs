//! Runs the binary in a folder of its own, without the caller's settings.

use std::{
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Host, host::TOKEN};

/// What a command did.
#[derive(Debug, PartialEq, Eq)]
pub struct Done {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Done {
    /// Fails unless the command ended with this code.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Standard error as JSON.
    #[track_caller]
    pub fn error(&self) -> Value {
        serde_json::from_str(&self.err).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A folder with nothing of the caller's environment.
pub struct Desk {
    pub folder: TempDir,
    env: Vec<(String, String)>,
}

impl Desk {
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("kc-").tempdir().expect("a temporary folder");
        Self { folder, env: Vec::new() }
    }

    /// A desk whose commands ask this host.
    pub fn at(host: &Host) -> Self {
        Self::new().env("KANDEV_URL", host.url()).env("KANDEV_ADMIN_TOKEN", TOKEN)
    }

    /// One more variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A command that is not yet started.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("KANDEV_") || name.starts_with("DATABASE_URL") {
                command.env_remove(name);
            }
        }
        command
            .current_dir(self.path())
            .env("HOME", self.path())
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// Runs `kandev-host` with these arguments.
    pub fn run(&self, arguments: &[&str]) -> Done {
        finish(self.command(env!("CARGO_BIN_EXE_kandev-host")).args(arguments))
    }
}

/// Runs a command to its end.
pub fn finish(command: &mut Command) -> Done {
    let Output { status, stdout, stderr } = command.output().expect("the command starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Done { code: status.code(), out: text(&stdout), err: text(&stderr) }
}
