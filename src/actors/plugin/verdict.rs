//! Which settlement of the lifecycle ends the wait of which command.

use super::Want;
use crate::domain::lifecycle::Settlement;

/// Whether a settlement ends the wait for `want`, and how.
pub(super) fn verdict(want: Want, settlement: &Settlement) -> Option<Result<(), String>> {
    let overtaken = |by: &str| Some(Err(format!("{by}; the command had no effect")));
    match (want, settlement) {
        (Want::Started | Want::Booted | Want::Renewed, Settlement::Started)
        | (Want::Renewed, Settlement::Renewed)
        | (Want::Disabled, Settlement::Disabled)
        | (Want::Held, Settlement::Held)
        | (Want::Removed, Settlement::Removed)
        | (Want::HostStopped, Settlement::HostStopped | Settlement::Removed) => Some(Ok(())),
        (
            Want::Started | Want::Booted | Want::Renewed,
            Settlement::NotStarted(reason) | Settlement::Overtaken(reason),
        ) => Some(Err(reason.clone())),
        // A start that was asked for while the plugin was being disabled comes after it.
        (Want::Started | Want::Booted | Want::Renewed, Settlement::Disabled) => None,
        (Want::Disabled | Want::Held | Want::Removed | Want::HostStopped, Settlement::Started)
        | (
            Want::Disabled | Want::Held | Want::Removed | Want::HostStopped,
            Settlement::NotStarted(_) | Settlement::Overtaken(_),
        )
        | (Want::Held | Want::Removed | Want::HostStopped, Settlement::Disabled)
        | (Want::Removed | Want::HostStopped, Settlement::Held) => None,
        (
            Want::Started | Want::Booted | Want::Disabled | Want::Held | Want::Removed | Want::HostStopped,
            Settlement::Renewed,
        ) => None,
        (Want::Started | Want::Booted | Want::Renewed | Want::Disabled, Settlement::Held) => {
            overtaken("an upgrade came in between")
        }
        (Want::Started | Want::Booted | Want::Renewed | Want::Disabled | Want::Held, Settlement::Removed) => {
            overtaken("the plugin was uninstalled")
        }
        (
            Want::Started | Want::Booted | Want::Renewed | Want::Disabled | Want::Held | Want::Removed,
            Settlement::HostStopped,
        ) => overtaken("the host is stopping"),
    }
}
