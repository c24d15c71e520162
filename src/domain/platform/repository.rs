//! Repositories and who hosts them.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use url::Url;

use super::{
    refusal::Refusal,
    text::{MAX_FOREIGN_BYTES, check, check_name, check_required, check_text},
};

/// A repository of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryFields {
    /// Its name.
    pub name: String,
    /// How it was added: `local`, `provider` and the like.
    pub source_type: String,
    /// Folder on this machine; empty for none.
    pub local_path: String,
    /// Which provider hosts it, a plugin's word.
    pub provider: String,
    /// The provider's id of it.
    pub provider_repo_id: String,
    /// Host name of the provider.
    pub provider_host: String,
    /// The provider's own division.
    pub provider_scope: String,
    /// Owner or project there.
    pub provider_owner: String,
    /// Name there.
    pub provider_name: String,
    /// Where it is cloned from, without user and password.
    pub remote_url: String,
    /// Its main branch.
    pub default_branch: String,
    /// Start of the branches of tasks.
    pub worktree_branch_prefix: String,
    /// Whether it is brought up to date before work begins.
    pub pull_before_worktree: bool,
    /// Run before work.
    pub setup_script: String,
    /// Run after work.
    pub cleanup_script: String,
    /// Runs the program.
    pub dev_script: String,
    /// Files that each worktree gets.
    pub copy_files: String,
}

/// A repository with its place and its times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repository {
    /// A UUID of version 7.
    pub id: String,
    /// Whose.
    pub workspace_id: String,
    /// What a writer may say of it.
    #[serde(flatten)]
    pub fields: RepositoryFields,
    /// Made, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Changed, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
    /// Goes up by one with every change.
    pub version: i64,
    /// Taken out of the lists, UTC; tasks that work on it still name it.
    #[serde(with = "time::serde::rfc3339::option")]
    pub deleted_at: Option<OffsetDateTime>,
}

impl RepositoryFields {
    /// Checks the texts, and takes user and password out of the address (host-data.md §3).
    pub fn checked(mut self) -> Result<Self, Refusal> {
        check_required("name", &self.name)?;
        for (field, text) in [
            ("source_type", &self.source_type),
            ("local_path", &self.local_path),
            ("provider_owner", &self.provider_owner),
            ("provider_name", &self.provider_name),
            ("remote_url", &self.remote_url),
            ("default_branch", &self.default_branch),
            ("worktree_branch_prefix", &self.worktree_branch_prefix),
        ] {
            check_name(field, text)?;
        }
        for (field, text) in [
            ("provider", &self.provider),
            ("provider_repo_id", &self.provider_repo_id),
            ("provider_host", &self.provider_host),
            ("provider_scope", &self.provider_scope),
        ] {
            check(field, text, MAX_FOREIGN_BYTES)?;
        }
        for (field, text) in [
            ("setup_script", &self.setup_script),
            ("cleanup_script", &self.cleanup_script),
            ("dev_script", &self.dev_script),
            ("copy_files", &self.copy_files),
        ] {
            check_text(field, text)?;
        }
        self.remote_url = without_user(&self.remote_url);
        Ok(self)
    }
}

/// An address without its user information. What is no address with a scheme (`git@host:path`) holds no password and
/// stays.
pub fn without_user(address: &str) -> String {
    let Ok(mut url) = Url::parse(address) else { return address.to_owned() };
    if url.username().is_empty() && url.password().is_none() {
        return address.to_owned();
    }
    let cleared = url.set_username("").and_then(|()| url.set_password(None));
    if cleared.is_ok() { url.into() } else { String::new() }
}

/// A repository that its provider knows and this host may not yet (wire.md `RemoteRepositoryDescriptor`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemoteRepository {
    /// Which provider; the caller must own it.
    pub provider_id: String,
    /// Its host name, with a port unless it is the usual one.
    pub provider_host: String,
    /// Its own division; may be empty.
    pub provider_scope: String,
    /// Owner or project.
    pub owner_or_project: String,
    /// The provider's id.
    pub provider_repository_id: String,
    /// The provider's name.
    pub name: String,
    /// https, without user, at the provider's host.
    pub clone_url: String,
    /// Its main branch.
    pub default_branch: Option<String>,
}

