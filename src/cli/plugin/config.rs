//! `plugin config get`, `plugin config set`: a plugin's settings. The host takes a whole config only, so `set` reads
//! it, changes it here and sends it back on the condition that nobody else has changed it meanwhile.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use reqwest::{Method, header};
use serde_json::{Map, Value, json};

use super::{OnePlugin, operate::part};
use crate::{
    cli::{
        client::ClientError,
        error::CliError,
        output::{Output, fields},
    },
    config::Lookup,
    domain::{
        clean::quote,
        config_schema::{Fields, MASK, inexact_numbers},
        manifest::{Schema, yaml},
    },
};

pub const EXAMPLES: &str = "\
Examples:
  kandev-host plugin config get webhook-relay
  kandev-host plugin config set webhook-relay target=https://example.test retries=3
  pass show relay | kandev-host plugin config set webhook-relay --secret-from-stdin token";

pub const GET_EXAMPLES: &str = "\
Examples:
  kandev-host plugin config get webhook-relay
  kandev-host plugin config get webhook-relay --json | jq -r .config.target

A secret that is set is shown as ********.";

pub const SET_EXAMPLES: &str = "\
Examples:
  kandev-host plugin config set webhook-relay target=https://example.test retries=3
  kandev-host plugin config set webhook-relay --unset retries
  kandev-host plugin config set webhook-relay --from-file relay.yaml
  pass show relay | kandev-host plugin config set webhook-relay --secret-from-stdin token

Fields that are not named stay as they are; with --from-file the file is the whole config, and ******** in it keeps a
secret. A value is text where the plugin's schema says string, else JSON when it is that. A plugin that runs is
restarted. Exit code 4: the host refuses the config, or someone else has changed it; 5: it is saved and the plugin does
not run.";

/// Largest file or secret that is read, in bytes.
const MAX_INPUT_BYTES: u64 = 1024 * 1024;

/// The group's commands.
#[derive(Subcommand)]
pub enum PluginConfigCommand {
    /// Prints a plugin's settings, secrets masked
    #[command(after_help = GET_EXAMPLES)]
    Get(OnePlugin),
    /// Changes a plugin's settings, and restarts the plugin when it runs
    #[command(after_help = SET_EXAMPLES)]
    Set(Set),
}

/// `set`.
#[derive(Args)]
pub struct Set {
    #[command(flatten)]
    plugin: OnePlugin,
    /// Fields to set; no secrets, since other users see a command's arguments
    #[arg(value_name = "KEY=VALUE", required_unless_present_any = ["unset", "from_file", "secret"])]
    values: Vec<String>,
    /// Removes a field
    #[arg(long, value_name = "KEY")]
    unset: Vec<String>,
    /// Begins with the content of a YAML or JSON file instead of the present config
    #[arg(long, value_name = "FILE")]
    from_file: Option<PathBuf>,
    /// Sets this field to what standard input holds, without its final line break
    #[arg(long = "secret-from-stdin", value_name = "FIELD", id = "secret")]
    secret: Option<String>,
}

/// What cannot be taken for a setting.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// Not `KEY=VALUE`.
    #[error("{0} is no setting; write it as KEY=VALUE")]
    Form(String),
    /// A secret among the arguments.
    #[error("{0} is a secret and other users see a command's arguments; give it with --secret-from-stdin")]
    Secret(String),
    /// `--secret` of `plugin check`; what was given is not shown.
    #[error("--secret takes FIELD=FILE: a field, and the file that holds its value")]
    SecretForm,
    /// A number that nobody keeps as it is.
    #[error("the number for {0} has more digits than a plugin gets; write it as text: {0}='\"…\"'")]
    Number(String),
    /// Nothing on standard input.
    #[error("standard input holds no secret; pipe it in")]
    NoSecret,
    /// The file, or standard input, cannot be read.
    #[error("cannot read {from}")]
    Read {
        /// Which.
        from: String,
        /// The cause.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("{path} is not a mapping of fields to values: {reason}", path = .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
}

/// Runs a command of the group.
pub async fn run(command: PluginConfigCommand, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    match command {
        PluginConfigCommand::Get(plugin) => get(plugin, output, env).await,
        PluginConfigCommand::Set(arguments) => set(arguments, output, env).await,
    }
}

async fn get(plugin: OnePlugin, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    let (id, client) = plugin.open(env)?;
    let answer = client.get(&["api", "plugins", id.as_str(), "config"]).await?;
    let config: Map<String, Value> = part(&answer["config"])?;
    if config.is_empty() {
        output.note("nothing is set");
    }
    output.result(&answer, || {
        let lines: Vec<_> = config.iter().map(|(field, value)| (field.as_str(), text(value))).collect();
        fields(&lines)
    })
}

