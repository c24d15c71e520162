//! The load of the webhook row, in a process of its own: so many connections, each with one request at a time.

use std::net::SocketAddr;

use tokio::{sync::Barrier, time::Instant};

use crate::{
    Outcome,
    client::{Client, request},
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
    /// Bytes of the body.
    #[arg(long)]
    pub body: usize,
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
        let text = request("POST", &load.path, "", &vec![b'x'; load.body]);
        let wanted = load.body;
        tasks.spawn(async move {
            let mut client = Client::connect(address).await.map_err(|error| error.to_string())?;
            begin.wait().await;
            for _ in 0..requests {
                let (status, body) = client.send(&text).await.map_err(|error| error.to_string())?;
                if status != 200 || body.len() != wanted {
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
