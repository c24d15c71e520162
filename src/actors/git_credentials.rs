//! Git credentials from the plugin that owns a repository's provider, and the branches that it knows.
//!
//! A credential is handed out under the binding that is the plugin's now: it is asked for before and after, and what
//! changed in between is not handed out. Nothing of it is kept: the next request asks again, so it outlives neither its
//! own end nor the plugin's (contract/lifecycle.md §1, "revokes git leases").

use std::time::Duration;

use kandev_proto::v1;
use secrecy::SecretString;
use time::OffsetDateTime;
use tokio::time::Instant;

use super::{CallKind, CallOutcome, CallPermit, CallRefused, PluginHandle, RegistryHandle};
use crate::{
    domain::{
        calls::{
            branches::{self, BranchesFault, Listed},
            git::{self, Credential, CredentialFault, Remote},
        },
        clean,
        id::PluginId,
        manifest::ActionScope,
        platform::repository::Repository,
    },
    grpc::client::CallError,
};

/// Longest part of a foreign name in a message, in bytes.
const SHOWN_NAME_BYTES: usize = 128;

/// For what a credential is asked; all of it was verified.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The session's workspace.
    pub workspace: &'a str,
    /// The session's task.
    pub task: &'a str,
    /// The session.
    pub session: &'a str,
    /// The repository.
    pub repository: &'a Repository,
    /// As git says it; it is at the repository.
    pub remote: &'a Remote,
}

/// Why there is no credential, or no list of branches. No text has anything of a credential.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// It is a folder, or was added without a provider.
    #[error("the repository has no provider")]
    NoProvider,
    /// Nobody to ask.
    #[error("no active plugin owns the repository provider \"{0}\"")]
    NoOwner(String),
    /// The owner does not list branches.
    #[error("plugin \"{0}\" declares no action \"repositories.branches\" with the scope workspace")]
    NoBranches(PluginId),
    /// The plugin takes no call now.
    #[error("plugin \"{0}\": {1}")]
    Refused(PluginId, CallRefused),
    /// No answer.
    #[error("plugin \"{0}\": {1}")]
    Call(PluginId, CallError),
    /// The plugin says that access was revoked.
    #[error("plugin \"{0}\" gives no access to this repository: it was revoked, or never given")]
    Revoked(PluginId),
    /// Access changed while it was asked for.
    #[error("plugin \"{0}\" has changed the access to this repository meanwhile; try again")]
    Changed(PluginId),
    /// A credential that git may not get.
    #[error("plugin \"{0}\" {1}")]
    Credential(PluginId, CredentialFault),
    /// A list that no client may get.
    #[error("plugin \"{0}\" {1}")]
    Branches(PluginId, BranchesFault),
    /// The host could not write its question.
    #[error("the question cannot be written: {0}")]
    Question(#[from] serde_json::Error),
}

impl ProviderError {
    fn outcome(&self) -> CallOutcome {
        match self {
            Self::NoProvider | Self::NoOwner(_) | Self::NoBranches(_) | Self::Refused(..) => CallOutcome::Refused,
            Self::Call(_, CallError::TimedOut(_)) => CallOutcome::TimedOut,
            // A no is an answer.
            Self::Revoked(_) | Self::Changed(_) => CallOutcome::Answered,
            Self::Call(..) | Self::Credential(..) | Self::Branches(..) | Self::Question(_) => CallOutcome::Failed,
        }
    }
}

/// The questions of one credential share a deadline.
struct Desk<'a> {
    plugin: &'a PluginHandle,
    permit: CallPermit,
    wanted: Wanted<'a>,
    deadline: Instant,
    whole: Duration,
}

impl RegistryHandle {
    /// Asks the owner of the repository's provider for a credential, within `timing.git_credential_timeout`. No call is
    /// repeated. Dropped, it cancels the call.
    pub async fn git_credential(&self, wanted: Wanted<'_>) -> Result<Credential, ProviderError> {
        let plugin = self.owner(&wanted.repository.fields.provider)?;
        let watch = plugin.vitals().begin(CallKind::Credential);
        let whole = self.shared.config.timing.git_credential_timeout;
        let answer = match self.begin(&plugin, CallKind::Credential) {
            Ok(permit) => {
                let desk = Desk { plugin: &plugin, permit, wanted, deadline: Instant::now() + whole, whole };
                desk.credential().await
            }
            Err(refused) => Err(ProviderError::Refused(plugin.id().clone(), refused)),
        };
        watch.end(answer.as_ref().map_or_else(ProviderError::outcome, |_| CallOutcome::Answered));
        answer
    }

