//! nginx with one folder of files, in processes of its own, set up as small as it can be and still be run by somebody.

use std::{
    env, fs,
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::process::{Signal, geteuid, kill_process};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::{Outcome, served::process_id};

/// Names the program where it is not on the path.
const VARIABLE: &str = "KANDEV_NGINX";

/// How long it may take to listen.
const READY: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// A running nginx; stopped when dropped.
pub struct Nginx {
    child: Child,
    pub address: SocketAddr,
    _folder: TempDir,
}

/// The program; none when it is not installed.
pub fn find() -> Option<PathBuf> {
    let named = env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let path = env::var_os("PATH").unwrap_or_default();
    // Debian has it where only root's path leads.
    let folders = env::split_paths(&path).chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    named.into_iter().chain(folders.map(|folder| folder.join("nginx"))).find(|program| program.is_file())
}

impl Nginx {
    /// Serves one file as `/name` with so many workers.
    pub async fn serve(program: &Path, name: &str, content: &[u8], workers: usize) -> Outcome<Self> {
        let folder = tempfile::Builder::new().prefix("kb").tempdir()?;
        fs::create_dir(folder.path().join("files"))?;
        fs::write(folder.path().join("files").join(name), content)?;
        // It takes no listener from us: the port is free until somebody else wants it.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let config = folder.path().join("nginx.conf");
        fs::write(&config, configuration(folder.path(), address, workers))?;
        let child = Command::new(program)
            .args(["-e", "stderr", "-p"])
            .arg(folder.path())
            .arg("-c")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        let mut nginx = Self { child, address, _folder: folder };
        nginx.ready().await?;
        Ok(nginx)
    }

    async fn ready(&mut self) -> Outcome<()> {
        let began = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("nginx ended: {status}").into());
            }
            if began.elapsed() > READY {
                return Err("nginx does not listen".into());
            }
            sleep(PAUSE).await;
        }
        Ok(())
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // The first process takes its workers with it. Already gone is fine.
        if let Ok(pid) = process_id(self.child.id()) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

/// What Debian's own file has for static files, and nothing that a file of this kind does not need. Lines of the log
/// are gathered, as the host gathers its own.
fn configuration(folder: &Path, address: SocketAddr, workers: usize) -> String {
    // As root it would read the files as somebody who may not look into our folder.
    let user = if geteuid().is_root() { "user root;" } else { "" };
    let folder = folder.display();
    format!(
        "{user}
daemon off;
worker_processes {workers};
pid {folder}/pid;
error_log stderr;
events {{
    worker_connections 1024;
}}
http {{
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000;
    types {{
        text/javascript js;
    }}
    access_log {folder}/access.log combined buffer=64k flush=1s;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen {address};
        root {folder}/files;
    }}
}}
"
    )
}
