//! The throw-away host: this same program as a child process, with a home of its own, on a free port of the loopback
//! address (docs/decisions/0027-plugin-check.md).

use std::{fs::File, path::Path, process::Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep, timeout},
};
use uuid::Uuid;

use super::{CheckError, api::Api};
use crate::{
    cli::serve::install_tls,
    config::{CheckTiming, Limits, Timing},
    domain::clean,
    probe,
    store::{fs::read_bounded, run_folder},
};

/// Where the host's log goes, in its home.
const LOG: &str = "host.log";

/// Most of the log that is read to say why the host ended, in bytes.
const LOG_BYTES: u64 = 64 * 1024;

/// Longest reason that is told of it, in bytes.
const REASON_BYTES: usize = 500;

/// A running host. Dropped without [`Self::end`], it is killed.
pub struct CheckHost {
    child: Child,
    /// How it is asked.
    pub api: Api,
}

/// `host.toml`.
#[derive(Serialize)]
struct Settings<'a> {
    timing: &'a Timing,
    limits: &'a Limits,
}

impl CheckHost {
    /// Starts it and waits until it is ready.
    ///
    /// # Errors
    /// [`CheckError`]; it is killed then.
    pub async fn start(home: &Path, timing: &CheckTiming) -> Result<Self, CheckError> {
        install_tls();
        let settings = toml::to_string(&Settings { timing: &timing.host, limits: &timing.limits });
        let settings = settings.map_err(|error| CheckError::Host(error.to_string()))?;
        std::fs::write(home.join("host.toml"), settings).map_err(CheckError::Home)?;
        let token = Uuid::new_v4().simple().to_string();
        let mut child = spawn(home, &token)?;
        let url = ready(&mut child, home, timing).await?;
        Ok(Self { child, api: Api::new(&url, token.into())? })
    }

    /// Asks it to stop, with its plugins, and kills it when it does not.
    pub async fn end(mut self, timing: &CheckTiming) {
        let pid = self.child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // It is not reaped before the wait below, so the number is still its own.
            let _ = kill_process(pid, Signal::TERM);
        }
        if timeout(timing.host_stop, self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
    }
}

/// In a process group of its own: Ctrl-C is for the check, which then stops the host in order.
fn spawn(home: &Path, token: &str) -> Result<Child, CheckError> {
    let log = File::create(home.join(LOG)).map_err(CheckError::Home)?;
    let also = log.try_clone().map_err(CheckError::Home)?;
    let mut command = Command::new(std::env::current_exe().map_err(CheckError::Program)?);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        // What is set for the operator's own host.
        if text.starts_with("KANDEV_") || text.starts_with("DATABASE_URL") {
            command.env_remove(&name);
        }
    }
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--home"])
        .arg(home)
        .env("KANDEV_ADMIN_TOKEN", token)
        .stdin(Stdio::null())
        .stdout(also)
        .stderr(log)
        .process_group(0)
        .kill_on_drop(true);
    command.spawn().map_err(CheckError::Program)
}

/// Its address, once it answers there.
async fn ready(child: &mut Child, home: &Path, timing: &CheckTiming) -> Result<String, CheckError> {
    let deadline = Instant::now() + timing.host_start;
    let folder = home.join("run");
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Err(CheckError::Ended { status: status.to_string(), reason: last_line(home) });
        }
        if let Ok(Some(found)) = run_folder::announced(&folder)
            && probe::ready(&found.url, timing.probe).await.is_ok()
        {
            return Ok(found.url);
        }
        if Instant::now() >= deadline {
            return Err(CheckError::NotReady { after: timing.host_start });
        }
        sleep(timing.look).await;
    }
}

/// The last line of its log: why it ended.
fn last_line(home: &Path) -> String {
    let bytes = read_bounded(&home.join(LOG), LOG_BYTES).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    clean::single_line(text.trim_end().lines().next_back().unwrap_or("it wrote nothing"), REASON_BYTES)
}
