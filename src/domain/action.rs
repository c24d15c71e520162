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
    /// Take over what was put into the plugins folder.
    PluginSync,
    /// Start a plugin and keep it started.
    PluginEnable,
    /// Stop a plugin and keep it stopped.
    PluginDisable,
    /// Go back to the version that was kept.
    PluginRollback,
    /// Remove a plugin with its data.
    PluginUninstall,
    /// Read a plugin's settings, secrets masked.
    PluginConfigRead,
    /// Replace a plugin's settings, which restarts it.
    PluginConfigWrite,
    /// Say which plugins are updated automatically.
    PluginAutoUpdate,
    /// Look for plugins in the marketplace.
    MarketplaceRead,
    /// Say which indexes the marketplace is made of.
    MarketplaceWrite,
    /// Read a plugin's last output.
    PluginLogs,
    /// Call a webhook that is open to everyone.
    PluginWebhook,
    /// Call a webhook declared with `access: authenticated`.
    PluginWebhookAuthenticated,
    /// Call a plugin's action.
    PluginAction,
    /// See the tools that plugins offer to agents.
    ToolRead,
    /// Call a tool.
    ToolCall,
    /// See the reference sources of plugins and search them.
    ReferenceRead,
    /// Ask whether references may be used.
    ReferenceUse,
    /// See the tokens with which git asks for credentials, without the tokens.
    GitTokenRead,
    /// Make and revoke such tokens.
    GitTokenWrite,
    /// Ask for a git credential with such a token.
    GitCredentialResolve,
    /// Read the files of a plugin's user interface.
    PluginUi,
    /// Read what plugins keep for oneself.
    UserStateRead,
    /// Change what plugins keep for oneself.
    UserStateWrite,
    /// Read what the browser application begins with.
    BootRead,
    /// Publish an event on the bus.
    EventPublish,
    /// List the operator's secrets and who may reveal each; never a value.
    SecretRead,
    /// Keep, change and remove the operator's secrets.
    SecretWrite,
    /// Say which plugins may reveal a secret.
    SecretShare,
    /// See where the vault's key comes from and what is sealed with it.
    VaultRead,
    /// Change the vault's key.
    VaultRotate,
    /// See whose signatures the host believes.
    TrustRead,
    /// Trust another key, or no longer trust one.
    TrustWrite,
    /// Read the inbox.
    InboxRead,
    /// Mark an item of the inbox as read.
    InboxMarkRead,
    /// Take an item of the inbox out of sight.
    InboxDismiss,
    /// See the document of the API and its page.
    DocsRead,
    /// Read the log of events.
    EventRead,
    /// See workspaces.
    WorkspaceRead,
    /// Make and change workspaces.
    WorkspaceWrite,
    /// Delete a workspace with everything in it.
    WorkspaceDelete,
    /// See workflows, their steps and templates.
    WorkflowRead,
    /// Make, change, order and delete workflows and their steps.
    WorkflowWrite,
    /// See tasks.
    TaskRead,
    /// Make, change, move and put away tasks.
    TaskWrite,
    /// Delete tasks.
    TaskDelete,
    /// See repositories.
    RepositoryRead,
    /// Add, change and remove repositories.
    RepositoryWrite,
    /// See agents and their profiles.
    AgentRead,
    /// Make, change and delete agent profiles.
    AgentWrite,
    /// See executors and their profiles.
    ExecutorRead,
    /// Make, change and delete executors and their profiles.
    ExecutorWrite,
    /// See sessions and their turns.
    SessionRead,
    /// Begin sessions, and note what was read of them.
    SessionWrite,
    /// Read the messages of sessions.
    MessageRead,
    /// Record messages in sessions.
    MessageWrite,
    /// See the commits and snapshots of sessions.
    CodeRead,
    /// Report commits and snapshots of sessions.
    CodeWrite,
    /// Be told of events as they happen, over a WebSocket.
    GatewayConnect,
    /// Speak the Model Context Protocol; what is asked over it has actions of its own.
    McpConnect,
}

/// What an action is about, for listings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Group {
    /// The host itself.
    Host,
    /// Plugins and their life.
    Plugins,
    /// Tools that plugins offer to agents.
    Tools,
    /// References to entities of other systems.
    References,
    /// Git credentials.
    Git,
    /// The event bus and its log.
    Events,
    /// Secrets and the vault that keeps them.
    Secrets,
    /// Trusted keys.
    Trust,
    /// The operator's inbox.
    Inbox,
    /// The document of the API.
    Docs,
    /// Workspaces.
    Workspaces,
    /// Workflows, their steps and templates.
    Workflows,
    /// Tasks.
    Tasks,
    /// Repositories of workspaces.
    Repositories,
    /// Agents and their profiles.
    Agents,
    /// Executors and their profiles.
    Executors,
    /// Sessions of work on tasks: turns, messages, commits, snapshots.
    Sessions,
}

