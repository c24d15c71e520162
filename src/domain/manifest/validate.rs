//! The rules of a manifest (contract/manifest.md §2, with the stricter ones of this host).
//!
//! Every rule adds its own line to the report; none stops the others. Stricter than the contract: length and reserved
//! words of the id, `version` neither `data` nor starting with a dot (it becomes a folder beside `data/`), a readable
//! `min_kandev_version`, and control characters nowhere in names that become paths.

use std::collections::HashSet;

use super::contributions::{Action, ReferenceSource, Webhook};
use super::error::Report;
use super::model::{Manifest, Runtime, Schema};
use super::{tools, ui};
use crate::domain::capability::Capability;
use crate::domain::clean::{plain_text, quote, single_line};
use crate::domain::config_schema::{FullSchema, foreign_reference};
use crate::domain::id::{ID_PATTERN, PluginId, is_identifier};
use crate::domain::subject::Pattern;
use crate::domain::version::check_minimum_form;

/// Longest version in bytes; it is the name of a folder.
const MAX_VERSION_BYTES: usize = 128;

/// Body limits in bytes: webhooks without login, webhooks with login, actions.
const MAX_PUBLIC_BODY: i64 = 4_194_304;
const MAX_WEBHOOK_BODY: i64 = 16_777_216;
const MAX_ACTION_BODY: i64 = 1_048_576;

/// Longest label of a reference source, in characters.
const MAX_LABEL_CHARS: usize = 100;

/// Bounds of the texts for people, in bytes; longer ones are cut, not refused.
const MAX_NAME_BYTES: usize = 256;
const MAX_DESCRIPTION_BYTES: usize = 16 * 1024;

/// Applies every rule; also cleans the texts for people and moves legacy spellings into their current place.
pub(super) fn manifest(manifest: &mut Manifest, report: &mut Report) {
    manifest.display_name = single_line(&manifest.display_name, MAX_NAME_BYTES);
    manifest.author = single_line(&manifest.author, MAX_NAME_BYTES);
    manifest.description = plain_text(&manifest.description, MAX_DESCRIPTION_BYTES);
    if let Err(fault) = PluginId::new(&manifest.id) {
        report.violation(fault.to_string());
    }
    report.require(manifest.api_version == 1, || {
        format!("unsupported api_version {}: only 1 is supported", manifest.api_version)
    });
    version(&manifest.version, report);
    for category in manifest.categories.iter().flatten() {
        report.require(matches!(category.as_str(), "connector" | "automation" | "tools" | "analytics"), || {
            format!("unknown category {}", quote(category))
        });
    }
    repo_url(&mut manifest.repo_url, report);
    runtime(&manifest.runtime, report);
    legacy(manifest, report);
    if let Err(fault) = check_minimum_form(&manifest.min_kandev_version) {
        report.violation(fault.to_string());
    }
    webhooks(&manifest.webhooks, report);
    actions(&mut manifest.actions, report);
    repository_providers(&manifest.repository_providers, report);
    reference_sources(&manifest.reference_sources, report);
    tools::agent_tools(&manifest.agent_tools, report);
    ui::ui(&manifest.ui, report);
    config_schema(&manifest.config_schema, report);
    warnings(manifest, report);
}

/// A schema that cannot be used is the operator's loss, not a broken package: only rest.md §4 applies then. One that
/// wants another document fetched is refused: the host fetches nothing for a plugin.
fn config_schema(schema: &Schema, report: &mut Report) {
    if let Some(reference) = foreign_reference(schema) {
        report.violation(format!(
            "config_schema: $ref {} leads out of the document; put the definition below $defs and write \"#/$defs/<name>\"",
            quote(reference)
        ));
    } else if let Err(why) = FullSchema::compile(schema) {
        report.warning(format!(
            "config_schema is checked in part only (required, secrets, type and enum of the top level): {why}"
        ));
    }
}

