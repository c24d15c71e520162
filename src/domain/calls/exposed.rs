//! The names by which clients of the Model Context Protocol know the tools of all plugins: one name for each tool,
//! lawful for every client, the same whatever else is installed.
//!
//! Models' interfaces take names of 64 letters, digits, `_` and `-`; ids of plugins are longer and have dots. A name
//! has the plugin first, then `__`, then the tool. A plugin whose id is short and without `.` and `_` stands there as
//! it is, any other one as what is left of it and a part of its digest. Neither form can be taken for the other, as
//! only the second has a `_` before the first `__`, so no plugin gets a name that is another's, and none has to be
//! refused for its tools' names (contract/manifest.md §6 refuses those).

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::domain::id::PluginId;

/// Longest name, in bytes.
pub const MAX_NAME_BYTES: usize = 64;

/// Longest id that stands in a name as it is; a tool's name has at most 32 bytes.
const WHOLE_ID_BYTES: usize = 30;

/// What is left of any other id.
const SHORT_ID_BYTES: usize = 16;

/// Bytes of the digest that tell ids apart which look alike.
const DIGEST_BYTES: usize = 6;

/// Between plugin and tool.
const SEPARATOR: &str = "__";

/// The name of a plugin's tool.
pub fn exposed_name(plugin: &PluginId, tool: &str) -> String {
    let id = plugin.as_str();
    let mut name = String::with_capacity(MAX_NAME_BYTES);
    if id.len() <= WHOLE_ID_BYTES && !id.contains(['.', '_']) {
        name.push_str(id);
    } else {
        name.extend(id.chars().take(SHORT_ID_BYTES).map(|c| if matches!(c, '.' | '_') { '-' } else { c }));
        name.push('_');
        for byte in Sha256::digest(id.as_bytes()).iter().take(DIGEST_BYTES) {
            // Writing to text does not fail.
            let _ = write!(name, "{byte:02x}");
        }
    }
    name.push_str(SEPARATOR);
    name.push_str(tool);
    name
}

/// Whether a text can be such a name.
pub fn is_exposed_name(text: &str) -> bool {
    let lawful = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-');
    text.len() <= MAX_NAME_BYTES && text.contains(SEPARATOR) && text.bytes().all(lawful)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(id: &str, tool: &str) -> String {
        exposed_name(&PluginId::new(id).unwrap(), tool)
    }

    #[test]
    fn a_plain_id_stands_before_the_tool_and_another_one_with_its_digest() {
        assert_eq!(name("kandev-plugin-jira", "find_issue"), "kandev-plugin-jira__find_issue");
        let dotted = name("com.acme_tools.board", "echo");
        let (plugin, tool) = dotted.split_once("__").unwrap();
        assert_eq!(tool, "echo");
        let (short, digest) = plugin.split_once('_').unwrap();
        assert_eq!((short, digest.len()), ("com-acme-tools-b", 12));
    }

    #[test]
    fn ids_that_look_alike_have_names_of_their_own() {
        let (long, longest) = ("a".repeat(31), "a".repeat(128));
        let ids = ["a-b", "a.b", "a_b", "a__b", "a--b", &long, &longest];
        let names: std::collections::HashSet<_> = ids.iter().map(|id| name(id, "c")).collect();
        assert_eq!(names.len(), ids.len(), "{names:?}");
        assert_ne!(name("a", "b__c"), name("a__b", "c"));
    }

    #[test]
    fn texts_that_are_no_names_are_known() {
        assert!(is_exposed_name("a__b") && is_exposed_name(&name("x.y", "z")));
        for text in ["", "a", "a_b", "A__b", "a__b c", "a__ü", &format!("a__{}", "b".repeat(62))] {
            assert!(!is_exposed_name(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_name_is_lawful_and_two_tools_never_share_one(
            id in "[a-z0-9][a-z0-9._-]{0,127}", other in "[a-z0-9][a-z0-9._-]{0,40}",
            tool in "[a-z0-9][a-z0-9_]{0,31}", second in "[a-z0-9][a-z0-9_]{0,31}",
        ) {
            let (Ok(id), Ok(other)) = (PluginId::new(&id), PluginId::new(&other)) else { return Ok(()) };
            let first = exposed_name(&id, &tool);
            prop_assert!(is_exposed_name(&first), "{}", first);
            if (&id, &tool) != (&other, &second) {
                prop_assert_ne!(first, exposed_name(&other, &second));
            }
        }
    }
}
