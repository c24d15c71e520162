//! Rules for `ui`: bundle, styles, pages and keyboard shortcuts (contract/manifest.md §2).

use std::collections::HashSet;

use super::contributions::{Keybinding, Ui};
use super::error::Report;
use super::keybinding;
use crate::domain::clean::quote;

/// Checks the whole `ui` block.
pub(super) fn ui(ui: &Ui, report: &mut Report) {
    report.require(ui.bundle.is_empty() || ui.bundle.starts_with('/'), || {
        format!("ui.bundle {} must be a root-relative path (start with \"/\")", quote(&ui.bundle))
    });
    for style in &ui.styles {
        report.require(style.starts_with('/'), || {
            format!("ui.styles entry {} must be a root-relative path (start with \"/\")", quote(style))
        });
    }
    for page in &ui.pages {
        report.require(matches!(page.surface.as_str(), "settings" | "task-panel" | "main-nav"), || {
            format!("unknown ui surface {} for page {}", quote(&page.surface), quote(&page.key))
        });
    }
    report.require(ui.keybindings.is_empty() || !ui.bundle.is_empty(), || {
        "ui.keybindings requires ui.bundle to be set".to_owned()
    });
    let mut ids = HashSet::new();
    for binding in &ui.keybindings {
        report.require(ids.insert(&binding.id), || format!("duplicate ui.keybindings id {}", quote(&binding.id)));
        keybinding_rules(binding, report);
    }
}

fn keybinding_rules(binding: &Keybinding, report: &mut Report) {
    let id = quote(&binding.id);
    report.require(is_binding_id(&binding.id), || format!("ui.keybindings[{id}]: id must match ^[a-z0-9][a-z0-9-]*$"));
    report.require(!binding.description.trim().is_empty(), || {
        format!("ui.keybindings[{id}]: description must not be empty")
    });
    match keybinding::parse(&binding.default) {
        Err(fault) => report.violation(format!("ui.keybindings[{id}]: {fault}")),
        Ok(combo) => report.require(combo.commanding || !binding.allow_in_editor, || {
            format!("ui.keybindings[{id}]: allow_in_editor needs a modifier other than shift")
        }),
    }
}

fn is_binding_id(id: &str) -> bool {
    let lower_or_digit = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    id.as_bytes().first().is_some_and(lower_or_digit) && id.bytes().all(|b| lower_or_digit(&b) || b == b'-')
}
