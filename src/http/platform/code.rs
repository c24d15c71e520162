//! Commits and snapshots of uncommitted work that agents report of their sessions (host-data.md §5).

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::parts::Part;
use crate::{
    domain::{
        action::Action,
        platform::{
            Map,
            page::Page,
            stats::{Commit, CommitFields, Snapshot, SnapshotFields},
        },
    },
    http::{
        ApiError, Services,
        change::{Change, scope},
        endpoint::{Endpoint, get, post},
        query::Query,
    },
};

pub static ROUTES: &[Endpoint] = &[
    get("/api/v1/task-sessions/{id}/commits", Action::CodeRead, || web::to(commits))
        .about("Commits of a session, the last reported first")
        .query::<Part>()
        .gives::<CommitList>(200),
    post("/api/v1/task-sessions/{id}/commits", Action::CodeWrite, || web::to(record_commit))
        .about("Report a commit of a session; one that is known is answered as it is")
        .body::<CommitBody>()
        .gives::<CommitView>(201)
        .once(),
    get("/api/v1/task-sessions/{id}/git-snapshots", Action::CodeRead, || web::to(snapshots))
        .about("Snapshots of a session, the last reported first")
        .query::<Part>()
        .gives::<SnapshotList>(200),
    post("/api/v1/task-sessions/{id}/git-snapshots", Action::CodeWrite, || web::to(record_snapshot))
        .about("Report what a session has not committed")
        .body::<SnapshotBody>()
        .gives::<SnapshotView>(201)
        .once(),
];

/// A commit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CommitBody {
    #[schema(min_length = 1, pattern = "\\S")]
    commit_sha: String,
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    parent_sha: String,
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    commit_message: String,
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    author_name: String,
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    author_email: String,
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    #[schema(minimum = 0, maximum = 1000000000)]
    files_changed: i64,
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    #[schema(minimum = 0, maximum = 1000000000)]
    insertions: i64,
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    #[schema(minimum = 0, maximum = 1000000000)]
    deletions: i64,
    /// Left out: now.
    #[serde(default, with = "time::serde::rfc3339::option")]
    committed_at: Option<OffsetDateTime>,
}

/// Work that is not committed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SnapshotBody {
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    branch: String,
    /// The commit that the work is on top of.
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    head_commit: String,
    /// Path to an object with `additions` and `deletions`, and whatever else.
    #[schema(value_type = Object)]
    files: Map,
}

/// A commit of a session.
#[derive(Debug, Serialize, ToSchema)]
struct CommitView {
    id: String,
    session_id: String,
    commit_sha: String,
    parent_sha: String,
    commit_message: String,
    author_name: String,
    author_email: String,
    files_changed: i64,
    insertions: i64,
    deletions: i64,
    #[serde(with = "time::serde::rfc3339")]
    committed_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
}

impl From<Commit> for CommitView {
    fn from(commit: Commit) -> Self {
        let fields = commit.fields;
        Self {
            id: commit.id,
            session_id: commit.session_id,
            commit_sha: fields.commit_sha,
            parent_sha: fields.parent_sha,
            commit_message: fields.commit_message,
            author_name: fields.author_name,
            author_email: fields.author_email,
            files_changed: fields.files_changed,
            insertions: fields.insertions,
            deletions: fields.deletions,
            committed_at: commit.committed_at,
            created_at: commit.created_at,
        }
    }
}

/// A snapshot of uncommitted work.
#[derive(Debug, Serialize, ToSchema)]
struct SnapshotView {
    id: String,
    session_id: String,
    branch: String,
    head_commit: String,
    #[schema(value_type = Object)]
    files: Map,
    /// Sum over its files.
    additions: i64,
    /// Sum over its files.
    deletions: i64,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
}

impl From<Snapshot> for SnapshotView {
    fn from(snapshot: Snapshot) -> Self {
        Self {
            id: snapshot.id,
            session_id: snapshot.session_id,
            branch: snapshot.fields.branch,
            head_commit: snapshot.fields.head_commit,
            files: snapshot.fields.files,
            additions: snapshot.additions,
            deletions: snapshot.deletions,
            created_at: snapshot.created_at,
        }
    }
}

/// Commits.
#[derive(Debug, Serialize, ToSchema)]
struct CommitList {
    commits: Vec<CommitView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Snapshots.
#[derive(Debug, Serialize, ToSchema)]
struct SnapshotList {
    snapshots: Vec<SnapshotView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

async fn commits(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
    Query(part): Query<Part>,
) -> Result<HttpResponse, ApiError> {
    let (service, scope) = (&services.platform.code, scope(&request));
    let Page { items, next_cursor } = part.rows(async |page| service.commits(&scope, &id, &page).await).await?;
    let commits = items.into_iter().map(CommitView::from).collect();
    Ok(HttpResponse::Ok().json(CommitList { commits, next_cursor }))
}

async fn snapshots(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
    Query(part): Query<Part>,
) -> Result<HttpResponse, ApiError> {
    let (service, scope) = (&services.platform.code, scope(&request));
    let Page { items, next_cursor } = part.rows(async |page| service.snapshots(&scope, &id, &page).await).await?;
    let snapshots = items.into_iter().map(SnapshotView::from).collect();
    Ok(HttpResponse::Ok().json(SnapshotList { snapshots, next_cursor }))
}

async fn record_commit(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<CommitBody>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.code.clone();
    let body = change.body;
    let fields = CommitFields {
        commit_sha: body.commit_sha,
        parent_sha: body.parent_sha,
        commit_message: body.commit_message,
        author_name: body.author_name,
        author_email: body.author_email,
        files_changed: body.files_changed,
        insertions: body.insertions,
        deletions: body.deletions,
    };
    let work = async move { service.record_commit(&change.by, &id, fields, body.committed_at).await };
    Ok(HttpResponse::Created().json(CommitView::from(services.tasks.finish(work).await?)))
}

async fn record_snapshot(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<SnapshotBody>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.code.clone();
    let SnapshotBody { branch, head_commit, files } = change.body;
    let fields = SnapshotFields { branch, head_commit, files };
    let work = async move { service.record_snapshot(&change.by, &id, fields).await };
    Ok(HttpResponse::Created().json(SnapshotView::from(services.tasks.finish(work).await?)))
}
