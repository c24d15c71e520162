//! Files that hold a token: the operator's and git's. One that other users may read is used and told: containers and
//! clusters hand secrets out so, but on a shared machine whoever reads it may do what its owner may.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use secrecy::SecretString;

use super::{error::CliError, output::Output, secret::read_value};
use crate::config::Lookup;

/// The variable that names the file with the operator's token.
const OPERATORS_FILE: &str = "KANDEV_ADMIN_TOKEN_FILE";

/// Reads the token in this file.
pub fn read(path: &Path, output: &Output) -> Result<SecretString, CliError> {
    warn_if_open(path, output);
    read_value("token", Some(path))
}

/// Looks at the file with the operator's token, if the environment names one. Reading it is `config`'s part.
pub fn look_at_operators(output: &Output, env: Lookup<'_>) {
    if let Some(path) = env(OPERATORS_FILE).map(PathBuf::from) {
        warn_if_open(&path, output);
    }
}

fn warn_if_open(path: &Path, output: &Output) {
    if let Some(mode) = open_mode(path) {
        let path = path.display();
        output.note(&format!(
            "warning: the token in {path} is open to other users (mode {mode:03o}): run chmod 600 on the file, and make \
             a new token if someone may have read it"
        ));
    }
}

/// The permission bits of a file that others than its owner may read or change. One that is not there is told by who
/// reads it; a pipe (`<(…)` of a shell) is no file.
fn open_mode(path: &Path) -> Option<u32> {
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let mode = metadata.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then_some(mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_open_when_others_than_its_owner_may_read_or_change_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "t").unwrap();
        for (mode, expected) in [(0o600, None), (0o400, None), (0o644, Some(0o644)), (0o620, Some(0o620))] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(open_mode(&path), expected, "{mode:o}");
        }
        assert_eq!((open_mode(folder.path()), open_mode(&folder.path().join("absent"))), (None, None));
    }
}
