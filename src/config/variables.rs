//! The variables of the environment that mean something to the host. The code that reads each one is elsewhere; this
//! list is for whoever checks a deployment: a variable that is not here is a mistake.

/// A variable of the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub holds: Holds,
}

/// What a variable holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Plain text.
    Text,
    /// The path of a folder.
    Folder,
    /// A secret, which should come by file instead.
    Secret,
    /// The path of a file with a secret.
    SecretFile,
}

const fn variable(name: &'static str, holds: Holds) -> Variable {
    Variable { name, holds }
}

/// Every variable that the host itself reads. Plugins see those of `plugins.environment` too.
pub const VARIABLES: [Variable; 14] = [
    variable("KANDEV_LISTEN", Holds::Text),
    variable("KANDEV_HOME", Holds::Folder),
    variable("KANDEV_LOG", Holds::Text),
    variable("KANDEV_LOG_FORMAT", Holds::Text),
    variable("KANDEV_ADMIN_TOKEN", Holds::Secret),
    variable("KANDEV_ADMIN_TOKEN_FILE", Holds::SecretFile),
    variable("KANDEV_VAULT_KEY", Holds::Secret),
    variable("KANDEV_VAULT_KEY_FILE", Holds::SecretFile),
    variable("DATABASE_URL", Holds::Secret),
    variable("DATABASE_URL_FILE", Holds::SecretFile),
    variable("KANDEV_PLUGIN_MARKETPLACE_URL", Holds::Text),
    // Where `~` is.
    variable("HOME", Holds::Folder),
    // Where the sockets of plugins are.
    variable("XDG_RUNTIME_DIR", Holds::Folder),
    variable("TMPDIR", Holds::Folder),
];
