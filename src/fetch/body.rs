//! The body of a download as a stream that ends with an error at its size and time limits.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, stream};
use reqwest::Response;
use tokio::time::{Instant, timeout_at};

use super::{FetchError, classify};

/// What is left of one answer.
#[derive(Debug)]
pub struct Body {
    response: Response,
    left: u64,
    limit: u64,
    deadline: Instant,
    timeout: Duration,
}

impl Body {
    /// Refuses an answer that announces more than `limit` bytes before any of it is read.
    pub fn new(response: Response, limit: u64, deadline: Instant, timeout: Duration) -> Result<Self, FetchError> {
        match response.content_length() {
            Some(announced) if announced > limit => Err(FetchError::TooLarge(limit)),
            _ => Ok(Self { response, left: limit, limit, deadline, timeout }),
        }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, FetchError> {
        let chunk = timeout_at(self.deadline, self.response.chunk())
            .await
            .map_err(|_| FetchError::TimedOut(self.timeout))?
            .map_err(classify)?;
        let size = chunk.as_ref().map_or(0, Bytes::len) as u64;
        self.left = self.left.checked_sub(size).ok_or(FetchError::TooLarge(self.limit))?;
        Ok(chunk)
    }

    /// The chunks as they arrive; nothing follows an error.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, FetchError>> {
        stream::try_unfold(self, |mut body| async move { Ok(body.next().await?.map(|chunk| (chunk, body))) })
    }
}
