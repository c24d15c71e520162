//! The platform that plugins live in: what its things are, what is lawful about them, and what is told when they
//! change.
//!
//! Shapes and rules only (contract/host-data.md, events.md, platform-rest.md). Rows are `store::platform`'s part; the
//! order of reading, deciding, writing and telling is the services' (`crate::platform`).

pub mod cursor;
pub mod event;
pub mod git_token;
pub mod message;
pub mod page;
pub mod profile;
pub mod refusal;
pub mod repository;
pub mod session;
pub mod stats;
pub mod task;
pub mod template;
pub mod text;
pub mod words;
pub mod workflow;
pub mod workspace;

use serde::{Serialize, de::DeserializeOwned};
use time::{Duration, OffsetDateTime, UtcOffset};

use refusal::Refusal;

use super::misread::told;

/// A JSON object.
pub type Map = serde_json::Map<String, serde_json::Value>;

/// Cut to microseconds, which both databases keep exactly.
pub fn whole_micros(at: OffsetDateTime) -> OffsetDateTime {
    from_micros(micros(at))
}

/// A moment that a writer gives, as it is kept. RFC 3339 has no others than those of the years 0 to 9999, in UTC too.
pub fn kept_moment(field: &'static str, at: OffsetDateTime) -> Result<OffsetDateTime, Refusal> {
    match at.checked_to_offset(UtcOffset::UTC).map(OffsetDateTime::year) {
        Some(0..=9999) => Ok(whole_micros(at)),
        _ => Err(Refusal::Invalid { field, problem: "must be in the years 0000 to 9999 of UTC".to_owned() }),
    }
}

/// Microseconds since 1970, UTC.
pub fn micros(at: OffsetDateTime) -> i64 {
    i64::try_from(at.unix_timestamp_nanos().div_euclid(1000)).unwrap_or(i64::MAX)
}

/// The moment so many microseconds after 1970; moments beyond the calendar become its end.
pub fn from_micros(micros: i64) -> OffsetDateTime {
    OffsetDateTime::UNIX_EPOCH.saturating_add(Duration::microseconds(micros))
}

/// Of which workspaces somebody may see and change things. Every read and every change of the platform passes through
/// one: what is out of it is not there.
///
/// Host calls carry no user (host-data.md §1), so today there is one scope for all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Scope {
    /// Everything.
    #[default]
    All,
    /// Things of these workspaces, and those of the instance; an empty list sees nothing at all.
    Workspaces(Vec<String>),
}

impl Scope {
    /// Whether things of this workspace are seen.
    pub fn sees(&self, workspace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Workspaces(ids) => ids.iter().any(|id| id == workspace),
        }
    }

    /// Whether things of no workspace are seen: agents, executors and their profiles, which every workspace uses.
    pub fn sees_instance(&self) -> bool {
        match self {
            Self::All => true,
            Self::Workspaces(ids) => !ids.is_empty(),
        }
    }
}

/// The fields with what the patch says of some of them.
///
/// # Errors
/// A key that is no field, or a value that the field cannot have.
pub fn merged<T: Serialize + DeserializeOwned>(fields: &T, patch: &Map) -> Result<T, Refusal> {
    let Ok(serde_json::Value::Object(mut all)) = serde_json::to_value(fields) else {
        return Err(Refusal::BadField { field: "body".to_owned(), problem: "must be an object".to_owned() });
    };
    for (key, value) in patch {
        let field = || crate::domain::clean::single_line(key, text::MAX_ID_BYTES);
        let Some(slot) = all.get_mut(key) else {
            return Err(Refusal::BadField { field: field(), problem: "is not a field of it".to_owned() });
        };
        slot.clone_from(value);
        // One by one, so that the error names the field.
        if let Err(error) = serde_json::from_value::<T>(all.clone().into()) {
            return Err(Refusal::BadField {
                field: field(),
                problem: format!("cannot have this value: {}", told(&error)),
            });
        }
    }
    serde_json::from_value(all.into()).map_err(|error| Refusal::BadField {
        field: "body".to_owned(),
        problem: format!("cannot be read: {}", told(&error)),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use time::macros::datetime;

    use super::*;

    #[test]
    fn a_moment_survives_as_microseconds() {
        for at in [datetime!(2026-11-29 12:00:00.123456 UTC), datetime!(1969-12-31 23:59:59.999999 UTC)] {
            assert_eq!(from_micros(micros(at)), at);
        }
        assert_eq!(whole_micros(datetime!(2026-11-29 12:00:00.123456789 UTC)).microsecond(), 123_456);
        assert!(from_micros(i64::MAX) > datetime!(9999-12-31 0:00 UTC));
    }

    #[test]
    fn a_patch_changes_what_it_names_and_nothing_it_does_not_know() {
        let fields = profile::ExecutorProfileFields { name: "a".to_owned(), ..Default::default() };
        let patch = |value: serde_json::Value| merged(&fields, value.as_object().unwrap());
        assert_eq!(patch(json!({})), Ok(fields.clone()));
        assert_eq!(patch(json!({"mcp_policy": "all"})).unwrap().mcp_policy, "all");
        let unknown = patch(json!({"id": "x"})).unwrap_err();
        assert_eq!(unknown.to_string(), "id is not a field of it");
        assert!(patch(json!({"name": 1})).unwrap_err().to_string().starts_with("name cannot have this value: "));
    }

    #[test]
    fn a_scope_sees_its_own_workspaces_only() {
        assert!(Scope::All.sees("a"));
        let some = Scope::Workspaces(vec!["a".to_owned()]);
        let none = Scope::Workspaces(Vec::new());
        assert!(some.sees("a") && !some.sees("b") && !none.sees("a"));
        assert!(Scope::All.sees_instance() && some.sees_instance() && !none.sees_instance());
    }
}
