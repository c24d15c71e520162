//! The host is killed at many moments of everything that leaves something on disk, and its successor must find and tell
//! what docs/runtime-semantics.md promises for that moment.
//!
//! One draw over all scenarios: every named moment of [`moments`] once, the others random delays; each is printed with
//! the seed, and `KANDEV_TEST_SEED` sets another one. This file draws, kills and starts again; what a scenario
//! prepares, commands and must find afterwards is in the file of its family.

mod folder;
mod moments;
mod platform;
mod settings;
mod vault;
mod versions;

use std::{collections::BTreeSet, fmt, path::Path, sync::Arc, time::Duration};

use serde_json::{Value, json};

use self::moments::{NAMED, Scenario};
use crate::support::{Guest, Host, Package, Settings, Signal, eventually, eventually_some, host::Answer, kill};

/// Drawn once by a die; any other must pass as well.
const SEED: u64 = 0x6b61_6e64_6576;

/// Moments of random delay, beside the named ones.
const RANDOM: usize = 20;

/// Hosts at a time.
const LANES: usize = 4;

/// A random kill comes this long after the command at most: about as long as the longest takes.
const LONGEST_DELAY: Duration = Duration::from_millis(700);

const ID: &str = "crash";

const FAST: &str = r#"
[timing]
restart_delays = ["30ms", "30ms", "30ms"]
drain_grace = "300ms"
stop_grace = "500ms"
term_grace = "300ms"
"#;

const RIGHTS: &str = "capabilities:\n  secrets: true\n  api_read: [tasks]\n  api_write: [tasks]";

const SCHEMA: &str = r#"
config_schema:
  type: object
  properties:
    name: {type: string}
    token: {type: string, secret: true}
"#;

/// What the next start must find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Nothing,
    /// What was there before the command.
    Old,
    /// What the command wants.
    New,
    /// The version of the command, taken over from its folder: off.
    TakenOver,
    /// Whatever the command had come to, but all of it: the moment comes at no fixed place of the command.
    Lawful,
}

/// When the host is killed.
#[derive(Debug, Clone)]
enum When {
    /// It kills itself at the named moment.
    Failpoint(String),
    /// It is killed from outside.
    After(Duration),
}

#[derive(Debug, Clone)]
struct Moment {
    number: usize,
    scenario: Scenario,
    when: When,
    left: Left,
    guest: Guest,
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, scenario, when, left, guest } = self;
        write!(f, "moment {number}: {scenario:?} with {guest:?}, kill {when:?}, must leave {left:?}")
    }
}

/// SplitMix64: small, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

/// Every named moment once, in a drawn order, and random ones among them.
fn draw(seed: u64, with_go: bool) -> Vec<Moment> {
    let mut dice = Dice(seed);
    let mut named: Vec<_> = NAMED.iter().collect();
    let mut random = RANDOM;
    let mut drawn = Vec::new();
    while named.len() + random > 0 {
        let number = drawn.len();
        let (scenario, when, left) = if dice.below(named.len() + random) < named.len() {
            let (scenario, name, hit, left) = *named.swap_remove(dice.below(named.len()));
            (scenario, When::Failpoint(format!("{name}:{hit}")), left)
        } else {
            random -= 1;
            let scenario = Scenario::ALL[dice.below(Scenario::ALL.len())];
            let delay = dice.below(LONGEST_DELAY.as_millis() as usize);
            (scenario, When::After(Duration::from_millis(delay as u64)), Left::Lawful)
        };
        let guest = if with_go && dice.below(5) == 0 { Guest::Go } else { Guest::Rust };
        drawn.push(Moment { number, scenario, when, left, guest });
    }
    drawn
}

/// Archives of all versions; compressing them anew for every moment would take most of the time.
#[derive(Default)]
struct Archives {
    old: Vec<u8>,
    new: Vec<u8>,
    /// The new version's number, and it does not come up.
    lame: Vec<u8>,
    /// Of other plugins.
    gone: Vec<u8>,
    put: Vec<u8>,
}

impl Archives {
    async fn of(guest: Guest) -> Self {
        let package =
            |version| Package::of(guest, ID, version).manifest(|text| text.replace("capabilities:", RIGHTS) + SCHEMA);
        let lame = package("1.1.0").switches(&json!({"crash_before_handshake": 3}));
        Self {
            old: package("1.0.0").archive().await,
            new: package("1.1.0").archive().await,
            lame: lame.archive().await,
            gone: Package::of(guest, folder::GONE, "1.0.0").archive().await,
            put: Package::of(guest, folder::PUT, "1.0.0").archive().await,
        }
    }
}

