//! Precedence, errors and rules of the settings, over real files in a temporary home.

use std::{collections::HashMap, ffi::OsString, fs, path::Path, time::Duration};

use proptest::prelude::*;
use secrecy::ExposeSecret;

use super::*;

struct World {
    home: tempfile::TempDir,
    variables: HashMap<String, OsString>,
}

impl World {
    fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap(), variables: HashMap::new() }
    }

    fn file(self, text: &str) -> Self {
        fs::write(self.home.path().join("host.toml"), text).unwrap();
        self
    }

    fn env(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.into());
        self
    }

    fn load_with(&self, overrides: Overrides) -> Result<Loaded, ConfigError> {
        let home = self.home.path().to_str().unwrap().to_owned();
        load_explained(Overrides { home: Some(home), ..overrides }, &|name| self.variables.get(name).cloned())
    }

    fn config(&self) -> Config {
        self.load_with(Overrides::default()).unwrap().config
    }

    /// The error's text with the temporary folder as `HOME`.
    fn error(&self) -> String {
        let text = self.load_with(Overrides::default()).unwrap_err().to_string();
        text.replace(self.home.path().to_str().unwrap(), "HOME")
    }
}

#[test]
fn an_empty_home_gives_the_documented_defaults() {
    let world = World::new();
    let config = world.config();
    assert_eq!(config.listen.to_string(), "127.0.0.1:38429");
    assert_eq!(config.home, world.home.path());
    assert_eq!(
        config.database_url.expose_secret(),
        format!("sqlite://{}/kandev.db?mode=rwc", world.home.path().display())
    );
    assert!(config.admin_token.is_none());
    assert_eq!((config.log.as_str(), config.compat_version.as_str()), ("info", "0.91.0"));
    assert_eq!(
        (config.timing, config.limits, config.install, config.plugins),
        (Timing::default(), Limits::default(), Install::default(), Plugins::default())
    );
    assert_eq!(
        (config.http, config.metrics, config.telemetry),
        (Http::default(), Metrics::default(), Telemetry::default())
    );
}

#[test]
fn a_flag_beats_the_environment_which_beats_the_file() {
    let file = World::new().file("listen = \"127.0.0.1:1\"");
    assert_eq!(file.config().listen.port(), 1);
    let env = file.env("KANDEV_LISTEN", "127.0.0.1:2");
    assert_eq!(env.config().listen.port(), 2);
    let flags = Overrides { listen: Some("localhost:3".to_owned()), ..Overrides::default() };
    let loaded = env.load_with(flags).unwrap();
    assert_eq!(loaded.config.listen.to_string(), "127.0.0.1:3");
    assert_eq!(loaded.sources["listen"], Source::Flag("--listen"));
}

#[test]
fn every_section_is_read_and_keys_left_out_keep_their_default() {
    let config = World::new()
        .file(
            "compat_version = \"0.92.0\"\nlog = \"debug\"\n[timing]\nping_interval = \"250ms\"\nrestart_delays = []\n\
             [limits]\nbuffer_events = 7\n[install]\nallow_private_addresses = true\nsignatures = \"warn\"\n\
             [plugins]\nenvironment = [\"PATH\"]\n[http]\nallowed_origins = [\"https://kandev.test\"]",
        )
        .config();
    let timing = Timing { ping_interval: Duration::from_millis(250), restart_delays: Vec::new(), ..Timing::default() };
    assert_eq!(config.timing, timing);
    assert_eq!(config.limits, Limits { buffer_events: 7, ..Limits::default() });
    assert_eq!(config.install, Install { allow_private_addresses: true, ..Install::default() });
    assert_eq!(config.plugins.environment, ["PATH"]);
    assert_eq!(config.http.allowed_origins, ["https://kandev.test"]);
    assert_eq!((config.compat_version.as_str(), config.log.as_str()), ("0.92.0", "debug"));
}

