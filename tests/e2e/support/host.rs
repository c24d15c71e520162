//! A running server binary in a throw-away home, and a client for its public API.
//!
//! Dropping it kills the host and fails the test when a plugin process is left.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use reqwest::{Method, StatusCode, multipart};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Package, Signal, eventually_some, kill};

/// The operator's token of every test host.
pub const TOKEN: &str = "test-operator-token";

/// How to start a host.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// `host.toml`.
    pub toml: String,
    /// More environment.
    pub env: Vec<(String, String)>,
    /// The limit of open files that the host is started with, as `ulimit` takes it; `None` is the test's own.
    pub open_files: Option<&'static str>,
}

impl Settings {
    /// Settings with this `host.toml`.
    pub fn toml(text: &str) -> Self {
        Self { toml: text.to_owned(), ..Self::default() }
    }

    /// Starts the host with this limit of open files: arguments of `ulimit`.
    pub fn open_files(mut self, limit: &'static str) -> Self {
        self.open_files = Some(limit);
        self
    }

    /// One more variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }
}

/// A running host.
pub struct Host {
    home: TempDir,
    child: Option<Child>,
    url: String,
    client: reqwest::Client,
    settings: Settings,
}

/// An answer: status and body.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Body as JSON, or as a JSON string when it is none.
    pub body: Value,
}

impl Answer {
    /// Fails unless the status is this one; returns the body.
    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        self.body
    }
}

impl Host {
    /// A host with default settings.
    pub async fn start() -> Self {
        Self::start_with(Settings::default()).await
    }

    /// A host with these settings, ready for requests.
    pub async fn start_with(settings: Settings) -> Self {
        let home = tempfile::Builder::new().prefix("kh-").tempdir().expect("a temporary folder");
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let mut host = Self { home, child: None, url: String::new(), client, settings };
        host.spawn().await;
        host
    }

    /// Starts the binary on this home (again) and waits until it is ready.
    pub async fn spawn(&mut self) {
        assert!(self.spawn_or_end().await, "the host ended at its start");
    }

