//! The catalogue of what a caller can ask for. Every route names exactly one action; `authorize` decides on it.
//!
//! The names are stable: audit lines and the tokens of later issues refer to them.

use std::fmt;

/// Something a caller can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// See whether the host is alive or ready.
    HealthRead,
    /// Read the host's figures.
    MetricsRead,
    /// List plugins and read their records.
    PluginRead,
    /// Install a package, or a newer version over an older one.
    PluginInstall,
    /// Start a plugin and keep it started.
    PluginEnable,
    /// Stop a plugin and keep it stopped.
    PluginDisable,
    /// Remove a plugin with its data.
    PluginUninstall,
    /// Read a plugin's last output.
    PluginLogs,
    /// Call a webhook that is open to everyone.
    PluginWebhook,
    /// Call a webhook declared with `access: authenticated`.
    PluginWebhookAuthenticated,
    /// Publish an event on the bus.
    EventPublish,
}

/// What an action is about, for listings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Group {
    /// The host itself.
    Host,
    /// Plugins and their life.
    Plugins,
    /// The event bus.
    Events,
}

impl Action {
    /// Every action, in the order of the catalogue.
    pub const ALL: [Self; 11] = [
        Self::HealthRead,
        Self::MetricsRead,
        Self::PluginRead,
        Self::PluginInstall,
        Self::PluginEnable,
        Self::PluginDisable,
        Self::PluginUninstall,
        Self::PluginLogs,
        Self::PluginWebhook,
        Self::PluginWebhookAuthenticated,
        Self::EventPublish,
    ];

    /// The stable name, `<group>:<verb>`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HealthRead => "health:read",
            Self::MetricsRead => "metrics:read",
            Self::PluginRead => "plugin:read",
            Self::PluginInstall => "plugin:install",
            Self::PluginEnable => "plugin:enable",
            Self::PluginDisable => "plugin:disable",
            Self::PluginUninstall => "plugin:uninstall",
            Self::PluginLogs => "plugin:logs",
            Self::PluginWebhook => "plugin:webhook",
            Self::PluginWebhookAuthenticated => "plugin:webhook_authenticated",
            Self::EventPublish => "event:publish",
        }
    }

    /// What the action is about.
    pub const fn group(self) -> Group {
        match self {
            Self::HealthRead | Self::MetricsRead => Group::Host,
            Self::PluginRead
            | Self::PluginInstall
            | Self::PluginEnable
            | Self::PluginDisable
            | Self::PluginUninstall
            | Self::PluginLogs
            | Self::PluginWebhook
            | Self::PluginWebhookAuthenticated => Group::Plugins,
            Self::EventPublish => Group::Events,
        }
    }

    /// One line for people.
    pub const fn description(self) -> &'static str {
        match self {
            Self::HealthRead => "see whether the host is alive and ready",
            Self::MetricsRead => "read the host's figures",
            Self::PluginRead => "list plugins and read their records",
            Self::PluginInstall => "install a package or a newer version of it",
            Self::PluginEnable => "start a plugin",
            Self::PluginDisable => "stop a plugin",
            Self::PluginUninstall => "remove a plugin with all its data",
            Self::PluginLogs => "read a plugin's last output",
            Self::PluginWebhook => "call a public webhook of a plugin",
            Self::PluginWebhookAuthenticated => "call a webhook that asks for a login",
            Self::EventPublish => "publish an event",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique_and_of_the_form_subject_colon_verb() {
        let names: HashSet<_> = Action::ALL.iter().map(|action| action.name()).collect();
        assert_eq!(names.len(), Action::ALL.len());
        for name in names {
            let (subject, verb) = name.split_once(':').unwrap();
            let plain = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
            assert!(plain(subject) && plain(verb), "{name}");
        }
    }

    #[test]
    fn every_action_has_a_description() {
        assert!(Action::ALL.iter().all(|action| !action.description().is_empty()));
    }
}
