//! The baseline of POST /tasks: an actix handler that writes the row of the task and the row of its event in one
//! transaction, on the driver's own connection, and answers the task. Nothing else: no check, no look at the board.

use std::{net::SocketAddr, path::Path};

use actix_web::{HttpResponse, dev::ServerHandle, error, web};
use kandev_host::{
    config::Config,
    domain::platform::{micros, page::PageRequest, workspace::WorkspaceDraft},
    platform::{By, Platform},
    store::{db::Db, platform::PlatformStore},
};
use sea_orm::sqlx::{self, SqlitePool};
use serde::Deserialize;
use serde_json::{Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use uuid::Uuid;

use crate::{Outcome, bare};

/// Request path of the handler.
pub const PATH: &str = "/tasks";

const TASK: &str = "INSERT INTO task (id, workspace_id, workflow_id, workflow_step_id, title, description, state, \
    priority, origin, position, identifier, external_id, parent_id, is_ephemeral, is_internal, source, archived_at, \
    started_at, completed_at, metadata, created_at, updated_at, version) \
    VALUES ($1, $2, $3, $4, $5, $6, 'CREATED', 'medium', 'manual', 0, '', NULL, NULL, FALSE, FALSE, '', NULL, NULL, \
    NULL, '{}', $7, $7, 1)";

const EVENT: &str = "INSERT INTO event_log (event_id, subject, workspace_id, payload, about, size_bytes, created_at) \
    VALUES ($1, 'task.created', $2, $3, NULL, $4, $5)";

/// Where the tasks go, and the one connection that writes, as in the host.
#[derive(Clone)]
struct Bare {
    pool: SqlitePool,
    board: Board,
}

#[derive(Clone)]
struct Board {
    workspace: String,
    workflow: String,
    step: String,
}

#[derive(Deserialize)]
struct NewTask {
    title: String,
    description: String,
}

/// Serves on a database of its own in `folder`, which has the host's schema.
pub async fn serve(folder: &Path, config: &Config) -> Outcome<(SocketAddr, ServerHandle)> {
    let path = folder.join("bare.db");
    let board = board(&path, config).await?;
    let bare = web::Data::new(Bare { pool: bare::writer(&path).await?, board });
    bare::serve(config.limits.http_workers, move |routes| {
        routes.app_data(bare.clone()).route(PATH, web::post().to(create));
    })
}

/// A new database with one workspace.
async fn board(path: &Path, config: &Config) -> Outcome<Board> {
    let url = format!("sqlite://{}?mode=rwc", path.display());
    let db = Db::connect(&url.into(), &config.timing, &config.limits).await?;
    let platform = Platform::new(&PlatformStore::new(db.clone()));
    let by = By::operator();
    let draft = WorkspaceDraft { name: Some("Bench".to_owned()), ..WorkspaceDraft::default() };
    let workspace = platform.workspaces.create(&by, &draft).await?.id;
    let workflows = platform.workflows.list(&by.scope, &workspace, &PageRequest::default()).await?;
    let workflow = workflows.items.first().ok_or("no workflow")?.id.clone();
    let steps = platform.workflows.steps(&by.scope, &workflow).await?;
    let step = steps.first().ok_or("no step")?.id.clone();
    db.close().await?;
    Ok(Board { workspace, workflow, step })
}

async fn create(bare: web::Data<Bare>, new: web::Json<NewTask>) -> actix_web::Result<HttpResponse> {
    let now = OffsetDateTime::now_utc();
    let at = now.format(&Rfc3339).map_err(error::ErrorInternalServerError)?;
    let (id, event) = (Uuid::now_v7().to_string(), Uuid::now_v7().to_string());
    let payload = payload(&id, &bare.board, &new, &at).to_string();
    bare.write(&id, &event, &new, &payload, micros(now)).await.map_err(error::ErrorInternalServerError)?;
    Ok(HttpResponse::Ok().json(answer(&id, &bare.board, &new, &at)))
}

impl Bare {
    async fn write(&self, id: &str, event: &str, new: &NewTask, payload: &str, now: i64) -> sqlx::Result<()> {
        let mut transaction = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        let board = &self.board;
        let task = sqlx::query(TASK).bind(id).bind(&board.workspace).bind(&board.workflow).bind(&board.step);
        task.bind(&new.title).bind(&new.description).bind(now).execute(&mut *transaction).await?;
        let size = i64::try_from(payload.len()).unwrap_or(i64::MAX);
        let event = sqlx::query(EVENT).bind(event).bind(&board.workspace).bind(payload).bind(size).bind(now);
        event.execute(&mut *transaction).await?;
        transaction.commit().await
    }
}

/// The keys of the host's event.
fn payload(id: &str, board: &Board, new: &NewTask, at: &str) -> Value {
    json!({
        "task_id": id,
        "workspace_id": board.workspace,
        "workflow_id": board.workflow,
        "workflow_step_id": board.step,
        "title": new.title,
        "description": new.description,
        "state": "CREATED",
        "priority": "medium",
        "position": 0,
        "wip_admitted": true,
        "created_at": at,
        "updated_at": at,
        "is_ephemeral": false,
        "autopilot": false,
        "origin": "manual",
        "auto_start_failed": false,
        "queued_for_step_id": "",
        "queued_at": null,
        "foreground_activity": null,
        "active_subagent_count": 0,
        "task_pending_action": null,
        "primary_session_id": null,
        "primary_session_state": null,
        "primary_session_pending_action": null,
        "archived_at": null,
        "repositories": [],
        "session_count": 0,
    })
}

/// As the host answers.
fn answer(id: &str, board: &Board, new: &NewTask, at: &str) -> Value {
    json!({
        "id": id,
        "workspace_id": board.workspace,
        "workflow_id": board.workflow,
        "workflow_step_id": board.step,
        "title": new.title,
        "description": new.description,
        "state": "CREATED",
        "priority": "medium",
        "position": 0,
        "wip_admitted": true,
        "primary_session_pending_action": null,
        "task_pending_action": null,
        "session_count": 0,
        "active_subagent_count": 0,
        "autopilot": false,
        "is_ephemeral": false,
        "origin": "manual",
        "created_at": at,
        "updated_at": at,
        "version": 1,
        "deduplicated": false,
        "creation_complete": true,
    })
}
