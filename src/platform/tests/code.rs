//! Code statistics exactly as host-data.md §5 has them.

use super::*;
use crate::{
    domain::platform::{
        session::{NewSession, SessionFilter},
        stats::{CodeStats, CommitFields, SnapshotFields},
    },
    store::db::tests::{on_both_databases, tamper},
};

fn commit(sha: &str, insertions: i64, deletions: i64) -> CommitFields {
    CommitFields { commit_sha: sha.to_owned(), insertions, deletions, ..CommitFields::default() }
}

fn snapshot(files: Value) -> SnapshotFields {
    SnapshotFields { files: map(files), ..SnapshotFields::default() }
}

async fn committed_lines_are_summed_and_pending_ones_are_peaks(db: Db) {
    let world = World::new(db);
    let (code, by) = (&world.platform.code, By::operator());
    let workspace = world.workspace("one").await;
    let task = world.task("x").await;
    let new = NewSession { task_id: task.id.clone(), ..NewSession::default() };
    let session = world.platform.sessions.create(&by, &new).await.unwrap();
    let empty = world.platform.sessions.create(&by, &new).await.unwrap();
    let seen = world.log().await.len();
    let first = code.record_commit(&by, &session.id, commit("a", 10, 1), None).await.unwrap();
    code.record_commit(&by, &session.id, commit("b", 5, 2), None).await.unwrap();
    assert_eq!(code.record_commit(&by, &session.id, commit("a", 99, 99), None).await.unwrap(), first, "once a hash");
    for files in [
        json!({"a": {"additions": 5, "deletions": 1}, "b": {"additions": 2, "deletions": 0}}),
        json!({"a": {"additions": 1, "deletions": 9}}),
        json!({}),
    ] {
        code.record_snapshot(&by, &session.id, snapshot(files)).await.unwrap();
    }
    let told = world.log().await.split_off(seen);
    let kinds: Vec<_> = told.iter().map(|event| event.payload["type"].as_str().unwrap()).collect();
    let snapshots = ["snapshot_created"; 3];
    assert_eq!(kinds, [&["commit_created"; 2][..], &snapshots].concat());
    assert!(
        told.iter()
            .all(|event| event.subject == format!("git.event.{}", session.id) && event.workspace_id == workspace.id)
    );

    let list =
        async || code.stats(&Scope::All, &SessionFilter::default(), &PageRequest::default()).await.unwrap().items;
    let none = CodeStats { session_id: empty.id.clone(), committed_lines_available: true, ..CodeStats::default() };
    let all = CodeStats {
        session_id: session.id.clone(),
        lines_added_committed: 15,
        lines_deleted_committed: 3,
        lines_added_peak_pending: 7,
        lines_deleted_peak_pending: 9,
        committed_lines_available: true,
    };
    assert_eq!(list().await, [none.clone(), all]);
    let page = PageRequest::default();
    let commits = code.commits(&Scope::All, &session.id, &page).await.unwrap().items;
    assert_eq!(commits.iter().map(|commit| commit.fields.commit_sha.as_str()).collect::<Vec<_>>(), ["b", "a"]);
    assert_eq!(code.snapshots(&Scope::All, &session.id, &page).await.unwrap().items.len(), 3);
    assert_eq!(text(code.record_commit(&by, "none", commit("a", 0, 0), None).await), "session \"none\" not found");
}

async fn a_session_from_before_commits_were_recorded_has_no_committed_lines(db: Db) {
    let world = World::new(db.clone());
    let (code, by) = (&world.platform.code, By::operator());
    world.workspace("one").await;
    let task = world.task("x").await;
    let new = NewSession { task_id: task.id.clone(), ..NewSession::default() };
    for _ in 0..2 {
        world.platform.sessions.create(&by, &new).await.unwrap();
    }
    tamper(&db, "UPDATE task_session SET started_at = 0 WHERE is_primary").await;
    let available = async || {
        let page = code.stats(&Scope::All, &SessionFilter::default(), &PageRequest::default()).await.unwrap();
        page.items.into_iter().map(|stats| stats.committed_lines_available).collect::<Vec<_>>()
    };
    assert_eq!(available().await, [true, false]);
    let old = world.platform.sessions.primary(&Scope::All, &task.id).await.unwrap().unwrap();
    code.record_commit(&by, &old.id, commit("a", 1, 1), None).await.unwrap();
    assert_eq!(available().await, [true, true]);
}

on_both_databases!(
    committed_lines_are_summed_and_pending_ones_are_peaks,
    a_session_from_before_commits_were_recorded_has_no_committed_lines,
);
