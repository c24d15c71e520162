//! The operator's settings of the plugin, as `config_schema` of the manifest shapes them.

use std::fmt;

use secrecy::SecretString;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    Error, Result,
    json::{self, Object},
};

/// The settings. Secrets are in clear in them, so printing shows the names only.
#[derive(Clone, PartialEq, Default)]
pub struct Config {
    values: Object,
}

impl Config {
    pub(crate) fn new(values: Object) -> Self {
        Self { values }
    }

    /// A setting as a type of yours; `None` when it is absent or null.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        match self.values.get(name) {
            None | Some(Value::Null) => Ok(None),
            // The value may be a secret: an error must not quote it.
            Some(value) => serde_json::from_value(value.clone()).map(Some).map_err(|_| {
                let expected = std::any::type_name::<T>();
                Error::failed_precondition(format!("the setting {name:?} does not fit {expected}; change it"))
            }),
        }
    }

    /// A setting that must be there.
    pub fn require<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        self.get(name)?.ok_or_else(|| Error::failed_precondition(format!("the setting {name:?} is missing; set it")))
    }

    /// A secret that must be there and not be empty.
    pub fn secret(&self, name: &str) -> Result<SecretString> {
        let value: String = self.require(name)?;
        if value.is_empty() {
            return Err(Error::failed_precondition(format!("the setting {name:?} is empty; set it")));
        }
        Ok(SecretString::from(value))
    }

    /// All settings as a type of yours. An error of it may quote a value: when secrets are among them, do not log it.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        json::parse("the settings", Value::Object(self.values.clone()))
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Config").field(&self.values.keys().collect::<Vec<_>>()).finish()
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;
    use serde_json::json;

    use super::*;

    fn config() -> Config {
        let Value::Object(values) = json!({"token": "hunter2", "n": 3, "none": null, "empty": ""}) else {
            unreachable!()
        };
        Config::new(values)
    }

    #[test]
    fn settings_are_read_as_types() {
        let config = config();
        assert_eq!(config.get::<u32>("n"), Ok(Some(3)));
        assert_eq!((config.get::<u32>("none"), config.get::<u32>("other")), (Ok(None), Ok(None)));
        assert_eq!(config.secret("token").unwrap().expose_secret(), "hunter2");
        let missing = config.require::<u32>("other").unwrap_err();
        assert_eq!(missing, Error::failed_precondition("the setting \"other\" is missing; set it"));
        assert_eq!(config.secret("empty").unwrap_err().to_string(), "the setting \"empty\" is empty; set it");
    }

    #[test]
    fn no_value_is_printed_or_quoted() {
        let config = config();
        assert_eq!(format!("{config:?}"), r#"Config(["token", "n", "none", "empty"])"#);
        let error = config.get::<u32>("token").unwrap_err();
        assert_eq!(error.to_string(), "the setting \"token\" does not fit u32; change it");
    }
}