async fn set(arguments: Set, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    let Set { plugin, values, unset, from_file, secret } = arguments;
    let (id, client) = plugin.open(env)?;
    let path = ["api", "plugins", id.as_str(), "config"];
    let record = client.get(&path[..3]).await?;
    let schema: Schema = record["config_schema"].as_object().cloned().unwrap_or_default();
    let (answer, tag) = match client.get_tagged(&path).await {
        // A whole new config takes the place of a file that the host cannot read.
        Err(ClientError::Refused { code, .. }) if from_file.is_some() && code == "config_damaged" => {
            (Value::Null, None)
        }
        found => found?,
    };
    let mut config: Map<String, Value> = match &from_file {
        Some(path) => file(path)?,
        None => part(&answer["config"])?,
    };
    for setting in &values {
        let (field, value) = setting.split_once('=').ok_or_else(|| SettingError::Form(quote(setting)))?;
        if Fields::of(&schema).is_secret(field) && !value.is_empty() && value != MASK {
            return Err(SettingError::Secret(quote(field)).into());
        }
        config.insert(field.to_owned(), typed(&schema, field, value)?);
    }
    for field in &unset {
        config.shift_remove(field);
    }
    if let Some(field) = secret {
        config.insert(field, secret_from(io::stdin().lock())?.into());
    }
    output.progress(&format!("saving the settings of {id}"));
    let mut request = client.request(Method::PATCH, &path[..3]).json(&json!({ "config": config }));
    if let Some(tag) = tag {
        request = request.header(header::IF_MATCH, tag);
    }
    let answer = client.send(request).await?;
    output.result(&answer, || format!("the settings of {id} are saved"))
}

/// A value as the schema wants it; what is wrong with it is for the host to say.
fn typed(schema: &Schema, field: &str, text: &str) -> Result<Value, SettingError> {
    let rules = schema.get("properties").and_then(|properties| properties.get(field));
    let is_text =
        rules.and_then(|rules| rules.get("type")) == Some(&json!("string")) || Fields::of(schema).is_secret(field);
    let read: Option<Value> = if is_text { None } else { serde_json::from_str(text).ok() };
    if read.is_some() && !inexact_numbers(text).is_empty() {
        return Err(SettingError::Number(quote(field)));
    }
    Ok(read.unwrap_or_else(|| text.into()))
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// All of it; more than [`MAX_INPUT_BYTES`] is refused, never cut.
fn all_of(input: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(MAX_INPUT_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MAX_INPUT_BYTES {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {MAX_INPUT_BYTES} bytes"))),
        false => Ok(bytes),
    }
}

/// Fields and values of a YAML or JSON file.
pub(super) fn file(path: &Path) -> Result<Map<String, Value>, SettingError> {
    let read = File::open(path).and_then(all_of);
    let bytes = read.map_err(|source| SettingError::Read { from: path.display().to_string(), source })?;
    yaml::read(&bytes, yaml::RECORD)
        .map_err(|error| SettingError::File { path: path.to_owned(), reason: error.to_string() })
}

fn secret_from(input: impl Read) -> Result<String, SettingError> {
    let read = all_of(input).and_then(|bytes| {
        // The error without the bytes: they are the secret.
        String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
    });
    let mut secret = read.map_err(|source| SettingError::Read { from: "standard input".to_owned(), source })?;
    let end = secret.strip_suffix('\n').map(|rest| rest.strip_suffix('\r').unwrap_or(rest).len());
    secret.truncate(end.unwrap_or(secret.len()));
    if secret.is_empty() { Err(SettingError::NoSecret) } else { Ok(secret) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_what_the_schema_wants_or_what_json_makes_of_it() {
        let schema = json!({"properties": {"s": {"type": "string"}, "n": {"type": "number"}, "p": {"secret": true}}});
        let schema = schema.as_object().cloned().unwrap();
        for (field, text, value) in [
            ("s", "12", json!("12")),
            ("p", "12", json!("12")),
            ("n", "12", json!(12)),
            ("n", "many", json!("many")),
            ("free", "[1, true]", json!([1, true])),
            ("free", "plain", json!("plain")),
            ("free", "", json!("")),
        ] {
            assert_eq!(typed(&schema, field, text).unwrap(), value, "{field}={text}");
        }
        assert!(matches!(typed(&schema, "n", "[9007199254740993]"), Err(SettingError::Number(_))));
        assert_eq!(typed(&schema, "s", "9007199254740993").unwrap(), json!("9007199254740993"));
    }

    #[test]
    fn a_secret_is_standard_input_without_its_last_line_break() {
        for (input, secret) in [("s3 cret\n", "s3 cret"), ("a\nb\r\n", "a\nb"), ("x", "x"), ("x\n\n", "x\n")] {
            assert_eq!(secret_from(input.as_bytes()).unwrap(), secret);
        }
        assert!(matches!(secret_from("\n".as_bytes()), Err(SettingError::NoSecret)));
        let SettingError::Read { source, .. } = secret_from(&b"hunter\xff"[..]).unwrap_err() else { panic!() };
        assert!(!format!("{source} {source:?}").contains("hunter"), "{source:?}");
    }

    #[test]
    fn a_file_or_secret_is_read_whole_or_refused() {
        let reason = |error| match error {
            SettingError::Read { from, source } => (from, source.to_string()),
            other => panic!("{other}"),
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.yaml");
        let fits = format!("a: {}", "x".repeat(MAX_INPUT_BYTES as usize - 3));
        std::fs::write(&path, &fits).unwrap();
        assert_eq!(file(&path).unwrap()["a"], fits[3..]);
        std::fs::write(&path, format!("{fits}\nb: 1\n")).unwrap();
        let too_large = "larger than 1048576 bytes".to_owned();
        assert_eq!(reason(file(&path).unwrap_err()), (path.display().to_string(), too_large.clone()));
        assert_eq!(secret_from(fits.as_bytes()).unwrap(), fits);
        let refused = secret_from((fits + "y").as_bytes()).unwrap_err();
        assert_eq!(reason(refused), ("standard input".to_owned(), too_large));
    }
}
