//! How the last change of a plugin's version went, as its record keeps it.
//!
//! The note is written before anything of the plugin is touched and closed when the change is over, so that a host that
//! was killed in between knows at its next start what to repair. Running the change is `actors::installer`'s.

use std::fmt;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::record::{PluginRecord, Status};

/// The reason of a change that came to nothing by the host's own trouble; what happened is in its log.
pub const HOST_TROUBLE: &str = "the host could not carry it out; its log has the reason";

/// The same of a change that ended before the plugin was touched: its package found no place.
pub const NOT_PLACED: &str = "the host could not put the package in its place; its log has the reason";

/// The last change from one version to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LastUpgrade {
    /// The version before.
    pub from: String,
    /// The version that was wanted.
    pub version: String,
    /// What was asked for.
    pub kind: ChangeKind,
    /// The status before; what a change that fails goes back to.
    pub status_before: Status,
    /// When it began, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// What came of it.
    pub outcome: Outcome,
    /// Why it came to that: one redacted line of at most 2048 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = UpgradeKind)]
pub enum ChangeKind {
    /// A package of another version.
    Install,
    /// The version that was kept.
    Rollback,
}

impl fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Install => "upgrade",
            Self::Rollback => "rollback",
        })
    }
}

/// What came of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = UpgradeOutcome)]
pub enum Outcome {
    /// It is not over.
    UnderWay,
    /// The wanted version is the installed one.
    Done,
    /// It failed; the version before is the installed one again.
    RolledBack,
    /// The host ended meanwhile; the version before is still the installed one.
    Interrupted,
}

/// What a host that starts must do about a change its predecessor did not finish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfinished {
    /// The record is still the one of the version before: remove what was placed and go on with it.
    Abandon,
    /// The new version never proved itself: start it, and go back when it does not come up.
    Prove,
    /// The new version did not come up, or did not get to: go back.
    GoBack,
    /// Nothing is left but to say that it is done.
    Close,
}

impl LastUpgrade {
    /// A change that begins now, from what is installed.
    pub fn begin(before: &PluginRecord, version: &str, kind: ChangeKind, at: OffsetDateTime) -> Self {
        Self {
            from: before.manifest.version.clone(),
            version: version.to_owned(),
            kind,
            status_before: before.state.status,
            at,
            outcome: Outcome::UnderWay,
            reason: None,
        }
    }

    /// The same change with its end.
    pub fn ended(&self, outcome: Outcome, reason: Option<String>) -> Self {
        Self { outcome, reason, ..self.clone() }
    }

    /// Whether this version was tried and undone. A disk that did not take its package says nothing about a version,
    /// and another try costs the plugin nothing; what went wrong once the plugin was held would stop it again.
    pub fn has_failed(&self, version: &str) -> bool {
        let untried = self.reason.as_deref() == Some(NOT_PLACED);
        self.version == version && self.outcome == Outcome::RolledBack && !untried
    }

    /// Whether an operator went back from this version.
    pub fn went_back_from(&self, version: &str) -> bool {
        self.kind == ChangeKind::Rollback && self.outcome == Outcome::Done && self.from == version
    }
}

/// Reads a record found at start. `None`: no change was under way.
pub fn unfinished(record: &PluginRecord) -> Option<Unfinished> {
    let note = record.state.last_upgrade.as_ref().filter(|note| note.outcome == Outcome::UnderWay)?;
    if record.manifest.version != note.version {
        return Some(Unfinished::Abandon);
    }
    Some(match record.state.status {
        Status::Registered => Unfinished::Prove,
        Status::Error => Unfinished::GoBack,
        // It came up; or an operator turned it off while it was starting, and so it stays.
        Status::Active | Status::Disabled => Unfinished::Close,
    })
}

/// The version whose package is to be gone, since the change that brought it was undone. `None` when it was there
/// before that.
pub fn undone_package(record: &PluginRecord) -> Option<&str> {
    let (state, note) = (&record.state, record.state.last_upgrade.as_ref()?);
    let undone = note.kind == ChangeKind::Install && matches!(note.outcome, Outcome::RolledBack | Outcome::Interrupted);
    let kept = note.version == record.manifest.version || state.previous_version.as_ref() == Some(&note.version);
    (undone && !kept).then_some(note.version.as_str())
}

