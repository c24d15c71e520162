//! What the handlers for browsers work with: the files of plugins, what plugins keep for users, and what the page is
//! told that the host offers.

use crate::{
    config::Config,
    domain::boot::Features,
    platform::{event_writer::EventWriter, user_state::UserStates},
    store::{db::Db, ui_files::UiFiles, user_state::UserStateStore},
};

/// One for the whole server.
pub struct Browser {
    /// What plugins keep for users.
    pub user_states: UserStates,
    /// Files of plugins' user interfaces.
    pub ui_files: UiFiles,
    /// What the page is told that the host offers.
    pub features: Features,
}

impl Browser {
    /// Over this database; changes are told by this writer.
    pub fn new(config: &Config, db: &Db, events: &EventWriter) -> Self {
        Self {
            user_states: UserStates::new(UserStateStore::new(db.clone(), &config.limits), events.clone()),
            ui_files: UiFiles::new(config.limits.ui_cache_bytes, config.timing.ask_timeout),
            features: Features::new(config.features.plugins),
        }
    }
}
