//! The catalogue of what a caller can ask for. Every route names exactly one action; `authorize` decides on it.
//!
//! One line an action holds everything about it. The names are stable: audit lines and the tokens of later issues refer
//! to them.

use std::fmt;

/// Makes [`Action`] of its lines: the variant, what it is about, its name and what it is for people.
macro_rules! actions {
    ($($variant:ident: $group:ident, $name:literal, $description:literal;)*) => {
        /// Something a caller can ask for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Action {
            $(#[doc = $description] $variant,)*
        }

        impl Action {
            /// Every action, in the order of the catalogue.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable name, `<subject>:<verb>`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// What the action is about.
            pub const fn group(self) -> Group {
                match self {
                    $(Self::$variant => Group::$group,)*
                }
            }

            /// One line for people.
            pub const fn description(self) -> &'static str {
                match self {
                    $(Self::$variant => $description,)*
                }
            }
        }
    };
}

/// Makes [`Group`] of its lines: the variant, its name and what it is for people.
macro_rules! groups {
    ($($variant:ident: $name:literal, $description:literal;)*) => {
        /// What an action is about, for listings.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Group {
            $(#[doc = $description] $variant,)*
        }

        impl Group {
            /// Every group, in the order of the catalogue.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// One line for people.
            pub const fn description(self) -> &'static str {
                match self {
                    $(Self::$variant => $description,)*
                }
            }
        }
    };
}

groups! {
    Host: "host", "The host itself";
    Plugins: "plugins", "Plugins and their life";
    Tools: "tools", "Tools that plugins offer to agents";
    References: "references", "References to entities of other systems";
    Git: "git", "Git credentials";
    Events: "events", "The event bus and its log";
    Secrets: "secrets", "Secrets and the vault that keeps them";
    Trust: "trust", "Trusted keys";
    Inbox: "inbox", "The operator's inbox";
    Docs: "docs", "The document of the API";
    Workspaces: "workspaces", "Workspaces";
    Workflows: "workflows", "Workflows, their steps and templates";
    Tasks: "tasks", "Tasks";
    Repositories: "repositories", "Repositories of workspaces";
    Agents: "agents", "Agents and their profiles";
    Executors: "executors", "Executors and their profiles";
    Sessions: "sessions", "Sessions of work on tasks: turns, messages, commits, snapshots";
}

actions! {
    HealthRead: Host, "health:read", "see whether the host is alive and ready";
    MetricsRead: Host, "metrics:read", "read the host's figures";
    PluginRead: Plugins, "plugin:read", "list plugins and read their records";
    PluginInstall: Plugins, "plugin:install", "install a package or a newer version of it";
    PluginSync: Plugins, "plugin:sync", "take over what was put into the plugins folder";
    PluginEnable: Plugins, "plugin:enable", "start a plugin";
    PluginDisable: Plugins, "plugin:disable", "stop a plugin";
    PluginRollback: Plugins, "plugin:rollback", "go back to the version before";
    PluginUninstall: Plugins, "plugin:uninstall", "remove a plugin with all its data";
    PluginConfigRead: Plugins, "plugin:config_read", "read a plugin's settings, secrets masked";
    PluginConfigWrite: Plugins, "plugin:config_write", "change a plugin's settings";
    PluginAutoUpdate: Plugins, "plugin:auto_update", "say which plugins are updated automatically";
    MarketplaceRead: Plugins, "marketplace:read", "look for plugins in the marketplace";
    MarketplaceWrite: Plugins, "marketplace:write", "add, change and delete sources of the marketplace";
    PluginLogs: Plugins, "plugin:logs", "read a plugin's last output";
    PluginWebhook: Plugins, "plugin:webhook", "call a public webhook of a plugin";
    PluginWebhookAuthenticated: Plugins, "plugin:webhook_authenticated", "call a webhook that asks for a login";
    PluginAction: Plugins, "plugin:action", "call a plugin's action";
    ToolRead: Tools, "tool:read", "list the tools that plugins offer to agents";
    ToolCall: Tools, "tool:call", "call a tool of a plugin";
    ReferenceRead: References, "reference:read", "search plugins for entities of other systems";
    ReferenceUse: References, "reference:use", "ask whether references to such entities may be used";
    GitTokenRead: Git, "git_token:read", "list the tokens with which git asks for credentials";
    GitTokenWrite: Git, "git_token:write", "make and revoke tokens with which git asks for credentials";
    GitCredentialResolve: Git, "git_credential:resolve", "ask for a git credential with a token made for it";
    PluginUi: Plugins, "plugin:ui", "read the files of a plugin's user interface";
    UserStateRead: Plugins, "user_state:read", "read what plugins keep for oneself";
    UserStateWrite: Plugins, "user_state:write", "change what plugins keep for oneself";
    BootRead: Host, "boot:read", "read what the browser application begins with";
    EventPublish: Events, "event:publish", "publish an event";
    SecretRead: Secrets, "secret:read", "list secrets and who may reveal them, without their values";
    SecretWrite: Secrets, "secret:write", "keep, change and remove secrets";
    SecretShare: Secrets, "secret:share", "say which plugins may reveal a secret";
    VaultRead: Secrets, "vault:read", "see the state of the vault";
    VaultRotate: Secrets, "vault:rotate", "change the vault's key";
    TrustRead: Trust, "trust:read", "list the keys whose signatures count";
    TrustWrite: Trust, "trust:write", "add and remove keys whose signatures count";
    InboxRead: Inbox, "inbox:read", "read the inbox";
    InboxMarkRead: Inbox, "inbox:mark_read", "mark an item of the inbox as read";
    InboxDismiss: Inbox, "inbox:dismiss", "take an item of the inbox out of sight";
    DocsRead: Docs, "docs:read", "read the document of the API";
    EventRead: Events, "event:read", "read the log of events";
    WorkspaceRead: Workspaces, "workspace:read", "see workspaces";
    WorkspaceWrite: Workspaces, "workspace:write", "make and change workspaces";
    WorkspaceDelete: Workspaces, "workspace:delete", "delete a workspace with everything in it";
    WorkflowRead: Workflows, "workflow:read", "see workflows, their steps and templates";
    WorkflowWrite: Workflows, "workflow:write", "make, change, order and delete workflows and their steps";
    TaskRead: Tasks, "task:read", "see tasks";
    TaskWrite: Tasks, "task:write", "make, change, move and put away tasks";
    TaskDelete: Tasks, "task:delete", "delete tasks";
    RepositoryRead: Repositories, "repository:read", "see repositories";
    RepositoryWrite: Repositories, "repository:write", "add, change and remove repositories";
    AgentRead: Agents, "agent:read", "see agents and their profiles";
    AgentWrite: Agents, "agent:write", "make, change and delete agent profiles";
    ExecutorRead: Executors, "executor:read", "see executors and their profiles";
    ExecutorWrite: Executors, "executor:write", "make, change and delete executors and their profiles";
    SessionRead: Sessions, "session:read", "see sessions and their turns";
    SessionWrite: Sessions, "session:write", "begin sessions, and note what was read of them";
    MessageRead: Sessions, "message:read", "read the messages of sessions";
    MessageWrite: Sessions, "message:write", "record messages in sessions";
    CodeRead: Sessions, "code:read", "see the commits and snapshots of sessions";
    CodeWrite: Sessions, "code:write", "report commits and snapshots of sessions";
    GatewayConnect: Events, "gateway:connect", "be told of events as they happen";
    McpConnect: Tools, "mcp:connect", "speak the Model Context Protocol";
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
