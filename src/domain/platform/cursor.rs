//! Cursors: where a walk through a list goes on. Opaque to whoever holds one.
//!
//! A cursor holds the order key of the last row of a page (keyset), so rows that are added or removed neither repeat
//! nor hide another one. It names its list and carries a checksum; anything else is refused, never taken for the first
//! page (host-data.md §11 row 3).

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};

use super::refusal::Refusal;

/// Longest cursor that is looked at, in bytes of its text. The longest that there are hold a name and two ids.
const MAX_BYTES: usize = 4096;
const CHECKSUM_BYTES: usize = 6;
const INT: u8 = 0;
const TEXT: u8 = 1;

/// The list that a cursor belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words say it")]
#[repr(u8)]
pub enum List {
    Workspaces = 1,
    Workflows = 2,
    Repositories = 3,
    AgentProfiles = 4,
    ExecutorProfiles = 5,
    Tasks = 6,
    Sessions = 7,
    CodeStats = 8,
    Messages = 9,
    MessagesNewestFirst = 10,
    Commits = 11,
    Snapshots = 12,
    Events = 13,
    Turns = 14,
}

/// One part of an order key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// A number, or a moment in microseconds.
    Int(i64),
    /// An id or a name.
    Text(String),
}

/// The cursor after the row with this order key.
pub fn encode(list: List, keys: &[Key]) -> String {
    let mut bytes = vec![list as u8];
    for key in keys {
        match key {
            Key::Int(number) => {
                bytes.push(INT);
                bytes.extend(number.to_be_bytes());
            }
            Key::Text(text) => {
                bytes.push(TEXT);
                bytes.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes());
                bytes.extend(text.as_bytes().iter().take(usize::from(u16::MAX)));
            }
        }
    }
    let checksum = checksum(&bytes);
    bytes.extend(checksum);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The order key in a cursor of this list.
pub fn decode(list: List, cursor: &str) -> Result<Vec<Key>, Refusal> {
    let read = || {
        let bytes = (cursor.len() <= MAX_BYTES).then(|| URL_SAFE_NO_PAD.decode(cursor).ok())??;
        let (content, sum) = bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM_BYTES)?)?;
        let (named, rest) = content.split_first()?;
        (*named == list as u8 && sum == checksum(content)).then(|| keys(rest))?
    };
    read().ok_or(Refusal::BadCursor)
}

fn keys(mut rest: &[u8]) -> Option<Vec<Key>> {
    let mut keys = Vec::new();
    while let Some((tag, tail)) = rest.split_first() {
        let key;
        (key, rest) = match *tag {
            INT => {
                let (number, tail) = tail.split_first_chunk::<8>()?;
                (Key::Int(i64::from_be_bytes(*number)), tail)
            }
            TEXT => {
                let (length, tail) = tail.split_first_chunk::<2>()?;
                let (text, tail) = tail.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
                let text = std::str::from_utf8(text).ok().filter(|text| !text.contains('\0'))?;
                (Key::Text(text.to_owned()), tail)
            }
            _ => return None,
        };
        keys.push(key);
    }
    Some(keys)
}

/// Against accidents, not against forgery: a forged cursor only shows rows that its holder may read anyway.
fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let digest = Sha256::new().chain_update(b"kandev-cursor").chain_update(bytes).finalize();
    std::array::from_fn(|n| digest[n])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_keys() -> impl Strategy<Value = Vec<Key>> {
        let key = prop_oneof![any::<i64>().prop_map(Key::Int), "[^\0]{0,60}".prop_map(Key::Text)];
        prop::collection::vec(key, 0..4)
    }

    #[test]
    fn the_longest_lawful_order_key_fits_into_a_cursor() {
        use crate::domain::platform::text::{MAX_ID_BYTES, MAX_NAME_BYTES};
        let id = || Key::Text("i".repeat(MAX_ID_BYTES));
        let longest = [id(), Key::Text("n".repeat(MAX_NAME_BYTES)), id()];
        let cursor = encode(List::ExecutorProfiles, &longest);
        assert_eq!(decode(List::ExecutorProfiles, &cursor), Ok(longest.to_vec()));
    }

    proptest! {
        #[test]
        fn a_cursor_gives_its_key_back_to_its_own_list_only(keys in any_keys()) {
            let cursor = encode(List::Tasks, &keys);
            prop_assert_eq!(decode(List::Tasks, &cursor), Ok(keys));
            prop_assert_eq!(decode(List::Sessions, &cursor), Err(Refusal::BadCursor));
        }

        #[test]
        fn what_no_list_gave_is_refused(text in ".{0,80}") {
            prop_assert_eq!(decode(List::Tasks, &text), Err(Refusal::BadCursor));
        }

        #[test]
        fn a_cursor_with_one_wrong_character_is_refused(keys in any_keys(), at in any::<prop::sample::Index>()) {
            let mut cursor = encode(List::Tasks, &keys).into_bytes();
            let at = at.index(cursor.len());
            cursor[at] = if cursor[at] == b'A' { b'B' } else { b'A' };
            prop_assert_eq!(decode(List::Tasks, &String::from_utf8(cursor).unwrap()), Err(Refusal::BadCursor));
        }
    }

    #[test]
    fn offsets_as_older_hosts_gave_them_are_refused() {
        for text in ["0", "50", "-1", "", "next", &"A".repeat(3000)] {
            assert_eq!(decode(List::Tasks, text), Err(Refusal::BadCursor), "{text}");
        }
    }
}
