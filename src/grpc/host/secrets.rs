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
    domain::{clean, id::PluginId, secret::VaultId},
    vault::Vault,
};

/// Longest reference that a refusal repeats, in bytes.
const SHOWN_BYTES: usize = 200;

/// A key that was never set is not found; a secret that cannot be had is an error.
pub async fn get(vault: &Vault, plugin: &PluginId, request: GetSecretRequest) -> Result<GetSecretResponse, Status> {
    let found = vault.get(&own(plugin, &request.key)?).await.map_err(status::of_vault)?;
    let value = found.as_ref().map(|value| value.expose_secret().to_owned());
    Ok(GetSecretResponse { found: value.is_some(), value: value.unwrap_or_default() })
}

/// An empty value is a value.
pub async fn set(vault: &Vault, plugin: &PluginId, request: SetSecretRequest) -> Result<SetSecretResponse, Status> {
    let SetSecretRequest { key, value } = request;
    let value = value.into();
    vault.set(&own(plugin, &key)?, value).await.map_err(status::of_vault)?;
    Ok(SetSecretResponse {})
}

/// A key that is not there is deleted already.
pub async fn delete(
    vault: &Vault,
    plugin: &PluginId,
    request: DeleteSecretRequest,
) -> Result<DeleteSecretResponse, Status> {
    vault.delete(&own(plugin, &request.key)?).await.map_err(status::of_vault)?;
    Ok(DeleteSecretResponse {})
}

/// A reference that does not exist and one that was not shared with this plugin look alike.
pub async fn reveal(
    vault: &Vault,
    plugin: &PluginId,
    request: RevealSecretRequest,
) -> Result<RevealSecretResponse, Status> {
    let found = vault.reveal(plugin, &request.r#ref).await.map_err(status::of_vault)?;
    match found {
        Some(value) => Ok(RevealSecretResponse { value: value.expose_secret().to_owned() }),
        None => {
            let reference = clean::single_line(&request.r#ref, SHOWN_BYTES);
            Err(Status::not_found(format!("secret not found: {reference}")))
        }
    }
}

fn own(plugin: &PluginId, key: &str) -> Result<VaultId, Status> {
    VaultId::own(plugin, key).map_err(|error| Status::invalid_argument(error.to_string()))
}
