//! Rules for `agent_tools` (contract/manifest.md §2).

use std::collections::HashSet;

use super::contributions::AgentTool;
use super::error::Report;
use super::model::Schema;
use super::schema::check_object_schema;
use crate::domain::clean::quote;
use crate::domain::config_schema::FullSchema;

/// Most tools of one plugin.
const MAX_TOOLS: usize = 16;

/// Longest description of a tool, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 1024;

/// The grammar of tool names, as shown in messages.
const NAME_PATTERN: &str = "^[a-z0-9][a-z0-9_]{0,31}$";

/// Checks all tools of a manifest.
pub(super) fn agent_tools(tools: &[AgentTool], report: &mut Report) {
    report.require(tools.len() <= MAX_TOOLS, || format!("agent_tools must declare at most {MAX_TOOLS} tools"));
    let mut names = HashSet::new();
    for (i, tool) in tools.iter().enumerate() {
        report.require(is_name(&tool.name), || {
            format!("agent_tools[{i}].name {} must match {NAME_PATTERN}", quote(&tool.name))
        });
        report.require(names.insert(&tool.name), || {
            format!("agent_tools[{i}].name {} is a duplicate", quote(&tool.name))
        });
        report.require((1..=MAX_DESCRIPTION_BYTES).contains(&tool.description.len()), || {
            format!("agent_tools[{i}].description must be 1 to {MAX_DESCRIPTION_BYTES} bytes")
        });
        surfaces(i, &tool.surfaces, report);
        if let Err(fault) = check_schema(&tool.input_schema) {
            report.violation(format!("agent_tools[{i}].input_schema {fault}"));
        }
        if !tool.output_schema.is_empty()
            && let Err(fault) = check_schema(&tool.output_schema)
        {
            report.violation(format!("agent_tools[{i}].output_schema {fault}"));
        }
        let hints = tool.annotations;
        report.require(!(hints.read_only_hint && hints.destructive_hint), || {
            format!("agent_tools[{i}].annotations: a tool cannot be both read-only and destructive")
        });
    }
}

/// Whether arguments or results can be checked against it: lawful, and bounded also where its references are followed.
fn check_schema(schema: &Schema) -> Result<(), String> {
    check_object_schema(schema)?;
    FullSchema::compile_draft7(schema).map(drop).map_err(|why| format!("cannot be used: {why}"))
}

fn surfaces(i: usize, surfaces: &[String], report: &mut Report) {
    report.require(!surfaces.is_empty(), || format!("agent_tools[{i}].surfaces must not be empty"));
    let mut seen = HashSet::new();
    for surface in surfaces {
        report.require(matches!(surface.as_str(), "kanban-task" | "office-task"), || {
            format!("agent_tools[{i}].surfaces has an unknown surface {}", quote(surface))
        });
        report.require(seen.insert(surface), || format!("agent_tools[{i}].surfaces lists {} twice", quote(surface)));
    }
}

fn is_name(name: &str) -> bool {
    let lower_or_digit = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = name.as_bytes();
    (1..=32).contains(&bytes.len())
        && lower_or_digit(&bytes[0])
        && bytes.iter().all(|b| lower_or_digit(b) || *b == b'_')
}
