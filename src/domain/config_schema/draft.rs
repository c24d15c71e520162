//! What a PATCH makes of a config: which secrets stay, come and go, and what the file will hold (rest.md §4).
//!
//! A [`Draft`] is checked, then becomes a [`Change`] for the store. Neither can be printed: they hold secrets.

use std::collections::{BTreeMap, BTreeSet};

use secrecy::SecretString;
use serde_json::{Map, Value};

use super::{Fields, FullSchema, MASK, Refusal, Rule, Submitted, Violation, is_set, rules};
use crate::domain::{id::PluginId, secret::VaultId};

/// A config as a client wants it, with the stored values that the masks stand for.
pub struct Draft<'a> {
    fields: Fields<'a>,
    plugin: &'a PluginId,
    /// `None` when what is stored cannot be read.
    stored: Option<&'a Map<String, Value>>,
    values: Map<String, Value>,
    /// JSON pointers to numbers that would not be kept as they are.
    inexact: Vec<String>,
    /// Secret fields that keep what is stored.
    kept: BTreeSet<String>,
    /// Plain fields that hold the marker of a secret which does not exist.
    dangling: Vec<String>,
    /// Secret fields that would keep what cannot be read.
    lost: Vec<String>,
}

/// What is to be written. A field is in `secrets` only when its entry in the vault changes.
pub struct Change {
    /// The new content of the config file, in the client's order.
    pub config: Map<String, Value>,
    /// The new secret of a field, or `None` when its entry goes.
    pub secrets: Vec<(String, Option<String>)>,
}

impl<'a> Draft<'a> {
    /// `submitted` is the whole new config: fields that it leaves out are removed. `stored` is `None` when it is
    /// damaged.
    pub fn new(
        fields: Fields<'a>,
        plugin: &'a PluginId,
        stored: Option<&'a Map<String, Value>>,
        submitted: Submitted,
    ) -> Self {
        let Submitted { fields: submitted, inexact } = submitted;
        let (values, kept) = (Map::new(), BTreeSet::new());
        let mut draft = Self { fields, plugin, stored, values, inexact, kept, dangling: Vec::new(), lost: Vec::new() };
        for (field, value) in submitted {
            draft.take(field, value);
        }
        draft
    }

    fn take(&mut self, field: String, value: Value) {
        let is_marker = self.is_marker(&field, &value);
        let keeps = self.fields.is_secret(&field) && (value == MASK || is_marker);
        match self.stored.map(|stored| stored.get(&field)) {
            None if keeps => self.lost.push(field),
            // The mask, or the reference itself, keeps what is stored; without anything stored it means nothing.
            Some(Some(stored)) if keeps => {
                self.values.insert(field.clone(), stored.clone());
                self.kept.insert(field);
            }
            Some(None) if keeps => {}
            // A field that was secret in an earlier version of the plugin: its reference still counts.
            Some(Some(stored)) if is_marker && *stored == value => {
                self.values.insert(field.clone(), value);
                self.kept.insert(field);
            }
            None | Some(_) if is_marker => self.dangling.push(field),
            None | Some(_) => {
                self.values.insert(field, value);
            }
        }
    }

    /// Secret fields that would keep what is stored, which cannot be read: their values must be sent.
    pub fn lost(&self) -> &[String] {
        &self.lost
    }

    fn is_marker(&self, field: &str, value: &Value) -> bool {
        value.as_str().is_some_and(|text| text == VaultId::config(self.plugin, field).marker())
    }

    /// Checks the fixed rules and, when there is one, the whole schema. `secrets` are the stored values of secret
    /// fields, as far as they can be had.
    ///
    /// # Errors
    /// [`Refusal`] with all violations of both.
    pub fn check(&self, full: Option<&FullSchema>, secrets: &BTreeMap<String, SecretString>) -> Result<(), Refusal> {
        let mut fixed = rules::check(self.fields, &self.values, &self.kept);
        for field in &self.dangling {
            let message = format!("field \"{field}\" refers to a secret that is not stored");
            fixed.push(Violation::of_field(field, Rule::Other, &message));
        }
        for field in self.values.keys().filter(|field| self.fields.is_secret(field)) {
            if !VaultId::config(self.plugin, field).is_storable() {
                let message = "the name of this secret field is too long or holds a zero byte";
                fixed.push(Violation::of_field(field, Rule::Other, message));
            }
        }
        for path in &self.inexact {
            let message =
                format!("the number at {path} has more digits than a plugin gets; write it as text, in quotes");
            fixed.push(Violation::new(path, Rule::Other, &message));
        }
        let judge = |full: &FullSchema| full.violations(self.fields, &self.values, &self.kept, secrets, &fixed);
        let schema = full.map_or_else(Vec::new, judge);
        if fixed.is_empty() && schema.is_empty() { Ok(()) } else { Err(Refusal::new(fixed, schema)) }
    }

    /// What is to be written.
    pub fn into_change(self) -> Change {
        let Self { fields, plugin, stored, values, inexact: _, kept: _, dangling: _, lost: _ } = self;
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
        for (field, value) in stored.into_iter().flatten().filter(|(_, value)| is_set(value)) {
            if *value == VaultId::config(plugin, field).marker() && config.get(field) != Some(value) {
                secrets.push((field.clone(), None));
            }
        }
        // Whatever entries a damaged file referred to: none is left without a reference.
        let declared = fields.declared().filter(|(field, _)| stored.is_none() && fields.is_secret(field));
        let unset: Vec<_> = declared.filter(|(field, _)| !secrets.iter().any(|(set, _)| set == field)).collect();
        secrets.extend(unset.into_iter().map(|(field, _)| (field.to_owned(), None)));
        Change { config, secrets }
    }
}
