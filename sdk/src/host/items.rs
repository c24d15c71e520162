//! Lists that come in pages, walked to their end.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_util::{Stream, future::BoxFuture};
use kandev_proto::v1;

use crate::{Error, Result};

/// Items a page, the most that a host gives (wire.md §3.2).
const PAGE_ITEMS: i32 = 200;

/// One page: its items, and the cursor of the next one unless it is the last.
type Page<T> = (Vec<T>, Option<String>);
type Fetch<T> = Box<dyn FnMut(v1::Page) -> BoxFuture<'static, Result<Page<T>>> + Send>;

/// The items of a list, fetched page by page as they are asked for. It is a [`Stream`] too. After an error it is at its
/// end.
///
/// ```no_run
/// # async fn example(host: &kandev_plugin_sdk::Host) -> kandev_plugin_sdk::Result<()> {
/// let mut workspaces = host.workspaces();
/// while let Some(workspace) = workspaces.next().await? {
///     println!("{}", workspace.name);
/// }
/// let names: Vec<String> = host.workspaces().all().await?.into_iter().map(|workspace| workspace.name).collect();
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is fetched before the items are asked for"]
pub struct Items<T> {
    fetch: Fetch<T>,
    pending: Option<BoxFuture<'static, Result<Page<T>>>>,
    /// The next page's cursor; `None` at the end.
    cursor: Option<String>,
    ready: VecDeque<T>,
}

/// Nothing in it is pinned in place.
impl<T> Unpin for Items<T> {}

impl<T> Items<T> {
    pub(super) fn new<F>(mut fetch: impl FnMut(v1::Page) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<(Vec<T>, Option<v1::PageInfo>)>> + Send + 'static,
        T: 'static,
    {
        let fetch: Fetch<T> = Box::new(move |page| {
            let answer = fetch(page);
            Box::pin(async move {
                let (items, info) = answer.await?;
                let next = info.filter(|info| info.has_more).map(|info| info.next_cursor);
                Ok((items, next))
            })
        });
        Self { fetch, pending: None, cursor: Some(String::new()), ready: VecDeque::new() }
    }

    /// The next item; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<T>> {
        std::future::poll_fn(|context| self.poll(context)).await.transpose()
    }

    /// All that are left. They are held in memory at once: for a list that may be long, [`Items::next`] is kinder.
    pub async fn all(mut self) -> Result<Vec<T>> {
        let mut all = Vec::new();
        while let Some(item) = self.next().await? {
            all.push(item);
        }
        Ok(all)
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(item)));
            }
            let Some(cursor) = self.cursor.clone() else { return Poll::Ready(None) };
            let (fetch, page) = (&mut self.fetch, v1::Page { limit: PAGE_ITEMS, cursor: cursor.clone() });
            let pending = self.pending.get_or_insert_with(|| fetch(page));
            let fetched = ready!(pending.as_mut().poll(context));
            self.pending = None;
            self.cursor = None;
            match fetched {
                // A host that sends the same page again would be walked for ever.
                Ok((_, Some(next))) if next == cursor => {
                    let error = Error::internal("the host's list does not go on: its next cursor is the one just used");
                    return Poll::Ready(Some(Err(error)));
                }
                Ok((items, next)) => (self.ready, self.cursor) = (items.into(), next),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}

impl<T> Stream for Items<T> {
    type Item = Result<T>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll(context)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt as _;
    use proptest::prelude::*;

    use super::*;

    /// A list of `total` numbers as a host serves it: the cursor is the offset.
    fn list(total: i32, page_size: i32) -> Items<i32> {
        Items::new(move |page| async move {
            assert_eq!(page.limit, PAGE_ITEMS);
            let begin: i32 = page.cursor.parse().unwrap_or(0);
            let end = (begin + page_size).min(total);
            let has_more = end < total;
            let next_cursor = if has_more { end.to_string() } else { String::new() };
            Ok(((begin..end).collect(), Some(v1::PageInfo { next_cursor, has_more })))
        })
    }

    fn now<T>(future: impl Future<Output = T>) -> T {
        futures_util::FutureExt::now_or_never(future).expect("it waits for nothing")
    }

    proptest! {
        #[test]
        fn every_item_comes_once_and_in_order(total in 0..500i32, page_size in 1..60i32) {
            let expected: Vec<i32> = (0..total).collect();
            prop_assert_eq!(now(list(total, page_size).all()).unwrap(), expected.clone());
            let streamed: Vec<i32> = now(list(total, page_size).try_collect()).unwrap();
            prop_assert_eq!(streamed, expected);
        }
    }

    #[test]
    fn an_answer_without_page_info_is_the_last_page() {
        let items = Items::new(|_| async { Ok((vec![1, 2], None)) });
        assert_eq!(now(items.all()), Ok(vec![1, 2]));
    }

    #[test]
    fn a_cursor_that_does_not_move_is_an_error_and_then_the_end() {
        let info = v1::PageInfo { next_cursor: "7".into(), has_more: true };
        let mut items = Items::new(move |_| std::future::ready(Ok((vec![1], Some(info.clone())))));
        assert_eq!(now(items.next()), Ok(Some(1)));
        assert!(now(items.next()).unwrap_err().to_string().contains("does not go on"));
        assert_eq!(now(items.next()), Ok(None));
    }

    #[test]
    fn an_error_ends_the_list() {
        let mut items = Items::<i32>::new(|_| std::future::ready(Err(Error::unavailable("down"))));
        assert_eq!(now(items.next()), Err(Error::unavailable("down")));
        assert_eq!(now(items.next()), Ok(None));
    }
}
