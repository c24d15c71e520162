//! Keeping two versions of each plugin (contract/manifest.md §11): when old ones are removed. Which ones those are, is
//! `store::packages`'s.
//!
//! They go when a version has come up: at the end of a change of version by its sequence in `installer`, after any
//! other start that an operator or the host's own start asked for by [`Registry::retain_after`]. So what a killed host
//! or an overruled start left is gone after the next good start.

use std::time::Duration;

use actix::{ActorFutureExt, Addr, AsyncContext, Context, ResponseActFuture, WrapFuture};

use super::{
    RegistryError,
    actor::Registry,
    claims::{Claim, Claimed},
};
use crate::{
    actors::{PluginView, spawn::ask},
    domain::record::{PluginRecord, Status},
    store::{
        fs::FileError,
        packages::{Keep, PackageStore},
    },
};

impl Registry {
    /// The same start, answered when old versions are removed after it.
    pub(super) fn retain_after(
        start: ResponseActFuture<Self, Result<PluginView, RegistryError>>,
    ) -> ResponseActFuture<Self, Result<PluginView, RegistryError>> {
        Box::pin(start.then(|started, actor, ctx: &mut Context<Self>| {
            let (registry, packages, deadline) =
                (ctx.address(), actor.packages.clone(), actor.config.timing.ask_timeout);
            let retained = async move {
                if let Ok(plugin) = &started {
                    retain(&registry, &packages, &plugin.record, deadline).await;
                }
                started
            };
            retained.into_actor(actor)
        }))
    }
}

/// Removes old versions of a plugin that nobody else is busy with; a change of version does so at its own end. The
/// plugin is claimed only when there is something to remove.
async fn retain(registry: &Addr<Registry>, packages: &PackageStore, present: &PluginRecord, deadline: Duration) {
    if present.state.status != Status::Active {
        return;
    }
    // What cannot be looked at is told of by the removal.
    if let Ok(true) = blocking(packages, present, |packages, keep| Ok(packages.surplus(keep)?.is_empty())).await {
        return;
    }
    if let Ok(Ok(Claimed { guard: _claim, present: Some(present) })) =
        ask(registry, Claim(present.id().clone()), deadline).await
    {
        prune(packages, &present.record).await;
    }
}

/// Keeps the present version and one before it, when the present one runs. The caller holds the plugin's claim. A
/// failure is for the log: the next start tries again.
pub async fn prune(packages: &PackageStore, present: &PluginRecord) {
    if present.state.status != Status::Active {
        return;
    }
    if let Err(error) = blocking(packages, present, |packages, keep| packages.prune(keep)).await {
        tracing::warn!(plugin.id = %present.id(), %error, "old versions could not be removed");
    }
}

/// Runs file work about what to keep on a blocking thread.
async fn blocking<T: Send + 'static>(
    packages: &PackageStore,
    present: &PluginRecord,
    work: impl FnOnce(&PackageStore, &Keep) -> Result<T, FileError> + Send + 'static,
) -> Result<T, RegistryError> {
    let keep = Keep {
        id: present.id().clone(),
        version: present.manifest.version.clone(),
        previous: present.state.previous_version.clone(),
    };
    let packages = packages.clone();
    match tokio::task::spawn_blocking(move || work(&packages, &keep)).await {
        Ok(done) => Ok(done?),
        Err(error) => Err(RegistryError::Storage(error.to_string())),
    }
}
