//! What becomes of a version that is newer than the installed one: told, installed, or told with what is in the way.

use super::offers::{InstallState, Offer};
use crate::domain::{
    consent::{Unattended, Unfit},
    record::PluginRecord,
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
/// (contract/rest.md §9). What can be told without the package is told without fetching it.
pub fn plan(record: &PluginRecord, offer: &Offer, default: bool) -> Plan {
    if offer.install_state != InstallState::UpdateAvailable {
        return Plan::Nothing;
    }
    let announced = Unattended { plugin: record.id().clone(), version: offer.entry.version.clone(), default };
    match (announced.check_record(record), &offer.note) {
        (Err(Unfit::NotActive(_) | Unfit::NotWanted), _) => Plan::Tell,
        (Err(unfit), _) => Plan::Blocked(unfit.to_string()),
        (Ok(()), Some(note)) => Plan::Blocked(note.clone()),
        (Ok(()), None) => Plan::Install,
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
        record::{RecordState, Status},
        upgrade::{ChangeKind, LastUpgrade, NOT_PLACED, Outcome},
    };

    fn record(auto_update: Option<bool>, status: Status) -> PluginRecord {
        let manifest = Manifest { version: "1.0.0".to_owned(), ..Manifest::default() };
        let state = RecordState::installed("/p".to_owned(), datetime!(2026-11-29 12:00 UTC));
        let signer_key = Some("K1".to_owned());
        let state = RecordState { auto_update, status, signer_key, ..state };
        PluginRecord::new(PluginId::new("acme").unwrap(), manifest, state)
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
        for (outcome, reason) in [(Outcome::Interrupted, None), (Outcome::RolledBack, Some(NOT_PLACED.to_owned()))] {
            record.state.last_upgrade = Some(note.ended(outcome, reason));
            assert_eq!(plan(&record, &offer("1.1.0", None), false), Plan::Install, "{outcome:?}");
        }
    }

    #[test]
    fn a_version_that_an_operator_went_back_from_is_told_and_not_installed_again() {
        let mut record = record(Some(true), Status::Active);
        let note = LastUpgrade::begin(&record, "1.0.0", ChangeKind::Rollback, datetime!(2026-11-29 13:00 UTC));
        let note = LastUpgrade { from: "1.1.0".to_owned(), ..note };
        record.state.last_upgrade = Some(note.ended(Outcome::Done, None));
        let blocked = Plan::Blocked("an operator went back from it".to_owned());
        assert_eq!(plan(&record, &offer("1.1.0", None), false), blocked);
        assert_eq!(plan(&record, &offer("1.2.0", None), false), Plan::Install);
    }

    #[test]
    fn what_nobody_signed_is_told_without_fetching_a_package() {
        let mut record = record(Some(true), Status::Active);
        record.state.signer_key = None;
        let reason = "the installed version has no signature of a trusted key on record";
        assert_eq!(plan(&record, &offer("1.1.0", None), false), Plan::Blocked(reason.to_owned()));
    }
}
