//! How far a schema reaches: out of its document, and how large it grows when its references are followed.
//!
//! A schema is a plugin's text and is followed for every value of a config. One whose references run in circles, or
//! double at every step, would take time without bound: it is recognised here before anything is built of it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Unusable;
use crate::domain::clean::quote;
use crate::domain::manifest::Schema;

/// Most sub-schemas, every reference followed wherever it stands.
const MAX_NODES: usize = 2_000;

/// Most regular expressions among them; each may take a megabyte.
const MAX_PATTERNS: usize = 64;

/// Deepest nesting of sub-schemas, references followed.
const MAX_DEPTH: usize = 64;

/// Keywords that refer to another place.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Keywords whose value is a map of names to schemas.
const MAPS: [&str; 6] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// Keywords whose value is a schema or a list of schemas.
const SCHEMAS: [&str; 16] = [
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "contentSchema",
    "not",
    "if",
    "then",
    "else",
    "allOf",
    "anyOf",
    "oneOf",
];

/// The sub-schemas right below a schema. Data, as under `enum` or `default`, are none.
fn children(schema: &Schema) -> impl Iterator<Item = &Schema> {
    let maps = MAPS.iter().filter_map(|keyword| schema.get(*keyword)?.as_object());
    let named = maps.flat_map(|map| map.values());
    let single = SCHEMAS.iter().filter_map(|keyword| schema.get(*keyword));
    let listed = single.flat_map(|value| value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice));
    named.chain(listed).filter_map(Value::as_object)
}

fn references(schema: &Schema) -> impl Iterator<Item = &str> {
    REFERENCES.iter().filter_map(|keyword| schema.get(*keyword)?.as_str())
}

/// The first reference that leads out of the document: anything but a fragment. What only a reference makes a schema is
/// looked at too.
pub fn foreign_reference(schema: &Schema) -> Option<&str> {
    let (mut waiting, mut followed) = (vec![schema], BTreeSet::new());
    while let Some(next) = waiting.pop() {
        for reference in references(next) {
            match reference.strip_prefix('#') {
                Some(pointer) if followed.insert(pointer) => {
                    waiting.extend(target(schema, pointer).and_then(Value::as_object));
                }
                Some(_) => {}
                None if reference.is_empty() => {}
                None => return Some(reference),
            }
        }
        waiting.extend(children(next));
    }
    None
}

/// What a JSON pointer below the root leads to.
fn target<'a>(root: &'a Schema, pointer: &str) -> Option<&'a Value> {
    let path = pointer.strip_prefix('/')?;
    let (first, rest) = path.split_at(path.find('/').unwrap_or(path.len()));
    root.get(&first.replace("~1", "/").replace("~0", "~"))?.pointer(rest)
}

/// The number of sub-schemas with every reference followed, within all bounds.
pub(super) fn measure(schema: &Schema) -> Result<usize, Unusable> {
    let mut walk = Walk { root: schema, nodes: 0, patterns: 0, path: Vec::new() };
    walk.visit(schema, 0)?;
    Ok(walk.nodes)
}

struct Walk<'a> {
    root: &'a Schema,
    nodes: usize,
    patterns: usize,
    /// The references that led here.
    path: Vec<&'a str>,
}

impl<'a> Walk<'a> {
    fn visit(&mut self, schema: &'a Schema, depth: usize) -> Result<(), Unusable> {
        self.nodes += 1;
        let named = schema.get("patternProperties").and_then(Value::as_object).map_or(0, serde_json::Map::len);
        self.patterns += usize::from(schema.contains_key("pattern")) + named;
        if self.nodes > MAX_NODES || self.patterns > MAX_PATTERNS || depth > MAX_DEPTH {
            return Err(Unusable::TooLarge { nodes: MAX_NODES, patterns: MAX_PATTERNS, depth: MAX_DEPTH });
        }
        if depth > 0 && schema.contains_key("$id") {
            return Err(Unusable::Base);
        }
        if schema.contains_key("$dynamicRef") || schema.contains_key("$recursiveRef") {
            return Err(Unusable::Circle("$dynamicRef or $recursiveRef".to_owned()));
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            self.follow(reference, depth)?;
        }
        children(schema).try_for_each(|child| self.visit(child, depth + 1))
    }

    fn follow(&mut self, reference: &'a str, depth: usize) -> Result<(), Unusable> {
        if self.path.contains(&reference) || matches!(reference, "" | "#") {
            return Err(Unusable::Circle(quote(reference)));
        }
        let pointer = reference.strip_prefix('#').filter(|pointer| pointer.starts_with('/') && !pointer.contains('%'));
        let target = pointer.and_then(|pointer| target(self.root, pointer));
        let target = target.ok_or_else(|| Unusable::Target(quote(reference)))?;
        if let Value::Object(target) = target {
            self.path.push(reference);
            self.visit(target, depth + 1)?;
            self.path.pop();
        }
        Ok(())
    }
}
