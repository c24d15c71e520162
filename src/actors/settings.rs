//! The operator's settings of plugins: reading them masked, saving them with their secrets, and restarting what runs
//! (contract/rest.md §4).
//!
//! A save is a sequence of steps as in `installer`: it waits for its turn, claims the plugin at the registry, writes
//! file and vault so that a crash leaves the old config or the new one, and holds the claim until the plugin starts
//! again. The rules of the content are `domain::config_schema`'s, the files `store::plugin_config`'s.

mod schemas;
mod turns;

use std::{collections::BTreeMap, fmt::Write as _, io, sync::Arc};

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use self::{
    schemas::Schemas,
    turns::{NoTurn, Turns},
};
use super::{
    RegistryHandle,
    plugin::Want,
    registry::{Claim, ClaimGuard, Claimed, Operate, RegistryError},
    spawn::ask,
};
use crate::{
    config::Config,
    domain::{
        clean::quote,
        config_schema::{Change, Draft, Fields, Refusal, Submitted},
        id::PluginId,
        manifest::Schema,
        secret::VaultId,
    },
    failpoint,
    store::plugin_config::{ConfigError, ConfigText, PluginConfigs, StoredConfig},
    vault::{Vault, VaultError},
};

/// Fields that an error names at most.
const MAX_NAMED: usize = 10;

/// Why settings cannot be shown or saved. `http::error` maps it.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The new config breaks the schema's rules.
    #[error(transparent)]
    Invalid(#[from] Refusal),
    /// The caller's copy is old.
    #[error("the config was changed since it was read; read it again and repeat the change")]
    Changed,
    /// `limits.config_saves` are waiting.
    #[error("too many saves of this plugin's config wait already; try again (limits.config_saves)")]
    TooMany,
    /// Earlier saves take longer than `timing.config_wait`.
    #[error("earlier saves of this plugin's config are not done; try again (timing.config_wait)")]
    TooLate,
    /// The file cannot be understood, so nothing of it can be shown or kept.
    #[error("the config file {id}.config.yml is damaged: {}", remedy(.lost))]
    Damaged {
        /// Whose config.
        id: PluginId,
        /// Secret fields that were to keep what it says; empty when it was to be shown.
        lost: Vec<String>,
        /// What is wrong with it, for the log.
        cause: String,
    },
    /// Saved, but the plugin did not come up again.
    #[error("plugins: config saved but restart of \"{id}\" failed: {reason}")]
    RestartFailed {
        /// Which plugin.
        id: PluginId,
        /// One redacted line.
        reason: String,
    },
    /// The file.
    #[error(transparent)]
    File(#[from] ConfigError),
    /// The vault.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The registry refuses or fails.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

/// What to do about a damaged file.
fn remedy(lost: &[String]) -> String {
    match lost {
        [] => "correct it in the plugins folder, or send a whole new config by PATCH".to_owned(),
        fields => {
            let fields: Vec<_> = fields.iter().take(MAX_NAMED).map(|field| quote(field)).collect();
            format!("nothing can be kept of it; send new values for {}, or leave them out", fields.join(", "))
        }
    }
}

impl From<crate::store::fs::FileError> for SettingsError {
    fn from(error: crate::store::fs::FileError) -> Self {
        Self::File(io::Error::other(error).into())
    }
}

/// A config as clients see it.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownConfig {
    /// The fields, secrets masked.
    pub config: Map<String, Value>,
    /// Changes with every save, with every edit of the file and with what is masked; tells nothing of a secret.
    pub tag: String,
}

/// What the config must still be for a save to happen (`If-Match`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// Whatever it is.
    Anything,
    /// One with one of these tags.
    Tags(Vec<String>),
}

/// Typed access to the settings. Cheap to clone.
#[derive(Clone)]
pub struct SettingsHandle {
    registry: RegistryHandle,
    configs: PluginConfigs,
    vault: Vault,
    schemas: Arc<Schemas>,
    turns: Turns,
}

impl SettingsHandle {
    /// Settings of the registry's plugins.
    pub fn new(registry: RegistryHandle, configs: PluginConfigs, vault: Vault, config: &Config) -> Self {
        let turns = Turns::new(config.limits.config_saves, config.timing.config_wait);
        Self { registry, configs, vault, schemas: Arc::default(), turns }
    }

    /// A plugin's config, secrets masked; empty when nobody set one.
    pub async fn show(&self, id: &str) -> Result<ShownConfig, SettingsError> {
        let record = self.registry.get(id).await?.record;
        let stored = self.configs.load(record.id()).await.map_err(|cause| match cause.is_damage() {
            true => SettingsError::Damaged { id: record.id().clone(), lost: Vec::new(), cause: cause.to_string() },
            false => cause.into(),
        })?;
        Ok(shown(&record.manifest.config_schema, &stored))
    }

