//! The catalogue with a network that does as it is told, on a clock that stands still.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicUsize, Ordering},
};

use serde_json::json;
use time::macros::datetime;

use super::*;

/// What the network does with one fetch.
enum Answer {
    /// An index with one plugin of this id.
    Index(&'static str),
    /// These bytes.
    Bytes(&'static str),
    /// A failure.
    Gone,
    /// Nothing for so long, then an index.
    After(Duration, &'static str),
}

/// A network; what nobody told it is [`Answer::Gone`].
#[derive(Clone, Default)]
struct Network {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    fetches: Arc<AtomicUsize>,
    at_once: Arc<AtomicUsize>,
    most_at_once: Arc<AtomicUsize>,
}

impl Network {
    fn with(answers: impl IntoIterator<Item = Answer>) -> Self {
        let network = Self::default();
        network.answers.lock().unwrap().extend(answers);
        network
    }

    fn fetches(&self) -> usize {
        self.fetches.load(Ordering::SeqCst)
    }
}

fn index(id: &str) -> Vec<u8> {
    let entry = json!({"id": id, "version": "1.0.0", "package_url": "https://a.test/p"});
    json!({"plugins": [entry]}).to_string().into_bytes()
}

#[async_trait]
impl Fetch for Network {
    async fn fetch(&self, _url: &str) -> Result<Vec<u8>, IndexError> {
        self.fetches.fetch_add(1, Ordering::SeqCst);
        let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_once.fetch_max(now, Ordering::SeqCst);
        let answer = self.answers.lock().unwrap().pop_front().unwrap_or(Answer::Gone);
        let answer = match answer {
            Answer::Index(id) => Ok(index(id)),
            Answer::Bytes(text) => Ok(text.as_bytes().to_vec()),
            Answer::Gone => Err(IndexError::Unreachable("gone".to_owned())),
            Answer::After(pause, id) => {
                tokio::time::sleep(pause).await;
                Ok(index(id))
            }
        };
        self.at_once.fetch_sub(1, Ordering::SeqCst);
        answer
    }
}

const MINUTE: Duration = Duration::from_secs(60);

fn catalogue(network: &Network) -> Catalogue {
    let limits = Limits { marketplace_fetches: 2, ..Limits::default() };
    Catalogue::new(network.clone(), &Timing::default(), &limits, Handle::current())
}

fn source(id: &str) -> Source {
    Source {
        id: id.to_owned(),
        name: id.to_owned(),
        url: format!("https://{id}.test/"),
        enabled: true,
        builtin: false,
        created_at: datetime!(2026-11-29 12:00 UTC),
    }
}

/// The ids that a source offers, and its error.
fn shown(health: &Health) -> (Vec<&str>, Option<&str>) {
    (health.entries().iter().map(|entry| entry.id.as_str()).collect(), health.error.as_deref())
}

const GONE: &str = "gone; check the address and this machine's network";

#[tokio::test(start_paused = true)]
async fn an_index_is_known_for_a_while_and_fetched_anew_when_somebody_wants_it() {
    let network = Network::with([Answer::Index("a"), Answer::Index("b"), Answer::Index("c")]);
    let (catalogue, sources) = (catalogue(&network), [source("one")]);
    for (pause, anew, id, fetches) in [
        (Duration::ZERO, false, "a", 1),
        (4 * MINUTE, false, "a", 1),
        (2 * MINUTE, false, "b", 2),
        (Duration::ZERO, true, "c", 3),
    ] {
        tokio::time::advance(pause).await;
        let health = catalogue.look(&sources, anew).await;
        assert_eq!(shown(&health[0]), (vec![id], None));
        assert_eq!(network.fetches(), fetches);
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_died_shows_what_it_had_and_is_asked_again_soon() {
    let network = Network::with([Answer::Index("a"), Answer::Gone, Answer::Bytes("<html>"), Answer::Index("b")]);
    let (catalogue, sources) = (catalogue(&network), [source("one")]);
    assert_eq!(shown(&catalogue.look(&sources, false).await[0]), (vec!["a"], None));
    assert_eq!(shown(&catalogue.look(&sources, true).await[0]), (vec!["a"], Some(GONE)));
    assert_eq!(shown(&catalogue.look(&sources, false).await[0]), (vec!["a"], Some(GONE)));
    assert_eq!(network.fetches(), 2, "not before timing.marketplace_retry");
    tokio::time::advance(MINUTE).await;
    let health = catalogue.look(&sources, false).await;
    assert!(health[0].error.as_ref().unwrap().starts_with("what it serves is no plugin index: "), "{health:?}");
    assert_eq!((health[0].entries().len(), health[0].is_healthy()), (1, false));
    tokio::time::advance(MINUTE).await;
    assert_eq!(shown(&catalogue.look(&sources, false).await[0]), (vec!["b"], None));
}

#[tokio::test(start_paused = true)]
async fn however_many_ask_an_index_is_fetched_once_and_goes_on_when_they_hang_up() {
    let network = Network::with([Answer::After(MINUTE / 6, "a")]);
    let (catalogue, sources) = (catalogue(&network), [source("one")]);
    let hung_up = timeout(MINUTE / 60, catalogue.look(&sources, true)).await;
    assert!(hung_up.is_err());
    let all = join_all((0..10).map(|n| catalogue.look(&sources, n % 2 == 0))).await;
    assert!(all.iter().all(|health| shown(&health[0]) == (vec!["a"], None)), "{all:?}");
    assert_eq!(network.fetches(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_look_with_an_older_list_of_sources_takes_nothing_from_one_with_a_newer() {
    let network = Network::with([Answer::After(MINUTE / 6, "a")]);
    let (catalogue, newer, older) = (catalogue(&network), [source("one")], []);
    let (health, nothing) = tokio::join!(catalogue.look(&newer, false), catalogue.look(&older, false));
    assert_eq!((shown(&health[0]), nothing.len()), ((vec!["a"], None), 0));
}

#[tokio::test(start_paused = true)]
async fn sources_are_fetched_side_by_side_within_a_bound_and_nobody_waits_for_ever() {
    let slow = |id| Answer::After(MINUTE / 3, id);
    let network = Network::with([slow("a"), slow("b"), slow("c"), slow("d")]);
    let (catalogue, sources) = (catalogue(&network), ["one", "two", "three", "four"].map(source));
    let begun = Instant::now();
    let health = catalogue.look(&sources, false).await;
    let (waited, bound) = (begun.elapsed(), Timing::default().marketplace_timeout + Timing::default().ask_timeout);
    assert!(waited >= bound && waited < bound + MINUTE / 60, "{waited:?}");
    let known = health.iter().filter(|health| health.is_healthy()).count();
    let waiting = health.iter().filter(|health| health.error.as_deref() == Some(STILL_FETCHING)).count();
    assert_eq!((known, waiting), (2, 2));
    let health = catalogue.look(&sources, false).await;
    assert!(health.iter().all(Health::is_healthy), "{health:?}");
    assert_eq!((network.fetches(), network.most_at_once.load(Ordering::SeqCst)), (4, 2));
}

#[tokio::test(start_paused = true)]
async fn a_source_that_is_off_is_not_asked_and_one_that_is_deleted_is_forgotten() {
    let network = Network::with([Answer::Index("a"), Answer::Index("b")]);
    let catalogue = catalogue(&network);
    let off = Source { enabled: false, ..source("one") };
    assert_eq!(shown(&catalogue.look(std::slice::from_ref(&off), true).await[0]), (vec![], None));
    assert_eq!(network.fetches(), 0);
    assert_eq!(shown(&catalogue.look(&[source("one")], false).await[0]), (vec!["a"], None));
    assert_eq!(catalogue.look(&[], false).await, []);
    assert_eq!(shown(&catalogue.look(&[source("one")], false).await[0]), (vec!["b"], None));
}
