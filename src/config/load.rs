//! Puts the settings together: defaults, then `<home>/host.toml`, then the environment, then flags; the later wins.
//!
//! Owns precedence, the names of variables and the meaning of the top-level texts. It reads files and the environment
//! it is given, once at start; nothing else in `config` does I/O.

use std::{
    collections::BTreeMap,
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use secrecy::{ExposeSecret, SecretString};
use tracing_subscriber::filter::Targets;

use super::{
    Config, Plugins,
    environment::{self, Lookup},
    file::{self, FileSettings},
    rules,
};

pub(super) const DEFAULT_LISTEN: &str = "127.0.0.1:38429";
pub(super) const DEFAULT_HOME: &str = "~/.kandev";
pub(super) const DEFAULT_LOG: &str = "info";
/// Where the marketplace's built-in source is (contract/rest.md §9).
const MARKETPLACE_URL: &str = "KANDEV_PLUGIN_MARKETPLACE_URL";
/// What `min_kandev_version` is compared with unless the operator says otherwise.
pub const DEFAULT_COMPAT_VERSION: &str = "0.91.0";

/// What the command line says; `None` leaves a key to the environment, the file or the default.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `--listen`.
    pub listen: Option<String>,
    /// `--home`.
    pub home: Option<String>,
    /// `--database-url`.
    pub database_url: Option<SecretString>,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Nobody set it.
    Default,
    /// `<home>/host.toml`.
    File,
    /// This variable.
    Environment(&'static str),
    /// This flag.
    Flag(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::File => "host.toml",
            Self::Environment(name) | Self::Flag(name) => name,
        })
    }
}

/// The settings with the place each one comes from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The validated settings.
    pub config: Config,
    /// Dotted key → source; a key that is not here has its default.
    pub sources: BTreeMap<String, Source>,
}

/// Why the settings cannot be used. Every text names the key or the file and what would be accepted; none quotes a
/// secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Neither a flag nor a variable tells where home is.
    #[error("the home folder is unknown: pass --home or set KANDEV_HOME or HOME")]
    NoHome,
    /// A variable is not UTF-8.
    #[error("the variable {name} is not valid UTF-8: correct it or unset it")]
    NotText {
        /// The variable.
        name: &'static str,
    },
    /// A secret and its file are both given.
    #[error("{name} and {file_name} are both set: unset one of them")]
    BothGiven {
        /// Variable that holds the secret.
        name: &'static str,
        /// Variable that names its file.
        file_name: &'static str,
    },
    /// A secret's file gives no secret.
    #[error("{name} names {}, which cannot be used: {reason}", path.display())]
    SecretFile {
        /// The variable.
        name: &'static str,
        /// What it holds.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The settings file exists and cannot be read.
    #[error("cannot read {}: {reason}; correct its permissions or remove it", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's text.
        reason: String,
    },
    /// The settings file is not TOML.
    #[error("{} line {line}: {reason}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// The reader's text, without a quotation.
        reason: String,
    },
    /// The settings file has a key that does not exist.
    #[error("{}: unknown key \"{key}\"; accepted are {accepted}", path.display())]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// Dotted name.
        key: String,
        /// The keys of the same section.
        accepted: String,
    },
    /// A value breaks its key's rule.
    #[error("{key} (from {origin}): {reason}")]
    BadValue {
        /// Dotted name.
        key: String,
        /// Who set it.
        origin: Source,
        /// The rule.
        reason: String,
    },
}

/// Loads and validates the settings. `env` looks a variable up.
pub fn load(overrides: Overrides, env: Lookup<'_>) -> Result<Config, ConfigError> {
    load_explained(overrides, env).map(|loaded| loaded.config)
}