    /// The same; false when the host ended instead.
    pub async fn spawn_or_end(&mut self) -> bool {
        self.spawn_unready();
        let run_file = self.home().join("run/host.json");
        let pid = self.pid();
        eventually_some("the new host is ready or has ended", || {
            let ended = self.try_exit();
            let url = std::fs::read(&run_file)
                .ok()
                .and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok())
                .filter(|found| found["pid"] == json!(pid))
                .and_then(|found| found["url"].as_str().map(str::to_owned));
            self.url = url.unwrap_or_default();
            let (client, ready) = (self.client.clone(), format!("{}/ready", self.url));
            async move {
                if ended {
                    return Some(false);
                }
                (answer(client.get(ready)).await.status == 200).then_some(true)
            }
        })
        .await
    }

    /// From now on the host kills itself at this moment, `<name>[:<n>]` (docs/runtime-semantics.md).
    pub fn arm(&self, failpoint: &str) {
        let temporary = self.home().join("failpoint.new");
        std::fs::write(&temporary, failpoint).expect("the failpoint is written");
        std::fs::rename(temporary, self.failpoint_file()).expect("the failpoint is written");
    }

    /// Undoes [`Self::arm`].
    pub fn disarm(&self) {
        let _ = std::fs::remove_file(self.failpoint_file());
    }

    fn failpoint_file(&self) -> PathBuf {
        self.home().join("failpoint")
    }

    /// Starts the binary without waiting for it.
    pub fn spawn_unready(&mut self) {
        if !self.settings.toml.is_empty() {
            std::fs::write(self.home().join("host.toml"), &self.settings.toml).expect("host.toml is written");
        }
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.log_path()).expect("a log file");
        let binary = env!("CARGO_BIN_EXE_kandev-host");
        let mut command = match self.settings.open_files {
            None => Command::new(binary),
            Some(limit) => {
                // The shell becomes the host: its pid is the host's.
                let mut shell = Command::new("sh");
                shell.args(["-c", &format!("ulimit {limit} && exec \"$0\" \"$@\""), binary]);
                shell
            }
        };
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--home"])
            .arg(self.home())
            .env("KANDEV_ADMIN_TOKEN", TOKEN)
            .env("KANDEV_LOG", "debug,h2=info,hyper=info,tonic=info,sqlx=warn,sea_orm=warn,tower=info")
            .env_remove("DATABASE_URL")
            .env("KANDEV_FAILPOINT_FILE", self.failpoint_file())
            .envs(self.settings.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log file"))
            .stderr(log);
        self.child = Some(command.spawn().expect("the server binary starts"));
    }

    /// The environment that it was given.
    pub fn env(&self) -> Vec<(String, String)> {
        self.settings.env.clone()
    }

    /// Changes the environment for the next [`Self::spawn`].
    pub fn set_env(&mut self, env: Vec<(String, String)>) {
        self.settings.env = env;
    }

    /// Changes `host.toml` for the next [`Self::spawn`].
    pub fn set_toml(&mut self, text: &str) {
        self.settings.toml = text.to_owned();
    }

    /// The versions of a plugin that are on disk, sorted as text.
    pub fn versions(&self, id: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.plugins().join(id)).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut versions: Vec<_> = names.filter(|name| name != "data" && !name.starts_with('.')).collect();
        versions.sort();
        versions
    }

    /// The host's home.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// `<home>/plugins`.
    pub fn plugins(&self) -> PathBuf {
        self.home().join("plugins")
    }

    /// The data folder of a plugin.
    pub fn data(&self, id: &str) -> PathBuf {
        self.plugins().join(id).join("data")
    }

    fn log_path(&self) -> PathBuf {
        self.home().join("test-host.log")
    }

    /// Everything the host wrote so far.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.log_path()).unwrap_or_default()).into_owned()
    }

    /// The host's process id.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("a running host").id()
    }

    /// Address with scheme, no final slash.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The HTTP client, for requests the helpers do not cover.
    pub fn client(&self) -> &reqwest::Client {
        &self.client
    }

    /// Whether the host has ended by itself.
    pub fn try_exit(&mut self) -> bool {
        self.child.as_mut().is_none_or(|child| child.try_wait().expect("the host can be waited for").is_some())
    }

    /// SIGKILL, reaped.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// SIGTERM, then waits for the end; returns the exit code.
    pub async fn stop(&mut self) -> Option<i32> {
        let mut child = self.child.take().expect("a running host");
        kill(i32::try_from(child.id()).expect("a pid"), Signal::TERM);
        let status = eventually_some("the host's end", || {
            let ended = child.try_wait().expect("the host can be waited for");
            async move { ended }
        })
        .await;
        status.code()
    }

    /// A request with the operator's token.
    pub async fn request(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let mut request = self.client.request(method, format!("{}{path}", self.url)).bearer_auth(TOKEN);
        if let Some(body) = body {
            request = request.json(&body);
        }
        answer(request).await
    }

    /// A request without a token.
    pub async fn anonymous(&self, method: Method, path: &str) -> Answer {
        answer(self.client.request(method, format!("{}{path}", self.url))).await
    }

    /// As somebody else.
    pub async fn with_token(&self, token: &str, method: Method, path: &str) -> Answer {
        answer(self.client.request(method, format!("{}{path}", self.url)).bearer_auth(token)).await
    }

    /// GET with the token.
    pub async fn get(&self, path: &str) -> Answer {
        self.request(Method::GET, path, None).await
    }

    /// POST with the token.
    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.request(Method::POST, path, Some(body)).await
    }

    /// Uploads an archive.
    pub async fn upload(&self, archive: Vec<u8>) -> Answer {
        self.upload_with("", archive).await
    }

    /// Uploads an archive with this query, `?` included.
    pub async fn upload_with(&self, query: &str, archive: Vec<u8>) -> Answer {
        let part = multipart::Part::bytes(archive).file_name("package.tar.gz");
        let form = multipart::Form::new().part("package", part);
        let url = format!("{}/api/plugins/install{query}", self.url);
        answer(self.client.post(url).bearer_auth(TOKEN).multipart(form)).await
    }

    /// Installs a package; fails unless it is active.
    pub async fn install(&self, package: &Package) -> Value {
        let body = self.upload(package.archive().await).await.expect(201);
        assert_eq!(body["plugin"]["status"], "active", "{body}");
        body
    }

    /// The plugin's record; panics when there is none.
    pub async fn plugin(&self, id: &str) -> Value {
        self.get(&format!("/api/plugins/{id}")).await.expect(200)
    }

    /// The plugin's record without `process`, whose figures are of the moment.
    pub async fn record(&self, id: &str) -> Value {
        let mut record = self.plugin(id).await;
        record.as_object_mut().and_then(|record| record.remove("process")).expect("a process");
        record
    }

    /// Waits until the plugin has this status; returns the record.
    pub async fn status(&self, id: &str, status: &str) -> Value {
        eventually_some(&format!("{id} is {status}"), || async {
            let record = self.plugin(id).await;
            (record["status"] == status).then_some(record)
        })
        .await
    }

    /// Enable, disable.
    pub async fn command(&self, id: &str, command: &str) -> Answer {
        self.request(Method::POST, &format!("/api/plugins/{id}/{command}"), None).await
    }

    /// Uninstalls.
    pub async fn uninstall(&self, id: &str) -> Answer {
        self.request(Method::DELETE, &format!("/api/plugins/{id}"), None).await
    }

    /// Publishes an event; returns its id.
    pub async fn publish(&self, subject: &str, payload: Value) -> String {
        let body = self.post("/api/v1/events", json!({"subject": subject, "payload": payload})).await.expect(202);
        body["event_id"].as_str().expect("an event id").to_owned()
    }

    /// What the fixture recorded: the objects of one of its `.jsonl` files.
    pub fn recorded(&self, id: &str, file: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.data(id).join(file)).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The types of the events the fixture recorded, in order.
    pub fn event_types(&self, id: &str) -> Vec<String> {
        self.recorded(id, "events.jsonl")
            .iter()
            .map(|event| event["event_type"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// Waits until the fixture recorded this many events; returns them.
    pub async fn events(&self, id: &str, count: usize) -> Vec<Value> {
        eventually_some(&format!("{count} events at {id}"), || {
            let events = self.recorded(id, "events.jsonl");
            async move { (events.len() >= count).then_some(events) }
        })
        .await
    }

    /// Pid of the plugin's newest start.
    pub fn plugin_pid(&self, id: &str) -> Option<i32> {
        self.recorded(id, "starts.jsonl").last()?["start"].as_i64().and_then(|pid| i32::try_from(pid).ok())
    }

    /// Overrides switches for the next start, and for the per-call ones at once.
    pub fn set_switches(&self, id: &str, switches: &Value) {
        std::fs::create_dir_all(self.data(id)).expect("the data folder");
        let file = self.data(id).join("fixture.json");
        let temporary = self.data(id).join("fixture.json.new");
        std::fs::write(&temporary, switches.to_string()).expect("switches are written");
        std::fs::rename(temporary, file).expect("switches are written");
    }

    /// Processes whose executable lies below this home: the plugins that are alive.
    pub fn plugin_processes(&self) -> Vec<i32> {
        let plugins = self.plugins();
        let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
        entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
            .filter(|pid| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.starts_with(&plugins)))
            .collect()
    }

    /// Runs Host calls inside the fixture by its `host` webhook.
    pub async fn host_calls(&self, id: &str, calls: Value) -> Vec<Value> {
        let path = format!("/api/plugins/{id}/webhooks/host");
        let body = self.post(&path, json!({"calls": calls})).await.expect(200);
        body["results"].as_array().cloned().unwrap_or_default()
    }
}

/// Sends and reads the whole answer.
pub async fn answer(request: reqwest::RequestBuilder) -> Answer {
    let response = match request.timeout(Duration::from_secs(120)).send().await {
        Ok(response) => response,
        Err(error) => return Answer { status: 0, body: Value::String(error.to_string()) },
    };
    let status: StatusCode = response.status();
    let bytes = response.bytes().await.unwrap_or_default();
    let body =
        serde_json::from_slice(&bytes).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
    Answer { status: status.as_u16(), body }
}

impl Drop for Host {
    #[expect(clippy::disallowed_methods, reason = "a destructor cannot await")]
    fn drop(&mut self) {
        self.kill();
        let deadline = std::time::Instant::now() + Duration::from_secs(5);
        while !self.plugin_processes().is_empty() && std::time::Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        let left = self.plugin_processes();
        if std::thread::panicking() {
            eprintln!("--- the host's log, its last lines");
            let log = self.log();
            let lines: Vec<_> = log.lines().collect();
            for line in lines.iter().skip(lines.len().saturating_sub(80)) {
                eprintln!("{line}");
            }
        } else {
            assert_eq!(left, Vec::<i32>::new(), "plugin processes left behind");
        }
    }
}
