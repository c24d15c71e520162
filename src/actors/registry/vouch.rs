//! Plugins that were put into the plugins folder by hand: whether something vouches for their files.
//!
//! Nothing does when the folder is taken over. Before each start that somebody or the host's own start asks for, the
//! folder is looked at: with checksums and the signature of a trusted key it is as good as a package from then on.
//! Without, it is started with a warning, or under `install.signatures = "require"` not at all. What a signature is
//! worth is `domain::signature`'s.

use std::path::PathBuf;

use actix::{ActorFutureExt, Context, ResponseActFuture, WrapFuture, fut};

use super::{Registry, RegistryError};
use crate::{
    actors::{
        PluginView,
        plugin::{Condemn, Pin, Want},
        spawn::post,
    },
    config::SignaturePolicy,
    domain::{
        id::PluginId,
        manifest::{Manifest, Parsed},
        package::{Digest, Limits, hex},
        record::keep_warnings,
        signature::{Signer, Trust},
        target::host_platform,
    },
    store::{
        packages::{Kept, PackageStore},
        trust::TrustStore,
    },
};

/// What vouches for a folder.
struct Vouched {
    signer: Signer,
    executable: Digest,
    warnings: Vec<String>,
}

/// Looks at a folder; an error says what is missing. Blocks: reads all files.
fn look(
    packages: &PackageStore,
    trust: &TrustStore,
    folder: &std::path::Path,
    limits: &Limits,
    registered: &Manifest,
) -> Result<Vouched, String> {
    let loaded = trust.load().map_err(|error| error.to_string())?;
    loaded.log();
    // What is demanded is the caller's question.
    let trust = Trust { keys: loaded.keys, required: false };
    let kept = packages.verify_kept(folder, limits, &host_platform(), &trust).map_err(|error| error.to_string())?;
    let Kept { parsed: Parsed { manifest, warnings }, executable, signature } = kept;
    let Some(signer) = signature.signer() else { return Err(signature.warning().unwrap_or_default()) };
    match manifest == *registered {
        true => Ok(Vouched { signer: signer.clone(), executable, warnings }),
        false => Err("its manifest.yaml has changed since the folder was taken over".to_owned()),
    }
}

impl Registry {
    /// Whether the plugin's files are yet to be vouched for before it may do what is wanted.
    pub(super) fn asks_for_vouching(&self, id: &PluginId, want: Want) -> bool {
        let starts = matches!(want, Want::Started | Want::Booted);
        starts && self.entries.get(id).is_some_and(|entry| entry.record.state.sideloaded)
    }

    /// Looks at the plugin's folder, then has it started if the policy allows.
    pub(super) fn vouch_then(
        &mut self,
        id: PluginId,
        want: Want,
        claimed: bool,
    ) -> ResponseActFuture<Self, Result<PluginView, RegistryError>> {
        let Some(entry) = self.entries.get(&id) else {
            return Box::pin(fut::ready(Err(RegistryError::NotFound(id.as_str().to_owned()))));
        };
        let (packages, trust, limits) = (self.packages.clone(), self.trust.clone(), self.config.limits.package());
        let (folder, manifest) = (PathBuf::from(&entry.record.state.install_path), entry.record.manifest.clone());
        let look = move || look(&packages, &trust, &folder, &limits, &manifest);
        let looked =
            async move { tokio::task::spawn_blocking(look).await.unwrap_or_else(|error| Err(error.to_string())) };
        Box::pin(looked.into_actor(self).then(move |verdict, actor, ctx| {
            if !claimed && actor.claims.is_closed(&id) {
                return Box::pin(fut::ready(Err(RegistryError::Busy(id)))) as ResponseActFuture<Self, _>;
            }
            match actor.weigh(&id, verdict, ctx) {
                Ok(()) => actor.operate(id, want),
                Err(error) => Box::pin(fut::ready(Err(error))),
            }
        }))
    }

    /// Notes the verdict on the record; refuses what the policy does not allow.
    fn weigh(
        &mut self,
        id: &PluginId,
        verdict: Result<Vouched, String>,
        ctx: &mut Context<Self>,
    ) -> Result<(), RegistryError> {
        let Some(entry) = self.entries.get_mut(id).filter(|entry| entry.record.state.sideloaded) else { return Ok(()) };
        let state = &mut entry.record.state;
        match verdict {
            Ok(Vouched { signer, executable, warnings }) => {
                tracing::info!(plugin.id = %id, signer = %signer.name, "a folder put there by hand is signed");
                state.signed = true;
                state.signer = Some(signer.name.to_string());
                state.signer_key = Some(signer.key.to_string());
                state.sideloaded = false;
                state.warnings = keep_warnings(&warnings);
                // What is started now is what was looked at.
                post(&entry.addr, Pin(hex(&executable)));
            }
            Err(reason) if self.config.install.signatures == SignaturePolicy::Require => {
                let error = RegistryError::NotVouchedFor { id: id.clone(), reason };
                post(&entry.addr, Condemn(error.to_string()));
                return Err(error);
            }
            Err(reason) => {
                let warning =
                    format!("taken over from the plugins folder, and nothing vouches for its files: {reason}");
                tracing::warn!(plugin.id = %id, warning, "started all the same, install.signatures is \"warn\"");
                state.warnings = keep_warnings(&[warning]);
            }
        }
        self.save(id, ctx);
        Ok(())
    }
}
