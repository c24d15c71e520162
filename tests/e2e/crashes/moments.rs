//! The scenarios, and the named moments of docs/runtime-semantics.md in each of them.

use super::{
    Family,
    Left::{self, Lawful, New, Nothing, Old, TakenOver},
};
use Scenario::{
    Boot, CreateTask, FailedUpgrade, FirstKey, Install, Restart, Rollback, Rotate, SaveFileOnly, SaveWithSecret, Sync,
    SyncMissing, Uninstall, Upgrade, UpgradeOff, WriteSecret,
};

/// What is under way when the host dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    Install,
    Upgrade,
    /// Of a plugin that is disabled.
    UpgradeOff,
    /// To a version that does not come up.
    FailedUpgrade,
    /// Of the newer version to the older one.
    Rollback,
    Restart,
    Boot,
    Uninstall,
    /// A save of the settings, with a changed secret.
    SaveWithSecret,
    /// The same with the secret kept, so that only the file changes.
    SaveFileOnly,
    /// A sync that registers a folder and installs a package.
    Sync,
    /// The same, and a plugin's folder is gone.
    SyncMissing,
    /// Of the vault's key.
    Rotate,
    /// The vault's first key, made at the host's start.
    FirstKey,
    /// By a plugin.
    WriteSecret,
    /// By a plugin.
    CreateTask,
}

impl Scenario {
    pub const ALL: &[Self] = &[
        Install,
        Upgrade,
        UpgradeOff,
        FailedUpgrade,
        Rollback,
        Restart,
        Boot,
        Uninstall,
        SaveWithSecret,
        SaveFileOnly,
        Sync,
        SyncMissing,
        Rotate,
        FirstKey,
        WriteSecret,
        CreateTask,
    ];

    pub fn family(self) -> Family {
        match self {
            Install | Upgrade | UpgradeOff | FailedUpgrade | Rollback | Restart | Boot | Uninstall => Family::Versions,
            SaveWithSecret | SaveFileOnly => Family::Settings,
            Sync | SyncMissing => Family::Folder,
            Rotate | FirstKey | WriteSecret => Family::Vault,
            CreateTask => Family::Platform,
        }
    }

    /// Whether it is the host's own start that is cut off.
    pub fn is_a_start(self) -> bool {
        matches!(self, Boot | FirstKey)
    }
}

