//! Between the wire's messages and the platform's things: conversions only, no decision about either (wire.md §3.3).

mod board;
mod new_task;
mod task;
mod work;

use kandev_proto::v1;
use prost::Message;
use time::{OffsetDateTime, UtcOffset, format_description::well_known::Rfc3339};

pub use new_task::new_task;
pub use task::{task_filter, task_patch};

use crate::{
    domain::platform::page::{self, Page, PageRequest},
    platform::PlatformError,
};

/// What was asked for of a list; nothing asks for its first page.
fn page_request(page: Option<v1::Page>) -> PageRequest {
    let v1::Page { limit, cursor } = page.unwrap_or_default();
    PageRequest::new(limit, &cursor)
}

/// The rows of a page as messages, and how the list goes on.
///
/// The list bounds what is stored of a page; JSON may take five times as many bytes on the wire. A page that is too
/// large there ([`page::MAX_BYTES`]) is read again with as many rows as fit.
pub async fn page<T, M: From<T> + Message, F>(
    asked: Option<v1::Page>,
    list: impl Fn(PageRequest) -> F,
) -> Result<(Vec<M>, Option<v1::PageInfo>), PlatformError>
where
    F: Future<Output = Result<Page<T>, PlatformError>>,
{
    let mut asked = page_request(asked);
    loop {
        let found = list(asked.clone()).await?;
        let has_more = found.has_more();
        let info = v1::PageInfo { next_cursor: found.next_cursor.unwrap_or_default(), has_more };
        let rows: Vec<M> = found.items.into_iter().map(M::from).collect();
        let fitting = page::fitting(rows.iter().map(Message::encoded_len));
        if fitting == rows.len() {
            return Ok((rows, Some(info)));
        }
        asked = asked.cut(fitting);
    }
}

/// RFC 3339, UTC, whole seconds (host-data.md §1).
fn moment(at: OffsetDateTime) -> String {
    let whole = at.to_offset(UtcOffset::UTC).replace_nanosecond(0).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    // Fails for years beyond 9999 only, which no clock of the host gives.
    whole.format(&Rfc3339).unwrap_or_default()
}

/// A number for a smaller field; what does not fit becomes the field's end.
fn narrow(number: i64) -> i32 {
    i32::try_from(number).unwrap_or(if number < 0 { i32::MIN } else { i32::MAX })
}

/// A text that is left unset when it is empty.
fn unless_empty(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn a_moment_is_whole_seconds_of_utc() {
        assert_eq!(moment(datetime!(2026-11-29 12:00:01.999999 +02:00)), "2026-11-29T10:00:01Z");
    }

    #[test]
    fn a_number_that_does_not_fit_becomes_the_end_of_its_field() {
        let numbers = [0, -7, i64::from(i32::MAX) + 1, i64::MIN];
        assert_eq!(numbers.map(narrow), [0, -7, i32::MAX, i32::MIN]);
    }

    #[test]
    fn no_page_is_the_first_one_of_fifty() {
        assert_eq!(page_request(None), PageRequest::default());
        let page = v1::Page { limit: 7, cursor: "c".to_owned() };
        assert_eq!(page_request(Some(page)), PageRequest::new(7, "c"));
    }
}