/// Whether what a record found at start speaks of has never been seen to run, so that its files are compared with the
/// package's checksums before it does. A plugin that was only held for a change of version that did not come about ran
/// already; and one that was put there by hand need not have checksums, it is judged otherwise.
pub fn is_unproven(record: &PluginRecord) -> bool {
    let note = record.state.last_upgrade.as_ref().filter(|_| unfinished(record) == Some(Unfinished::Abandon));
    let held = note.is_some_and(|note| note.status_before == Status::Active);
    record.state.status == Status::Registered && !record.state.sideloaded && !held
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;
    use crate::domain::{id::PluginId, manifest, record::RecordState};

    fn record(version: &str, status: Status) -> PluginRecord {
        let text = format!(
            "{{id: acme, api_version: 1, version: '{version}', runtime: {{type: binary, executables: {{linux-amd64: p}}}}}}"
        );
        let manifest = manifest::parse(text.as_bytes()).unwrap().manifest;
        let state = RecordState::installed("/x".into(), datetime!(2026-08-01 09:00 UTC));
        let mut record = PluginRecord::new(PluginId::new("acme").unwrap(), manifest, state);
        record.state.status = status;
        record
    }

    fn note() -> LastUpgrade {
        let at = datetime!(2026-08-02 09:00 UTC);
        LastUpgrade::begin(&record("1.0.0", Status::Active), "1.1.0", ChangeKind::Install, at)
    }

    #[test]
    fn an_unfinished_change_is_repaired_by_what_the_record_says() {
        for (version, status, verdict) in [
            ("1.0.0", Status::Active, Unfinished::Abandon),
            ("1.0.0", Status::Registered, Unfinished::Abandon),
            ("1.0.0", Status::Disabled, Unfinished::Abandon),
            ("1.0.0", Status::Error, Unfinished::Abandon),
            ("1.1.0", Status::Registered, Unfinished::Prove),
            ("1.1.0", Status::Error, Unfinished::GoBack),
            ("1.1.0", Status::Active, Unfinished::Close),
            ("1.1.0", Status::Disabled, Unfinished::Close),
        ] {
            let mut record = record(version, status);
            assert_eq!(unfinished(&record), None);
            record.state.last_upgrade = Some(note());
            assert_eq!(unfinished(&record), Some(verdict), "{version} {status}");
            for outcome in [Outcome::Done, Outcome::RolledBack, Outcome::Interrupted] {
                record.state.last_upgrade = Some(note().ended(outcome, None));
                assert_eq!(unfinished(&record), None);
            }
        }
    }

    #[test]
    fn the_package_of_an_undone_upgrade_is_to_be_gone_and_no_version_that_is_kept() {
        let mut before = record("1.0.0", Status::Active);
        assert_eq!(undone_package(&before), None);
        let rollback = LastUpgrade { kind: ChangeKind::Rollback, ..note() };
        for (note, outcome, gone) in [
            (note(), Outcome::UnderWay, false),
            (note(), Outcome::Done, false),
            (note(), Outcome::RolledBack, true),
            (note(), Outcome::Interrupted, true),
            (rollback, Outcome::RolledBack, false),
        ] {
            before.state.previous_version = None;
            before.state.last_upgrade = Some(note.ended(outcome, None));
            assert_eq!(undone_package(&before), gone.then_some("1.1.0"), "{note:?} {outcome:?}");
            before.state.previous_version = Some("1.1.0".to_owned());
            assert_eq!(undone_package(&before), None, "it took the place of the kept version, which is there again");
        }
        let mut installed = record("1.1.0", Status::Active);
        installed.state.last_upgrade = Some(note().ended(Outcome::RolledBack, None));
        assert_eq!(undone_package(&installed), None);
    }

    #[test]
    fn a_version_has_failed_when_it_was_tried_and_is_taken_back_by_an_operator_only() {
        let ended = |outcome, reason: &str| note().ended(outcome, Some(reason.to_owned()));
        assert!(ended(Outcome::RolledBack, "exit status 1").has_failed("1.1.0"));
        assert!(ended(Outcome::RolledBack, HOST_TROUBLE).has_failed("1.1.0"));
        assert!(note().ended(Outcome::RolledBack, None).has_failed("1.1.0"));
        for (note, version) in [
            (ended(Outcome::RolledBack, "exit status 1"), "1.1.1"),
            (ended(Outcome::RolledBack, NOT_PLACED), "1.1.0"),
            (ended(Outcome::Interrupted, "the host ended"), "1.1.0"),
            (ended(Outcome::Done, "turned off"), "1.1.0"),
            (note(), "1.1.0"),
        ] {
            assert!(!note.has_failed(version), "{note:?}");
        }
        let back = LastUpgrade { kind: ChangeKind::Rollback, from: "1.1.0".into(), version: "1.0.0".into(), ..note() };
        assert!(back.ended(Outcome::Done, None).went_back_from("1.1.0"));
        assert!(!back.ended(Outcome::Done, None).went_back_from("1.0.0"));
        assert!(!back.ended(Outcome::RolledBack, None).went_back_from("1.1.0"), "it is installed as before");
        assert!(!note().ended(Outcome::Done, None).went_back_from("1.0.0"), "an upgrade");
    }

    #[test]
    fn what_was_put_in_place_and_never_ran_is_unproven() {
        assert!(is_unproven(&record("1.0.0", Status::Registered)));
        for status in [Status::Active, Status::Error, Status::Disabled] {
            assert!(!is_unproven(&record("1.0.0", status)), "{status}");
        }
        let mut held = record("1.0.0", Status::Registered);
        held.state.last_upgrade = Some(note());
        assert!(!is_unproven(&held), "held for an upgrade, it ran before");
        held.state.last_upgrade = Some(LastUpgrade { status_before: Status::Registered, ..note() });
        assert!(is_unproven(&held));
        let mut new = record("1.1.0", Status::Registered);
        new.state.last_upgrade = Some(note());
        assert!(is_unproven(&new), "the new version");
        new.state.sideloaded = true;
        assert!(!is_unproven(&new));
    }

    #[test]
    fn the_note_is_in_the_record_and_survives_its_file() {
        let mut record = record("1.1.0", Status::Active);
        let ended = note().ended(Outcome::RolledBack, Some("it: did \"not\" start".to_owned()));
        record.state.last_upgrade = Some(ended);
        assert_eq!(
            serde_json::to_value(&record).unwrap()["last_upgrade"],
            serde_json::json!({"from": "1.0.0", "version": "1.1.0", "kind": "install", "status_before": "active",
                "at": "2026-08-02T09:00:00Z", "outcome": "rolled_back", "reason": "it: did \"not\" start"})
        );
        let text = record.to_yaml().unwrap();
        assert_eq!(PluginRecord::from_yaml(record.id().clone(), text.as_bytes()).unwrap(), record);
    }
}
