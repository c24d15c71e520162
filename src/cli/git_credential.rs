//! `git-credential`: a credential helper of git. It asks a running host with a token that is good for one session and
//! one repository, and keeps nothing: git asks again each time.
//!
//! For what the token is not for it says nothing, so that git goes on to its next helper; what goes wrong is a line on
//! standard error, which git shows. The token comes from a variable or a file, never as an argument: other users see
//! arguments, and git writes the helper's command into its settings.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use reqwest::Method;
use secrecy::{SecretString, zeroize::Zeroizing};
use serde::Deserialize;
use serde_json::json;
use time::OffsetDateTime;

use super::{
    client::{Client, ClientError},
    error::CliError,
    output::Output,
    plugin::part,
    runtime, token_file,
};
use crate::{
    config::{ClientFlags, Lookup, load_client, parse_duration},
    domain::calls::{
        git::Remote,
        helper::{self, MAX_INPUT_BYTES, ProtocolError},
    },
};

pub const EXAMPLES: &str = "\
Examples:
  git config --global --replace-all credential.https://forge.example.helper ''
  git config --global --add credential.https://forge.example.helper '!kandev-host git-credential'
  git config --global credential.https://forge.example.useHttpPath true
  KANDEV_GIT_TOKEN=kgt_... git clone https://forge.example/team/app.git
  printf 'protocol=https\\nhost=forge.example\\npath=team/app.git\\n\\n' | kandev-host git-credential get --token-file token

git runs it with get, store or erase. Only get does something; the host's plugin keeps credentials, so there is nothing to
store, and a credential that git found wrong is asked for anew the next time. git tells what it got to its other helpers too:
the empty helper above takes away those that would store it. Make a token with
POST /api/v1/task-sessions/{id}/git-credentials (docs/api.md).";

/// The variable with the token.
const TOKEN_VARIABLE: &str = "KANDEV_GIT_TOKEN";

/// Why git gets nothing.
#[derive(Debug, thiserror::Error)]
pub enum GitCredentialError {
    /// No token.
    #[error("no token: set KANDEV_GIT_TOKEN, or name a file with --token-file")]
    NoToken,
    /// git's words cannot be had.
    #[error("cannot read what git says: {0}")]
    Input(io::Error),
    /// git's words are none.
    #[error("{0}; is this run by git?")]
    Protocol(#[from] ProtocolError),
    /// The host does not know the token.
    #[error(
        "the host does not accept the git token: it has expired, was revoked, or its session is over; make a new one"
    )]
    Token,
    /// The host's answer would be another one to git.
    #[error("the host answered a credential that git cannot be told")]
    Answer,
}

/// The command's arguments.
#[derive(Args)]
pub struct GitCredential {
    /// What git wants: get, store or erase; others are left alone
    operation: String,
    /// File with the token [env: KANDEV_GIT_TOKEN]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The host's address [env: KANDEV_URL] [default: what run/host.json below home says]
    #[arg(long, value_name = "URL")]
    host: Option<String>,
    /// The host's folder, to find its address [env: KANDEV_HOME] [default: ~/.kandev]
    #[arg(long, value_name = "FOLDER")]
    home: Option<String>,
    /// Longest wait for the host, like 30s or 5m [default: 2m]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,
}

/// What the host answers (docs/api.md, "Git credentials").
#[derive(Deserialize)]
struct Answer {
    username: String,
    password: SecretString,
    #[serde(default, with = "time::serde::rfc3339::option")]
    expires_at: Option<OffsetDateTime>,
}

/// Speaks to git.
pub fn run(command: GitCredential, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    // Read in any case: git would meet a closed pipe.
    let input = read_input().map_err(GitCredentialError::Input)?;
    if command.operation != "get" {
        return Ok(());
    }
    let remote = helper::parse(&input).map_err(GitCredentialError::from)?;
    if remote.protocol != "https" || remote.host.is_empty() {
        return Ok(());
    }
    let GitCredential { token_file, host, home, timeout, .. } = command;
    let token = Some(token(token_file.as_deref(), output, env)?);
    let client = Client::new(load_client(ClientFlags { host, token, home, timeout }, env)?)?;
    match runtime()?.block_on(ask(&client, &remote))? {
        Some(Answer { username, password, expires_at }) => {
            let text = helper::answer(&username, &password, expires_at).ok_or(GitCredentialError::Answer)?;
            output.raw(&text)
        }
        None => Ok(()),
    }
}

fn read_input() -> io::Result<Zeroizing<Vec<u8>>> {
    // git says a password too when it wants one stored.
    let mut input = Zeroizing::new(Vec::new());
    io::stdin().lock().take(MAX_INPUT_BYTES as u64 + 1).read_to_end(&mut input)?;
    Ok(input)
}

fn token(file: Option<&Path>, output: &Output, env: Lookup<'_>) -> Result<SecretString, CliError> {
    if let Some(file) = file {
        return token_file::read(file, output);
    }
    let given = env(TOKEN_VARIABLE).and_then(|value| value.into_string().ok()).filter(|value| !value.is_empty());
    Ok(given.ok_or(GitCredentialError::NoToken)?.into())
}

/// Asks the host; nothing when the token is for another repository.
async fn ask(client: &Client, remote: &Remote) -> Result<Option<Answer>, CliError> {
    let Remote { protocol, host, path } = remote;
    let body = json!({"protocol": protocol, "host": host, "path": path});
    let request = client.request(Method::POST, &["api", "v1", "git-credential"]).json(&body);
    match client.send(request).await {
        Ok(answer) => part(&answer).map(Some),
        Err(ClientError::Refused { code, .. }) if code == "git_elsewhere" => Ok(None),
        Err(ClientError::Token { .. }) => Err(GitCredentialError::Token.into()),
        Err(error) => Err(error.into()),
    }
}