/// As [`load`], with the source of every key.
pub fn load_explained(overrides: Overrides, env: Lookup<'_>) -> Result<Loaded, ConfigError> {
    let mut layers = Layers { env, sources: BTreeMap::new() };
    let home = layers.home(overrides.home)?;
    let mut file = file::read(&home.join("host.toml"))?;
    layers.sources.extend(file.set.iter().map(|key| (key.clone(), Source::File)));
    layers.marketplace_url(&mut file.plugins)?;
    check_sections(&file, &layers.sources)?;

    let listen = layers.text("listen", ("--listen", overrides.listen), "KANDEV_LISTEN", file.listen, DEFAULT_LISTEN)?;
    let log = layers.text("log", ("", None), "KANDEV_LOG", file.log, DEFAULT_LOG)?;
    let compat_version = layers.value("compat_version", [(file.compat_version, Source::File)]);
    let compat_version = compat_version.unwrap_or_else(|| DEFAULT_COMPAT_VERSION.to_owned());
    let config = Config {
        listen: layers.checked("listen", parse_listen(&listen))?,
        database_url: layers.database_url(overrides.database_url, file.database_url, &home)?,
        admin_token: layers.admin_token()?,
        vault_key: layers.vault_key()?,
        log: layers.checked("log", parse_log(log))?,
        compat_version: layers.checked("compat_version", parse_compat_version(compat_version))?,
        timing: file.timing,
        limits: file.limits,
        http: file.http,
        install: file.install,
        plugins: file.plugins,
        features: file.features,
        metrics: file.metrics,
        telemetry: file.telemetry,
        home,
    };
    Ok(Loaded { config, sources: layers.sources })
}

/// The home folder and the operator's token alone, for commands that do not run the host.
pub(super) fn home_and_token(
    home: Option<String>,
    env: Lookup<'_>,
) -> Result<(PathBuf, Option<SecretString>), ConfigError> {
    let mut layers = Layers { env, sources: BTreeMap::new() };
    Ok((layers.home(home)?, layers.admin_token()?))
}

/// The environment, and what is known so far about who set what.
struct Layers<'a> {
    env: Lookup<'a>,
    sources: BTreeMap<String, Source>,
}

impl Layers<'_> {
    /// The first given candidate; its source is noted.
    fn value<T, const N: usize>(&mut self, key: &str, candidates: [(Option<T>, Source); N]) -> Option<T> {
        let (value, source) = candidates.into_iter().find_map(|(value, source)| Some((value?, source)))?;
        self.sources.insert(key.to_owned(), source);
        Some(value)
    }

    fn text(
        &mut self,
        key: &str,
        (flag, from_flag): (&'static str, Option<String>),
        variable: &'static str,
        from_file: Option<String>,
        default: &str,
    ) -> Result<String, ConfigError> {
        let from_env = environment::text(self.env, variable)?;
        let candidates =
            [(from_flag, Source::Flag(flag)), (from_env, Source::Environment(variable)), (from_file, Source::File)];
        Ok(self.value(key, candidates).unwrap_or_else(|| default.to_owned()))
    }

    fn checked<T>(&self, key: &str, result: Result<T, String>) -> Result<T, ConfigError> {
        let origin = self.sources.get(key).copied().unwrap_or(Source::Default);
        result.map_err(|reason| ConfigError::BadValue { key: key.to_owned(), origin, reason })
    }

    /// An absolute path; `~` and `~/…` stand for `HOME`, a relative path counts from the working folder.
    fn home(&mut self, from_flag: Option<String>) -> Result<PathBuf, ConfigError> {
        let user_home = environment::text(self.env, "HOME")?;
        let home = self.text("home", ("--home", from_flag), "KANDEV_HOME", None, DEFAULT_HOME)?;
        let path = match home.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                Path::new(&user_home.ok_or(ConfigError::NoHome)?).join(rest.trim_start_matches('/'))
            }
            Some(_) => return self.checked("home", Err("write ~/… or a full path; ~user is not known".to_owned())),
            None => PathBuf::from(home),
        };
        self.checked("home", std::path::absolute(path).map_err(|error| error.to_string()))
    }

    fn database_url(
        &mut self,
        from_flag: Option<SecretString>,
        from_file: Option<SecretString>,
        home: &Path,
    ) -> Result<SecretString, ConfigError> {
        let from_env = environment::secret(self.env, "DATABASE_URL", "DATABASE_URL_FILE")?;
        let (from_env, variable) = from_env.map_or((None, "DATABASE_URL"), |(url, variable)| (Some(url), variable));
        let candidates = [
            (from_flag, Source::Flag("--database-url")),
            (from_env, Source::Environment(variable)),
            (from_file, Source::File),
        ];
        match self.value("database_url", candidates) {
            Some(url) => self.checked("database_url", check_database_url(url)),
            None => Ok(default_database_url(home).into()),
        }
    }

    fn admin_token(&mut self) -> Result<Option<SecretString>, ConfigError> {
        let Some((token, variable)) = environment::secret(self.env, "KANDEV_ADMIN_TOKEN", "KANDEV_ADMIN_TOKEN_FILE")?
        else {
            return Ok(None);
        };
        self.sources.insert("admin_token".to_owned(), Source::Environment(variable));
        // What cannot stand in an Authorization header could never be presented.
        match token.expose_secret().bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(Some(token)),
            false => self.checked("admin_token", Err("it must be visible ASCII text without spaces".to_owned())),
        }
    }

    /// The variable wins over the file.
    fn marketplace_url(&mut self, plugins: &mut Plugins) -> Result<(), ConfigError> {
        if let Some(url) = environment::text(self.env, MARKETPLACE_URL)? {
            plugins.marketplace_url = url;
            self.sources.insert("plugins.marketplace_url".to_owned(), Source::Environment(MARKETPLACE_URL));
        }
        Ok(())
    }

    /// Its form is the vault's to check.
    fn vault_key(&mut self) -> Result<Option<(SecretString, &'static str)>, ConfigError> {
        let given = environment::secret(self.env, "KANDEV_VAULT_KEY", "KANDEV_VAULT_KEY_FILE")?;
        if let Some((_, variable)) = given {
            self.sources.insert("vault_key".to_owned(), Source::Environment(variable));
        }
        Ok(given)
    }
}

