//! Reading single variables of the environment, and secrets from the file that a `<NAME>_FILE` variable names.
//!
//! Owns the rule that an empty variable counts as unset (Compose passes `NAME=` for "not given"). What the variables
//! mean is [`super::load()`]'s part.

use std::{ffi::OsString, io::Read, path::Path};

use secrecy::SecretString;

use super::ConfigError;

/// Looks a variable up; `std::env::var_os` in production, a map in tests.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// A secret is one line; a bigger file is the wrong file.
const MAX_SECRET_FILE_BYTES: u64 = 64 * 1024;

/// The text of a variable; `None` when it is unset or empty.
pub fn text(env: Lookup<'_>, name: &'static str) -> Result<Option<String>, ConfigError> {
    match env(name) {
        None => Ok(None),
        Some(value) if value.is_empty() => Ok(None),
        Some(value) => value.into_string().map(Some).map_err(|_| ConfigError::NotText { name }),
    }
}

/// The secret in `name`, or in the file that `file_name` points to, with the name of the variable that gave it.
/// Both at once is an error: nobody could tell which one counts.
pub fn secret(
    env: Lookup<'_>,
    name: &'static str,
    file_name: &'static str,
) -> Result<Option<(SecretString, &'static str)>, ConfigError> {
    match (text(env, name)?, text(env, file_name)?) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(ConfigError::BothGiven { name, file_name }),
        (Some(value), None) => Ok(Some((value.into(), name))),
        (None, Some(path)) => read_secret(file_name, Path::new(&path)).map(|secret| Some((secret, file_name))),
    }
}

/// Reads a secret file without its final line break.
fn read_secret(name: &'static str, path: &Path) -> Result<SecretString, ConfigError> {
    let failed = |reason: String| ConfigError::SecretFile { name, path: path.to_owned(), reason };
    let file = std::fs::File::open(path).map_err(|error| failed(error.to_string()))?;
    let mut content = String::new();
    file.take(MAX_SECRET_FILE_BYTES + 1).read_to_string(&mut content).map_err(|error| failed(error.to_string()))?;
    if content.len() as u64 > MAX_SECRET_FILE_BYTES {
        return Err(failed(format!("it is larger than {MAX_SECRET_FILE_BYTES} bytes")));
    }
    let secret = content.trim_end_matches(['\r', '\n']);
    if secret.is_empty() {
        return Err(failed("it is empty".to_owned()));
    }
    Ok(secret.to_owned().into())
}
