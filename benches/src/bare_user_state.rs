//! The baseline of PUT …/user-state/…: an actix handler that reads the body, runs the host's own statement on the
//! driver's own connection, and answers the stamp. Nothing else: no plugin is looked up, and nobody is told.

use std::{net::SocketAddr, path::Path};

use actix_web::{HttpResponse, dev::ServerHandle, error, web};
use kandev_host::{
    config::Config,
    domain::{principal::OPERATOR_USER, user_state::Stamp},
    store::{
        db::Db,
        user_state::{ENTRY_BYTES, PUT},
    },
};
use sea_orm::sqlx::{self, Row, SqlitePool};
use serde::Deserialize;
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::{Outcome, bare};

/// Request path of the handler.
const PATH: &str = "/{plugin}/{scope}/{scopeId}/{key}";

/// The one connection that writes, as in the host, and the quota of a plugin and user.
struct Bare {
    pool: SqlitePool,
    quota: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewValue {
    value: Value,
    if_unmodified_since: String,
}

type Place = (String, String, String, String);

/// Serves on a database of its own in `folder`, which has the host's schema.
pub async fn serve(folder: &Path, config: &Config) -> Outcome<(SocketAddr, ServerHandle)> {
    let path = folder.join("bare.db");
    let url = format!("sqlite://{}?mode=rwc", path.display());
    Db::connect(&url.into(), &config.timing, &config.limits).await?.close().await?;
    let quota = i64::try_from(config.limits.user_state_bytes)?;
    let bare = web::Data::new(Bare { pool: bare::writer(&path).await?, quota });
    bare::serve(config.limits.http_workers, move |routes| {
        routes.app_data(bare.clone()).route(PATH, web::put().to(put));
    })
}

async fn put(
    bare: web::Data<Bare>,
    place: web::Path<Place>,
    new: web::Json<NewValue>,
) -> actix_web::Result<HttpResponse> {
    let new = new.into_inner();
    let since = Stamp::parse(&new.if_unmodified_since).ok_or_else(|| error::ErrorBadRequest("no time"))?;
    let written = bare.write(&place, &new.value.to_string(), since).await.map_err(error::ErrorInternalServerError)?;
    let stamp = written.ok_or_else(|| error::ErrorConflict("somebody wrote later"))?;
    Ok(HttpResponse::Ok().json(json!({"updatedAt": stamp.text()})))
}

impl Bare {
    async fn write(&self, place: &Place, value: &str, since: Stamp) -> sqlx::Result<Option<Stamp>> {
        let (plugin, scope, scope_id, key) = place;
        let size = scope.len() + scope_id.len() + key.len() + OPERATOR_USER.len() + value.len() + ENTRY_BYTES;
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        let now = Stamp::of(OffsetDateTime::now_utc());
        let query = sqlx::query(PUT).bind(plugin).bind(OPERATOR_USER).bind(scope).bind(scope_id).bind(key).bind(value);
        let query = query.bind(size).bind(now.0).bind(self.quota).bind(since.0);
        // To its end, as in the host: only then is it over.
        let rows = query.fetch_all(&self.pool).await?;
        rows.first().map(|row| row.try_get(0).map(Stamp)).transpose()
    }
}
