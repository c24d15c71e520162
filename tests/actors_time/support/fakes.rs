//! Scripted processes that record what is asked of them, with the seconds since the world began.
//!
//! A script is a line of answers for each plugin; where it has run out, everything goes well at once.

use std::{
    collections::{BTreeMap, VecDeque},
    future::pending,
    sync::{Arc, Mutex, MutexGuard, Weak},
    time::Duration,
};

use kandev_host::{
    domain::{id::PluginId, tenancy::Tenancy},
    grpc::client::{CallError, PluginClient},
    process::{Granted, HostServiceFactory, LaunchFailure, LaunchRequest, Launched, Launcher, PluginProcess},
};
use kandev_proto::v1;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tonic::{async_trait, service::Routes};

/// How a launch goes.
#[derive(Clone)]
pub enum Launch {
    /// A healthy process.
    Up,
    /// A healthy process after this time.
    Slow(Duration),
    /// No process, for this reason.
    Fails(&'static str),
    /// No process, for this reason, now and ever.
    FailsForGood(&'static str),
    /// A failure after this time.
    FailsLate(Duration),
    /// The host's own code that prepares it panics.
    Panics,
}

/// How a ping or a delivery goes.
#[derive(Clone)]
pub enum Answer {
    /// Well.
    Good,
    /// Refused.
    Bad,
    /// Well after this time.
    Slow(Duration),
    /// Not at all: the deadline passes.
    Hangs,
}

/// How a stop goes.
#[derive(Clone)]
pub enum Stop {
    /// The process ends after this time.
    Ends(Duration),
}

#[derive(Default)]
struct Script {
    launches: VecDeque<Launch>,
    pings: VecDeque<Answer>,
    deliveries: VecDeque<Answer>,
    stops: VecDeque<Stop>,
    current: Weak<FakeProcess>,
    launching: usize,
    kill_panics: bool,
}

impl Script {
    /// The process that has not ended.
    fn alive(&self) -> Option<Arc<FakeProcess>> {
        self.current.upgrade().filter(|process| process.ended.borrow().is_none())
    }
}

#[derive(Default)]
struct Inner {
    scripts: BTreeMap<String, Script>,
    calls: Vec<(f64, String, String)>,
    event_ids: Vec<String>,
    most_launching: usize,
}

/// The fakes' common memory; clones share it.
#[derive(Clone)]
pub struct Fakes {
    inner: Arc<Mutex<Inner>>,
    began: Instant,
}

impl Fakes {
    /// Nothing recorded; time counts from now.
    pub fn new() -> Self {
        Self { inner: Arc::default(), began: Instant::now() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// The next launches of a plugin.
    pub fn launches(&self, id: &str, launches: impl IntoIterator<Item = Launch>) {
        self.lock().scripts.entry(id.into()).or_default().launches.extend(launches);
    }

    /// The next pings of a plugin.
    pub fn pings(&self, id: &str, pings: impl IntoIterator<Item = Answer>) {
        self.lock().scripts.entry(id.into()).or_default().pings.extend(pings);
    }

    /// The next deliveries to a plugin.
    pub fn deliveries(&self, id: &str, deliveries: impl IntoIterator<Item = Answer>) {
        self.lock().scripts.entry(id.into()).or_default().deliveries.extend(deliveries);
    }

    /// The next stops of a plugin.
    pub fn stops(&self, id: &str, stops: impl IntoIterator<Item = Stop>) {
        self.lock().scripts.entry(id.into()).or_default().stops.extend(stops);
    }

    /// The host's own code that kills the plugin's process panics once.
    pub fn panic_at_kill(&self, id: &str) {
        self.lock().scripts.entry(id.into()).or_default().kill_panics = true;
    }

    /// The plugin's process ends by itself.
    pub fn crash(&self, id: &str) {
        self.process(id).end("exited with code 3");
    }

    fn process(&self, id: &str) -> Arc<FakeProcess> {
        self.lock().scripts[id].alive().expect("a running process")
    }

    /// Waits until the plugin's process has ended.
    pub async fn until_ended(&self, id: &str) {
        self.process(id).exited().await;
    }

    /// What was asked of a plugin's processes, in order, without health pings: `<seconds> <what>`.
    pub fn calls(&self, id: &str) -> Vec<String> {
        self.recorded(id, |what| !what.starts_with("ping"))
    }

    /// The health pings.
    pub fn pinged(&self, id: &str) -> Vec<String> {
        self.recorded(id, |what| what.starts_with("ping") || what.starts_with("kill"))
    }

    /// Everything whose text contains `part`.
    pub fn calls_with(&self, id: &str, part: &str) -> Vec<String> {
        self.recorded(id, |what| what.contains(part))
    }

    fn recorded(&self, id: &str, wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let inner = self.lock();
        let calls = inner.calls.iter().filter(|(_, whose, what)| whose == id && wanted(what));
        calls.map(|(at, _, what)| format!("{at} {what}")).collect()
    }

    /// Processes that have not ended.
    pub fn alive(&self) -> Vec<String> {
        let inner = self.lock();
        inner.scripts.iter().filter(|(_, script)| script.alive().is_some()).map(|(id, _)| id.clone()).collect()
    }

    /// The most launches that were under way at once.
    pub fn most_launching(&self) -> usize {
        self.lock().most_launching
    }

    fn record(&self, id: &str, what: impl Into<String>) {
        // Tenths of a second: the timer's own ticks are milliseconds.
        let at = (self.began.elapsed().as_secs_f64() * 10.0).round() / 10.0;
        self.lock().calls.push((at, id.to_owned(), what.into()));
    }

    fn next<T>(&self, id: &str, line: impl FnOnce(&mut Script) -> &mut VecDeque<T>) -> Option<T> {
        line(self.lock().scripts.entry(id.to_owned()).or_default()).pop_front()
    }

    /// A short name for an event id: repeated attempts must have the same.
    fn name_of(&self, event_id: &str) -> usize {
        let mut inner = self.lock();
        match inner.event_ids.iter().position(|id| id == event_id) {
            Some(known) => known + 1,
            None => {
                inner.event_ids.push(event_id.to_owned());
                inner.event_ids.len()
            }
        }
    }
}

/// Counts a launch as under way until it is dropped, also when it was aborted.
struct Launching(Fakes, String);

impl Launching {
    fn begin(fakes: &Fakes, id: &str) -> Self {
        let mut inner = fakes.lock();
        inner.scripts.entry(id.into()).or_default().launching += 1;
        let now = inner.scripts.values().map(|script| script.launching).sum();
        inner.most_launching = inner.most_launching.max(now);
        Self(fakes.clone(), id.to_owned())
    }
}

impl Drop for Launching {
    fn drop(&mut self) {
        self.0.lock().scripts.entry(self.1.clone()).or_default().launching -= 1;
    }
}

#[async_trait]
impl Launcher for Fakes {
    async fn launch(&self, request: LaunchRequest) -> Result<Launched, LaunchFailure> {
        let (id, generation) = (request.id.as_str().to_owned(), request.generation);
        self.record(&id, format!("launch {generation}"));
        let _launching = Launching::begin(self, &id);
        match self.next(&id, |script| &mut script.launches).unwrap_or(Launch::Up) {
            Launch::Up | Launch::Panics => {}
            Launch::Slow(wait) => unless_aborted(&request, wait).await?,
            Launch::Fails(why) => return Err(LaunchFailure::Passing(why.to_owned())),
            Launch::FailsForGood(why) => return Err(LaunchFailure::Lasting(why.to_owned())),
            Launch::FailsLate(wait) => {
                unless_aborted(&request, wait).await?;
                return Err(LaunchFailure::Passing("no handshake line".to_owned()));
            }
        }
        let process =
            Arc::new(FakeProcess { fakes: self.clone(), id: id.clone(), generation, ended: watch::channel(None).0 });
        let mut inner = self.lock();
        let script = inner.scripts.entry(id.clone()).or_default();
        assert!(script.alive().is_none(), "{id} has two processes");
        script.current = Arc::downgrade(&process);
        drop(inner);
        Ok(Launched { client: Arc::clone(&process) as Arc<dyn PluginClient>, process, executable_sha256: None })
    }
}

async fn unless_aborted(request: &LaunchRequest, wait: Duration) -> Result<(), LaunchFailure> {
    match tokio::time::timeout(wait, request.abort.cancelled()).await {
        Ok(()) => Err(LaunchFailure::Passing("the start was aborted".to_owned())),
        Err(_) => Ok(()),
    }
}

impl HostServiceFactory for Fakes {
    fn routes(&self, id: &PluginId, _: &Granted, _: &Tenancy) -> Routes {
        let mut inner = self.lock();
        let script = inner.scripts.entry(id.as_str().to_owned()).or_default();
        if matches!(script.launches.front(), Some(Launch::Panics)) {
            script.launches.pop_front();
            drop(inner);
            self.record(id.as_str(), "panic");
            panic!("scripted");
        }
        Routes::default()
    }
}

struct FakeProcess {
    fakes: Fakes,
    id: String,
    generation: u64,
    ended: watch::Sender<Option<&'static str>>,
}

impl FakeProcess {
    fn end(&self, how: &'static str) {
        if self.ended.send_if_modified(|ended| ended.replace(how).is_none()) {
            self.fakes.record(&self.id, format!("end {}", self.generation));
        }
    }

    /// Whether it went well; `None` when the deadline passed.
    async fn answer(&self, answer: Answer, deadline: Duration) -> Option<bool> {
        let answered = async {
            match answer {
                Answer::Good => true,
                Answer::Bad => false,
                Answer::Slow(wait) => {
                    sleep(wait).await;
                    true
                }
                Answer::Hangs => pending().await,
            }
        };
        timeout(deadline, answered).await.ok()
    }
}

#[async_trait]
impl PluginProcess for FakeProcess {
    fn pid(&self) -> u32 {
        1
    }

    async fn ping(&self, deadline: Duration) -> Result<(), String> {
        self.fakes.record(&self.id, format!("ping {}", self.generation));
        let answer = self.fakes.next(&self.id, |script| &mut script.pings).unwrap_or(Answer::Good);
        match self.answer(answer, deadline).await {
            Some(true) => Ok(()),
            Some(false) => Err("the plugin says it is not serving".to_owned()),
            None => Err("no answer".to_owned()),
        }
    }

    async fn exited(&self) -> String {
        let mut ended = self.ended.subscribe();
        let how = ended.wait_for(Option::is_some).await.expect("the sender lives as long as the process");
        how.unwrap_or_default().to_owned()
    }

    async fn stop(&self) {
        self.fakes.record(&self.id, format!("stop {}", self.generation));
        let Stop::Ends(wait) =
            self.fakes.next(&self.id, |script| &mut script.stops).unwrap_or(Stop::Ends(Duration::ZERO));
        sleep(wait).await;
        self.end("stopped");
    }

    fn kill(&self) {
        self.fakes.record(&self.id, format!("kill {}", self.generation));
        let panics = self.fakes.lock().scripts.get_mut(&self.id).is_some_and(|s| std::mem::take(&mut s.kill_panics));
        assert!(!panics, "scripted");
        self.end("killed");
    }
}

impl Drop for FakeProcess {
    /// As the real one: nobody holds it any more, so it is killed.
    fn drop(&mut self) {
        self.end("dropped");
    }
}

#[async_trait]
impl PluginClient for FakeProcess {
    async fn deliver_event(&self, event: v1::Event, deadline: Duration) -> Result<(), CallError> {
        let name = self.fakes.name_of(&event.event_id);
        self.fakes.record(&self.id, format!("deliver {} #{name}", event.event_type));
        let answer = self.fakes.next(&self.id, |script| &mut script.deliveries).unwrap_or(Answer::Good);
        let answered = tokio::select! {
            answered = self.answer(answer, deadline) => answered,
            _ = self.exited() => return Err(CallError::Disconnected),
        };
        match answered {
            Some(true) => Ok(()),
            Some(false) => Err(CallError::Refused { code: tonic::Code::Internal, message: "scripted".to_owned() }),
            None => Err(CallError::TimedOut(deadline)),
        }
    }

    async fn handle_webhook(&self, _: v1::WebhookRequest, _: Duration) -> Result<v1::WebhookResponse, CallError> {
        Err(CallError::Disconnected)
    }

    async fn handle_action(
        &self,
        _: v1::PluginActionRequest,
        _: Duration,
    ) -> Result<v1::PluginActionResponse, CallError> {
        Err(CallError::Disconnected)
    }

    async fn invoke_agent_tool(
        &self,
        _: v1::AgentToolRequest,
        _: Duration,
    ) -> Result<v1::AgentToolResponse, CallError> {
        Err(CallError::Disconnected)
    }
}