    /// Replaces a plugin's config and restarts the plugin when it runs. Returns the new config as clients see it.
    ///
    /// # Errors
    /// [`SettingsError::RestartFailed`] when the config is saved and the plugin did not start; with any other error
    /// nothing was changed, unless the vault lost the answer to its commit: the next start, or the next save, then
    /// finds out and finishes or drops the save.
    pub async fn save(&self, id: &str, config: Submitted, expected: Expected) -> Result<ShownConfig, SettingsError> {
        let id = self.registry.get(id).await?.record.id().clone();
        let _turn = self.turns.take(&id).await.map_err(|error| match error {
            NoTurn::TooMany => SettingsError::TooMany,
            NoTurn::TooLate => SettingsError::TooLate,
        })?;
        let shared = &self.registry.shared;
        let claimed = ask(&shared.addr, Claim(id.clone()), shared.ask_timeout()).await;
        let Claimed { guard, present } = claimed.map_err(RegistryError::from)??;
        let Some(present) = present else {
            return Err(RegistryError::NotFound(id.as_str().to_owned()).into());
        };
        let saved = self.write(&id, present.record.manifest.config_schema, config, &expected).await?;
        self.restart(&id, guard).await?;
        Ok(saved)
    }

    /// Finishes saves that an earlier host began, or drops them when they did not come to count. Before any plugin is
    /// started. What cannot be settled now is told in the log and stays for the next save or start.
    pub async fn recover(&self) -> Result<(), SettingsError> {
        let configs = self.configs.clone();
        for id in blocking(move || Ok(configs.all_staged()?)).await? {
            match self.settle(&id).await {
                Ok(true) => tracing::info!(plugin.id = %id, "an unfinished save of a plugin's config was finished"),
                Ok(false) => tracing::info!(plugin.id = %id, "an unfinished save of a plugin's config was dropped"),
                Err(error) => {
                    tracing::error!(plugin.id = %id, %error, "an unfinished save of a plugin's config is still there");
                }
            }
        }
        Ok(())
    }

    /// Decides about a staged config: it counts when the vault has its revision. Whether it counted.
    async fn settle(&self, id: &PluginId) -> Result<bool, SettingsError> {
        let configs = self.configs.clone();
        let owner = id.clone();
        let Some(revision) = blocking(move || Ok(configs.staged(&owner)?)).await? else { return Ok(false) };
        let counts = self.vault_revision(id).await? == Some(revision);
        let _changing = self.configs.changing(id).await;
        let (configs, owner) = (self.configs.clone(), id.clone());
        let settled = move || match counts {
            true => configs.promote(&owner),
            false => configs.discard(&owner),
        };
        blocking(move || settled().map_err(SettingsError::from)).await?;
        Ok(counts)
    }

    async fn vault_revision(&self, id: &PluginId) -> Result<Option<Uuid>, SettingsError> {
        let entry = self.vault.get(&VaultId::revision(id)).await?;
        Ok(entry.and_then(|text| Uuid::try_parse(text.expose_secret()).ok()))
    }

    /// Checks and writes; the caller holds the turn and the claim.
    async fn write(
        &self,
        id: &PluginId,
        schema: Schema,
        config: Submitted,
        expected: &Expected,
    ) -> Result<ShownConfig, SettingsError> {
        self.settle(id).await?;
        let stored = match self.configs.load(id).await {
            Ok(stored) => Ok(stored),
            Err(damage) if damage.is_damage() => Err(damage),
            Err(other) => return Err(other.into()),
        };
        if let Expected::Tags(tags) = expected
            && !stored.as_ref().is_ok_and(|stored| tags.contains(&shown(&schema, stored).tag))
        {
            return Err(SettingsError::Changed);
        }
        let secrets = match &stored {
            Ok(stored) => self.secrets_of(id, stored).await,
            Err(_) => BTreeMap::new(),
        };
        let (schemas, owner, max_bytes) = (Arc::clone(&self.schemas), id.clone(), self.configs.max_bytes());
        let prepare = move || {
            let known = stored.as_ref().ok().map(|stored| &stored.values);
            let draft = Draft::new(Fields::of(&schema), &owner, known, config);
            let lost = draft.lost().to_vec();
            if let (Err(cause), false) = (&stored, lost.is_empty()) {
                return Err(SettingsError::Damaged { id: owner.clone(), lost, cause: cause.to_string() });
            }
            draft.check(schemas.get(&owner, &schema).as_deref(), &secrets)?;
            let Change { config, secrets } = draft.into_change();
            let text = ConfigText::render(&config, max_bytes)?;
            let saved = StoredConfig { values: config, digest: Sha256::digest(text.as_bytes()).into() };
            let secrets: Vec<_> = secrets.into_iter().map(|(f, secret)| (f, secret.map(SecretString::from))).collect();
            Ok((shown(&schema, &saved), text, secrets))
        };
        let (shown, text, secrets) = blocking(prepare).await?;
        let (configs, owner) = (self.configs.clone(), id.clone());
        if secrets.is_empty() {
            blocking(move || Ok(configs.replace(&owner, &text)?)).await?;
        } else {
            let revision = text.revision();
            blocking(move || Ok(configs.stage(&owner, &text)?)).await?;
            self.write_both(id, revision, secrets).await?;
        }
        Ok(shown)
    }

