//! Finding the host's service: dialling broker id 1 again and again, for a bounded time (wire.md §1.6).

use std::{future::Future, time::Duration};

use goplugin::guest::{Broker, DialError};
use kandev_proto::v1::host_client::HostClient;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout_at},
};
use tonic::transport::Channel;
use tracing::{debug, warn};

/// The broker id at which every kandev host serves its service.
const HOST_BROKER_ID: u32 = 1;

/// The pause after the first failed attempt; it doubles up to [`LAST_PAUSE`]. One attempt takes up to 5 s.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(2);

/// A response may be as large as the host makes it (wire.md §1.7).
const MAX_RESPONSE_BYTES: usize = i32::MAX as usize;

/// How the search stands.
#[derive(Debug, Clone)]
pub(super) enum Search {
    Looking,
    Found(HostClient<Channel>),
    GivenUp,
}

pub(super) fn client(channel: Channel) -> HostClient<Channel> {
    HostClient::new(channel).max_decoding_message_size(MAX_RESPONSE_BYTES)
}

/// Looks in the background, `limit` at most.
pub(super) fn begin(broker: Broker, limit: Duration) -> watch::Receiver<Search> {
    let (result, search) = watch::channel(Search::Looking);
    tokio::spawn(async move {
        let attempt = || {
            let broker = broker.clone();
            async move { broker.dial(HOST_BROKER_ID).await }
        };
        let found = dial(attempt, limit).await;
        let found = found.map_or(Search::GivenUp, |channel| Search::Found(client(channel)));
        // Nobody may be interested any more.
        let _ = result.send(found);
    });
    search
}

/// The pauses after failed attempts, without end.
fn pauses() -> impl Iterator<Item = Duration> {
    std::iter::successors(Some(FIRST_PAUSE), |pause| Some((*pause * 2).min(LAST_PAUSE)))
}

async fn dial<C, F>(mut attempt: impl FnMut() -> F, limit: Duration) -> Option<C>
where
    F: Future<Output = Result<C, DialError>>,
{
    let deadline = Instant::now() + limit;
    let attempts = async {
        for pause in pauses() {
            match attempt().await {
                Ok(found) => return Some(found),
                Err(error) => debug!(cause = %error, "the host was not found yet"),
            }
            sleep(pause).await;
        }
        None
    };
    let found = timeout_at(deadline, attempts).await.ok().flatten();
    if found.is_none() {
        warn!(limit_ms = limit.as_millis(), "the host did not announce its service; calls of it will fail");
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_between_attempts_doubles_up_to_two_seconds() {
        let pauses: Vec<u128> = pauses().take(7).map(|pause| pause.as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 2000, 2000]);
    }

    #[tokio::test]
    async fn attempts_are_repeated_until_one_succeeds() {
        let mut attempts = 0;
        let attempt = || {
            attempts += 1;
            let found = attempts == 3;
            std::future::ready(if found { Ok("found") } else { Err(DialError::NotAnnounced { service_id: 1 }) })
        };
        assert_eq!(dial(attempt, Duration::from_secs(20)).await, Some("found"));
        assert_eq!(attempts, 3);
    }

    #[tokio::test]
    async fn the_search_ends_after_its_limit() {
        let attempt = || std::future::ready(Err::<(), _>(DialError::NotAnnounced { service_id: 1 }));
        assert_eq!(dial(attempt, Duration::from_millis(50)).await, None);
    }
}
