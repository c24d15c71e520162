//! Git credentials (contract/wire.md §2.1): for which repository they may be asked, and which answers of a plugin may
//! be handed to git.
//!
//! Git's helper protocol is lines of text. A line break in a user name would be a line of its own to git, so every text
//! that is handed on is held to one line here, whatever the edge does.

use secrecy::{ExposeSecret, SecretString};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use url::Url;

use crate::domain::platform::repository::RepositoryFields;

/// Longest host or path that is asked about, in bytes.
pub const MAX_NAME_BYTES: usize = 1024;

/// Longest user name, in bytes.
const MAX_USERNAME_BYTES: usize = 256;

/// Longest secret, in bytes.
const MAX_SECRET_BYTES: usize = 16 * 1024;

/// Longest revision, in bytes.
const MAX_BINDING_BYTES: usize = 1024;

/// What git wants a credential for, as it says it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remote {
    /// `https` and the like.
    pub protocol: String,
    /// Host name, with a port unless it is the usual one.
    pub host: String,
    /// Path of the repository, without a slash before it; empty when git does not tell.
    pub path: String,
}

/// Why no credential is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Elsewhere {
    /// A secret in the clear is worth nothing.
    #[error("credentials are given for https only")]
    Protocol,
    /// The repository has no provider: it is a folder, or its provider is not known.
    #[error("the repository has no provider that could give a credential")]
    NoProvider,
    /// Another server. Upper and lower case count.
    #[error("the token is for a repository on another host")]
    Host,
    /// git did not say which repository.
    #[error("the path of the repository is missing; set git's credential.useHttpPath to true")]
    NoPath,
    /// Another repository of that server. Upper and lower case count.
    #[error("the token is for another repository")]
    Path,
}

impl Remote {
    /// Whether host and path are one line each and not too long; otherwise nothing is looked at.
    pub fn is_plain(&self) -> bool {
        [&self.protocol, &self.host, &self.path].into_iter().all(|text| is_line(text, MAX_NAME_BYTES))
    }

    /// Whether this is the repository that the platform knows.
    pub fn is_at(&self, repository: &RepositoryFields) -> Result<(), Elsewhere> {
        if self.protocol != "https" {
            return Err(Elsewhere::Protocol);
        }
        if repository.provider.is_empty() || repository.provider_host.is_empty() {
            return Err(Elsewhere::NoProvider);
        }
        if self.host != repository.provider_host {
            return Err(Elsewhere::Host);
        }
        if self.path.is_empty() {
            return Err(Elsewhere::NoPath);
        }
        let known = path_of(repository).ok_or(Elsewhere::NoProvider)?;
        if bare(&self.path) == bare(&known) { Ok(()) } else { Err(Elsewhere::Path) }
    }
}

/// The path at which the repository is cloned: what its address says, else owner and name. git knows it without percent
/// signs.
fn path_of(repository: &RepositoryFields) -> Option<String> {
    if repository.remote_url.is_empty() {
        let (owner, name) = (&repository.provider_owner, &repository.provider_name);
        return (!owner.is_empty() && !name.is_empty()).then(|| format!("{owner}/{name}"));
    }
    let url = Url::parse(&repository.remote_url).ok().filter(|url| url.scheme() == "https")?;
    let path = decoded(url.path().trim_start_matches('/'))?;
    // git leaves out the slashes at its end.
    let path = path.trim_end_matches('/');
    (!path.is_empty()).then(|| path.to_owned())
}

/// `.git` may stand at the end or not: servers take both.
fn bare(path: &str) -> &str {
    path.strip_suffix(".git").unwrap_or(path)
}

fn decoded(path: &str) -> Option<String> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (mut bytes, mut rest) = (Vec::with_capacity(path.len()), path.as_bytes());
    while let Some((first, tail)) = rest.split_first() {
        rest = match (first, tail) {
            (b'%', [high, low, tail @ ..]) => {
                bytes.push(digit(*high)? * 16 + digit(*low)?);
                tail
            }
            _ => {
                bytes.push(*first);
                tail
            }
        };
    }
    String::from_utf8(bytes).ok()
}

/// A credential that may be handed to git. Its secret cannot be printed.
#[derive(Debug, Clone)]
pub struct Credential {
    /// One line.
    pub username: String,
    /// One line.
    pub secret: SecretString,
    /// When it ends; `None` when the plugin does not say.
    pub expires_at: Option<OffsetDateTime>,
}