fn version(version: &str, report: &mut Report) {
    let shown = quote(version);
    if version.is_empty() {
        report.violation("version must not be empty");
    } else if version.contains(char::is_whitespace) {
        report.violation(format!("version {shown} must not contain whitespace"));
    } else if version.contains(['/', '\\']) {
        report.violation(format!("version {shown} must be a single path segment (no \"/\" or \"\\\")"));
    } else if matches!(version, "." | "..") {
        report.violation(format!("version {shown} must not be \".\" or \"..\""));
    } else if version.starts_with('.') {
        report.violation(format!("version {shown} must not start with a dot"));
    } else if version.eq_ignore_ascii_case("data") {
        report.violation(format!("version {shown} must not be \"data\": the plugin's data folder has this name"));
    } else if version.contains(char::is_control) {
        report.violation(format!("version {shown} must not contain control characters"));
    } else if version.len() > MAX_VERSION_BYTES {
        report.violation(format!("version {shown} must be at most {MAX_VERSION_BYTES} bytes"));
    }
}

fn repo_url(url: &mut String, report: &mut Report) {
    *url = url.trim().to_owned();
    let scheme = |prefix: &str| url.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    report.require(url.is_empty() || scheme("http://") || scheme("https://"), || {
        format!("repo_url {} must be an http(s) URL", quote(url))
    });
}

fn runtime(runtime: &Runtime, report: &mut Report) {
    match runtime.kind.as_str() {
        "binary" => report.require(!runtime.executables.is_empty(), || {
            "runtime.executables must declare at least one entry when runtime.type is \"binary\"".to_owned()
        }),
        "" => report.violation("manifest is not runtime-managed (runtime.type must be \"binary\")"),
        other => report.violation(format!("runtime.type {} is invalid: only \"binary\" is supported", quote(other))),
    }
    for (key, path) in &runtime.executables {
        let key = quote(key);
        if path.is_empty() {
            report.violation(format!("runtime.executables[{key}]: path must not be empty"));
        } else if path.starts_with('/') {
            report.violation(format!("runtime.executables[{key}]: path {} must be relative", quote(path)));
        } else if !is_clean_relative(path) {
            report.violation(format!(
                "runtime.executables[{key}]: path {} must be a clean relative path with no \"..\" segments",
                quote(path)
            ));
        }
    }
}

