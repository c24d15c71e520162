//! Which upgrade may be made while nobody looks (docs/decisions/0026-marketplace.md).
//!
//! Stricter than what an operator is asked about: a package that is trusted by the key that signed the installed version,
//! of the plugin and version that were announced, newer, asking for nothing more; over a plugin that runs.

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
}

/// Whether the package may take the place of what is installed.
///
/// # Errors
/// [`Unfit`], whatever the setting `install.capability_consent` is.
pub fn check_unattended(before: &PluginRecord, difference: &Difference) -> Result<(), Unfit> {
    if before.state.status != Status::Active {
        return Err(Unfit::NotActive(before.state.status));
    }
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

    fn verdict(
        status: Status,
        installed: (&str, Option<&str>),
        offered: (&str, Option<&str>, bool),
        asks: bool,
    ) -> Result<(), Unfit> {
        let at = datetime!(2026-11-29 12:00 UTC);
        let state = RecordState { status, ..RecordState::installed("/p".to_owned(), at) };
        let before = PluginRecord::new(PluginId::new("acme").unwrap(), manifest(installed.0, false), state);
        let after = manifest(offered.0, offered.2);
        let sides = (
            Side { manifest: &before.manifest, signed: signed(installed.1) },
            Side { manifest: &after, signed: signed(offered.1) },
        );
        check_unattended(&before, &compare(Some(sides.0), sides.1, asks))
    }

    #[test]
    fn only_a_newer_version_of_the_same_signer_that_asks_for_no_more_passes() {
        let (active, one) = (Status::Active, ("1.0.0", Some("K1")));
        for asks in [true, false] {
            let two = ("2.0.0", Some("K1"), false);
            assert_eq!(verdict(active, one, two, asks), Ok(()));
            for status in [Status::Registered, Status::Error, Status::Disabled] {
                assert_eq!(verdict(status, one, two, asks), Err(Unfit::NotActive(status)));
            }
            for (installed, offered, unfit) in [
                (one, ("1.0.0", Some("K1"), false), Unfit::NotNewer),
                (one, ("0.9.0", Some("K1"), false), Unfit::NotNewer),
                (one, ("2.0.0", None, false), Unfit::Unsigned),
                (("1.0.0", None), ("2.0.0", None, false), Unfit::Unsigned),
                (one, ("2.0.0", Some("K2"), false), Unfit::OtherSigner),
                (("1.0.0", None), ("2.0.0", Some("K1"), false), Unfit::OtherSigner),
                (one, ("2.0.0", Some("K1"), true), Unfit::Wider("state".to_owned())),
            ] {
                assert_eq!(verdict(active, installed, offered, asks), Err(unfit), "{installed:?} {offered:?}");
            }
        }
    }

    #[test]
    fn another_package_than_the_announced_one_is_no_update() {
        let (acme, other) = (PluginId::new("acme").unwrap(), PluginId::new("other").unwrap());
        let announced = Unattended { plugin: acme.clone(), version: "2.0.0".to_owned() };
        assert_eq!(announced.check_package(&acme, "2.0.0"), Ok(()));
        for (id, version) in [(&other, "2.0.0"), (&acme, "2.0.1")] {
            let unfit = Unfit::NotAnnounced { id: id.clone(), version: version.to_owned() };
            assert_eq!(announced.check_package(id, version), Err(unfit));
        }
    }
}