    /// The secrets that a stored config refers to, for judging a new one. What cannot be had is left out: a damaged
    /// entry must not keep its owner from setting it anew.
    async fn secrets_of(&self, id: &PluginId, stored: &StoredConfig) -> BTreeMap<String, SecretString> {
        let (fields, ids): (Vec<String>, Vec<VaultId>) = VaultId::referred(id, &stored.values).unzip();
        let secrets = self.vault.get_many(&ids).await.unwrap_or_default();
        fields.into_iter().zip(secrets).filter_map(|(field, secret)| Some((field, secret?))).collect()
    }

    /// The vault's transaction, then the staged file's move. A failure leaves both as they were, as far as it can.
    async fn write_both(
        &self,
        id: &PluginId,
        revision: Uuid,
        secrets: Vec<(String, Option<SecretString>)>,
    ) -> Result<(), SettingsError> {
        let secrets = secrets.into_iter().map(|(field, secret)| (VaultId::config(id, &field), secret));
        let changes: Vec<_> = secrets.chain([(VaultId::revision(id), Some(revision.to_string().into()))]).collect();
        let ids: Vec<_> = changes.iter().map(|(id, _)| id.clone()).collect();
        // A damaged entry has no before; it must still be possible to set it anew.
        let before = self.vault.get_many(&ids).await.ok();
        let changing = self.configs.changing(id).await;
        if let Err(error) = self.vault.apply(changes).await {
            drop(changing);
            // The answer to a commit may have been lost: then the save counts.
            return if self.settle(id).await? { Ok(()) } else { Err(error.into()) };
        }
        failpoint::hit("config.secrets_saved");
        let (configs, owner) = (self.configs.clone(), id.clone());
        if let Err(error) = blocking(move || Ok(configs.promote(&owner)?)).await {
            // Whatever cannot be undone stays staged, and is finished by the next save or start.
            if let Some(before) = before {
                self.vault.apply(ids.into_iter().zip(before).collect()).await?;
                drop(changing);
                self.settle(id).await?;
            }
            return Err(error);
        }
        Ok(())
    }

    /// Has a plugin that runs, or is being started, come up with the new config; one that waits for an automatic
    /// restart reads it then. The claim is open meanwhile: what an operator does has precedence.
    async fn restart(&self, id: &PluginId, claim: ClaimGuard) -> Result<(), SettingsError> {
        claim.open();
        let shared = &self.registry.shared;
        let renew = Operate { id: id.as_str().to_owned(), want: Want::Renewed, claimed: true };
        let restarted = ask(&shared.addr, renew, shared.command_timeout()).await.map_err(RegistryError::from).flatten();
        let reason = match restarted {
            // Another command, or the host's stop, came in between: it decides what runs.
            Ok(_) | Err(RegistryError::Overtaken { .. } | RegistryError::Stopping | RegistryError::NotFound(_)) => {
                return Ok(());
            }
            Err(RegistryError::StartFailed { reason, .. }) => reason,
            Err(error @ RegistryError::Ask(_)) => error.to_string(),
            // The text is for the log.
            Err(error) => {
                tracing::error!(plugin.id = %id, %error, "a plugin's restart with its new config was not recorded");
                "what came of it could not be written down, the host's log has the reason".to_owned()
            }
        };
        Err(SettingsError::RestartFailed { id: id.clone(), reason })
    }
}

/// A stored config as clients see it. The file's digest changes with every save, so the tag does when only a secret has
/// changed; what is masked depends on the schema, so an upgrade may change it too.
fn shown(schema: &Schema, stored: &StoredConfig) -> ShownConfig {
    let config = Fields::of(schema).mask(&stored.values);
    let seen = serde_json::to_vec(&config).unwrap_or_default();
    let digest = Sha256::new().chain_update(stored.digest).chain_update(seen).finalize();
    let tag = digest.iter().take(16).fold(String::new(), |mut tag, byte| {
        // Writing to a text cannot fail.
        let _ = write!(tag, "{byte:02x}");
        tag
    });
    ShownConfig { config, tag }
}

/// Runs file work, or much thinking, on a blocking thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SettingsError> + Send + 'static,
) -> Result<T, SettingsError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(ConfigError::from(io::Error::other(error)).into()))
}
