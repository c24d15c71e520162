//! The host's real program in a process of its own, used by its public interface only.

use std::{
    fs,
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::{Outcome, world::TOKEN};

/// How long the host may take to be ready.
const READY: Duration = Duration::from_secs(30);

/// A running host; killed when dropped.
pub struct Served {
    child: Child,
    pub address: SocketAddr,
    _home: TempDir,
    http: reqwest::Client,
}

impl Served {
    /// Starts the program on a new home.
    pub async fn start(program: &Path) -> Outcome<Self> {
        let home = tempfile::Builder::new().prefix("kb").tempdir()?;
        let log = fs::File::create(home.path().join("log"))?;
        let child = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0", "--home"])
            .arg(home.path())
            .env("KANDEV_ADMIN_TOKEN", TOKEN)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        let began = Instant::now();
        let announced = home.path().join("run/host.json");
        let address = loop {
            if let Some(address) = fs::read(&announced).ok().and_then(|text| parse(&text)) {
                break address;
            }
            if began.elapsed() > READY {
                return Err(format!("the host is not ready: {}", fs::read_to_string(home.path().join("log"))?).into());
            }
            sleep(Duration::from_millis(20)).await;
        };
        Ok(Self { child, address, _home: home, http: reqwest::Client::new() })
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Installs a package that is a file; the answer must be 201. The body is streamed.
    pub async fn install(&self, package: &Path) -> Outcome<()> {
        let form = reqwest::multipart::Form::new().file("package", package).await?;
        let url = format!("http://{}/api/plugins/install", self.address);
        let answer = self.http.post(url).bearer_auth(TOKEN).multipart(form).send().await?;
        match answer.status().as_u16() {
            201 => Ok(()),
            status => Err(format!("install answered {status}: {}", answer.text().await?).into()),
        }
    }

    /// A command without a body; any 2xx is fine.
    pub async fn command(&self, method: reqwest::Method, path: &str) -> Outcome<()> {
        let answer = self.http.request(method, format!("http://{}{path}", self.address)).bearer_auth(TOKEN).send();
        let answer = answer.await?;
        match answer.status().is_success() {
            true => Ok(()),
            false => Err(format!("{path} answered {}: {}", answer.status(), answer.text().await?).into()),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Already gone is fine.
        if let Ok(pid) = process_id(self.child.id()) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

fn parse(text: &[u8]) -> Option<SocketAddr> {
    let value: serde_json::Value = serde_json::from_slice(text).ok()?;
    value["url"].as_str()?.strip_prefix("http://")?.parse().ok()
}

/// A process by its number.
pub fn process_id(number: u32) -> Outcome<Pid> {
    Ok(Pid::from_raw(number.cast_signed()).ok_or("process 0")?)
}

/// Anonymous memory of a process, in kB.
pub fn anonymous_kb(pid: u32) -> Outcome<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:")).ok_or("no RssAnon")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}
