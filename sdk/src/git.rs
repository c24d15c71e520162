//! Credentials for a git repository of a provider that the plugin owns (`repository_providers` of the manifest).

use kandev_proto::v1;
use secrecy::{ExposeSecret, SecretString};

/// Which repository, and who asks. Host and path count exactly, upper and lower case apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct GitRequest {
    /// The provider in the manifest.
    pub provider_id: String,
    /// The workspace.
    pub workspace_id: String,
    /// The task.
    pub task_id: String,
    /// The session.
    pub session_id: String,
    /// The repository.
    pub repository_id: String,
    /// The git server.
    pub host: String,
    /// The repository's path on it.
    pub path: String,
}

macro_rules! from_wire {
    ($($wire:ident),*) => {
        $(impl From<v1::$wire> for GitRequest {
            fn from(wire: v1::$wire) -> Self {
                Self {
                    provider_id: wire.provider_id,
                    workspace_id: wire.workspace_id,
                    task_id: wire.task_id,
                    session_id: wire.session_id,
                    repository_id: wire.repository_id,
                    host: wire.host,
                    path: wire.path,
                }
            }
        })*
    };
}

from_wire!(ResolveGitCredentialRequest, GitCredentialBindingRequest);

/// User name and secret for git over HTTPS. The host neither stores nor logs them.
#[derive(Debug, Clone)]
pub struct GitCredential {
    /// The user name.
    pub username: String,
    /// The password or token; it cannot be printed.
    pub secret: SecretString,
    /// RFC 3339; `None` when it does not expire.
    pub expires_at: Option<String>,
}

impl From<GitCredential> for v1::ResolveGitCredentialResponse {
    fn from(own: GitCredential) -> Self {
        Self {
            username: own.username,
            secret: own.secret.expose_secret().to_owned(),
            expires_at: own.expires_at.unwrap_or_default(),
        }
    }
}
