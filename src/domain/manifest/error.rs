//! How broken manifest rules are collected and told.
//!
//! Owns the collecting; the rules and their texts stand where each rule is checked.

/// At most this many violations are listed; a manifest can hold thousands.
const MAX_LISTED: usize = 50;

/// Why a manifest is refused. `Display` gives one violation a line (contract/manifest.md §1).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// Not one YAML document of the expected shape; names the place.
    #[error("{0}")]
    Yaml(String),
    /// Broken rules, in the order of the manifest, at least one.
    #[error("{}", .0.join("\n"))]
    Invalid(Vec<String>),
}

/// Collects violations and warnings while the rules run.
#[derive(Default)]
pub(super) struct Report {
    violations: Vec<String>,
    warnings: Vec<String>,
}

impl Report {
    /// Notes a broken rule.
    pub fn violation(&mut self, text: impl Into<String>) {
        self.violations.push(text.into());
    }

    /// Notes a broken rule when `lawful` is false.
    pub fn require(&mut self, lawful: bool, text: impl FnOnce() -> String) {
        if !lawful {
            self.violations.push(text());
        }
    }

    /// Notes something lawful that the operator should know.
    pub fn warning(&mut self, text: impl Into<String>) {
        self.warnings.push(text.into());
    }

    /// The warnings, or all violations.
    pub fn into_result(self) -> Result<Vec<String>, ManifestError> {
        if self.violations.is_empty() {
            Ok(shorten(self.warnings))
        } else {
            Err(ManifestError::Invalid(shorten(self.violations)))
        }
    }
}

/// At most 50 lines, and how many more there are.
pub(in crate::domain) fn shorten(mut lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(MAX_LISTED);
    if more > 0 {
        lines.truncate(MAX_LISTED);
        lines.push(format!("… and {more} more"));
    }
    lines
}