impl Group {
    /// Every group, in the order of the catalogue.
    pub const ALL: &'static [Self] = &[
        Self::Host,
        Self::Plugins,
        Self::Tools,
        Self::References,
        Self::Git,
        Self::Events,
        Self::Secrets,
        Self::Trust,
        Self::Inbox,
        Self::Docs,
        Self::Workspaces,
        Self::Workflows,
        Self::Tasks,
        Self::Repositories,
        Self::Agents,
        Self::Executors,
        Self::Sessions,
    ];

    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Plugins => "plugins",
            Self::Tools => "tools",
            Self::References => "references",
            Self::Git => "git",
            Self::Events => "events",
            Self::Secrets => "secrets",
            Self::Trust => "trust",
            Self::Inbox => "inbox",
            Self::Docs => "docs",
            Self::Workspaces => "workspaces",
            Self::Workflows => "workflows",
            Self::Tasks => "tasks",
            Self::Repositories => "repositories",
            Self::Agents => "agents",
            Self::Executors => "executors",
            Self::Sessions => "sessions",
        }
    }

    /// One line for people.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Host => "The host itself",
            Self::Plugins => "Plugins and their life",
            Self::Tools => "Tools that plugins offer to agents",
            Self::References => "References to entities of other systems",
            Self::Git => "Git credentials",
            Self::Events => "The event bus and its log",
            Self::Secrets => "Secrets and the vault that keeps them",
            Self::Trust => "Trusted keys",
            Self::Inbox => "The operator's inbox",
            Self::Docs => "The document of the API",
            Self::Workspaces => "Workspaces",
            Self::Workflows => "Workflows, their steps and templates",
            Self::Tasks => "Tasks",
            Self::Repositories => "Repositories of workspaces",
            Self::Agents => "Agents and their profiles",
            Self::Executors => "Executors and their profiles",
            Self::Sessions => "Sessions of work on tasks: turns, messages, commits, snapshots",
        }
    }
}

