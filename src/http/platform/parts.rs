//! Lists: whole, as the contract's clients ask for them, or in pages.

use serde::Deserialize;
use utoipa::IntoParams;

use crate::{
    domain::platform::page::{MAX_LIMIT, Page, PageRequest},
    http::ApiError,
    platform::PlatformError,
};

/// Most rows of a list that is asked for as a whole; `next_cursor` tells of more.
const MAX_WHOLE: usize = 1000;

/// Most pages of such a list: pages of large rows are short (`domain::platform::page`).
const MAX_PAGES: usize = 8;

/// Which part of a list.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Rows of a page at most; left out: the whole list, as far as 1000 rows.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// `next_cursor` of an answer to the same question: what comes after it.
    cursor: Option<String>,
}

/// A part of a list and how long the whole is.
pub struct Listed<T> {
    pub items: Vec<T>,
    pub total: u64,
    pub next_cursor: Option<String>,
}

impl<T> Listed<T> {
    pub fn map<U>(self, each: impl FnMut(T) -> U) -> Listed<U> {
        let Self { items, total, next_cursor } = self;
        Listed { items: items.into_iter().map(each).collect(), total, next_cursor }
    }
}

impl Part {
    pub fn new(limit: Option<u32>, cursor: Option<String>) -> Self {
        Self { limit, cursor }
    }

    /// Reads it page by page. The list is counted only when this is not all of it.
    pub async fn read<T>(
        &self,
        page: impl AsyncFn(PageRequest) -> Result<Page<T>, PlatformError>,
        count: impl AsyncFnOnce() -> Result<u64, PlatformError>,
    ) -> Result<Listed<T>, ApiError> {
        let Page { items, next_cursor } = self.rows(page).await?;
        let is_whole = next_cursor.is_none() && self.cursor.as_deref().unwrap_or_default().is_empty();
        let total = if is_whole { items.len() as u64 } else { count().await? };
        Ok(Listed { items, total, next_cursor })
    }

    /// The same without the whole's length.
    pub async fn rows<T>(
        &self,
        page: impl AsyncFn(PageRequest) -> Result<Page<T>, PlatformError>,
    ) -> Result<Page<T>, ApiError> {
        let begin = self.cursor.clone().unwrap_or_default();
        if let Some(limit) = self.limit {
            return Ok(page(request(limit, &begin)?).await?);
        }
        let mut whole = page(request(MAX_LIMIT, &begin)?).await?;
        for _ in 1..MAX_PAGES {
            if whole.items.len() >= MAX_WHOLE {
                break;
            }
            let Some(cursor) = whole.next_cursor.take() else { break };
            let left = MAX_WHOLE - whole.items.len();
            let limit = u32::try_from(left).unwrap_or(MAX_LIMIT).min(MAX_LIMIT);
            let next = page(request(limit, &cursor)?).await?;
            whole.items.extend(next.items);
            whole.next_cursor = next.next_cursor;
        }
        Ok(whole)
    }
}

/// A page as clients ask for it.
pub fn request(limit: u32, cursor: &str) -> Result<PageRequest, ApiError> {
    match i32::try_from(limit) {
        Ok(rows) if (1..=MAX_LIMIT).contains(&limit) => Ok(PageRequest::new(rows, cursor)),
        _ => Err(ApiError::Query(format!("limit must be a number from 1 to {MAX_LIMIT}"))),
    }
}

/// A flag of a query as the contract's clients write it.
pub fn flag(name: &str, text: Option<&str>) -> Result<bool, ApiError> {
    match text.unwrap_or_default() {
        "" | "false" | "0" => Ok(false),
        "true" | "1" => Ok(true),
        _ => Err(ApiError::Query(format!("{name} must be true or false"))),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// The numbers below `rows`; a cursor is the number that comes next.
    async fn page(rows: u32, request: &PageRequest, cursor: u32) -> Page<u32> {
        let end = (cursor + request.limit()).min(rows);
        Page { items: (cursor..end).collect(), next_cursor: (end < rows).then(|| end.to_string()) }
    }

    async fn read(part: Part, rows: u32) -> (Listed<u32>, u32) {
        let (begin, pages) = (Cell::new(part.cursor.as_deref().unwrap_or("0").parse().unwrap()), Cell::new(0));
        let pages_of = async |request: PageRequest| {
            pages.set(pages.get() + 1);
            let page = page(rows, &request, begin.get()).await;
            begin.set(begin.get() + page.items.len() as u32);
            Ok(page)
        };
        let listed = part.read(pages_of, async || Ok(u64::from(rows))).await.unwrap();
        (listed, pages.get())
    }

    #[tokio::test]
    async fn a_list_without_a_limit_is_whole_as_far_as_a_thousand_rows() {
        for (rows, shown, pages) in [(0, 0, 1), (200, 200, 1), (201, 201, 2), (1000, 1000, 5), (5000, 1000, 5)] {
            let (listed, asked) = read(Part::default(), rows).await;
            assert_eq!(listed.items, (0..shown).collect::<Vec<_>>());
            assert_eq!((listed.total, asked), (u64::from(rows), pages));
            assert_eq!(listed.next_cursor.is_some(), shown < rows);
        }
    }

    #[tokio::test]
    async fn a_limit_gives_one_page_and_the_length_of_the_whole() {
        let (listed, asked) = read(Part::new(Some(7), Some("14".to_owned())), 20).await;
        assert_eq!((listed.items, listed.total, asked), ((14..20).collect(), 20, 1));
        assert_eq!(listed.next_cursor, None);
    }

    #[tokio::test]
    async fn a_limit_out_of_bounds_is_refused() {
        for limit in [0, 201, u32::MAX] {
            let part = Part::new(Some(limit), None);
            let answer = part.rows(async |_| Ok(Page::<u32>::default())).await;
            assert!(matches!(answer, Err(ApiError::Query(_))), "{limit}");
        }
    }

    #[test]
    fn flags_are_read_as_clients_write_them() {
        for (text, value) in
            [(None, false), (Some(""), false), (Some("0"), false), (Some("true"), true), (Some("1"), true)]
        {
            assert_eq!(flag("x", text).unwrap(), value);
        }
        assert_eq!(flag("x", Some("yes")).unwrap_err().to_string(), "x must be true or false");
    }
}
