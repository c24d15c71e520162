//! Who asks. Owns the kinds of caller; how a caller proves what it is belongs to the edges.

use std::fmt;

/// A caller of the REST interface. Tokens, users and sessions of later issues become further kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Principal {
    /// Holds the operator's token: may do everything.
    Operator,
    /// Proved nothing.
    Anonymous,
}

/// The operator's id as a user, until there are accounts.
pub const OPERATOR_USER: &str = "operator";

impl Principal {
    /// The user who asks; `None` when nobody is logged in.
    pub const fn user_id(self) -> Option<&'static str> {
        match self {
            Self::Operator => Some(OPERATOR_USER),
            Self::Anonymous => None,
        }
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Operator => "operator",
            Self::Anonymous => "anonymous",
        })
    }
}