/// Why a plugin's credential is not handed on (502). No text has anything of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CredentialFault {
    /// Empty, too long, or more than a line.
    #[error("answered a user name that is not one line of 1 to {MAX_USERNAME_BYTES} bytes")]
    Username,
    /// The same of the secret.
    #[error("answered a secret that is not one line of 1 to {MAX_SECRET_BYTES} bytes")]
    Secret,
    /// No moment of RFC 3339.
    #[error("answered an expires_at that is not RFC 3339")]
    Moment,
    /// It is over already.
    #[error("answered a credential that has expired")]
    Expired,
    /// The revision is too long.
    #[error("answered a binding of more than {MAX_BINDING_BYTES} bytes")]
    Binding,
}

impl Credential {
    /// Takes a plugin's answer.
    pub fn new(
        username: String,
        secret: SecretString,
        expires_at: &str,
        now: OffsetDateTime,
    ) -> Result<Self, CredentialFault> {
        if username.is_empty() || !is_line(&username, MAX_USERNAME_BYTES) {
            return Err(CredentialFault::Username);
        }
        if secret.expose_secret().is_empty() || !is_line(secret.expose_secret(), MAX_SECRET_BYTES) {
            return Err(CredentialFault::Secret);
        }
        let moment = |text| OffsetDateTime::parse(text, &Rfc3339).map_err(|_| CredentialFault::Moment);
        let expires_at = Some(expires_at).filter(|text| !text.is_empty()).map(moment).transpose()?;
        let credential = Self { username, secret, expires_at };
        if credential.is_over(now) { Err(CredentialFault::Expired) } else { Ok(credential) }
    }

    /// Whether it has ended. git counts whole seconds: one that ends in this second has ended.
    pub fn is_over(&self, now: OffsetDateTime) -> bool {
        self.expires_at.is_some_and(|at| at.unix_timestamp() <= now.unix_timestamp())
    }
}

/// The revision of a credential; none when access was revoked.
pub fn binding(text: String) -> Result<Option<String>, CredentialFault> {
    match text.len() {
        0 => Ok(None),
        1..=MAX_BINDING_BYTES => Ok(Some(text)),
        _ => Err(CredentialFault::Binding),
    }
}

