//! Tokens with which git asks for credentials: what one is good for, and how long. A token opens nothing else.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;

/// How every token begins, so that one that was lost is recognised.
pub const PREFIX: &str = "kgt_";

/// Characters behind the prefix: 256 bits in base64.
const RANDOM_CHARACTERS: usize = 43;

/// Most tokens of a session that are good at the same time.
pub const MAX_TOKENS: usize = 32;

/// A token as the operator sees it later: without the token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitToken {
    /// A UUID of version 7.
    pub id: String,
    /// For which session; the token ends with it.
    pub session_id: String,
    /// For which repository.
    pub repository_id: String,
    /// Made, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Good until then, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub expires_at: OffsetDateTime,
    /// The last time a credential was asked for with it, UTC.
    #[serde(with = "time::serde::rfc3339::option")]
    pub last_used_at: Option<OffsetDateTime>,
}

/// What is kept of a token, and looked for: its SHA-256. A look-up by it tells nothing about a token that is close.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenHash(String);

impl TokenHash {
    /// Of a text that somebody presents; none of one that no token can be.
    pub fn of(presented: &str) -> Option<Self> {
        let random = presented.strip_prefix(PREFIX)?;
        let lawful = random.len() == RANDOM_CHARACTERS
            && random.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        let digest = || crate::domain::package::hex(&Sha256::digest(presented).into());
        lawful.then(|| Self(digest()))
    }

    /// In hexadecimal.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_be_a_token_is_looked_for() {
        let token = format!("{PREFIX}{}", "aZ09-_0".repeat(6) + "x");
        let hash = TokenHash::of(&token).unwrap();
        assert_eq!(hash.as_str().len(), 64);
        assert_eq!(format!("{hash:?}"), "TokenHash(hidden)");
        assert_ne!(TokenHash::of(&token.replace('Z', "z")), Some(hash));
        let short = &token[..token.len() - 1];
        for other in ["", "kgt_", short, &format!("{token}x"), &token.replace("kgt_", "kgx_"), &token.replace('Z', "é")]
        {
            assert_eq!(TokenHash::of(other), None, "{other}");
        }
    }
}
