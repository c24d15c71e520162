//! The indexes of the sources, in memory. Each is fetched once however many ask, some at a time, and not again before
//! it is old; one that cannot be had leaves what was there.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared, join_all},
};
use tokio::{
    runtime::Handle,
    sync::Semaphore,
    time::{Instant, timeout},
};

use crate::{
    config::{Limits, Timing},
    domain::marketplace::{Entry, Index, Skipped, Source, parse},
    fetch::{IndexError, IndexFetcher},
};

/// Told of a source whose first fetch takes longer than anybody waits.
const STILL_FETCHING: &str = "its index is being fetched; ask again in a moment";

/// Fetches an index; the network, seen from here.
#[async_trait]
pub trait Fetch: Send + Sync + 'static {
    /// The bytes of the index at `url`.
    async fn fetch(&self, url: &str) -> Result<Vec<u8>, IndexError>;
}

#[async_trait]
impl Fetch for IndexFetcher {
    async fn fetch(&self, url: &str) -> Result<Vec<u8>, IndexError> {
        Self::fetch(self, url).await
    }
}

/// How a source is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Health {
    /// What is known of its index, also when it could not be fetched the last time.
    pub index: Option<Arc<Index>>,
    /// Why it could not be fetched the last time: one line.
    pub error: Option<String>,
}

impl Health {
    /// Whether the last fetch succeeded, or none was needed yet.
    pub fn is_healthy(&self) -> bool {
        self.error.is_none()
    }

    /// What it offers.
    pub fn entries(&self) -> &[Entry] {
        self.index.as_ref().map(|index| index.entries.as_slice()).unwrap_or_default()
    }

    /// The first of its entries that are not offered, and how many these are.
    pub fn skipped(&self) -> (&[Skipped], usize) {
        self.index.as_ref().map(|index| (index.skipped.as_slice(), index.skipped_count)).unwrap_or_default()
    }
}

/// Keeps the indexes. Cheap to clone.
#[derive(Clone)]
pub struct Catalogue {
    inner: Arc<Inner>,
}

struct Inner {
    fetch: Box<dyn Fetch>,
    runtime: Handle,
    slots: Semaphore,
    /// Longest wait of one who asks.
    wait: Duration,
    /// Life of an index, and of a failure.
    cache: Duration,
    retry: Duration,
    /// By the id of the source. Held for single steps only.
    shelves: Mutex<HashMap<String, Shelf>>,
}

/// A fetch that is under way.
type Fetching = Shared<BoxFuture<'static, ()>>;

/// What is known of one source.
#[derive(Default)]
struct Shelf {
    health: Health,
    /// When the last fetch ended.
    looked: Option<Instant>,
    fetching: Option<Fetching>,
}

impl Catalogue {
    /// An empty one. Fetches run on `runtime`, which must outlive it: they go on when who asked hangs up.
    pub fn new(fetch: impl Fetch, timing: &Timing, limits: &Limits, runtime: Handle) -> Self {
        let inner = Inner {
            fetch: Box::new(fetch),
            runtime,
            slots: Semaphore::new(limits.marketplace_fetches),
            // A little longer than a fetch, so that its own error comes first.
            wait: timing.marketplace_timeout + timing.ask_timeout,
            cache: timing.marketplace_cache,
            retry: timing.marketplace_retry,
            shelves: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// How these sources are, which are all there are; one that is not enabled is not asked. What is not known, too
    /// old, or wanted `anew`, is fetched first, as far as it comes in time.
    pub async fn look(&self, sources: &[Source], anew: bool) -> Vec<Health> {
        let fetches = {
            let mut shelves = self.inner.shelves();
            shelves.retain(|id, _| sources.iter().any(|source| source.id == *id));
            let asked = sources.iter().filter(|source| source.enabled);
            asked.filter_map(|source| self.begin(&mut shelves, source, anew)).collect::<Vec<_>>()
        };
        let in_time = timeout(self.inner.wait, join_all(fetches)).await.is_ok();
        let shelves = self.inner.shelves();
        let health = |source: &Source| {
            let mut health = shelves.get(&source.id).map(|shelf| shelf.health.clone()).unwrap_or_default();
            if !in_time && source.enabled && health.index.is_none() && health.error.is_none() {
                health.error = Some(STILL_FETCHING.to_owned());
            }
            health
        };
        sources.iter().map(health).collect()
    }

    /// The fetch to wait for, begun if it must be; nothing when what is known is new enough.
    fn begin(&self, shelves: &mut HashMap<String, Shelf>, source: &Source, anew: bool) -> Option<Fetching> {
        let shelf = shelves.entry(source.id.clone()).or_default();
        // One that has ended and is still here was lost.
        if let Some(fetching) = shelf.fetching.as_ref().filter(|fetching| fetching.peek().is_none()) {
            return Some(fetching.clone());
        }
        let life = if shelf.health.is_healthy() { self.inner.cache } else { self.inner.retry };
        if !anew && shelf.looked.is_some_and(|looked| looked.elapsed() < life) {
            return None;
        }
        let (inner, source) = (Arc::clone(&self.inner), source.clone());
        let task = self.inner.runtime.spawn(async move { inner.restock(&source).await });
        let fetching = task.map(drop).boxed().shared();
        shelf.fetching = Some(fetching.clone());
        Some(fetching)
    }
}

impl fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalogue").field("sources", &self.inner.shelves().len()).finish_non_exhaustive()
    }
}

impl Inner {
    fn shelves(&self) -> MutexGuard<'_, HashMap<String, Shelf>> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn restock(&self, source: &Source) {
        let read = self.read(&source.url).await;
        let mut shelves = self.shelves();
        // A look with an older list of sources may have taken the shelf away, and somebody waits for what was on it: a
        // package is held against it. The shelf of a source that is really gone goes with the next look.
        let shelf = shelves.entry(source.id.clone()).or_default();
        shelf.fetching = None;
        shelf.looked = Some(Instant::now());
        match read {
            Ok(index) => {
                if index.skipped_count > 0 {
                    let (count, first) = (index.skipped_count, index.skipped.first().map(|skipped| &skipped.reason));
                    tracing::debug!(source.name = source.name, count, first, "entries of an index are not offered");
                }
                shelf.health = Health { index: Some(Arc::new(index)), error: None };
            }
            Err(error) => {
                if shelf.health.error.as_ref() != Some(&error) {
                    tracing::warn!(source.name = source.name, error, "the index of a marketplace source cannot be had");
                }
                shelf.health.error = Some(error);
            }
        }
    }

    async fn read(&self, url: &str) -> Result<Index, String> {
        let _slot = self.slots.acquire().await.map_err(|error| error.to_string())?;
        let bytes = self.fetch.fetch(url).await.map_err(|error| error.to_string())?;
        match tokio::task::spawn_blocking(move || parse(&bytes)).await {
            Ok(read) => read.map_err(|fault| fault.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
