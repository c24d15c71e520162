//! The compiled `config_schema` of each plugin, made once for each version and kept.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use crate::domain::{config_schema::FullSchema, id::PluginId, manifest::Schema};

/// Most schemas kept; the whole is forgotten when one more comes, which costs each plugin one compilation.
const MAX_KEPT: usize = 256;

/// Shared by all saves.
#[derive(Default)]
pub(super) struct Schemas {
    kept: Mutex<HashMap<PluginId, Kept>>,
}

/// With the text it was made of: an upgrade may bring another.
struct Kept {
    schema: Schema,
    full: Option<Arc<FullSchema>>,
}

impl Schemas {
    /// The compiled schema; `None` when it cannot be used, of which the install warned. Blocks: compiling takes a
    /// while.
    pub fn get(&self, plugin: &PluginId, schema: &Schema) -> Option<Arc<FullSchema>> {
        let known = {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.get(plugin).filter(|kept| kept.schema == *schema).map(|kept| kept.full.clone())
        };
        known.unwrap_or_else(|| {
            let full = FullSchema::compile(schema).ok().map(Arc::new);
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() >= MAX_KEPT {
                kept.clear();
            }
            kept.insert(plugin.clone(), Kept { schema: schema.clone(), full: full.clone() });
            full
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_compiled_once_until_another_version_brings_another() {
        let (schemas, id) = (Schemas::default(), PluginId::new("a").unwrap());
        let schema = |value: serde_json::Value| value.as_object().cloned().unwrap();
        let first = schemas.get(&id, &schema(json!({"minProperties": 1}))).unwrap();
        let again = schemas.get(&id, &schema(json!({"minProperties": 1}))).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        let other = schemas.get(&id, &schema(json!({"minProperties": 2}))).unwrap();
        assert!(!Arc::ptr_eq(&first, &other));
        assert!(schemas.get(&id, &schema(json!({"type": 1}))).is_none());
    }
}