impl Action {
    /// Every action, in the order of the catalogue.
    pub const ALL: &'static [Self] = &[
        Self::HealthRead,
        Self::MetricsRead,
        Self::PluginRead,
        Self::PluginInstall,
        Self::PluginSync,
        Self::PluginEnable,
        Self::PluginDisable,
        Self::PluginRollback,
        Self::PluginUninstall,
        Self::PluginConfigRead,
        Self::PluginConfigWrite,
        Self::PluginAutoUpdate,
        Self::MarketplaceRead,
        Self::MarketplaceWrite,
        Self::PluginLogs,
        Self::PluginWebhook,
        Self::PluginWebhookAuthenticated,
        Self::PluginAction,
        Self::ToolRead,
        Self::ToolCall,
        Self::ReferenceRead,
        Self::ReferenceUse,
        Self::GitTokenRead,
        Self::GitTokenWrite,
        Self::GitCredentialResolve,
        Self::PluginUi,
        Self::UserStateRead,
        Self::UserStateWrite,
        Self::BootRead,
        Self::EventPublish,
        Self::SecretRead,
        Self::SecretWrite,
        Self::SecretShare,
        Self::VaultRead,
        Self::VaultRotate,
        Self::TrustRead,
        Self::TrustWrite,
        Self::InboxRead,
        Self::InboxMarkRead,
        Self::InboxDismiss,
        Self::DocsRead,
        Self::EventRead,
        Self::WorkspaceRead,
        Self::WorkspaceWrite,
        Self::WorkspaceDelete,
        Self::WorkflowRead,
        Self::WorkflowWrite,
        Self::TaskRead,
        Self::TaskWrite,
        Self::TaskDelete,
        Self::RepositoryRead,
        Self::RepositoryWrite,
        Self::AgentRead,
        Self::AgentWrite,
        Self::ExecutorRead,
        Self::ExecutorWrite,
        Self::SessionRead,
        Self::SessionWrite,
        Self::MessageRead,
        Self::MessageWrite,
        Self::CodeRead,
        Self::CodeWrite,
        Self::GatewayConnect,
        Self::McpConnect,
    ];

    /// The stable name, `<group>:<verb>`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HealthRead => "health:read",
            Self::MetricsRead => "metrics:read",
            Self::PluginRead => "plugin:read",
            Self::PluginInstall => "plugin:install",
            Self::PluginSync => "plugin:sync",
            Self::PluginEnable => "plugin:enable",
            Self::PluginDisable => "plugin:disable",
            Self::PluginRollback => "plugin:rollback",
            Self::PluginUninstall => "plugin:uninstall",
            Self::PluginConfigRead => "plugin:config_read",
            Self::PluginConfigWrite => "plugin:config_write",
            Self::PluginAutoUpdate => "plugin:auto_update",
            Self::MarketplaceRead => "marketplace:read",
            Self::MarketplaceWrite => "marketplace:write",
            Self::PluginLogs => "plugin:logs",
            Self::PluginWebhook => "plugin:webhook",
            Self::PluginWebhookAuthenticated => "plugin:webhook_authenticated",
            Self::PluginAction => "plugin:action",
            Self::ToolRead => "tool:read",
            Self::ToolCall => "tool:call",
            Self::ReferenceRead => "reference:read",
            Self::ReferenceUse => "reference:use",
            Self::GitTokenRead => "git_token:read",
            Self::GitTokenWrite => "git_token:write",
            Self::GitCredentialResolve => "git_credential:resolve",
            Self::PluginUi => "plugin:ui",
            Self::UserStateRead => "user_state:read",
            Self::UserStateWrite => "user_state:write",
            Self::BootRead => "boot:read",
            Self::EventPublish => "event:publish",
            Self::SecretRead => "secret:read",
            Self::SecretWrite => "secret:write",
            Self::SecretShare => "secret:share",
            Self::VaultRead => "vault:read",
            Self::VaultRotate => "vault:rotate",
            Self::TrustRead => "trust:read",
            Self::TrustWrite => "trust:write",
            Self::InboxRead => "inbox:read",
            Self::InboxMarkRead => "inbox:mark_read",
            Self::InboxDismiss => "inbox:dismiss",
            Self::DocsRead => "docs:read",
            Self::EventRead => "event:read",
            Self::WorkspaceRead => "workspace:read",
            Self::WorkspaceWrite => "workspace:write",
            Self::WorkspaceDelete => "workspace:delete",
            Self::WorkflowRead => "workflow:read",
            Self::WorkflowWrite => "workflow:write",
            Self::TaskRead => "task:read",
            Self::TaskWrite => "task:write",
            Self::TaskDelete => "task:delete",
            Self::RepositoryRead => "repository:read",
            Self::RepositoryWrite => "repository:write",
            Self::AgentRead => "agent:read",
            Self::AgentWrite => "agent:write",
            Self::ExecutorRead => "executor:read",
            Self::ExecutorWrite => "executor:write",
            Self::SessionRead => "session:read",
            Self::SessionWrite => "session:write",
            Self::MessageRead => "message:read",
            Self::MessageWrite => "message:write",
            Self::CodeRead => "code:read",
            Self::CodeWrite => "code:write",
            Self::GatewayConnect => "gateway:connect",
            Self::McpConnect => "mcp:connect",
        }
    }

    /// What the action is about.
    pub const fn group(self) -> Group {
        match self {
            Self::HealthRead | Self::MetricsRead | Self::BootRead => Group::Host,
            Self::PluginRead
            | Self::PluginInstall
            | Self::PluginSync
            | Self::PluginEnable
            | Self::PluginDisable
            | Self::PluginRollback
            | Self::PluginUninstall
            | Self::PluginConfigRead
            | Self::PluginConfigWrite
            | Self::PluginAutoUpdate
            | Self::MarketplaceRead
            | Self::MarketplaceWrite
            | Self::PluginLogs
            | Self::PluginWebhook
            | Self::PluginWebhookAuthenticated
            | Self::PluginAction
            | Self::PluginUi
            | Self::UserStateRead
            | Self::UserStateWrite => Group::Plugins,
            Self::ToolRead | Self::ToolCall | Self::McpConnect => Group::Tools,
            Self::ReferenceRead | Self::ReferenceUse => Group::References,
            Self::GitTokenRead | Self::GitTokenWrite | Self::GitCredentialResolve => Group::Git,
            Self::EventPublish | Self::EventRead | Self::GatewayConnect => Group::Events,
            Self::SecretRead | Self::SecretWrite | Self::SecretShare | Self::VaultRead | Self::VaultRotate => {
                Group::Secrets
            }
            Self::TrustRead | Self::TrustWrite => Group::Trust,
            Self::InboxRead | Self::InboxMarkRead | Self::InboxDismiss => Group::Inbox,
            Self::DocsRead => Group::Docs,
            Self::WorkspaceRead | Self::WorkspaceWrite | Self::WorkspaceDelete => Group::Workspaces,
            Self::WorkflowRead | Self::WorkflowWrite => Group::Workflows,
            Self::TaskRead | Self::TaskWrite | Self::TaskDelete => Group::Tasks,
            Self::RepositoryRead | Self::RepositoryWrite => Group::Repositories,
            Self::AgentRead | Self::AgentWrite => Group::Agents,
            Self::ExecutorRead | Self::ExecutorWrite => Group::Executors,
            Self::SessionRead
            | Self::SessionWrite
            | Self::MessageRead
            | Self::MessageWrite
            | Self::CodeRead
            | Self::CodeWrite => Group::Sessions,
        }
    }

    /// One line for people.
    pub const fn description(self) -> &'static str {
        match self {
            Self::HealthRead => "see whether the host is alive and ready",
            Self::MetricsRead => "read the host's figures",
            Self::PluginRead => "list plugins and read their records",
            Self::PluginInstall => "install a package or a newer version of it",
            Self::PluginSync => "take over what was put into the plugins folder",
            Self::PluginEnable => "start a plugin",
            Self::PluginDisable => "stop a plugin",
            Self::PluginRollback => "go back to the version before",
            Self::PluginUninstall => "remove a plugin with all its data",
            Self::PluginConfigRead => "read a plugin's settings, secrets masked",
            Self::PluginConfigWrite => "change a plugin's settings",
            Self::PluginAutoUpdate => "say which plugins are updated automatically",
            Self::MarketplaceRead => "look for plugins in the marketplace",
            Self::MarketplaceWrite => "add, change and delete sources of the marketplace",
            Self::PluginLogs => "read a plugin's last output",
            Self::PluginWebhook => "call a public webhook of a plugin",
            Self::PluginWebhookAuthenticated => "call a webhook that asks for a login",
            Self::PluginAction => "call a plugin's action",
            Self::ToolRead => "list the tools that plugins offer to agents",
            Self::ToolCall => "call a tool of a plugin",
            Self::ReferenceRead => "search plugins for entities of other systems",
            Self::ReferenceUse => "ask whether references to such entities may be used",
            Self::GitTokenRead => "list the tokens with which git asks for credentials",
            Self::GitTokenWrite => "make and revoke tokens with which git asks for credentials",
            Self::GitCredentialResolve => "ask for a git credential with a token made for it",
            Self::PluginUi => "read the files of a plugin's user interface",
            Self::UserStateRead => "read what plugins keep for oneself",
            Self::UserStateWrite => "change what plugins keep for oneself",
            Self::BootRead => "read what the browser application begins with",
            Self::EventPublish => "publish an event",
            Self::SecretRead => "list secrets and who may reveal them, without their values",
            Self::SecretWrite => "keep, change and remove secrets",
            Self::SecretShare => "say which plugins may reveal a secret",
            Self::VaultRead => "see the state of the vault",
            Self::VaultRotate => "change the vault's key",
            Self::TrustRead => "list the keys whose signatures count",
            Self::TrustWrite => "add and remove keys whose signatures count",
            Self::InboxRead => "read the inbox",
            Self::InboxMarkRead => "mark an item of the inbox as read",
            Self::InboxDismiss => "take an item of the inbox out of sight",
            Self::DocsRead => "read the document of the API",
            Self::EventRead => "read the log of events",
            Self::WorkspaceRead => "see workspaces",
            Self::WorkspaceWrite => "make and change workspaces",
            Self::WorkspaceDelete => "delete a workspace with everything in it",
            Self::WorkflowRead => "see workflows, their steps and templates",
            Self::WorkflowWrite => "make, change, order and delete workflows and their steps",
            Self::TaskRead => "see tasks",
            Self::TaskWrite => "make, change, move and put away tasks",
            Self::TaskDelete => "delete tasks",
            Self::RepositoryRead => "see repositories",
            Self::RepositoryWrite => "add, change and remove repositories",
            Self::AgentRead => "see agents and their profiles",
            Self::AgentWrite => "make, change and delete agent profiles",
            Self::ExecutorRead => "see executors and their profiles",
            Self::ExecutorWrite => "make, change and delete executors and their profiles",
            Self::SessionRead => "see sessions and their turns",
            Self::SessionWrite => "begin sessions, and note what was read of them",
            Self::MessageRead => "read the messages of sessions",
            Self::MessageWrite => "record messages in sessions",
            Self::CodeRead => "see the commits and snapshots of sessions",
            Self::CodeWrite => "report commits and snapshots of sessions",
            Self::GatewayConnect => "be told of events as they happen",
            Self::McpConnect => "speak the Model Context Protocol",
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
