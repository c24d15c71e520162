//! Settings of the REST interface, beside where it listens.

use serde::{Deserialize, Serialize};

/// Whose pages may ask.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Http {
    /// Origins, `scheme://host[:port]`, whose pages may ask as if they were the host's own. Default none: a page must
    /// have come from where the host is asked, which it cannot when a proxy rewrites `Host`.
    pub allowed_origins: Vec<String>,
}
