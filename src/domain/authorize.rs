//! The one decision who may do what. Pure: who the caller is was settled before.

use super::{action::Action, principal::Principal};

/// The verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Go on.
    Allow,
    /// The caller proved nothing; with credentials the answer might differ (HTTP 401).
    Unauthenticated,
    /// The caller is known and may not (HTTP 403). No principal of today meets it: the operator may do everything.
    Forbidden,
}

/// Whether `principal` may do `action`.
pub fn authorize(principal: Principal, action: Action) -> Decision {
    match principal {
        Principal::Operator => Decision::Allow,
        Principal::Anonymous if is_public(action) => Decision::Allow,
        Principal::Anonymous => Decision::Unauthenticated,
    }
}

/// Whether a route takes a token of its own, and not the operator's.
pub const fn takes_own_token(action: Action) -> bool {
    matches!(action, Action::GitCredentialResolve)
}

/// Whether pages of other origins may do it: what everyone may without any credentials.
pub const fn is_for_every_page(action: Action) -> bool {
    is_public(action) && !takes_own_token(action)
}

/// Open to everyone: probes, the document of the API, what the page needs to show a login, webhooks since their callers
/// prove themselves to the plugin (rest.md §1), and git credentials since their route takes a token of its own.
const fn is_public(action: Action) -> bool {
    match action {
        Action::HealthRead
        | Action::DocsRead
        | Action::PluginWebhook
        | Action::GitCredentialResolve
        | Action::BootRead => true,
        Action::MetricsRead
        | Action::PluginRead
        | Action::PluginInstall
        | Action::PluginSync
        | Action::PluginEnable
        | Action::PluginDisable
        | Action::PluginRollback
        | Action::PluginUninstall
        | Action::PluginConfigRead
        | Action::PluginConfigWrite
        | Action::PluginAutoUpdate
        | Action::MarketplaceRead
        | Action::MarketplaceWrite
        | Action::PluginLogs
        | Action::PluginWebhookAuthenticated
        | Action::PluginAction
        | Action::ToolRead
        | Action::ToolCall
        | Action::ReferenceRead
        | Action::ReferenceUse
        | Action::GitTokenRead
        | Action::GitTokenWrite
        | Action::PluginUi
        | Action::UserStateRead
        | Action::UserStateWrite
        | Action::EventPublish
        | Action::SecretRead
        | Action::SecretWrite
        | Action::SecretShare
        | Action::VaultRead
        | Action::VaultRotate
        | Action::TrustRead
        | Action::TrustWrite
        | Action::InboxRead
        | Action::InboxMarkRead
        | Action::InboxDismiss
        | Action::EventRead
        | Action::WorkspaceRead
        | Action::WorkspaceWrite
        | Action::WorkspaceDelete
        | Action::WorkflowRead
        | Action::WorkflowWrite
        | Action::TaskRead
        | Action::TaskWrite
        | Action::TaskDelete
        | Action::RepositoryRead
        | Action::RepositoryWrite
        | Action::AgentRead
        | Action::AgentWrite
        | Action::ExecutorRead
        | Action::ExecutorWrite
        | Action::SessionRead
        | Action::SessionWrite
        | Action::MessageRead
        | Action::MessageWrite
        | Action::CodeRead
        | Action::CodeWrite
        | Action::GatewayConnect
        | Action::McpConnect => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anonymous_callers_reach_what_proves_its_callers_itself_or_tells_nothing_only() {
        let open: Vec<_> = Action::ALL
            .iter()
            .copied()
            .filter(|action| authorize(Principal::Anonymous, *action) == Decision::Allow)
            .collect();
        let expected = [
            Action::HealthRead,
            Action::PluginWebhook,
            Action::GitCredentialResolve,
            Action::BootRead,
            Action::DocsRead,
        ];
        assert_eq!(open, expected);
    }

    #[test]
    fn pages_of_other_origins_reach_what_needs_no_credentials_at_all_only() {
        let every_page: Vec<_> = Action::ALL.iter().copied().filter(|action| is_for_every_page(*action)).collect();
        assert_eq!(every_page, [Action::HealthRead, Action::PluginWebhook, Action::BootRead, Action::DocsRead]);
        let own_token: Vec<_> = Action::ALL.iter().copied().filter(|action| takes_own_token(*action)).collect();
        assert_eq!(own_token, [Action::GitCredentialResolve]);
    }

    #[test]
    fn what_is_closed_to_anonymous_callers_asks_for_credentials() {
        let verdict = authorize(Principal::Anonymous, Action::PluginWebhookAuthenticated);
        assert_eq!(verdict, Decision::Unauthenticated);
    }

    #[test]
    fn the_operator_may_do_everything() {
        assert!(Action::ALL.iter().all(|action| authorize(Principal::Operator, *action) == Decision::Allow));
    }
}
