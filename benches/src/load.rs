//! The load of the rows that ask over HTTP, in a process of its own: so many connections, each with one request at a
//! time.

use std::{io, net::SocketAddr, process::Stdio, sync::Arc};

use tokio::{io::AsyncWriteExt as _, sync::Barrier, time::Instant};

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
    /// Method of the request.
    #[arg(long)]
    pub method: String,
    /// Path of the request; `{connection}` in it is the number of the connection.
    #[arg(long)]
    pub path: String,
    /// Connections.
    #[arg(long)]
    pub connections: usize,
    /// Requests of each connection.
    #[arg(long)]
    pub requests: usize,
    /// Bytes that the body of each answer must have; without it the body is not looked at.
    #[arg(long)]
    pub answer: Option<usize>,
    /// Body: what the process reads from its standard input.
    #[arg(skip)]
    pub body: String,
}

impl Load {
    /// Requests a second, as a process of its own counts them.
    pub async fn elsewhere(&self) -> Outcome<f64> {
        let mut command = tokio::process::Command::new(std::env::current_exe()?);
        command.arg("load").args(["--address", &self.address.to_string()]);
        command.args(["--method", &self.method, "--path", &self.path]);
        command.args(["--connections", &self.connections.to_string(), "--requests", &self.requests.to_string()]);
        if let Some(bytes) = self.answer {
            command.args(["--answer", &bytes.to_string()]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).kill_on_drop(true);
        let mut process = command.spawn()?;
        let mut input = process.stdin.take().ok_or("the load process has no input")?;
        input.write_all(self.body.as_bytes()).await?;
        drop(input);
        let output = process.wait_with_output().await?;
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout)?.trim().parse()?),
            false => Err("the load process failed".into()),
        }
    }
}

/// Sends it all and prints requests a second.
pub fn run(load: &Load) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let body = io::read_to_string(io::stdin())?;
    let rate = runtime.block_on(drive(load, body.as_bytes()))?;
    println!("{rate}");
    Ok(())
}

async fn drive(load: &Load, body: &[u8]) -> Outcome<f64> {
    let begin = Arc::new(Barrier::new(load.connections + 1));
    let mut tasks = tokio::task::JoinSet::new();
    for connection in 0..load.connections {
        let (begin, address, requests, wanted) = (begin.clone(), load.address, load.requests, load.answer);
        let path = load.path.replace("{connection}", &connection.to_string());
        let text = request(&load.method, &path, TOKEN, body);
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
