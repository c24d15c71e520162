//! Settings of the commands that speak to a running host: where it is, who asks, how long to wait.
//!
//! `<home>/host.toml` is the host's and is not read here: a mistake in it must not keep an operator from the host that
//! runs. Finding the host's announcement below home is the command line's part.

use std::{path::PathBuf, time::Duration};

use secrecy::SecretString;

use super::{ConfigError, Lookup, environment, load::home_and_token};

/// What the command line says; `None` leaves it to the environment or the default.
#[derive(Debug, Clone, Default)]
pub struct ClientFlags {
    /// `--host`.
    pub host: Option<String>,
    /// `--token`.
    pub token: Option<SecretString>,
    /// `--home`.
    pub home: Option<String>,
    /// `--timeout`.
    pub timeout: Option<Duration>,
}

/// Where the host is and how to speak to it.
#[derive(Debug, Clone)]
pub struct ClientSettings {
    /// Address given by `--host` or `KANDEV_URL`; otherwise `<home>/run/host.json` has it.
    pub url: Option<String>,
    /// Token given by `--token`, `KANDEV_ADMIN_TOKEN` or `KANDEV_ADMIN_TOKEN_FILE`; otherwise `<home>/admin-token`.
    pub token: Option<SecretString>,
    /// The host's home.
    pub home: PathBuf,
    /// Waits.
    pub timing: ClientTiming,
}

/// Waits of the commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientTiming {
    /// Connecting to the host. 5 s.
    pub connect: Duration,
    /// From the end of a request to its whole answer, and the longest silence of a host that takes a package. A start
    /// and a stop of a plugin lie within. 2 min, or `--timeout`.
    pub answer: Duration,
    /// How long `install` waits for a plugin whose first start failed and that the host starts again. 2 min, or
    /// `--timeout`.
    pub come_up: Duration,
    /// Between two looks at such a plugin, and two lines of progress. 200 ms.
    pub look: Duration,
    /// Before a stream that broke is asked for again. 1 s.
    pub reconnect: Duration,
}

impl Default for ClientTiming {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            answer: Duration::from_secs(120),
            come_up: Duration::from_secs(120),
            look: Duration::from_millis(200),
            reconnect: Duration::from_secs(1),
        }
    }
}

/// Puts the client's settings together: flags, then the environment, then defaults.
///
/// # Errors
/// [`ConfigError`] naming the variable or key.
pub fn load_client(flags: ClientFlags, env: Lookup<'_>) -> Result<ClientSettings, ConfigError> {
    // A flag wins, so what the environment says about the token does not matter then.
    let given = flags.token.is_some();
    let without_token = |name: &str| (!given || !name.starts_with("KANDEV_ADMIN_TOKEN")).then(|| env(name)).flatten();
    let (home, token) = home_and_token(flags.home, &without_token)?;
    let url = match flags.host {
        Some(url) => Some(url),
        None => environment::text(env, "KANDEV_URL")?,
    };
    let mut timing = ClientTiming::default();
    if let Some(timeout) = flags.timeout {
        timing = ClientTiming { answer: timeout, come_up: timeout, ..timing };
    }
    Ok(ClientSettings { url, token: flags.token.or(token), home, timing })
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, ffi::OsString};

    use secrecy::ExposeSecret;

    use super::*;

    fn load(flags: ClientFlags, variables: &[(&str, &str)]) -> Result<ClientSettings, ConfigError> {
        let variables: BTreeMap<_, _> =
            variables.iter().map(|(name, value)| (name.to_string(), OsString::from(value))).collect();
        load_client(flags, &|name| variables.get(name).cloned())
    }

    #[test]
    fn flags_beat_the_environment_even_where_it_is_contradictory() {
        let variables = [
            ("KANDEV_URL", "http://env"),
            ("KANDEV_ADMIN_TOKEN", "one"),
            ("KANDEV_ADMIN_TOKEN_FILE", "/two"),
            ("KANDEV_HOME", "/env"),
        ];
        let flags = ClientFlags {
            host: Some("http://flag".to_owned()),
            token: Some("flag".to_owned().into()),
            home: Some("/flag".to_owned()),
            timeout: Some(Duration::from_secs(1)),
        };
        let settings = load(flags, &variables).unwrap();
        assert_eq!(settings.url.as_deref(), Some("http://flag"));
        assert_eq!(settings.token.unwrap().expose_secret(), "flag");
        assert_eq!(settings.home, PathBuf::from("/flag"));
        assert_eq!((settings.timing.answer, settings.timing.come_up), (Duration::from_secs(1), Duration::from_secs(1)));
        let both = load(ClientFlags::default(), &variables).unwrap_err();
        assert!(matches!(both, ConfigError::BothGiven { .. }), "{both}");
    }

    #[test]
    fn the_environment_is_used_without_flags_and_the_home_has_a_default() {
        let variables = [("KANDEV_URL", "http://env"), ("KANDEV_ADMIN_TOKEN", "one"), ("HOME", "/u")];
        let settings = load(ClientFlags::default(), &variables).unwrap();
        assert_eq!(settings.url.as_deref(), Some("http://env"));
        assert_eq!(settings.token.unwrap().expose_secret(), "one");
        assert_eq!((settings.home, settings.timing), (PathBuf::from("/u/.kandev"), ClientTiming::default()));
    }
}
