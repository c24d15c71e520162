//! What is told when a plugin's status changes: the events `plugin.lifecycle.<state>` (docs/runtime-semantics.md,
//! "Lifecycle events").
//!
//! Owns which change is worth an event, its name and its payload. Publishing is the registry's and the bus's part; only
//! the host publishes under [`PREFIX`].

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::{
    id::PluginId,
    record::{PluginRecord, Status},
    subject::{Subject, SubjectError},
};

/// Start of every subject of these events.
pub const PREFIX: &str = "plugin.lifecycle.";

/// Matches every one of them.
pub const PATTERN: &str = "plugin.lifecycle.*";

/// The last segment of the subject, and `from` and `to` of the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// A new plugin, a new version, or one that is held while a version is replaced.
    Registered,
    /// Running and healthy.
    Active,
    /// It failed. Whether the host tries again by itself says `restarting` of the payload.
    Error,
    /// A further automatic attempt failed, and another one follows.
    Restarting,
    /// Off.
    Disabled,
    /// Gone, with everything it had.
    Uninstalled,
}

impl Phase {
    /// The word of the phase.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Registered => "registered",
            Self::Active => "active",
            Self::Error => "error",
            Self::Restarting => "restarting",
            Self::Disabled => "disabled",
            Self::Uninstalled => "uninstalled",
        }
    }
}

impl From<Status> for Phase {
    fn from(status: Status) -> Self {
        match status {
            Status::Registered => Self::Registered,
            Status::Active => Self::Active,
            Status::Error => Self::Error,
            Status::Disabled => Self::Disabled,
        }
    }
}

/// How a plugin stands: the part of its record that these events are about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Installed version.
    pub version: String,
    /// Status.
    pub status: Status,
    /// Whether automatic restarts go on.
    pub restarting: bool,
    /// Successful automatic restarts.
    pub restart_count: u64,
    /// One redacted line.
    pub last_error: Option<String>,
    /// When it happened.
    pub last_error_at: Option<OffsetDateTime>,
}

impl From<&PluginRecord> for Standing {
    fn from(record: &PluginRecord) -> Self {
        Self {
            version: record.manifest.version.clone(),
            status: record.state.status,
            restarting: record.state.restarting,
            restart_count: record.state.restart_count,
            last_error: record.state.last_error.clone(),
            last_error_at: record.state.last_error_at,
        }
    }
}

/// One change: the payload of the event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Whose.
    pub plugin_id: PluginId,
    /// Version after the change; the last one when it was uninstalled.
    pub version: String,
    /// Status before; `null` for a new plugin.
    pub from: Option<Phase>,
    /// What the subject says.
    pub to: Phase,
    /// Whether the host starts it again by itself.
    pub restarting: bool,
    /// Successful automatic restarts of this version.
    pub restart_count: u64,
    /// Why it is in error: one redacted line of at most 2048 bytes.
    pub reason: Option<String>,
    /// When, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
}

impl Change {
    /// What to tell of a plugin that stood like `before` (`None`: was not there) and stands like `now` (`None`: is
    /// gone). Nothing when nothing changed that is worth an event: a new status, a new version, a new failure.
    pub fn between(
        plugin_id: &PluginId,
        before: Option<&Standing>,
        now: Option<&Standing>,
        at: OffsetDateTime,
    ) -> Option<Self> {
        let to = match (before, now) {
            (None, None) => return None,
            (Some(_), None) => Phase::Uninstalled,
            (Some(before), Some(now)) if is_same(before, now) => return None,
            (Some(before), Some(now)) if failed_again(before, now) && now.restarting => Phase::Restarting,
            (_, Some(now)) => now.status.into(),
        };
        let shown = now.or(before)?;
        let failed = matches!(to, Phase::Error | Phase::Restarting);
        Some(Self {
            plugin_id: plugin_id.clone(),
            version: shown.version.clone(),
            from: before.map(|before| before.status.into()),
            to,
            restarting: failed && shown.restarting,
            restart_count: shown.restart_count,
            reason: shown.last_error.clone().filter(|_| failed),
            at,
        })
    }

    /// `plugin.lifecycle.<state>`.
    ///
    /// # Errors
    /// None of today's states causes one.
    pub fn subject(&self) -> Result<Subject, SubjectError> {
        Subject::new(format!("{PREFIX}{}", self.to.as_str()))
    }
}

fn failed_again(before: &Standing, now: &Standing) -> bool {
    before.status == Status::Error && now.status == Status::Error && before.version == now.version
}

fn is_same(before: &Standing, now: &Standing) -> bool {
    let failure = |standing: &Standing| match standing.status {
        Status::Error => (standing.last_error_at, standing.last_error.clone()),
        Status::Registered | Status::Active | Status::Disabled => (None, None),
    };
    before.status == now.status && before.version == now.version && failure(before) == failure(now)
}