/// Tells which moment failed.
struct Tell(String);

impl Drop for Tell {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- failed in {}", self.0);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_host_killed_at_any_moment_is_followed_by_one_that_finds_a_lawful_state_and_tells_it() {
    let seed = std::env::var("KANDEV_TEST_SEED").ok().map_or(SEED, |text| text.parse().expect("a number as seed"));
    let with_go = Guest::Go.executable().is_some();
    let rust = Arc::new(Archives::of(Guest::Rust).await);
    let go = if with_go { Arc::new(Archives::of(Guest::Go).await) } else { Arc::clone(&rust) };
    let mut lanes: [Vec<Moment>; LANES] = Default::default();
    for moment in draw(seed, with_go) {
        lanes[moment.number % LANES].push(moment);
    }
    let mut running = tokio::task::JoinSet::new();
    for moments in lanes {
        let (rust, go) = (Arc::clone(&rust), Arc::clone(&go));
        running.spawn(async move {
            let mut host = Host::start_with(Settings::toml(FAST)).await;
            for moment in moments {
                println!("seed {seed}, {moment}");
                let _tell = Tell(format!("seed {seed}, {moment}"));
                let archives = if moment.guest == Guest::Go { &go } else { &rust };
                run(&mut host, &moment, archives).await;
            }
        });
    }
    while let Some(lane) = running.join_next().await {
        lane.expect("every moment of the lane passes");
    }
}

#[test]
fn every_failpoint_of_the_sources_is_drawn() {
    let mut found = BTreeSet::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    let drawn = NAMED.iter().map(|(_, name, _, _)| *name);
    let named: BTreeSet<_> = drawn.chain(ELSEWHERE).map(str::to_owned).collect();
    assert_eq!(named, found);
    assert!(draw(SEED, true).len() >= 50);
}

/// Moments at which another test kills. The first is met only when a package has the kept version's number
/// (`upgrade::a_crash_while_a_package_takes_the_kept_versions_place…`), the second also whenever a plugin's status
/// changes (`event_log::an_event_is_not_lost…`); the others are those of commands (tests/cli/backup.rs).
const ELSEWHERE: [&str; 7] = [
    "upgrade.set_aside",
    "events.appended",
    "backup.begun",
    "backup.written",
    "restore.copied",
    "restore.kept",
    "restore.placed",
];

/// The names of all failpoints below a folder.
fn collect(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("the sources").flatten() {
        if entry.path().is_dir() {
            collect(&entry.path(), names);
            continue;
        }
        let text = std::fs::read_to_string(entry.path()).expect("a source file");
        let hits = text.split("failpoint::hit(\"").skip(1);
        names.extend(hits.filter_map(|rest| rest.split_once('"')).map(|(name, _)| name.to_owned()));
    }
}

/// What came of a moment.
struct Outcome<'a> {
    moment: &'a Moment,
    /// What the command answered before the kill, if anything.
    answered: Option<Answer>,
    /// What was there before the command, where the family asks.
    before: String,
    /// Whether the record on disk said that a change of version was under way.
    cut_off: bool,
    /// Length of the log before the next host.
    logged: usize,
}

impl Outcome<'_> {
    /// The next host tells this in its log.
    async fn tells(&self, host: &Host, text: &str) {
        let told = || host.log().get(self.logged..).is_some_and(|log| log.contains(text));
        eventually(&format!("the log tells: {text}"), || async { told() }).await;
    }
}

/// One moment: prepares, kills, starts again, checks and cleans up.
async fn run(host: &mut Host, moment: &Moment, archives: &Archives) {
    prepare(host, moment.scenario, archives).await;
    let before = vault::key_file(host);
    let kills_before = host.log().matches(": killed").count();
    let answered = operate_and_die(host, moment, archives).await;
    let reached = host.log().matches(": killed").count() > kills_before;
    if let (When::Failpoint(name), false) = (&moment.when, moment.left == Left::Lawful) {
        assert!(reached, "{name} was not reached, answered {answered:?}");
    }
    eventually("no plugin process is left", || async { host.plugin_processes().is_empty() }).await;
    host.disarm();
    let record = std::fs::read_to_string(host.plugins().join(format!("{ID}.yml"))).unwrap_or_default();
    let (cut_off, logged) = (record.contains("outcome: under_way"), host.log().len());
    host.spawn().await;
    let outcome = Outcome { moment, answered, before, cut_off, logged };
    check(host, &outcome, archives).await;
    assert_no_leftovers(host).await;
}

