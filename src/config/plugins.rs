//! Settings of the plugins themselves: where packages may come from and what their processes get. Waits and bounds are
//! in `config.rs`.

use serde::{Deserialize, Serialize};

/// Where packages may come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Install {
    /// Whether a package address may lead to this machine or a private network. Default false.
    pub allow_private_addresses: bool,
    /// What an unsigned or unverifiable package means. Default `warn`.
    pub signatures: SignaturePolicy,
    /// Whether an upgrade that asks for more capabilities needs the operator's word. Default true; `false` is the
    /// behaviour of the host that plugins were first written for.
    pub capability_consent: bool,
}

impl Default for Install {
    fn default() -> Self {
        Self { allow_private_addresses: false, signatures: SignaturePolicy::Warn, capability_consent: true }
    }
}

/// What an unsigned or unverifiable package means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", try_from = "String")]
pub enum SignaturePolicy {
    /// It is installed and the answer carries a warning.
    #[default]
    Warn,
    /// It is refused. What is installed already stays.
    Require,
}

impl TryFrom<String> for SignaturePolicy {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.as_str() {
            "warn" => Ok(Self::Warn),
            "require" => Ok(Self::Require),
            _ => Err("it must be \"warn\" or \"require\""),
        }
    }
}

/// What the browser application offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Features {
    /// Whether plugins have a part in the page; their processes run either way. Default true.
    pub plugins: bool,
}

impl Default for Features {
    fn default() -> Self {
        Self { plugins: true }
    }
}

/// What plugin processes get from the host's surroundings, and where the built-in source of the marketplace is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Plugins {
    /// Variables of the host's environment that plugins see, when they are set; nothing else passes.
    pub environment: Vec<String>,
    /// Where the index of the marketplace's built-in source is; empty: there is none.
    pub marketplace_url: String,
}

impl Default for Plugins {
    fn default() -> Self {
        let names = [
            "PATH",
            "HOME",
            "TMPDIR",
            "LANG",
            "LC_ALL",
            "TZ",
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "NO_PROXY",
            "ALL_PROXY",
            "http_proxy",
            "https_proxy",
            "no_proxy",
            "all_proxy",
            "SSL_CERT_FILE",
            "SSL_CERT_DIR",
        ];
        Self { environment: names.map(String::from).to_vec(), marketplace_url: String::new() }
    }
}