    /// Asks the owner of the repository's provider for its branches, for this user; the reserved action of the contract
    /// (rest.md §7), with an action's deadline.
    pub async fn branches(&self, actor: &str, repository: &Repository) -> Result<Listed, ProviderError> {
        let plugin = self.owner(&repository.fields.provider)?;
        let mut actions = plugin.manifest().actions.iter();
        let declared = |key: &str, scope| key == branches::ACTION && scope == Some(ActionScope::Workspace);
        if !actions.any(|action| declared(&action.key, action.parsed_scope())) {
            return Err(ProviderError::NoBranches(plugin.id().clone()));
        }
        let request = v1::PluginActionRequest {
            action_key: branches::ACTION.to_owned(),
            context: Some(v1::VerifiedActionContext {
                actor_id: actor.to_owned(),
                workspace_id: repository.workspace_id.clone(),
                ..v1::VerifiedActionContext::default()
            }),
            body: branches::question(&repository.fields)?.into(),
        };
        let watch = plugin.vitals().begin(CallKind::Action);
        let answer = self.ask_branches(&plugin, request).await;
        watch.end(answer.as_ref().map_or_else(ProviderError::outcome, |_| CallOutcome::Answered));
        answer
    }

    async fn ask_branches(
        &self,
        plugin: &PluginHandle,
        request: v1::PluginActionRequest,
    ) -> Result<Listed, ProviderError> {
        let refused = |refused| ProviderError::Refused(plugin.id().clone(), refused);
        let permit = self.begin(plugin, CallKind::Action).map_err(refused)?;
        let answer = permit.client().handle_action(request, self.shared.config.timing.action_timeout).await;
        let fault = |fault| ProviderError::Branches(plugin.id().clone(), fault);
        let answer = answer.map_err(|error| match error {
            CallError::TooLarge(_) => fault(BranchesFault::TooLarge),
            error => ProviderError::Call(plugin.id().clone(), plugin.without_secrets(error)),
        })?;
        branches::check(answer.status, &answer.body).map_err(fault)
    }

    fn owner(&self, provider: &str) -> Result<PluginHandle, ProviderError> {
        if provider.is_empty() {
            return Err(ProviderError::NoProvider);
        }
        let nobody = || ProviderError::NoOwner(clean::single_line(provider, SHOWN_NAME_BYTES));
        self.provider_owner(provider).ok_or_else(nobody)
    }
}

impl Desk<'_> {
    async fn credential(&self) -> Result<Credential, ProviderError> {
        let before = self.binding().await?;
        let credential = self.resolve().await?;
        if self.binding().await? != before {
            return Err(ProviderError::Changed(self.plugin.id().clone()));
        }
        // That question took time.
        match credential.is_over(OffsetDateTime::now_utc()) {
            true => Err(self.fault(CredentialFault::Expired)),
            false => Ok(credential),
        }
    }

    /// What is left of the whole deadline.
    fn left(&self) -> Result<Duration, ProviderError> {
        match self.deadline.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(ProviderError::Call(self.plugin.id().clone(), CallError::TimedOut(self.whole))),
            left => Ok(left),
        }
    }

    async fn binding(&self) -> Result<String, ProviderError> {
        let Wanted { workspace, task, session, repository, remote } = self.wanted;
        let request = v1::GitCredentialBindingRequest {
            provider_id: repository.fields.provider.clone(),
            workspace_id: workspace.to_owned(),
            task_id: task.to_owned(),
            session_id: session.to_owned(),
            repository_id: repository.id.clone(),
            host: remote.host.clone(),
            path: remote.path.clone(),
        };
        let answer = self.permit.client().get_git_credential_binding(request, self.left()?).await;
        let binding = git::binding(answer.map_err(|error| self.failed(error))?.binding);
        binding.map_err(|fault| self.fault(fault))?.ok_or_else(|| ProviderError::Revoked(self.plugin.id().clone()))
    }

    async fn resolve(&self) -> Result<Credential, ProviderError> {
        let Wanted { workspace, task, session, repository, remote } = self.wanted;
        let request = v1::ResolveGitCredentialRequest {
            provider_id: repository.fields.provider.clone(),
            workspace_id: workspace.to_owned(),
            task_id: task.to_owned(),
            session_id: session.to_owned(),
            repository_id: repository.id.clone(),
            host: remote.host.clone(),
            path: remote.path.clone(),
        };
        let answer = self.permit.client().resolve_git_credential(request, self.left()?).await;
        let v1::ResolveGitCredentialResponse { username, secret, expires_at } =
            answer.map_err(|error| self.failed(error))?;
        let secret = SecretString::from(secret);
        Credential::new(username, secret, &expires_at, OffsetDateTime::now_utc()).map_err(|fault| self.fault(fault))
    }

    /// Secrets that passed through the host can be taken out of a text; a credential that did not is known to nobody
    /// here.
    fn failed(&self, error: CallError) -> ProviderError {
        ProviderError::Call(self.plugin.id().clone(), error.without_text())
    }

    fn fault(&self, fault: CredentialFault) -> ProviderError {
        ProviderError::Credential(self.plugin.id().clone(), fault)
    }
}