/// Whether every segment is a plain name: none empty, `.` or `..`, no backslash, no control character.
fn is_clean_relative(path: &str) -> bool {
    !path.contains('\\')
        && !path.contains(char::is_control)
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

fn legacy(manifest: &Manifest, report: &mut Report) {
    report.require(manifest.base_url.is_empty(), || {
        "base_url must be empty for a runtime-managed plugin (runtime.type: binary)".to_owned()
    });
    report.require(manifest.endpoints == Default::default(), || {
        "endpoints must be empty for a runtime-managed plugin (runtime.type: binary)".to_owned()
    });
}

fn webhooks(webhooks: &[Webhook], report: &mut Report) {
    let mut keys = HashSet::new();
    for webhook in webhooks {
        let key = quote(&webhook.key);
        report.require(keys.insert(&webhook.key), || format!("duplicate webhook key {key}"));
        report.require(matches!(webhook.access.as_str(), "" | "public" | "authenticated"), || {
            format!("webhook {key} access {} is invalid", quote(&webhook.access))
        });
        let limit = webhook.max_body_bytes;
        report.require((0..=MAX_WEBHOOK_BODY).contains(&limit), || {
            format!("webhook {key} max_body_bytes must be between 1 and {MAX_WEBHOOK_BODY} when set")
        });
        report.require(limit <= MAX_PUBLIC_BODY || webhook.access == "authenticated", || {
            format!("webhook {key} must use authenticated access when max_body_bytes exceeds {MAX_PUBLIC_BODY}")
        });
    }
}

fn actions(actions: &mut [Action], report: &mut Report) {
    let mut keys = HashSet::new();
    for action in actions {
        let key = quote(&action.key);
        let legacy = std::mem::take(&mut action.resource_scope);
        report.require(legacy.is_empty() || action.scope.is_empty() || legacy == action.scope, || {
            "action scope and resource_scope disagree".to_owned()
        });
        if action.scope.is_empty() {
            action.scope = legacy;
        }
        report.require(is_identifier(&action.key), || format!("action key {key} must match {ID_PATTERN}"));
        report.require(keys.insert(action.key.clone()), || format!("duplicate action key {key}"));
        report.require(action.parsed_scope().is_some(), || {
            format!("action {key} has invalid scope {}", quote(&action.scope))
        });
        report.require((1..=MAX_ACTION_BODY).contains(&action.max_body_bytes), || {
            format!("action {key} max_body_bytes must be between 1 and {MAX_ACTION_BODY}")
        });
    }
}

fn repository_providers(providers: &[String], report: &mut Report) {
    let mut seen = HashSet::new();
    for provider in providers {
        let shown = quote(provider);
        report.require(is_identifier(provider), || {
            format!("repository provider {shown} must be a lowercase identifier matching {ID_PATTERN}")
        });
        report.require(seen.insert(provider), || format!("duplicate repository provider {shown}"));
    }
}

fn reference_sources(sources: &[ReferenceSource], report: &mut Report) {
    let mut names = HashSet::new();
    let mut kinds = HashSet::new();
    for entry in sources {
        let shown = quote(&entry.source);
        report.require([&entry.source, &entry.provider, &entry.kind].into_iter().all(|word| is_reference_word(word)), || {
            format!("reference source {shown} must use lowercase source, provider and kind matching ^[a-z0-9][a-z0-9._:-]{{0,127}}$")
        });
        for (name, label) in [("display_name", &entry.display_name), ("kind_label", &entry.kind_label)] {
            let lawful = label.trim() == label && (1..=MAX_LABEL_CHARS).contains(&label.chars().count());
            report.require(lawful, || {
                format!("reference source {shown} {name} must be trimmed and 1 to {MAX_LABEL_CHARS} characters")
            });
        }
        let unique = names.insert(&entry.source) & kinds.insert((&entry.provider, &entry.kind));
        report.require(unique, || format!("duplicate reference source {shown}"));
    }
}

fn is_reference_word(word: &str) -> bool {
    let lower_or_digit = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = word.as_bytes();
    (1..=128).contains(&bytes.len())
        && lower_or_digit(&bytes[0])
        && bytes.iter().all(|b| lower_or_digit(b) || matches!(b, b'.' | b'_' | b':' | b'-'))
}

fn warnings(manifest: &Manifest, report: &mut Report) {
    for word in manifest.capabilities.data_words() {
        if Capability::from_name(&word).is_none() {
            report.warning(format!("unknown capability {} grants nothing on this host", quote(&word)));
        }
    }
    for pattern in manifest.capabilities.events.iter().filter(|text| !Pattern::new(text.as_str()).can_match()) {
        report.warning(format!(
            "event pattern {} can never match: `*` stands for one whole segment, a final `>` for all that follow",
            quote(pattern)
        ));
    }
    if manifest.capabilities.agent_invoke && !has_utility_agent_field(manifest) {
        report.warning(
            "capability agent_invoke needs a config_schema property utility_agent with format \"utility-agent\": \
             the operator has no way to choose an agent",
        );
    }
    for webhook in &manifest.webhooks {
        let key = quote(&webhook.key);
        if webhook.key.is_empty() {
            report.warning("a webhook with an empty key can never be called");
        } else if webhook.access.is_empty() {
            report.warning(format!("webhook {key} declares no access and is public: anyone can call it"));
        }
    }
}

fn has_utility_agent_field(manifest: &Manifest) -> bool {
    let field = manifest.config_schema.get("properties").and_then(|p| p.get("utility_agent"));
    field.and_then(|f| f.get("format")).and_then(|f| f.as_str()) == Some("utility-agent")
}
