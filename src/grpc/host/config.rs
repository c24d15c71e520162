//! GetConfig: the operator's config with its secrets in clear (host-data.md §7).

use std::collections::BTreeSet;

use kandev_proto::{struct_from_json, v1::GetConfigResponse};
use secrecy::ExposeSecret;
use serde_json::{Map, Value};
use tonic::Status;

use super::{secrets::Confidant, status};
use crate::{domain::secret::VaultId, store::plugin_config::PluginConfigs};

/// Always an object, empty when the operator has set nothing. One secret field that cannot be had fails the whole.
///
/// A value of one of the `secret_fields` that stands in the file in clear, where an earlier version or an editor left
/// it, is a secret too.
pub async fn get(
    configs: &PluginConfigs,
    secret_fields: &BTreeSet<String>,
    secrets: Confidant<'_>,
) -> Result<GetConfigResponse, Status> {
    let _reading = configs.reading(secrets.plugin).await;
    let mut config = configs.load(secrets.plugin).await.map_err(status::of_config)?.values;
    for value in secret_fields.iter().filter_map(|field| config.get(field)?.as_str()) {
        secrets.known.learn(&value.to_owned().into());
    }
    resolve(&mut config, secrets).await?;
    Ok(GetConfigResponse { config: Some(struct_from_json(config)) })
}

/// Puts secrets in the place of their markers. Only the exact marker of this plugin and field counts (rest.md §4).
async fn resolve(config: &mut Map<String, Value>, secrets: Confidant<'_>) -> Result<(), Status> {
    let Confidant { vault, plugin, known } = secrets;
    let (fields, ids): (Vec<String>, Vec<VaultId>) = VaultId::referred(plugin, config).unzip();
    let secrets = vault.get_many(&ids).await.map_err(|error| {
        // The database's fault is told with the first field.
        let at = ids.iter().position(|id| error.entry() == Some(id.as_str())).unwrap_or_default();
        status::of_unresolved(fields.get(at).map_or("", String::as_str), Some(error))
    })?;
    for (field, secret) in fields.into_iter().zip(secrets) {
        let Some(secret) = secret else { return Err(status::of_unresolved(&field, None)) };
        known.learn(&secret);
        config.insert(field, Value::String(secret.expose_secret().to_owned()));
    }
    Ok(())
}
