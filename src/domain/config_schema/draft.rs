//! What a PATCH makes of a config: which secrets stay, come and go, and what the file will hold (rest.md §4).
//!
//! A [`Draft`] is checked, then becomes a [`Change`] for the store. Neither can be printed: they hold secrets.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Fields, FullSchema, MASK, Refusal, Violation, is_set, rules};
use crate::domain::{id::PluginId, secret::VaultId};

/// A config as a client wants it, with the stored values that the masks stand for.
pub struct Draft<'a> {
    fields: Fields<'a>,
    plugin: &'a PluginId,
    stored: &'a Map<String, Value>,
    values: Map<String, Value>,
    /// Secret fields that keep what is stored.
    kept: BTreeSet<String>,
    /// Plain fields that hold the marker of a secret which does not exist.
    dangling: Vec<String>,
}

/// What is to be written. A field is in `secrets` only when its entry in the vault changes.
pub struct Change {
    /// The new content of the config file, in the client's order.
    pub config: Map<String, Value>,
    /// The new secret of a field, or `None` when its entry goes.
    pub secrets: Vec<(String, Option<String>)>,
}

impl<'a> Draft<'a> {
    /// `submitted` is the whole new config: fields that it leaves out are removed.
    pub fn new(
        fields: Fields<'a>,
        plugin: &'a PluginId,
        stored: &'a Map<String, Value>,
        submitted: Map<String, Value>,
    ) -> Self {
        let mut draft =
            Self { fields, plugin, stored, values: Map::new(), kept: BTreeSet::new(), dangling: Vec::new() };
        for (field, value) in submitted {
            draft.take(field, value);
        }
        draft
    }

    fn take(&mut self, field: String, value: Value) {
        let is_marker = self.is_marker(&field, &value);
        match (self.fields.is_secret(&field), self.stored.get(&field)) {
            // The mask, or the reference itself, keeps what is stored; without anything stored it means nothing.
            (true, Some(stored)) if value == MASK || is_marker => {
                self.values.insert(field.clone(), stored.clone());
                self.kept.insert(field);
            }
            (true, None) if value == MASK || is_marker => {}
            // A field that was secret in an earlier version of the plugin: its reference still counts.
            (false, Some(stored)) if is_marker && *stored == value => {
                self.values.insert(field.clone(), value);
                self.kept.insert(field);
            }
            (false, _) if is_marker => self.dangling.push(field),
            (true | false, _) => {
                self.values.insert(field, value);
            }
        }
    }

    fn is_marker(&self, field: &str, value: &Value) -> bool {
        value.as_str().is_some_and(|text| text == VaultId::config(self.plugin, field).marker())
    }

    /// Checks the fixed rules and, when there is one, the whole schema.
    ///
    /// # Errors
    /// [`Refusal`] with all violations of both.
    pub fn check(&self, full: Option<&FullSchema>) -> Result<(), Refusal> {
        let mut fixed = rules::check(self.fields, &self.values, &self.kept);
        for field in &self.dangling {
            fixed.push(Violation::of_field(field, &format!("field \"{field}\" refers to a secret that is not stored")));
        }
        for field in self.values.keys().filter(|field| self.fields.is_secret(field)) {
            if !VaultId::config(self.plugin, field).is_storable() {
                fixed
                    .push(Violation::of_field(field, "the name of this secret field is too long or holds a zero byte"));
            }
        }
        let schema = full.map_or_else(Vec::new, |full| full.violations(self.fields, &self.values, &self.kept, &fixed));
        if fixed.is_empty() && schema.is_empty() { Ok(()) } else { Err(Refusal::new(fixed, schema)) }
    }

    /// What is to be written.
    pub fn into_change(self) -> Change {
        let Self { fields, plugin, stored, values, kept: _, dangling: _ } = self;
        let (mut config, mut secrets) = (Map::new(), Vec::new());
        for (field, value) in values {
            let marker = VaultId::config(plugin, &field).marker();
            match value {
                // Also a clear text that an earlier version, or someone's editor, left in the file.
                Value::String(secret) if fields.is_secret(&field) && !secret.is_empty() && secret != marker => {
                    config.insert(field.clone(), marker.into());
                    secrets.push((field, Some(secret)));
                }
                value => {
                    config.insert(field, value);
                }
            }
        }
        for (field, value) in stored.iter().filter(|(_, value)| is_set(value)) {
            if *value == VaultId::config(plugin, field).marker() && config.get(field) != Some(value) {
                secrets.push((field.clone(), None));
            }
        }
        Change { config, secrets }
    }
}