async fn prepare(host: &mut Host, scenario: Scenario, archives: &Archives) {
    match scenario.family() {
        Family::Versions => versions::prepare(host, scenario, archives).await,
        Family::Settings => settings::prepare(host, archives).await,
        Family::Folder => folder::prepare(host, scenario, archives).await,
        Family::Vault => vault::prepare(host, scenario, archives).await,
        Family::Platform => platform::prepare(host, archives).await,
    }
}

/// The command; nothing when the host does it by itself.
async fn operate(host: &Host, scenario: Scenario, archives: &Archives) -> Option<Answer> {
    match scenario.family() {
        Family::Versions => versions::operate(host, scenario, archives).await,
        Family::Settings => Some(settings::operate(host, scenario).await),
        Family::Folder => Some(folder::operate(host).await),
        Family::Vault => vault::operate(host, scenario).await,
        Family::Platform => Some(platform::operate(host).await),
    }
}

/// What must hold; removes what was prepared.
async fn check(host: &mut Host, outcome: &Outcome<'_>, archives: &Archives) {
    match outcome.moment.scenario.family() {
        Family::Versions => versions::check(host, outcome, archives).await,
        Family::Settings => settings::check(host, outcome).await,
        Family::Folder => folder::check(host, outcome).await,
        Family::Vault => vault::check(host, outcome).await,
        Family::Platform => platform::check(host, outcome).await,
    }
}

/// Which file knows a scenario.
enum Family {
    Versions,
    Settings,
    Folder,
    Vault,
    Platform,
}

/// Gives the command and has the host die; what it answered before, if anything.
async fn operate_and_die(host: &mut Host, moment: &Moment, archives: &Archives) -> Option<Answer> {
    let at_start = moment.scenario.is_a_start();
    if at_start {
        host.kill();
    }
    if let When::Failpoint(name) = &moment.when {
        host.arm(name);
    }
    if at_start {
        start_and_die(host, moment).await;
        return None;
    }
    let command = operate(host, moment.scenario, archives);
    let answered = match &moment.when {
        When::Failpoint(_) => command.await,
        When::After(delay) => {
            let pid = host.pid();
            let kill = async {
                tokio::time::sleep(*delay).await;
                kill(i32::try_from(pid).expect("a pid"), Signal::KILL);
            };
            tokio::join!(command, kill).0
        }
    };
    host.kill();
    answered.filter(|answer| answer.status != 0)
}

/// Starts the host on what was prepared; it dies on the way, or when all is done.
async fn start_and_die(host: &mut Host, moment: &Moment) {
    match &moment.when {
        When::Failpoint(_) => {
            if host.spawn_or_end().await {
                operate(host, moment.scenario, &Archives::default()).await;
            }
        }
        When::After(delay) => {
            host.spawn_unready();
            tokio::time::sleep(*delay).await;
        }
    }
    host.kill();
}

/// What the crash left is swept for good. A `.tmp-` file may also be a record being written at this moment, so the look
/// is repeated: nothing but the sweep takes a leftover away.
async fn assert_no_leftovers(host: &Host) {
    let folders = [host.plugins(), host.plugins().join(ID), host.plugins().join(".staging"), host.home().to_owned()];
    let left = || {
        let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
        let unfinished = entries.filter(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let marks = [".tmp-", ".removing-", ".staged-", ".vault.key.next"];
            marks.iter().any(|mark| name.starts_with(mark)) || entry.path().starts_with(&folders[2])
        });
        unfinished.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    eventually("nothing unfinished is left", || async { left().iter().all(|path| *path == folders[2]) }).await;
}

/// Makes host calls through the plugin; every one must succeed.
async fn host_calls(host: &Host, calls: Value) -> Vec<Value> {
    let results = eventually_some("the plugin has found its host", || async {
        let results = host.host_calls(ID, calls.clone()).await;
        results.iter().all(|result| result["code"] != "Unavailable").then_some(results)
    })
    .await;
    let ok = |result: Value| {
        assert_eq!(result["ok"], true, "{result}");
        result["response"].clone()
    };
    results.into_iter().map(ok).collect()
}

fn call(rpc: &str, request: Value) -> Value {
    json!({"rpc": rpc, "request": request})
}

/// Installs a version that is active then.
async fn install(host: &Host, archive: &[u8]) {
    let body = host.upload(archive.to_vec()).await.expect(201);
    assert_eq!(body["plugin"]["status"], "active", "{body}");
}
