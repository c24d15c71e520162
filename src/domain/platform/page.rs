//! Parts of lists: how many rows and bytes, after which row, and what follows.

use std::collections::BTreeSet;

use super::{
    cursor::{self, Key, List},
    refusal::Refusal,
};

/// Rows of a page when the caller does not say (wire.md §3.2).
pub const DEFAULT_LIMIT: u32 = 50;
/// Most rows of a page over the plugin channel; more are cut without an error (wire.md §3.2).
pub const MAX_LIMIT: u32 = 200;
/// Most bytes of a page, of its long texts as they are stored and of its rows as they are sent. The smallest limit of a
/// gRPC client is 4 MiB; the largest lawful row stays below this one, and a page has a row whatever it has.
pub const MAX_BYTES: usize = 3 << 20;

/// Which part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    limit: u32,
    cursor: Option<String>,
}

impl PageRequest {
    /// As plugins ask: a limit of zero or less is the default, a larger one than [`MAX_LIMIT`] is cut, an empty cursor
    /// is the first page.
    pub fn new(limit: i32, cursor: &str) -> Self {
        let limit = u32::try_from(limit).ok().filter(|limit| *limit > 0).unwrap_or(DEFAULT_LIMIT);
        Self { limit: limit.min(MAX_LIMIT), cursor: (!cursor.is_empty()).then(|| cursor.to_owned()) }
    }

    /// Rows of the page, 1 to [`MAX_LIMIT`].
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// The same part with fewer rows.
    pub fn cut(self, limit: usize) -> Self {
        let limit = u32::try_from(limit).unwrap_or(MAX_LIMIT).clamp(1, self.limit);
        Self { limit, ..self }
    }

    /// The order key after which the page begins; `None` for the first one.
    pub fn after(&self, list: List) -> Result<Option<Vec<Key>>, Refusal> {
        self.cursor.as_deref().map(|cursor| cursor::decode(list, cursor)).transpose()
    }
}

impl Default for PageRequest {
    fn default() -> Self {
        Self::new(0, "")
    }
}

/// A part of a list, in the list's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Where the next part begins; `None` when this was the last.
    pub next_cursor: Option<String>,
}

/// Nothing.
impl<T> Default for Page<T> {
    fn default() -> Self {
        Self { items: Vec::new(), next_cursor: None }
    }
}

impl<T> Page<T> {
    /// Whether more rows follow.
    pub fn has_more(&self) -> bool {
        self.next_cursor.is_some()
    }

    /// The same part with other rows.
    pub fn map<U>(self, each: impl FnMut(T) -> U) -> Page<U> {
        Page { items: self.items.into_iter().map(each).collect(), next_cursor: self.next_cursor }
    }
}

/// How many of the rows with these bytes are a page: as many as [`MAX_BYTES`] hold, at least the first.
pub fn fitting(bytes: impl IntoIterator<Item = usize>) -> usize {
    let mut sum = 0usize;
    let fits = |(n, bytes): &(usize, usize)| {
        sum = sum.saturating_add(*bytes);
        *n == 0 || sum <= MAX_BYTES
    };
    bytes.into_iter().enumerate().take_while(fits).count()
}

/// Values of one filter field, each once; `None` when there is no restriction, an empty list when nothing can match:
/// ids that no row may have are left out.
pub fn ids(values: &[String]) -> Option<Vec<String>> {
    if values.is_empty() {
        return None;
    }
    let mut kept: Vec<_> = values.iter().filter(|id| super::text::may_be_id(id)).cloned().collect();
    kept.sort_unstable();
    kept.dedup();
    Some(kept)
}

/// The words of a filter that its vocabulary knows, each once.
pub fn known<T: Copy>(
    words: &[String],
    of: fn(&str) -> Option<T>,
    as_str: fn(T) -> &'static str,
) -> BTreeSet<&'static str> {
    words.iter().filter_map(|word| of(word)).map(as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_follow_the_contract() {
        for (asked, given) in [(0, 50), (-1, 50), (1, 1), (200, 200), (201, 200), (i32::MAX, 200), (i32::MIN, 50)] {
            assert_eq!(PageRequest::new(asked, "").limit(), given, "{asked}");
        }
    }

    #[test]
    fn a_page_has_the_rows_that_its_bytes_hold_and_always_one() {
        let half = MAX_BYTES / 2;
        assert_eq!(fitting([]), 0);
        assert_eq!(fitting([half, half, 1]), 2);
        assert_eq!(fitting([MAX_BYTES + 1, 1]), 1);
        assert_eq!(fitting([1, MAX_BYTES, 1]), 1, "what comes after a row that does not fit is not in the page");
        assert_eq!(fitting([usize::MAX, usize::MAX]), 1);
        for (limit, cut) in [(0, 1), (3, 3), (50, 50), (500, 50)] {
            assert_eq!(PageRequest::new(50, "c").cut(limit), PageRequest::new(cut, "c"));
        }
    }

    #[test]
    fn a_garbage_cursor_is_an_error_and_an_empty_one_the_first_page() {
        assert_eq!(PageRequest::new(0, "").after(List::Tasks), Ok(None));
        assert_eq!(PageRequest::new(0, "50").after(List::Tasks), Err(Refusal::BadCursor));
    }

    #[test]
    fn repeated_values_count_once_and_impossible_ones_match_nothing() {
        let owned = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
        assert_eq!(ids(&[]), None);
        assert_eq!(ids(&owned(&["b", "a", "b"])), Some(owned(&["a", "b"])));
        assert_eq!(ids(&owned(&["", "a\0"])), Some(Vec::new()));
    }
}
