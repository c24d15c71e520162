//! What becomes of a version that is newer than the installed one: told, installed, or told with what is in the way.

use super::offers::{InstallState, Offer};
use crate::domain::{
    record::{PluginRecord, Status},
    upgrade::Outcome,
};

/// What to do about an offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// Nothing: it is not newer.
    Nothing,
    /// Tell the operator.
    Tell,
    /// It should be installed automatically, and this is in the way; tell the operator.
    Blocked(String),
    /// Install it. Whether its package may be installed while nobody looks is judged when it is here.
    Install,
}

/// Decides. A plugin is updated automatically when it runs and its record says so, or says nothing and `default` does
/// (contract/rest.md §9). A version that has failed once is not tried again.
pub fn plan(record: &PluginRecord, offer: &Offer, default: bool) -> Plan {
    if offer.install_state != InstallState::UpdateAvailable {
        return Plan::Nothing;
    }
    let wanted = record.state.auto_update.unwrap_or(default) && record.state.status == Status::Active;
    if !wanted {
        return Plan::Tell;
    }
    let tried = record.state.last_upgrade.as_ref();
    let failed = tried.filter(|note| note.version == offer.entry.version && note.outcome == Outcome::RolledBack);
    match (failed, &offer.note) {
        (Some(note), _) => {
            let reason = note.reason.as_deref().unwrap_or("the host's log has the reason");
            Plan::Blocked(format!("it was tried and undone: {reason}"))
        }
        (None, Some(note)) => Plan::Blocked(note.clone()),
        (None, None) => Plan::Install,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use time::macros::datetime;

    use super::*;
    use crate::domain::{
        id::PluginId,
        manifest::Manifest,
        marketplace::{install_state, parse},
        record::RecordState,
        upgrade::{ChangeKind, LastUpgrade},
    };

    fn record(auto_update: Option<bool>, status: Status) -> PluginRecord {
        let manifest = Manifest { version: "1.0.0".to_owned(), ..Manifest::default() };
        let state = RecordState::installed("/p".to_owned(), datetime!(2026-11-29 12:00 UTC));
        PluginRecord::new(PluginId::new("acme").unwrap(), manifest, RecordState { auto_update, status, ..state })
    }

    fn offer(version: &str, note: Option<&str>) -> Offer {
        let entry = json!({"id": "acme", "version": version, "package_url": "https://a.test/p"});
        let mut index = parse(json!({"plugins": [entry]}).to_string().as_bytes()).unwrap();
        Offer {
            entry: index.entries.remove(0),
            install_state: install_state(version, Some("1.0.0")),
            installed_version: Some("1.0.0".to_owned()),
            note: note.map(str::to_owned),
            source_id: "s".to_owned(),
            source_name: "Source".to_owned(),
        }
    }

    #[test]
    fn only_what_runs_and_is_opted_in_is_updated() {
        for (word, default, status, expected) in [
            (None, false, Status::Active, Plan::Tell),
            (None, true, Status::Active, Plan::Install),
            (Some(true), false, Status::Active, Plan::Install),
            (Some(false), true, Status::Active, Plan::Tell),
            (Some(true), true, Status::Disabled, Plan::Tell),
            (Some(true), true, Status::Error, Plan::Tell),
            (Some(true), true, Status::Registered, Plan::Tell),
        ] {
            assert_eq!(plan(&record(word, status), &offer("1.1.0", None), default), expected, "{word:?} {status}");
        }
        for version in ["1.0.0", "0.9.0"] {
            assert_eq!(plan(&record(Some(true), Status::Active), &offer(version, None), true), Plan::Nothing);
        }
    }

    #[test]
    fn what_failed_once_or_wants_another_host_is_told_with_its_reason() {
        let mut record = record(Some(true), Status::Active);
        let too_new = offer("1.1.0", Some("it wants a newer host"));
        assert_eq!(plan(&record, &too_new, false), Plan::Blocked("it wants a newer host".to_owned()));
        let note = LastUpgrade::begin(&record, "1.1.0", ChangeKind::Install, datetime!(2026-11-29 13:00 UTC));
        record.state.last_upgrade = Some(note.ended(Outcome::RolledBack, Some("exit status 1".to_owned())));
        let blocked = Plan::Blocked("it was tried and undone: exit status 1".to_owned());
        assert_eq!(plan(&record, &offer("1.1.0", None), false), blocked);
        assert_eq!(plan(&record, &offer("1.1.1", None), false), Plan::Install);
        record.state.last_upgrade = Some(note.ended(Outcome::Interrupted, None));
        assert_eq!(plan(&record, &offer("1.1.0", None), false), Plan::Install);
    }
}
