//! The environment of plugin processes: an allow-list of the host's variables and the host's own two.
//!
//! Everything else of the host's surroundings stays with the host; go-plugin's variables are added by the protocol
//! crate.

use std::{collections::BTreeMap, ffi::OsString, path::Path};

use crate::domain::home_id::HomeId;

/// Names the plugin's own folder (lifecycle.md §5).
pub const DATA_DIR: &str = "KANDEV_PLUGIN_DATA_DIR";

/// Marks a process, and what it starts, as belonging to one home; the sweep looks for it.
pub const HOME_MARK: &str = "KANDEV_HOST_HOME_ID";

/// What every plugin of this host sees. Built once at start, so that a later change of the host's environment shows in
/// no plugin.
#[derive(Clone)]
pub struct Environment {
    shared: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// Takes the `listed` variables that are set, by `lookup`. A listed name that is, or may hold, a secret of the host
    /// never passes; the second value names those, for a warning.
    pub fn new(listed: &[String], lookup: impl Fn(&str) -> Option<OsString>, home: &HomeId) -> (Self, Vec<String>) {
        let (refused, allowed): (Vec<&String>, Vec<&String>) = listed.iter().partition(|name| !may_pass(name));
        let found = allowed.into_iter().filter_map(|name| lookup(name).map(|value| (name.into(), value)));
        let mut shared: BTreeMap<OsString, OsString> = found.collect();
        shared.insert(HOME_MARK.into(), home.as_str().into());
        (Self { shared }, refused.into_iter().cloned().collect())
    }

    /// The complete environment of one plugin, each name once.
    pub fn for_plugin(&self, data_dir: &Path) -> Vec<(OsString, OsString)> {
        let mut all = self.shared.clone();
        all.insert(DATA_DIR.into(), data_dir.into());
        all.into_iter().collect()
    }
}

/// The host's own settings may hold secrets, and no process takes a name with `=` or a zero byte.
fn may_pass(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let of_the_host = upper.starts_with("KANDEV_") || upper == "DATABASE_URL" || upper == "DATABASE_URL_FILE";
    !(of_the_host || name.is_empty() || name.contains(['=', '\0']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Plugins;

    /// The host's surroundings in every test.
    fn host(name: &str) -> Option<OsString> {
        let value = match name {
            "PATH" => "/usr/bin",
            "HOME" => "/home/u",
            "LANG" => "C.UTF-8",
            "DATABASE_URL" | "KANDEV_ADMIN_TOKEN" | "KANDEV_VAULT_KEY" | "SECRET_X" => "hunter2",
            "KANDEV_PLUGIN_DATA_DIR" => "/stale",
            _ => return None,
        };
        Some(value.into())
    }

    fn built(listed: &[&str]) -> (Vec<(String, String)>, Vec<String>) {
        let listed: Vec<String> = listed.iter().map(|name| (*name).to_owned()).collect();
        let (environment, refused) = Environment::new(&listed, host, &HomeId::derive(b"", 0, 0));
        let text = |value: OsString| value.into_string().unwrap();
        let all = environment.for_plugin(Path::new("/plugins/a/data"));
        (all.into_iter().map(|(name, value)| (text(name), text(value))).collect(), refused)
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// Field case 28.
    #[test]
    fn a_plugin_sees_the_allowed_variables_that_are_set_and_nothing_else() {
        let id = HomeId::derive(b"", 0, 0);
        let listed = Plugins::default().environment;
        let (all, refused) = built(&listed.iter().map(String::as_str).collect::<Vec<_>>());
        let expected = pairs(&[
            ("HOME", "/home/u"),
            ("KANDEV_HOST_HOME_ID", id.as_str()),
            ("KANDEV_PLUGIN_DATA_DIR", "/plugins/a/data"),
            ("LANG", "C.UTF-8"),
            ("PATH", "/usr/bin"),
        ]);
        assert_eq!((all, refused), (expected, Vec::new()));
    }

    /// Field case 29.
    #[test]
    fn the_hosts_secrets_never_pass_and_its_own_value_wins_even_when_they_are_listed() {
        let id = HomeId::derive(b"", 0, 0);
        let listed = [
            "DATABASE_URL",
            "DATABASE_URL_FILE",
            "KANDEV_ADMIN_TOKEN",
            "kandev_vault_key",
            "KANDEV_PLUGIN_DATA_DIR",
            "A=B",
            "",
        ];
        let (all, refused) = built(&listed);
        let expected = pairs(&[("KANDEV_HOST_HOME_ID", id.as_str()), ("KANDEV_PLUGIN_DATA_DIR", "/plugins/a/data")]);
        assert_eq!(all, expected);
        assert_eq!(refused, listed);
    }
}
