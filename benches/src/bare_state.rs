//! The baseline of GetState: a tonic handler that runs the statement and builds the answer, nothing else.

use std::{
    convert::Infallible,
    future::Future,
    path::Path,
    pin::Pin,
    task::{Context, Poll},
};

use kandev_host::domain::id::PluginId;
use kandev_proto::{
    struct_from_json,
    v1::{GetStateRequest, GetStateResponse},
};
use sea_orm::sqlx::{
    self, ConnectOptions, Row,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions},
};
use tonic::{
    Request, Response, Status,
    body::Body,
    codegen::http,
    server::{Grpc, NamedService, UnaryService},
};
use tonic_prost::ProstCodec;
use tower::Service;

use crate::Outcome;

/// Request path of the bare handler.
pub const BARE_PATH: &str = "/bench.v1.Bare/GetState";

/// Request path of the host's own.
pub const HOST_PATH: &str = "/kandev.plugin.v1.Host/GetState";

/// The statement that the host runs for a GetState.
const STATEMENT: &str =
    r#"SELECT "value" FROM "plugin_state" WHERE "plugin_id" = $1 AND "scope" = $2 AND "scope_id" = $3 AND "key" = $4"#;

/// The handler's connections: as many as the host's.
#[derive(Clone)]
pub struct BareState {
    pool: SqlitePool,
}

impl BareState {
    pub async fn open(database: &Path, connections: u32) -> Outcome<Self> {
        let options = SqliteConnectOptions::new()
            .filename(database)
            .journal_mode(SqliteJournalMode::Wal)
            .disable_statement_logging();
        let pool = SqlitePoolOptions::new()
            .test_before_acquire(false)
            .max_connections(connections)
            .connect_with(options)
            .await?;
        Ok(Self { pool })
    }

    pub fn service(self, plugin: &PluginId) -> BareService {
        BareService { pool: self.pool, plugin: plugin.as_str().into() }
    }
}

/// Serves one plugin.
#[derive(Clone)]
pub struct BareService {
    pool: SqlitePool,
    plugin: std::sync::Arc<str>,
}

impl NamedService for BareService {
    const NAME: &'static str = "bench.v1.Bare";
}

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl Service<http::Request<Body>> for BareService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let handler = self.clone();
        Box::pin(async move {
            let codec = ProstCodec::<GetStateResponse, GetStateRequest>::default();
            Ok(Grpc::new(codec).unary(handler, request).await)
        })
    }
}

impl UnaryService<GetStateRequest> for BareService {
    type Response = GetStateResponse;
    type Future = BoxFuture<Result<Response<GetStateResponse>, Status>>;

    fn call(&mut self, request: Request<GetStateRequest>) -> Self::Future {
        let (pool, plugin) = (self.pool.clone(), self.plugin.clone());
        Box::pin(async move {
            let GetStateRequest { scope, scope_id, key } = request.into_inner();
            let failed = |error: sqlx::Error| Status::internal(error.to_string());
            let query = sqlx::query(STATEMENT).bind(&*plugin).bind(scope).bind(scope_id).bind(key);
            let row = query.fetch_optional(&pool).await.map_err(failed)?;
            let value = match &row {
                Some(row) => {
                    let text: &str = row.try_get("value").map_err(failed)?;
                    let object = serde_json::from_str(text).map_err(|error| Status::internal(error.to_string()))?;
                    Some(struct_from_json(object))
                }
                None => None,
            };
            Ok(Response::new(GetStateResponse { found: row.is_some(), value }))
        })
    }
}
