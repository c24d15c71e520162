//! What bare servers share: actix with as many workers as the host, a plugin's answer passed on, and the driver's own
//! connection that writes to SQLite.

use std::{
    collections::HashMap,
    net::{SocketAddr, TcpListener},
    path::Path,
    time::Duration,
};

use actix_web::{
    App, HttpResponse, HttpServer,
    dev::ServerHandle,
    error,
    http::StatusCode,
    web::{Bytes, ServiceConfig},
};
use sea_orm::sqlx::{
    ConnectOptions,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous},
};

use crate::Outcome;

/// Serves these routes on a free port.
pub fn serve(
    workers: usize,
    routes: impl Fn(&mut ServiceConfig) + Clone + Send + 'static,
) -> Outcome<(SocketAddr, ServerHandle)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let server = HttpServer::new(move || App::new().configure(routes.clone()))
        .workers(workers)
        .disable_signals()
        .listen(listener)?
        .run();
    let handle = server.handle();
    tokio::spawn(server);
    Ok((address, handle))
}

/// A call that tells the plugin its deadline, as the host's calls do.
pub fn within<T>(deadline: Duration, message: T) -> tonic::Request<T> {
    let mut call = tonic::Request::new(message);
    call.set_timeout(deadline);
    call
}

/// Passes a plugin's answer on.
pub fn answer(status: i32, headers: HashMap<String, String>, body: Bytes) -> actix_web::Result<HttpResponse> {
    let status = u16::try_from(status).map_err(error::ErrorBadGateway)?;
    let status = StatusCode::from_u16(status).map_err(error::ErrorBadGateway)?;
    let mut response = HttpResponse::build(status);
    for (name, value) in headers {
        response.append_header((name, value));
    }
    Ok(response.body(body))
}

/// The one connection that writes, set as the host's is.
pub async fn writer(path: &Path) -> Outcome<SqlitePool> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        .foreign_keys(true)
        .disable_statement_logging();
    Ok(SqlitePoolOptions::new().test_before_acquire(false).max_connections(1).connect_with(options).await?)
}