fn check_sections(file: &FileSettings, sources: &BTreeMap<String, Source>) -> Result<(), ConfigError> {
    let timing_and_limits = rules::check_timing(&file.timing).and_then(|()| rules::check_limits(&file.limits));
    let http = timing_and_limits.and_then(|()| rules::check_http(&file.http));
    let telemetry = http.and_then(|()| rules::check_telemetry(&file.telemetry));
    telemetry.and_then(|()| rules::check_plugins(&file.plugins)).map_err(|(key, reason)| {
        let origin = sources.get(&key).copied().unwrap_or(Source::Default);
        ConfigError::BadValue { key, origin, reason }
    })
}

fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let numeric = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    numeric.as_deref().unwrap_or(text).parse().map_err(|_| {
        format!("\"{}\" is not an address with a port, like 127.0.0.1:38429 or [::]:38429", text.escape_debug())
    })
}

fn parse_log(filter: String) -> Result<String, String> {
    match filter.parse::<Targets>() {
        Ok(_) => Ok(filter),
        Err(error) => Err(format!("{error}; write a level, or target=level pairs separated by commas")),
    }
}

fn parse_compat_version(version: String) -> Result<String, String> {
    let release = version.split('-').next().unwrap_or_default();
    let segments: Vec<&str> = release.trim_start_matches(['v', 'V']).split('.').collect();
    let numeric = |segment: &&str| segment.parse::<u64>().is_ok();
    match version == "dev" || (segments.len() <= 3 && segments.iter().all(numeric)) {
        true => Ok(version),
        false => Err("it must be a version like 0.91.0, or \"dev\" to compare with nothing".to_owned()),
    }
}

fn check_database_url(url: SecretString) -> Result<SecretString, String> {
    const SCHEMES: [&str; 3] = ["sqlite:", "postgres://", "postgresql://"];
    match SCHEMES.iter().any(|scheme| url.expose_secret().starts_with(scheme)) {
        true => Ok(url),
        false => Err("it must start with sqlite:, postgres:// or postgresql://".to_owned()),
    }
}

/// A SQLite file below home; characters that end or escape the path of an address are percent-encoded.
fn default_database_url(home: &Path) -> String {
    let path = home.join("kandev.db").display().to_string();
    format!("sqlite://{}?mode=rwc", path.replace('%', "%25").replace('?', "%3F").replace('#', "%23"))
}
