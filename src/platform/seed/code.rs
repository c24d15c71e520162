//! Commits and snapshots of a session.

use serde_json::json;

use super::{Chunk, Plan, dice::Dice, words, work::SPAN};
use crate::domain::platform::{
    Map, from_micros, micros,
    session::Session,
    stats::{Commit, CommitFields, Snapshot, SnapshotFields},
};

/// Adds what the session did to a file: as many commits and snapshots as the plan says.
pub fn code(dice: &mut Dice, plan: &Plan, session: &Session, file: &str, chunk: &mut Chunk) {
    let apart = SPAN / 3 / i64::from(plan.commits.max(plan.snapshots).max(1));
    let mut parent = dice.hex(40);
    for n in 0..plan.commits.max(plan.snapshots) {
        let at = micros(session.started_at) + i64::from(n) * apart + dice.below(apart);
        if n < plan.snapshots {
            chunk.snapshots.push(snapshot(dice, session, file, &parent, at));
        }
        if n < plan.commits {
            let commit = commit(dice, session, file, parent, at + 1);
            parent = commit.fields.commit_sha.clone();
            chunk.commits.push(commit);
        }
    }
}

fn commit(dice: &mut Dice, session: &Session, file: &str, parent_sha: String, at: i64) -> Commit {
    let name = file.rsplit('/').next().unwrap_or(file);
    let fields = CommitFields {
        commit_sha: dice.hex(40),
        parent_sha,
        commit_message: format!("{} {name}\n\n{}", dice.pick(words::VERBS), dice.pick(words::REASONS)),
        author_name: session.agent_display_name().to_owned(),
        author_email: "agent@example.com".to_owned(),
        files_changed: dice.between(1, 6),
        insertions: dice.between(1, 180),
        deletions: dice.below(90),
    };
    Commit {
        id: dice.id(at),
        session_id: session.id.clone(),
        fields,
        committed_at: from_micros(at),
        created_at: from_micros(at),
    }
}

fn snapshot(dice: &mut Dice, session: &Session, file: &str, head: &str, at: i64) -> Snapshot {
    let mut changed = |path: &str| {
        let lines = json!({"status": "modified", "additions": dice.between(1, 120), "deletions": dice.below(60)});
        (path.to_owned(), lines)
    };
    let files = Map::from_iter([changed(file), changed("CHANGELOG.md")]);
    let fields = SnapshotFields { branch: format!("kandev/{}", &head[..8]), head_commit: head.to_owned(), files };
    let (additions, deletions) = fields.totals();
    Snapshot {
        id: dice.id(at),
        session_id: session.id.clone(),
        fields,
        additions,
        deletions,
        created_at: from_micros(at),
    }
}
