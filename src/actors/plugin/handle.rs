//! What everyone but the plugin's actor has of a plugin: read in place, without a message to the actor.

use std::{path::Path, sync::Arc};

use super::{CallKind, CallPermit, CallRefused, Door, Vitals};
use crate::{
    actors::{log::PluginLog, tools::ToolSchemas},
    domain::{id::PluginId, manifest::Manifest, record::PluginRecord, tenancy::Tenancy},
    grpc::client::CallError,
};

/// Typed access to one plugin; clones are the same handle.
#[derive(Clone)]
pub struct PluginHandle(Arc<Access>);

/// One thing to count, since each call takes a clone.
struct Access {
    id: PluginId,
    manifest: Arc<Manifest>,
    folder: Arc<Path>,
    door: Door,
    log: Arc<PluginLog>,
    vitals: Arc<Vitals>,
    schemas: Arc<ToolSchemas>,
}

impl PluginHandle {
    /// A handle of the plugin as its record has it now.
    pub(in crate::actors) fn new(
        record: &PluginRecord,
        door: &Door,
        log: &Arc<PluginLog>,
        vitals: &Arc<Vitals>,
    ) -> Self {
        Self(Arc::new(Access {
            id: record.id().clone(),
            manifest: Arc::new(record.manifest.clone()),
            folder: Path::new(&record.state.install_path).into(),
            door: door.clone(),
            log: Arc::clone(log),
            vitals: Arc::clone(vitals),
            schemas: Arc::default(),
        }))
    }

    /// Whose handle it is.
    pub fn id(&self) -> &PluginId {
        &self.0.id
    }

    /// The installed version's manifest.
    pub fn manifest(&self) -> &Arc<Manifest> {
        &self.0.manifest
    }

    /// The folder of the installed version.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// While the plugin is active, a number that is this run's alone: no other run of any plugin has it.
    pub fn run(&self) -> Option<u64> {
        self.0.door.opening()
    }

    /// This install of the plugin.
    pub fn tenancy(&self) -> &Tenancy {
        self.0.log.tenancy()
    }

    /// The plugin's figures.
    pub fn vitals(&self) -> &Arc<Vitals> {
        &self.0.vitals
    }

    /// The schemas of its tools, compiled once for all clones.
    pub(in crate::actors) fn schemas(&self) -> &Arc<ToolSchemas> {
        &self.0.schemas
    }

    /// A failed call as it may be logged: the plugin's text without the secrets that it was told.
    pub fn without_secrets(&self, error: CallError) -> CallError {
        match error {
            CallError::Refused { code, message } => {
                CallError::Refused { code, message: self.0.log.without_secrets(&message).into_owned() }
            }
            error => error,
        }
    }

    /// Asks to make one call. The permit is a lease for those kinds that people or agents wait for.
    ///
    /// # Errors
    /// [`CallRefused`]: the plugin is not up, or has enough to do.
    pub fn begin(&self, kind: CallKind) -> Result<CallPermit, CallRefused> {
        self.0.door.enter(kind)
    }
}
