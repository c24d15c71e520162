//! The load of the rows `webhook` and `create`, in a process of its own: so many connections, each with one request at a
//! time.

use std::{net::SocketAddr, process::Stdio};

use tokio::{sync::Barrier, time::Instant};

use crate::{
    Outcome,
    client::{Client, request},
    world::TOKEN,
};

/// What to send.
#[derive(Debug, clap::Args)]
pub struct Load {
    /// Server.
    #[arg(long)]
    pub address: SocketAddr,
    /// Path of the request.
    #[arg(long)]
    pub path: String,
    /// Connections.
    #[arg(long)]
    pub connections: usize,
    /// Requests of each connection.
    #[arg(long)]
    pub requests: usize,
    /// Body.
    #[arg(long)]
    pub body: String,
    /// The answer is the body again; otherwise it is not looked at.
    #[arg(long)]
    pub echo: bool,
}

impl Load {
    /// Requests a second, as a process of its own counts them.
    pub async fn elsewhere(&self) -> Outcome<f64> {
        let mut command = tokio::process::Command::new(std::env::current_exe()?);
        command.arg("load").args(["--address", &self.address.to_string(), "--path", &self.path, "--body", &self.body]);
        command.args(["--connections", &self.connections.to_string(), "--requests", &self.requests.to_string()]);
        command.args(self.echo.then_some("--echo"));
        let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().await?;
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout)?.trim().parse()?),
            false => Err("the load process failed".into()),
        }
    }
}

/// Sends it all and prints requests a second.
pub fn run(load: &Load) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let rate = runtime.block_on(drive(load))?;
    println!("{rate}");
    Ok(())
}

async fn drive(load: &Load) -> Outcome<f64> {
    let begin = std::sync::Arc::new(Barrier::new(load.connections + 1));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..load.connections {
        let (begin, address, requests) = (begin.clone(), load.address, load.requests);
        let text = request("POST", &load.path, TOKEN, load.body.as_bytes());
        let wanted = load.echo.then_some(load.body.len());
        tasks.spawn(async move {
            let mut client = Client::connect(address).await.map_err(|error| error.to_string())?;
            begin.wait().await;
            for _ in 0..requests {
                let (status, body) = client.send(&text).await.map_err(|error| error.to_string())?;
                if status != 200 || wanted.is_some_and(|wanted| wanted != body.len()) {
                    return Err(format!("status {status}: {}", String::from_utf8_lossy(body)));
                }
            }
            Ok::<_, String>(())
        });
    }
    begin.wait().await;
    let began = Instant::now();
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok((load.connections * load.requests) as f64 / began.elapsed().as_secs_f64())
}
