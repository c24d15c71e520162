//! Which upgrade may be made while nobody looks (docs/decisions/0026-marketplace.md).
//!
//! Stricter than what an operator is asked about: a package that is trusted by the key that signed the installed
//! version, of the plugin and version that were announced, newer, asking for nothing more; over a plugin that runs,
//! that the operator wants updated, and that was not taken back from this version.

use super::{Difference, Direction, SignerChange};
use crate::domain::{
    id::PluginId,
    record::{PluginRecord, Status},
};

/// What an upgrade that nobody looks at was announced as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unattended {
    /// The plugin that is to be upgraded.
    pub plugin: PluginId,
    /// The version that was announced.
    pub version: String,
    /// Whether plugins whose record does not say are updated automatically.
    pub default: bool,
}

/// Why somebody must look first. Each text ends a sentence that begins with the plugin's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The address does not have what the marketplace says.
    #[error("the package is {id} {version}, which is not what was announced")]
    NotAnnounced {
        /// The package's plugin.
        id: PluginId,
        /// Its version.
        version: String,
    },
    /// It would be a first install.
    #[error("it is not installed any more")]
    NotInstalled,
    /// An operator has turned it off, or it does not come up.
    #[error("it is {0} and not active")]
    NotActive(Status),
    /// The operator's word, or the host's setting.
    #[error("automatic updates of it are off")]
    NotWanted,
    /// It failed once.
    #[error("it was tried and undone: {0}")]
    Undone(String),
    /// An operator did not want to keep it.
    #[error("an operator went back from it")]
    TakenBack,
    /// No package can be of the same signer.
    #[error("the installed version has no signature of a trusted key on record")]
    NobodySigned,
    /// It would go back, or sideways.
    #[error("the package is not newer than the installed version")]
    NotNewer,
    /// No trusted key vouches for it.
    #[error("the package is not signed by a key that is trusted for the plugin")]
    Unsigned,
    /// Another key than the one that signed what is installed, which may be nobody.
    #[error("the package is not signed by the key that signed the installed version")]
    OtherSigner,
    /// It asks for more than an operator has consented to.
    #[error("the package asks for more than the installed version: {0}")]
    Wider(String),
}

impl Unattended {
    /// Whether the package is what was announced.
    ///
    /// # Errors
    /// [`Unfit::NotAnnounced`].
    pub fn check_package(&self, id: &PluginId, version: &str) -> Result<(), Unfit> {
        match *id == self.plugin && version == self.version {
            true => Ok(()),
            false => Err(Unfit::NotAnnounced { id: id.clone(), version: version.to_owned() }),
        }
    }

    /// Whether a plugin may be upgraded to the announced version at all. Judged before its package is fetched, and
    /// again when it is here: the operator may have spoken meanwhile.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn check_record(&self, before: &PluginRecord) -> Result<(), Unfit> {
        let state = &before.state;
        if state.status != Status::Active {
            return Err(Unfit::NotActive(state.status));
        }
        if !state.auto_update.unwrap_or(self.default) {
            return Err(Unfit::NotWanted);
        }
        if let Some(note) = &state.last_upgrade {
            if note.has_failed(&self.version) {
                let reason = note.reason.as_deref().unwrap_or("the host's log has the reason");
                return Err(Unfit::Undone(reason.to_owned()));
            }
            if note.went_back_from(&self.version) {
                return Err(Unfit::TakenBack);
            }
        }
        match state.signer_key {
            Some(_) => Ok(()),
            None => Err(Unfit::NobodySigned),
        }
    }
}