/// Scenario, moment, the hit, and what is left.
pub const NAMED: &[(Scenario, &str, u32, Left)] = &[
    (Install, "install.staged", 1, Nothing),
    (Install, "install.unpacked", 1, Nothing),
    (Install, "install.placed", 1, TakenOver),
    (Install, "record.writing", 1, TakenOver),
    (Install, "file.replacing", 1, TakenOver),
    (Install, "record.written", 1, Old),
    (Install, "install.recorded", 1, Old),
    (Install, "start.launching", 1, Old),
    (Install, "start.launched", 1, Old),
    (Install, "start.settled", 1, Old),
    (Install, "file.replacing", 2, Old),
    (Upgrade, "install.staged", 1, Old),
    (Upgrade, "install.unpacked", 1, Old),
    (Upgrade, "record.writing", 1, Old),
    (Upgrade, "upgrade.announced", 1, Old),
    (Upgrade, "install.placed", 1, Old),
    (Upgrade, "upgrade.held", 1, Old),
    (Upgrade, "record.writing", 3, Lawful),
    (Upgrade, "file.replacing", 2, Lawful),
    (Upgrade, "record.written", 3, Lawful),
    (Upgrade, "upgrade.recorded", 1, New),
    // The record is written while the process starts.
    (Upgrade, "start.launching", 1, Lawful),
    (Upgrade, "start.launched", 1, Lawful),
    (Upgrade, "start.settled", 1, Lawful),
    (Upgrade, "upgrade.done", 1, New),
    (Upgrade, "upgrade.pruning", 1, New),
    (Upgrade, "version.deleting", 1, New),
    (UpgradeOff, "upgrade.announced", 1, Old),
    (UpgradeOff, "upgrade.held", 1, Old),
    (UpgradeOff, "upgrade.recorded", 1, New),
    (FailedUpgrade, "upgrade.recorded", 1, Old),
    (FailedUpgrade, "start.launching", 1, Old),
    (FailedUpgrade, "upgrade.undoing", 1, Old),
    (FailedUpgrade, "upgrade.undone", 1, Old),
    (FailedUpgrade, "record.writing", 3, Old),
    (FailedUpgrade, "start.launching", 2, Old),
    (FailedUpgrade, "version.deleting", 1, Old),
    (Rollback, "upgrade.announced", 1, Old),
    (Rollback, "upgrade.held", 1, Old),
    (Rollback, "record.written", 2, Lawful),
    (Rollback, "upgrade.recorded", 1, New),
    (Rollback, "start.launched", 1, Lawful),
    (Rollback, "upgrade.done", 1, New),
    (Restart, "restart.scheduled", 1, Old),
    (Restart, "start.launching", 1, Old),
    (Restart, "start.launched", 1, Old),
    (Restart, "start.settled", 1, Old),
    (Restart, "record.writing", 1, Old),
    (Restart, "file.replacing", 2, Lawful),
    (Restart, "record.written", 2, Lawful),
    (Boot, "file.replacing", 1, Old),
    (Boot, "start.launching", 1, Old),
    (Boot, "start.launched", 1, Old),
    (Boot, "start.settled", 1, Old),
    (Uninstall, "uninstall.stopped", 1, Old),
    (Uninstall, "uninstall.set_aside", 1, Nothing),
    (Uninstall, "uninstall.rows_removed", 1, Nothing),
    (Uninstall, "uninstall.deleting", 1, Nothing),
    (Uninstall, "uninstall.deleting", 2, Nothing),
    (Uninstall, "uninstall.deleting", 3, Nothing),
    (SaveWithSecret, "config.writing", 1, Old),
    (SaveWithSecret, "file.replacing", 1, Old),
    (SaveWithSecret, "config.staged", 1, Old),
    (SaveWithSecret, "config.secrets_saved", 1, New),
    (SaveWithSecret, "config.saved", 1, New),
    (SaveWithSecret, "record.writing", 1, New),
    (SaveWithSecret, "start.launching", 1, New),
    (SaveWithSecret, "start.launched", 1, New),
    (SaveWithSecret, "start.settled", 1, New),
    (SaveFileOnly, "config.writing", 1, Old),
    (SaveFileOnly, "file.replacing", 1, Old),
    (SaveFileOnly, "config.saved", 1, New),
    (SaveFileOnly, "start.launching", 1, New),
    (Sync, "sync.looked", 1, Old),
    (Sync, "record.writing", 1, Old),
    (Sync, "sync.registered", 1, Old),
    (Sync, "install.staged", 1, Old),
    (Sync, "install.unpacked", 1, Old),
    (Sync, "install.placed", 1, TakenOver),
    (Sync, "install.recorded", 1, New),
    (Sync, "start.launched", 1, New),
    (Sync, "sync.installed", 1, New),
    (SyncMissing, "sync.looked", 1, Old),
    (SyncMissing, "sync.marked_missing", 1, Old),
    (Rotate, "vault.key.replacing", 1, Old),
    (Rotate, "vault.rotate.keyed", 1, New),
    (Rotate, "vault.rotate.batch", 1, New),
    (Rotate, "vault.rotate.batch", 2, New),
    (Rotate, "vault.rotate.resealed", 1, New),
    (Rotate, "vault.key.replacing", 2, New),
    (Rotate, "vault.rotate.done", 1, New),
    (FirstKey, "vault.key.replacing", 1, New),
    (FirstKey, "vault.key.made", 1, Old),
    (WriteSecret, "vault.writing", 1, Old),
    (WriteSecret, "vault.written", 1, New),
    (CreateTask, "platform.committed", 1, New),
];
