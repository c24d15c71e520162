//! What a session did to code (host-data.md §5).

use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;

use super::{
    Map,
    refusal::Refusal,
    text::{check_name, check_object, check_required, check_text},
};

/// Code statistics of one session. Committed and pending lines are never added together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeStats {
    /// Whose.
    pub session_id: String,
    /// Insertions of its commits.
    pub lines_added_committed: i64,
    /// Deletions of its commits.
    pub lines_deleted_committed: i64,
    /// Most added lines that any of its snapshots shows.
    pub lines_added_peak_pending: i64,
    /// Most deleted lines that any of its snapshots shows, maybe another one.
    pub lines_deleted_peak_pending: i64,
    /// Whether the committed numbers are known: the session has commits, or began after the host learned to record
    /// them.
    pub committed_lines_available: bool,
}

/// What an agent reports of a commit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitFields {
    /// The commit's hash.
    pub commit_sha: String,
    /// Hash of its parent; empty when unknown.
    pub parent_sha: String,
    /// What it says.
    pub commit_message: String,
    /// Who made it.
    pub author_name: String,
    /// At which address.
    pub author_email: String,
    /// Files it touches.
    pub files_changed: i64,
    /// Lines added.
    pub insertions: i64,
    /// Lines deleted.
    pub deletions: i64,
}

/// A commit of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// A UUID of version 7.
    pub id: String,
    /// Whose.
    pub session_id: String,
    /// What was reported.
    #[serde(flatten)]
    pub fields: CommitFields,
    /// Made, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub committed_at: OffsetDateTime,
    /// Recorded, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

impl CommitFields {
    /// Checks texts and numbers.
    pub fn checked(self) -> Result<Self, Refusal> {
        check_required("commit_sha", &self.commit_sha)?;
        check_name("parent_sha", &self.parent_sha)?;
        check_text("commit_message", &self.commit_message)?;
        check_name("author_name", &self.author_name)?;
        check_name("author_email", &self.author_email)?;
        for (field, number) in
            [("files_changed", self.files_changed), ("insertions", self.insertions), ("deletions", self.deletions)]
        {
            if !(0..=MAX_LINES).contains(&number) {
                return Err(Refusal::Invalid { field, problem: format!("must be between 0 and {MAX_LINES}") });
            }
        }
        Ok(self)
    }
}

/// Most lines of one commit or one file; sums of them stay far from overflow.
const MAX_LINES: i64 = 1_000_000_000;

/// What an agent reports of work that is not committed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotFields {
    /// On which branch.
    pub branch: String,
    /// On top of which commit.
    pub head_commit: String,
    /// Path to what changed in it: an object with `additions` and `deletions`, and whatever else.
    pub files: Map,
}

/// A snapshot of a session's work that is not committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// A UUID of version 7.
    pub id: String,
    /// Whose.
    pub session_id: String,
    /// What was reported.
    #[serde(flatten)]
    pub fields: SnapshotFields,
    /// Sum of `additions` over its files.
    pub additions: i64,
    /// Sum of `deletions` over its files.
    pub deletions: i64,
    /// Taken, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

impl SnapshotFields {
    /// Checks the texts.
    pub fn checked(self) -> Result<Self, Refusal> {
        check_name("branch", &self.branch)?;
        check_name("head_commit", &self.head_commit)?;
        check_object("files", &self.files)?;
        Ok(self)
    }

    /// Sums of `additions` and `deletions` over all files; what is no number of lines counts nothing.
    pub fn totals(&self) -> (i64, i64) {
        let lines = |file: &Value, key: &str| {
            let number = file.get(key).and_then(|number| number.as_i64().or(number.as_f64().map(|float| float as i64)));
            number.unwrap_or(0).clamp(0, MAX_LINES)
        };
        self.files.values().fold((0, 0), |(added, deleted), file| {
            (added + lines(file, "additions"), deleted + lines(file, "deletions"))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_snapshot_sums_its_files_and_ignores_what_is_no_number() {
        let files = json!({"a": {"additions": 5, "deletions": 1}, "b": {"additions": 2.0, "deletions": -4},
            "c": {"additions": "many"}, "d": null, "e": {"additions": i64::MAX}});
        let fields = SnapshotFields { files: files.as_object().cloned().unwrap(), ..SnapshotFields::default() };
        assert_eq!(fields.totals(), (7 + MAX_LINES, 1));
        assert_eq!(SnapshotFields::default().totals(), (0, 0));
    }

    #[test]
    fn a_commit_needs_a_hash_and_lawful_numbers() {
        let commit = CommitFields { commit_sha: "abc".to_owned(), ..CommitFields::default() };
        assert!(commit.clone().checked().is_ok());
        assert!(CommitFields { insertions: -1, ..commit }.checked().is_err());
        assert_eq!(CommitFields::default().checked(), Err(Refusal::Required("commit_sha")));
    }
}