#[test]
fn an_unknown_key_is_named_with_the_accepted_ones() {
    assert_eq!(
        World::new().file("colour = 1").error(),
        "HOME/host.toml: unknown key \"colour\"; accepted are listen, database_url, log, compat_version, timing, \
         limits, http, install, plugins, features, metrics, telemetry"
    );
    assert_eq!(
        World::new().file("[install]\nsignature = \"warn\"").error(),
        "HOME/host.toml: unknown key \"install.signature\"; accepted are allow_private_addresses, \
         capability_consent, signatures"
    );
}

#[test]
fn a_bad_value_is_named_with_its_source_and_what_is_accepted() {
    let cases = [
        (
            "[timing]\nping_interval = \"30\"",
            "timing.ping_interval (from host.toml): \"30\" is not a duration: write a whole number with a unit, ms, s, \
             m or h, like \"250ms\"",
        ),
        ("[timing]\nping_failures = 0", "timing.ping_failures (from host.toml): it must be between 1 and 1000000"),
        ("[timing]\nwebhook_timeout = \"0s\"", "timing.webhook_timeout (from host.toml): it must be longer than zero"),
        ("[timing]\nrestart_delays = [\"999h\"]", "timing.restart_delays (from host.toml): it must be at most 168h"),
        ("[limits]\nbuffer_events = 0", "limits.buffer_events (from host.toml): it must be between 1 and 1000000"),
        ("listen = 80", "listen (from host.toml): it must be text in quotes"),
        ("timing = 1", "timing (from host.toml): it must be a section, [timing]"),
        (
            "listen = \":80\"",
            "listen (from host.toml): \":80\" is not an address with a port, like 127.0.0.1:38429 or [::]:38429",
        ),
        (
            "[install]\nsignatures = \"always\"",
            "install.signatures (from host.toml): it must be \"warn\" or \"require\"",
        ),
        (
            "[http]\nallowed_origins = [\"https://kandev.test/\"]",
            "http.allowed_origins (from host.toml): item 1: it must be as browsers write it, here \
             \"https://kandev.test\"",
        ),
        (
            "compat_version = \"abc\"",
            "compat_version (from host.toml): it must be a version like 0.91.0, or \"dev\" to compare with nothing",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(World::new().file(text).error(), message, "{text}");
    }
}

#[test]
fn zero_graces_and_no_retries_are_lawful() {
    let config =
        World::new().file("[timing]\ndrain_grace = \"0s\"\nstop_grace = \"0s\"\ndelivery_retries = []").config();
    assert_eq!(config.timing.drain_grace, Duration::ZERO);
    assert_eq!(config.timing.delivery_retries, Vec::<Duration>::new());
}

#[test]
fn a_file_that_is_not_toml_is_named_with_the_line_and_without_its_text() {
    let error = World::new().file("log = \"info\"\ndatabase_url = postgres://me:hunter2@db/x\n").error();
    assert!(error.starts_with("HOME/host.toml line 2: "), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
}

#[test]
fn a_secret_comes_from_its_variable_or_its_file_but_not_both() {
    let world = World::new();
    let path = world.home.path().join("token");
    fs::write(&path, "s3cret\n").unwrap();
    let path = path.to_str().unwrap().to_owned();
    let world = world.env("KANDEV_ADMIN_TOKEN_FILE", &path);
    assert_eq!(world.config().admin_token.unwrap().expose_secret(), "s3cret");
    assert_eq!(
        world.env("KANDEV_ADMIN_TOKEN", "other").error(),
        "KANDEV_ADMIN_TOKEN and KANDEV_ADMIN_TOKEN_FILE are both set: unset one of them"
    );
}

#[test]
fn a_secret_file_that_is_missing_or_empty_is_an_error() {
    let world = World::new();
    fs::write(world.home.path().join("empty"), "\n").unwrap();
    let empty = world.home.path().join("empty").to_str().unwrap().to_owned();
    assert_eq!(
        world.env("DATABASE_URL_FILE", &empty).error(),
        "DATABASE_URL_FILE names HOME/empty, which cannot be used: it is empty"
    );
    let error = World::new().env("KANDEV_VAULT_KEY_FILE", "/nowhere/key").error();
    assert!(error.starts_with("KANDEV_VAULT_KEY_FILE names /nowhere/key, which cannot be used: "), "{error}");
}

#[test]
fn a_wrong_database_address_is_refused_without_showing_it() {
    assert_eq!(
        World::new().env("DATABASE_URL", "mysql://me:hunter2@db").error(),
        "database_url (from DATABASE_URL): it must start with sqlite:, postgres:// or postgresql://"
    );
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let world = World::new().env("KANDEV_LISTEN", "").env("KANDEV_ADMIN_TOKEN", "");
    assert_eq!(world.config().listen.port(), 38429);
    assert!(world.config().admin_token.is_none());
}

#[test]
fn home_may_start_with_a_tilde_or_be_relative() {
    let env = |name: &str| (name == "HOME").then(|| OsString::from("/nowhere/me"));
    let home = |text: &str| {
        load(Overrides { home: Some(text.to_owned()), ..Overrides::default() }, &env).map(|config| config.home)
    };
    assert_eq!(home("~").unwrap(), Path::new("/nowhere/me"));
    assert_eq!(home("~/k").unwrap(), Path::new("/nowhere/me/k"));
    assert_eq!(home("k").unwrap(), std::env::current_dir().unwrap().join("k"));
    assert_eq!(
        home("~you/k").unwrap_err().to_string(),
        "home (from --home): write ~/… or a full path; ~user is not known"
    );
    assert_eq!(load(Overrides::default(), &env).unwrap().home, Path::new("/nowhere/me/.kandev"));
    assert_eq!(load(Overrides::default(), &|_| None).unwrap_err(), ConfigError::NoHome);
}

#[test]
fn show_lists_every_key_with_its_source_and_hides_secrets() {
    let world = World::new()
        .file("[timing]\nping_interval = \"1s\"")
        .env("DATABASE_URL", "postgres://me:hunter2@db/x")
        .env("KANDEV_ADMIN_TOKEN", "hunter3");
    let rows = rows(&world.load_with(Overrides::default()).unwrap());
    let text = serde_json::to_string(&rows).unwrap();
    assert!(!text.contains("hunter"), "{text}");
    let row = |key: &str| rows.iter().find(|row| row.key == key).unwrap().clone();
    assert_eq!(
        row("timing.ping_interval"),
        Row {
            key: "timing.ping_interval".to_owned(),
            value: "1s".into(),
            default: "30s".into(),
            unit: "duration",
            source: "host.toml".to_owned(),
        }
    );
    assert_eq!(row("admin_token").source, "KANDEV_ADMIN_TOKEN");
    assert_eq!(row("limits.event_bytes").unit, "bytes");
    assert_eq!(row("http.allowed_origins").unit, "origins");
    assert_eq!(row("home").source, "--home");
}

proptest! {
    #[test]
    fn any_settings_text_gets_a_verdict(text in "[a-z_.=\\[\\]\"0-9\n ]{0,80}") {
        let _ = file::parse(Path::new("host.toml"), &text);
    }
}

/// Other modules read three of them at the start, without the settings.
#[test]
fn the_list_of_variables_names_all_that_are_looked_up() {
    let looked_up = std::cell::RefCell::new(std::collections::BTreeSet::new());
    let home = tempfile::tempdir().unwrap();
    let lookup = |name: &str| {
        looked_up.borrow_mut().insert(name.to_owned());
        (name == "KANDEV_HOME").then(|| home.path().as_os_str().to_owned())
    };
    load(Overrides::default(), &lookup).unwrap();
    let elsewhere = ["KANDEV_LOG_FORMAT", "XDG_RUNTIME_DIR", "TMPDIR"].map(str::to_owned);
    let expected: std::collections::BTreeSet<_> = looked_up.into_inner().into_iter().chain(elsewhere).collect();
    let listed: std::collections::BTreeSet<_> = VARIABLES.iter().map(|variable| variable.name.to_owned()).collect();
    assert_eq!(listed, expected);
}