fn is_line(text: &str, max: usize) -> bool {
    text.len() <= max && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use time::macros::datetime;

    use super::*;

    const NOW: OffsetDateTime = datetime!(2026-11-30 12:00 UTC);

    fn remote(protocol: &str, host: &str, path: &str) -> Remote {
        Remote { protocol: protocol.to_owned(), host: host.to_owned(), path: path.to_owned() }
    }

    fn repository(url: &str) -> RepositoryFields {
        RepositoryFields {
            provider: "forge".to_owned(),
            provider_host: "forge.example.test".to_owned(),
            provider_owner: "Team".to_owned(),
            provider_name: "app".to_owned(),
            remote_url: url.to_owned(),
            ..RepositoryFields::default()
        }
    }

    #[test]
    fn host_and_path_count_exactly_and_only_https_does() {
        let known = repository("");
        let at = |protocol, host, path| remote(protocol, host, path).is_at(&known);
        for path in ["Team/app", "Team/app.git"] {
            assert_eq!(at("https", "forge.example.test", path), Ok(()));
        }
        for protocol in ["http", "ssh", "HTTPS", ""] {
            assert_eq!(at(protocol, "forge.example.test", "Team/app"), Err(Elsewhere::Protocol));
        }
        for host in ["Forge.example.test", "forge.example.test:443", "evil.test", "forge.example.test.evil.test", ""] {
            assert_eq!(at("https", host, "Team/app"), Err(Elsewhere::Host));
        }
        assert_eq!(at("https", "forge.example.test", ""), Err(Elsewhere::NoPath));
        for path in
            ["team/app", "Team/app/", "/Team/app", "Team/app.git.git", "Team/app2", "Team/%61pp", "Team/../Team/app"]
        {
            assert_eq!(at("https", "forge.example.test", path), Err(Elsewhere::Path), "{path}");
        }
    }

    #[test]
    fn an_address_says_more_of_the_path_than_owner_and_name() {
        let at = |url: &str, path: &str| remote("https", "forge.example.test", path).is_at(&repository(url));
        assert_eq!(at("https://forge.example.test/org/p%20x/_git/app", "org/p x/_git/app"), Ok(()));
        assert_eq!(at("https://forge.example.test/org/app.git", "org/app"), Ok(()));
        // What git says of a remote that ends in slashes has none.
        assert_eq!(at("https://forge.example.test//org/app.git//", "org/app.git"), Ok(()));
        assert_eq!(at("https://forge.example.test/org/app.git", "Team/app"), Err(Elsewhere::Path));
        for url in
            ["git@forge.example.test:Team/app", "http://forge.example.test/Team/app", "https://forge.example.test/"]
        {
            assert_eq!(at(url, "Team/app"), Err(Elsewhere::NoProvider), "{url}");
        }
        let local = RepositoryFields { provider: String::new(), ..repository("") };
        assert_eq!(remote("https", "forge.example.test", "Team/app").is_at(&local), Err(Elsewhere::NoProvider));
    }

    fn credential(username: &str, secret: &str, expires_at: &str) -> Result<Credential, CredentialFault> {
        Credential::new(username.to_owned(), secret.to_owned().into(), expires_at, NOW)
    }

    #[test]
    fn what_would_be_another_line_to_git_is_refused() {
        for bad in ["", "a\nb", "a\rb", "a\0b", "a\u{1b}[0m", "a\u{85}b"] {
            assert_eq!(credential(bad, "s", "").unwrap_err(), CredentialFault::Username, "{bad:?}");
            assert_eq!(credential("u", bad, "").unwrap_err(), CredentialFault::Secret, "{bad:?}");
        }
        assert_eq!(credential(&"u".repeat(257), "s", "").unwrap_err(), CredentialFault::Username);
        assert_eq!(credential("u", &"s".repeat(16 * 1024 + 1), "").unwrap_err(), CredentialFault::Secret);
        let good = credential("x-access-token", &"é".repeat(8 * 1024), "").unwrap();
        assert_eq!((good.username.as_str(), good.expires_at), ("x-access-token", None));
        assert!(!format!("{good:?}").contains('é'));
    }

    #[test]
    fn an_expired_credential_is_refused() {
        for over in
            ["2026-11-30T12:00:00Z", "2026-11-30T12:00:00.9Z", "2020-01-01T00:00:00Z", "2026-11-30T13:30:00+02:00"]
        {
            assert_eq!(credential("u", "s", over).unwrap_err(), CredentialFault::Expired, "{over}");
        }
        for none in ["tomorrow", "2026-11-30", "1764504000", " "] {
            assert_eq!(credential("u", "s", none).unwrap_err(), CredentialFault::Moment, "{none}");
        }
        let good = credential("u", "s", "2026-11-30T14:00:01+02:00").unwrap();
        assert_eq!(good.expires_at, Some(datetime!(2026-11-30 12:00:01 UTC)));
        assert!(
            !good.is_over(datetime!(2026-11-30 12:00:00.999 UTC)) && good.is_over(datetime!(2026-11-30 12:00:01 UTC))
        );
        assert!(!credential("u", "s", "").unwrap().is_over(datetime!(9999-12-31 0:00 UTC)));
    }

    #[test]
    fn no_binding_is_a_revocation_and_a_long_one_a_fault() {
        assert_eq!(binding(String::new()), Ok(None));
        assert_eq!(binding("a\n".to_owned()), Ok(Some("a\n".to_owned())), "it is compared and goes nowhere");
        assert_eq!(binding("x".repeat(1025)), Err(CredentialFault::Binding));
    }

    proptest! {
        #[test]
        fn a_path_survives_the_way_into_an_address_and_back(path in "[a-z %é]{1,12}") {
            let mut url = Url::parse("https://forge.example.test").unwrap();
            url.path_segments_mut().unwrap().push(&path);
            prop_assert_eq!(decoded(url.path().trim_start_matches('/')), Some(path));
        }

        #[test]
        fn any_path_of_an_address_gets_a_verdict(path in "(?s:.{0,20})") {
            let _ = decoded(&path);
            let _ = remote("https", "forge.example.test", &path).is_at(&repository(&format!("https://forge.example.test/{path}")));
        }
    }
}
