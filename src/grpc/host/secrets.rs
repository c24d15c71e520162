//! GetSecret, SetSecret, DeleteSecret in the plugin's own namespace; RevealSecret of what the operator shared with it
//! (host-data.md §7, lifecycle.md §10 row 27).

use kandev_proto::v1::{
    DeleteSecretRequest, DeleteSecretResponse, GetSecretRequest, GetSecretResponse, RevealSecretRequest,
    RevealSecretResponse, SetSecretRequest, SetSecretResponse,
};
use secrecy::ExposeSecret;
use tonic::Status;

use super::status;
use crate::{
    domain::{clean, id::PluginId, known_secrets::KnownSecrets, secret::VaultId},
    vault::Vault,
};

/// Longest reference that a refusal repeats, in bytes.
const SHOWN_BYTES: usize = 200;

/// A plugin and the vault. What passes between them is known from then on, so that it is not kept in the plugin's log.
#[derive(Clone, Copy)]
pub struct Confidant<'a> {
    pub vault: &'a Vault,
    pub plugin: &'a PluginId,
    pub known: &'a KnownSecrets,
}

impl Confidant<'_> {
    fn own(self, key: &str) -> Result<VaultId, Status> {
        VaultId::own(self.plugin, key).map_err(|error| Status::invalid_argument(error.to_string()))
    }
}

/// A key that was never set is not found; a secret that cannot be had is an error.
pub async fn get(secrets: Confidant<'_>, request: GetSecretRequest) -> Result<GetSecretResponse, Status> {
    let found = secrets.vault.get(&secrets.own(&request.key)?).await.map_err(status::of_vault)?;
    let value = found.map(|value| {
        secrets.known.learn(&value);
        value.expose_secret().to_owned()
    });
    Ok(GetSecretResponse { found: value.is_some(), value: value.unwrap_or_default() })
}

/// An empty value is a value.
pub async fn set(secrets: Confidant<'_>, request: SetSecretRequest) -> Result<SetSecretResponse, Status> {
    let SetSecretRequest { key, value } = request;
    let value = value.into();
    // Also when it cannot be stored: the plugin thinks of it as a secret.
    secrets.known.learn(&value);
    secrets.vault.set(&secrets.own(&key)?, value).await.map_err(status::of_vault)?;
    Ok(SetSecretResponse {})
}

/// A key that is not there is deleted already.
pub async fn delete(secrets: Confidant<'_>, request: DeleteSecretRequest) -> Result<DeleteSecretResponse, Status> {
    secrets.vault.delete(&secrets.own(&request.key)?).await.map_err(status::of_vault)?;
    Ok(DeleteSecretResponse {})
}

/// A reference that does not exist and one that was not shared with this plugin look alike.
pub async fn reveal(secrets: Confidant<'_>, request: RevealSecretRequest) -> Result<RevealSecretResponse, Status> {
    let found = secrets.vault.reveal(secrets.plugin, &request.r#ref).await.map_err(status::of_vault)?;
    match found {
        Some(value) => {
            secrets.known.learn(&value);
            Ok(RevealSecretResponse { value: value.expose_secret().to_owned() })
        }
        None => {
            let reference = clean::single_line(&request.r#ref, SHOWN_BYTES);
            Err(Status::not_found(format!("secret not found: {reference}")))
        }
    }
}
