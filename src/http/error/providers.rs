//! The part of the map that is about references, git credentials and what else the owner of a provider is asked.

use actix_web::http::StatusCode;

use super::{Described, calls::noted, plain, platform, plugins, trouble};
use crate::{
    actors::{ProviderError, ReferenceError},
    domain::calls::git::Elsewhere,
    grpc::client::CallError,
    http::git_credentials::GitError,
    platform::git_tokens::MintError,
};

pub(super) fn reference(error: &ReferenceError) -> Described {
    match error {
        ReferenceError::NoSource(_) => plain(StatusCode::NOT_FOUND, "reference_source_not_found", error),
        ReferenceError::Refused(id, refused) => plugins::refusal(id, refused),
        ReferenceError::Call(id, call) => {
            let described = match call {
                CallError::TimedOut(_) => {
                    let text = format!("plugin \"{id}\" did not answer the search in time");
                    plain(StatusCode::GATEWAY_TIMEOUT, "reference_timeout", text)
                }
                CallError::Disconnected | CallError::Refused { .. } => {
                    let text = format!("plugin \"{id}\" failed to search");
                    plain(StatusCode::SERVICE_UNAVAILABLE, "reference_failed", text)
                }
                CallError::TooLarge(_) => reference(&ReferenceError::TooLarge(id.clone())),
            };
            described.with_note(noted(id, call))
        }
        ReferenceError::TooLarge(_) => plain(StatusCode::BAD_GATEWAY, "invalid_reference_answer", error),
    }
}

pub(super) fn provider(error: &ProviderError) -> Described {
    match error {
        ProviderError::NoProvider => plain(StatusCode::NOT_FOUND, "no_provider", error),
        ProviderError::NoOwner(_) => plain(StatusCode::SERVICE_UNAVAILABLE, "provider_not_active", error),
        ProviderError::NoBranches(_) => plain(StatusCode::NOT_FOUND, "branches_not_offered", error),
        ProviderError::Refused(id, refused) => plugins::refusal(id, refused),
        ProviderError::Call(id, call) => {
            let described = match call {
                CallError::TimedOut(_) => {
                    let text = format!("plugin \"{id}\" did not answer in time");
                    plain(StatusCode::GATEWAY_TIMEOUT, "provider_timeout", text)
                }
                CallError::Disconnected | CallError::Refused { .. } | CallError::TooLarge(_) => {
                    let text = format!("plugin \"{id}\" failed to answer");
                    plain(StatusCode::SERVICE_UNAVAILABLE, "provider_failed", text)
                }
            };
            described.with_note(noted(id, call))
        }
        ProviderError::Revoked(_) => plain(StatusCode::FORBIDDEN, "git_access_revoked", error),
        ProviderError::Changed(_) => plain(StatusCode::CONFLICT, "git_access_changed", error),
        ProviderError::Credential(..) => plain(StatusCode::BAD_GATEWAY, "invalid_git_credential", error),
        ProviderError::Branches(..) => plain(StatusCode::BAD_GATEWAY, "invalid_branches", error),
        ProviderError::Question(error) => trouble(error),
    }
}

pub(super) fn git(error: &GitError) -> Described {
    match error {
        GitError::Elsewhere(elsewhere) => {
            let code = match elsewhere {
                Elsewhere::NoPath => "git_path_missing",
                Elsewhere::Protocol | Elsewhere::NoProvider | Elsewhere::Host | Elsewhere::Path => "git_elsewhere",
            };
            plain(StatusCode::NOT_FOUND, code, elsewhere)
        }
        GitError::Mint(error @ MintError::Over(_)) => plain(StatusCode::CONFLICT, "session_over", error),
        GitError::Mint(MintError::Platform(error)) => platform::describe(error),
        GitError::Mint(error @ MintError::Random) => trouble(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{calls::git::CredentialFault, id::PluginId};

    fn acme() -> PluginId {
        PluginId::new("acme").unwrap()
    }

    fn shown(described: &Described) -> (u16, &'static str) {
        (described.status.as_u16(), described.code)
    }

    #[test]
    fn a_plugins_text_about_a_credential_reaches_neither_the_client_nor_unredacted_the_log() {
        let message = "password=hunter2hunter2".to_owned();
        let error = ProviderError::Call(acme(), CallError::Refused { code: tonic::Code::Unknown, message });
        let described = provider(&error);
        assert_eq!(shown(&described), (503, "provider_failed"));
        assert_eq!(described.text, "plugin \"acme\" failed to answer");
        assert!(!described.note.unwrap().contains("hunter2"));
    }

    #[test]
    fn what_git_cannot_get_has_a_status_and_a_code() {
        for (error, expected) in [
            (ProviderError::NoOwner("forge".to_owned()), (503, "provider_not_active")),
            (ProviderError::Revoked(acme()), (403, "git_access_revoked")),
            (ProviderError::Changed(acme()), (409, "git_access_changed")),
            (ProviderError::Credential(acme(), CredentialFault::Expired), (502, "invalid_git_credential")),
        ] {
            assert_eq!(shown(&provider(&error)), expected);
        }
        assert_eq!(shown(&git(&GitError::Elsewhere(Elsewhere::Path))), (404, "git_elsewhere"));
        assert_eq!(shown(&git(&GitError::Elsewhere(Elsewhere::NoPath))), (404, "git_path_missing"));
        assert_eq!(shown(&reference(&ReferenceError::NoSource("x".to_owned()))), (404, "reference_source_not_found"));
        let large = reference(&ReferenceError::Call(acme(), CallError::TooLarge(17 << 20)));
        assert_eq!(shown(&large), (502, "invalid_reference_answer"));
        assert_eq!(large.text, reference(&ReferenceError::TooLarge(acme())).text);
    }
}
