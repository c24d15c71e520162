//! The processes of a home's plugins, children that left their group included: found by the variable that the host
//! gives each plugin and that what it starts inherits.
//!
//! A process that cleared its environment is not found.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::{self, File},
    io::Read as _,
    os::unix::ffi::OsStrExt as _,
    path::Path,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::domain::clean;

/// Names the plugin's own folder (contract/lifecycle.md §5).
const DATA_DIR: &str = "KANDEV_PLUGIN_DATA_DIR=";

/// Most of a process's environment that is looked at, in bytes.
const ENVIRONMENT_BYTES: u64 = 4 << 20;

/// Longest name of a program, in bytes; the kernel's own are shorter.
const NAME_BYTES: usize = 64;

/// The plugins of a home.
pub struct Mark(Vec<u8>);

impl Mark {
    /// Of the plugins below this home.
    pub fn of(home: &Path) -> Self {
        let plugins = home.join("plugins");
        Self([DATA_DIR.as_bytes(), plugins.as_os_str().as_bytes(), b"/"].concat())
    }

    /// Their processes that run, with the program's name. Blocks: reads `/proc`.
    pub fn processes(&self) -> BTreeMap<i32, String> {
        let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid| self.is_on(*pid) && runs(*pid)).map(|pid| (pid, name(pid))).collect()
    }

    fn is_on(&self, pid: i32) -> bool {
        let mut environment = Vec::new();
        let file = File::open(format!("/proc/{pid}/environ"));
        // Of another user, or gone.
        if file.and_then(|file| file.take(ENVIRONMENT_BYTES).read_to_end(&mut environment)).is_err() {
            return false;
        }
        environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(&self.0))
    }

    /// Kills them. Blocks: reads `/proc`.
    pub fn kill(&self) {
        for pid in self.processes().into_keys().filter_map(Pid::from_raw) {
            // Most often it has just ended.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Whether it runs; one that nobody has reaped yet does not.
pub fn runs(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

fn name(pid: i32) -> String {
    let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    clean::single_line(&OsStr::from_bytes(&name).to_string_lossy(), NAME_BYTES)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn what_a_plugin_started_is_found_by_what_it_inherited_and_killed() {
        let home = tempfile::tempdir().unwrap();
        let data = home.path().join("plugins/demo/data");
        let start = |folder: &Path| {
            let mut command = Command::new("sleep");
            command.arg("600").env("KANDEV_PLUGIN_DATA_DIR", folder).stdin(Stdio::null()).spawn().unwrap()
        };
        let (mut marked, mut other) = (start(&data), start(Path::new("/plugins/demo/data")));
        let mark = Mark::of(home.path());
        let pid = i32::try_from(marked.id()).unwrap();
        // Until it has become `sleep`, it has this process's environment.
        while !mark.is_on(pid) {
            std::thread::yield_now();
        }
        assert_eq!(mark.processes().into_keys().collect::<Vec<_>>(), [pid]);
        mark.kill();
        marked.wait().unwrap();
        assert!(mark.processes().is_empty() && !runs(pid));
        assert!(other.try_wait().unwrap().is_none(), "another home's plugin lives on");
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