impl RemoteRepository {
    /// The repository it describes.
    pub fn fields(&self) -> Result<RepositoryFields, Refusal> {
        let needed = [
            &self.provider_id,
            &self.provider_host,
            &self.owner_or_project,
            &self.provider_repository_id,
            &self.name,
            &self.clone_url,
        ];
        if needed.iter().any(|text| text.trim().is_empty()) {
            return Err(Refusal::RemoteIncomplete);
        }
        let url = Url::parse(&self.clone_url).map_err(|_| Refusal::RemoteOrigin)?;
        let host = match (url.host_str(), url.port()) {
            (Some(host), Some(port)) => format!("{host}:{port}"),
            (Some(host), None) => host.to_owned(),
            (None, _) => return Err(Refusal::RemoteOrigin),
        };
        let plain = url.scheme() == "https" && url.username().is_empty() && url.password().is_none();
        if !plain || !host.eq_ignore_ascii_case(&self.provider_host) {
            return Err(Refusal::RemoteOrigin);
        }
        let fields = RepositoryFields {
            name: self.name.clone(),
            source_type: "provider".to_owned(),
            provider: self.provider_id.clone(),
            provider_repo_id: self.provider_repository_id.clone(),
            provider_host: self.provider_host.clone(),
            provider_scope: self.provider_scope.clone(),
            provider_owner: self.owner_or_project.clone(),
            provider_name: self.name.clone(),
            remote_url: self.clone_url.clone(),
            default_branch: self.default_branch.clone().unwrap_or_default(),
            ..RepositoryFields::default()
        };
        fields.checked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote() -> RemoteRepository {
        RemoteRepository {
            provider_id: "forge".to_owned(),
            provider_host: "forge.example.test".to_owned(),
            provider_scope: String::new(),
            owner_or_project: "team".to_owned(),
            provider_repository_id: "7".to_owned(),
            name: "app".to_owned(),
            clone_url: "https://forge.example.test/team/app.git".to_owned(),
            default_branch: None,
        }
    }

    #[test]
    fn names_at_a_provider_fit_into_a_row_of_an_index() {
        let long = RemoteRepository { provider_repository_id: "7".repeat(513), ..remote() };
        let refused = Refusal::TooLarge { field: "provider_repo_id", size: 513, limit: 512 };
        assert_eq!(long.fields(), Err(refused));
    }

    #[test]
    fn a_remote_must_be_complete_and_plain_https_at_its_provider() {
        assert_eq!(remote().fields().unwrap().provider_owner, "team");
        assert_eq!(RemoteRepository { name: " ".to_owned(), ..remote() }.fields(), Err(Refusal::RemoteIncomplete));
        for address in [
            "http://forge.example.test/x",
            "https://user@forge.example.test/x",
            "https://:pw@forge.example.test/x",
            "https://evil.test/x",
            "https://forge.example.test:8443/x",
            "git@forge.example.test:x",
        ] {
            let bad = RemoteRepository { clone_url: address.to_owned(), ..remote() };
            assert_eq!(bad.fields(), Err(Refusal::RemoteOrigin), "{address}");
        }
        let port = RemoteRepository {
            clone_url: "https://forge.example.test:8443/x".to_owned(),
            provider_host: "Forge.example.test:8443".to_owned(),
            ..remote()
        };
        assert!(port.fields().is_ok());
    }

    #[test]
    fn an_address_loses_user_and_password() {
        for (address, plain) in [
            ("https://u:p@host.test/a", "https://host.test/a"),
            ("https://token@host.test/a?x=1", "https://host.test/a?x=1"),
            ("https://host.test/a", "https://host.test/a"),
            ("git@host.test:team/app.git", "git@host.test:team/app.git"),
            ("ssh://git@host.test/a", "ssh://host.test/a"),
            ("", ""),
        ] {
            assert_eq!(without_user(address), plain);
        }
    }
}
