//! `plugin keygen`: a pair of keys to sign packages with.

use std::path::PathBuf;

use clap::Args;
use secrecy::ExposeSecret as _;
use serde::Serialize;

use super::keys;
use crate::{
    cli::{
        error::CliError,
        output::{Output, fields},
    },
    domain::key::PublicKey,
};

pub const EXAMPLES: &str = "\
Examples:
  kandev-host plugin keygen acme
  kandev-host plugin pack dist --sign acme.key
  kandev-host trust add acme acme.pub --plugins my-plugin

Writes NAME.key, the private key (PKCS#8 PEM, mode 0600), and NAME.pub, the public one (PEM); openssl reads both. Keep the
first one secret and backed up: who has it signs in your name. An existing file is never replaced.";

/// `keygen`.
#[derive(Args)]
pub struct Keygen {
    /// Where to put the keys, without an ending
    #[arg(value_name = "NAME")]
    name: PathBuf,
}

/// JSON of the result.
#[derive(Serialize)]
struct Made {
    private_key: PathBuf,
    public_key: PathBuf,
    /// Base64 of the public key.
    key: PublicKey,
}

/// Makes and tells.
pub fn run(Keygen { name }: Keygen, output: &Output) -> Result<(), CliError> {
    let with_ending = |ending: &str| {
        let mut path = name.clone().into_os_string();
        path.push(ending);
        PathBuf::from(path)
    };
    let private = keys::generate()?;
    let made = Made { private_key: with_ending(".key"), public_key: with_ending(".pub"), key: private.public() };
    keys::write_new(&made.private_key, private.to_pem().expose_secret(), 0o600)?;
    if let Err(error) = keys::write_new(&made.public_key, &made.key.to_pem(), 0o644) {
        // A private key alone would keep the next attempt from its name.
        let _ = std::fs::remove_file(&made.private_key);
        return Err(error.into());
    }
    output.result(&made, || {
        fields(&[
            ("private key", made.private_key.display().to_string()),
            ("public key", made.public_key.display().to_string()),
            ("key", made.key.to_string()),
        ])
    })
}