/// Whether the package may take the place of what is installed.
///
/// # Errors
/// [`Unfit`], whatever the setting `install.capability_consent` is.
pub fn check_unattended(difference: &Difference) -> Result<(), Unfit> {
    if difference.direction != Direction::Upgrade {
        return Err(Unfit::NotNewer);
    }
    // A signer is a trusted key: other signatures have none.
    if difference.signer_offered.is_none() {
        return Err(Unfit::Unsigned);
    }
    if difference.signer_change != SignerChange::None {
        return Err(Unfit::OtherSigner);
    }
    match difference.widened.is_empty() {
        true => Ok(()),
        false => Err(Unfit::Wider(difference.widened.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;
    use crate::domain::{
        consent::{Side, Signed, compare},
        manifest::Manifest,
        record::RecordState,
        upgrade::{ChangeKind, LastUpgrade, Outcome},
    };

    fn manifest(version: &str, state: bool) -> Manifest {
        let mut manifest = Manifest { version: version.to_owned(), ..Manifest::default() };
        manifest.capabilities.state = state;
        manifest
    }

    fn signed(key: Option<&str>) -> Signed {
        let word = if key.is_some() { "trusted" } else { "absent" };
        Signed { word, name: key.map(|_| "ours".to_owned()), key: key.map(str::to_owned) }
    }

    fn verdict(installed: (&str, Option<&str>), offered: (&str, Option<&str>, bool), asks: bool) -> Result<(), Unfit> {
        let (before, after) = (manifest(installed.0, false), manifest(offered.0, offered.2));
        let before = Side { manifest: &before, signed: signed(installed.1) };
        let after = Side { manifest: &after, signed: signed(offered.1) };
        check_unattended(&compare(Some(before), after, asks))
    }

    #[test]
    fn only_a_newer_version_of_the_same_signer_that_asks_for_no_more_passes() {
        let one = ("1.0.0", Some("K1"));
        for asks in [true, false] {
            assert_eq!(verdict(one, ("2.0.0", Some("K1"), false), asks), Ok(()));
            for (installed, offered, unfit) in [
                (one, ("1.0.0", Some("K1"), false), Unfit::NotNewer),
                (one, ("0.9.0", Some("K1"), false), Unfit::NotNewer),
                (one, ("2.0.0", None, false), Unfit::Unsigned),
                (("1.0.0", None), ("2.0.0", None, false), Unfit::Unsigned),
                (one, ("2.0.0", Some("K2"), false), Unfit::OtherSigner),
                (("1.0.0", None), ("2.0.0", Some("K1"), false), Unfit::OtherSigner),
                (one, ("2.0.0", Some("K1"), true), Unfit::Wider("state".to_owned())),
            ] {
                assert_eq!(verdict(installed, offered, asks), Err(unfit), "{installed:?} {offered:?}");
            }
        }
    }

    #[test]
    fn a_plugin_is_updated_while_it_runs_is_wanted_updated_and_signed_and_not_to_what_was_undone() {
        let at = datetime!(2026-11-29 12:00 UTC);
        let with = |change: &dyn Fn(&mut RecordState)| {
            let mut state = RecordState::installed("/p".to_owned(), at);
            state.status = Status::Active;
            state.signer_key = Some("K1".to_owned());
            change(&mut state);
            PluginRecord::new(PluginId::new("acme").unwrap(), manifest("1.0.0", false), state)
        };
        let check = |record: &PluginRecord, default: bool| {
            let announced = Unattended { plugin: PluginId::new("acme").unwrap(), version: "1.1.0".to_owned(), default };
            announced.check_record(record)
        };
        for (word, default, expected) in [
            (None, false, Err(Unfit::NotWanted)),
            (None, true, Ok(())),
            (Some(true), false, Ok(())),
            (Some(false), true, Err(Unfit::NotWanted)),
        ] {
            assert_eq!(check(&with(&|state| state.auto_update = word), default), expected, "{word:?} {default}");
        }
        for status in [Status::Registered, Status::Error, Status::Disabled] {
            assert_eq!(check(&with(&|state| state.status = status), true), Err(Unfit::NotActive(status)));
        }
        assert_eq!(check(&with(&|state| state.signer_key = None), true), Err(Unfit::NobodySigned));

        let plain = with(&|_| {});
        let note = LastUpgrade::begin(&plain, "1.1.0", ChangeKind::Install, at);
        let undone = note.ended(Outcome::RolledBack, Some("exit status 1".to_owned()));
        let back = LastUpgrade {
            from: "1.1.0".to_owned(),
            version: "1.0.0".to_owned(),
            kind: ChangeKind::Rollback,
            outcome: Outcome::Done,
            ..note
        };
        for (note, unfit) in [(undone, Unfit::Undone("exit status 1".to_owned())), (back, Unfit::TakenBack)] {
            let record = with(&|state| state.last_upgrade = Some(note.clone()));
            assert_eq!(check(&record, true), Err(unfit));
        }
    }

    #[test]
    fn another_package_than_the_announced_one_is_no_update() {
        let (acme, other) = (PluginId::new("acme").unwrap(), PluginId::new("other").unwrap());
        let announced = Unattended { plugin: acme.clone(), version: "2.0.0".to_owned(), default: false };
        assert_eq!(announced.check_package(&acme, "2.0.0"), Ok(()));
        for (id, version) in [(&other, "2.0.0"), (&acme, "2.0.1")] {
            let unfit = Unfit::NotAnnounced { id: id.clone(), version: version.to_owned() };
            assert_eq!(announced.check_package(id, version), Err(unfit));
        }
    }
}