/// Whether a subject belongs to the host's own lifecycle events.
pub fn is_reserved(subject: &str) -> bool {
    subject.starts_with(PREFIX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use time::macros::datetime;

    use super::*;

    const AT: OffsetDateTime = datetime!(2026-11-29 12:00 UTC);

    fn acme() -> PluginId {
        PluginId::new("acme").unwrap()
    }

    fn standing(status: Status) -> Standing {
        Standing {
            version: "1.0.0".to_owned(),
            status,
            restarting: false,
            restart_count: 0,
            last_error: None,
            last_error_at: None,
        }
    }

    fn failed(minute: i64, restarting: bool) -> Standing {
        let last_error_at = Some(AT + time::Duration::minutes(minute));
        Standing { restarting, last_error: Some("boom".to_owned()), last_error_at, ..standing(Status::Error) }
    }

    fn told(before: Option<&Standing>, now: Option<&Standing>) -> Option<Phase> {
        Change::between(&acme(), before, now, AT).map(|change| change.to)
    }

    #[test]
    fn a_crash_loop_is_told_as_error_then_restarting_then_error_for_good() {
        let active = standing(Status::Active);
        let steps = [active.clone(), failed(1, true), failed(2, true), failed(3, false), active];
        let told: Vec<_> = steps.windows(2).map(|pair| told(Some(&pair[0]), Some(&pair[1])).unwrap()).collect();
        assert_eq!(told, [Phase::Error, Phase::Restarting, Phase::Error, Phase::Active]);
    }

    #[test]
    fn what_changes_no_status_is_told_once_only() {
        let active = standing(Status::Active);
        let counted = Standing { restart_count: 3, ..active.clone() };
        assert_eq!(told(Some(&active), Some(&counted)), None);
        let given_up = Standing { restarting: false, ..failed(1, true) };
        assert_eq!(told(Some(&failed(1, true)), Some(&given_up)), None, "an operator's start is under way");
        assert_eq!(told(None, None), None);
        let newer = Standing { version: "1.1.0".to_owned(), ..standing(Status::Registered) };
        assert_eq!(told(Some(&standing(Status::Registered)), Some(&newer)), Some(Phase::Registered));
        assert_eq!(told(Some(&active), None), Some(Phase::Uninstalled));
    }

    #[test]
    fn the_payload_has_every_key() {
        let before = standing(Status::Active);
        let change = Change::between(&acme(), Some(&before), Some(&failed(0, true)), AT).unwrap();
        assert_eq!(change.subject().unwrap().as_str(), "plugin.lifecycle.error");
        let payload = json!({"plugin_id": "acme", "version": "1.0.0", "from": "active", "to": "error",
            "restarting": true, "restart_count": 0, "reason": "boom", "at": "2026-11-29T12:00:00Z"});
        assert_eq!(serde_json::to_value(&change).unwrap(), payload);
        assert_eq!(serde_json::from_value::<Change>(payload).unwrap(), change);
        let new = Change::between(&acme(), None, Some(&standing(Status::Disabled)), AT).unwrap();
        assert_eq!((new.from, new.to, new.reason), (None, Phase::Disabled, None));
    }

    fn any_standing() -> impl Strategy<Value = Option<Standing>> {
        let some = (0usize..4, any::<bool>(), 0u64..3, 0i64..3, 0usize..2).prop_map(|(status, again, count, at, v)| {
            let status = [Status::Registered, Status::Active, Status::Error, Status::Disabled][status];
            let error = (status == Status::Error).then(|| format!("e{at}"));
            Standing {
                version: ["1.0.0", "1.1.0"][v].to_owned(),
                status,
                restarting: again,
                restart_count: count,
                last_error_at: error.as_ref().map(|_| AT + time::Duration::minutes(at)),
                last_error: error,
            }
        });
        prop_oneof![1 => Just(None), 9 => some.prop_map(Some)]
    }

    proptest! {
        #[test]
        fn following_the_events_gives_the_status_that_the_plugin_has(
            steps in prop::collection::vec(any_standing(), 1..20)
        ) {
            let (mut before, mut known) = (None, None);
            for now in &steps {
                if let Some(change) = Change::between(&acme(), before, now.as_ref(), AT) {
                    prop_assert_eq!(change.from, before.map(|before: &Standing| before.status.into()));
                    known = match change.to {
                        Phase::Uninstalled => None,
                        Phase::Restarting => Some(Phase::Error),
                        other => Some(other),
                    };
                }
                prop_assert_eq!(known, now.as_ref().map(|now| now.status.into()));
                before = now.as_ref();
            }
        }
    }
}
