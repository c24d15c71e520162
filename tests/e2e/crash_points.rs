//! The host is killed at many moments of install, upgrade, rollback, restart, host start and uninstall, and its successor
//! must find what docs/runtime-semantics.md promises for that moment.
//!
//! The moments are drawn from [`NAMED`] and from random delays, by a seed that every moment is printed with.
//! `KANDEV_TEST_SEED` sets another one.

use std::{fmt, sync::Arc, time::Duration};

use serde_json::{Value, json};

use crate::support::{Guest, Host, Package, Settings, Signal, eventually, eventually_some, host::Answer, kill};

/// Drawn once by a die; any other must pass as well.
const SEED: u64 = 0x6b61_6e64_6576;

const MOMENTS: usize = 72;

/// Hosts at a time.
const LANES: usize = 4;

/// A random kill comes this long after the command at most: about as long as the longest takes.
const LONGEST_DELAY: Duration = Duration::from_millis(700);

const ID: &str = "crash";

/// A version that an earlier upgrade should have pruned.
const OLDEST: &str = "0.9.0";

const FAST: &str = r#"
[timing]
restart_delays = ["30ms", "30ms", "30ms"]
drain_grace = "300ms"
stop_grace = "500ms"
term_grace = "300ms"
"#;

/// What is under way when the host dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scenario {
    Install,
    Upgrade,
    /// Of a plugin that is disabled.
    UpgradeOff,
    /// To a version that does not come up.
    FailedUpgrade,
    /// Of the newer version to the older one.
    Rollback,
    Restart,
    Boot,
    Uninstall,
}

/// What the next start must find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Nothing,
    /// What was installed before the command.
    Old,
    /// What the command wants.
    New,
    /// The old version, taken over from its folder: off.
    TakenOver,
    /// Whatever the command had come to, but all of it: the moment comes at no fixed place of the command.
    Lawful,
}

use Left::{Lawful, New, Nothing, Old, TakenOver};
use Scenario::{Boot, FailedUpgrade, Install, Restart, Rollback, Uninstall, Upgrade, UpgradeOff};

/// The named moments of docs/runtime-semantics.md, with the hit.
const NAMED: &[(Scenario, &str, u32, Left)] = &[
    (Install, "install.staged", 1, Nothing),
    (Install, "install.unpacked", 1, Nothing),
    (Install, "install.placed", 1, TakenOver),
    (Install, "record.writing", 1, TakenOver),
    (Install, "file.replacing", 1, TakenOver),
    (Install, "record.written", 1, Old),
    (Install, "install.recorded", 1, Old),
    (Install, "start.launching", 1, Old),
    (Install, "start.launched", 1, Old),
    (Install, "start.settled", 1, Old),
    (Install, "file.replacing", 2, Old),
    (Upgrade, "install.staged", 1, Old),
    (Upgrade, "install.unpacked", 1, Old),
    (Upgrade, "record.writing", 1, Old),
    (Upgrade, "upgrade.announced", 1, Old),
    (Upgrade, "install.placed", 1, Old),
    (Upgrade, "upgrade.held", 1, Old),
    (Upgrade, "record.writing", 3, Lawful),
    (Upgrade, "file.replacing", 2, Lawful),
    (Upgrade, "record.written", 3, Lawful),
    (Upgrade, "upgrade.recorded", 1, New),
    // The record is written while the process starts.
    (Upgrade, "start.launching", 1, Lawful),
    (Upgrade, "start.launched", 1, Lawful),
    (Upgrade, "start.settled", 1, Lawful),
    (Upgrade, "upgrade.done", 1, New),
    (Upgrade, "upgrade.pruning", 1, New),
    (Upgrade, "version.deleting", 1, New),
    (UpgradeOff, "upgrade.announced", 1, Old),
    (UpgradeOff, "upgrade.held", 1, Old),
    (UpgradeOff, "upgrade.recorded", 1, New),
    (FailedUpgrade, "upgrade.recorded", 1, Old),
    (FailedUpgrade, "start.launching", 1, Old),
    (FailedUpgrade, "upgrade.undoing", 1, Old),
    (FailedUpgrade, "upgrade.undone", 1, Old),
    (FailedUpgrade, "record.writing", 3, Old),
    (FailedUpgrade, "start.launching", 2, Old),
    (FailedUpgrade, "version.deleting", 1, Old),
    (Rollback, "upgrade.announced", 1, Old),
    (Rollback, "upgrade.held", 1, Old),
    (Rollback, "record.written", 2, Lawful),
    (Rollback, "upgrade.recorded", 1, New),
    (Rollback, "start.launched", 1, Lawful),
    (Rollback, "upgrade.done", 1, New),
    (Restart, "restart.scheduled", 1, Old),
    (Restart, "start.launching", 1, Old),
    (Restart, "start.launched", 1, Old),
    (Restart, "start.settled", 1, Old),
    (Restart, "record.writing", 1, Old),
    (Restart, "file.replacing", 2, Lawful),
    (Restart, "record.written", 2, Lawful),
    (Boot, "file.replacing", 1, Old),
    (Boot, "start.launching", 1, Old),
    (Boot, "start.launched", 1, Old),
    (Boot, "start.settled", 1, Old),
    (Uninstall, "uninstall.stopped", 1, Old),
    (Uninstall, "uninstall.set_aside", 1, Nothing),
    (Uninstall, "uninstall.rows_removed", 1, Nothing),
    (Uninstall, "uninstall.deleting", 1, Nothing),
    (Uninstall, "uninstall.deleting", 2, Nothing),
    (Uninstall, "uninstall.deleting", 3, Nothing),
];

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

/// Every named moment once, in a drawn order; the others are random delays.
fn draw(seed: u64, with_go: bool) -> Vec<Moment> {
    let mut dice = Dice(seed);
    let mut named: Vec<_> = NAMED.iter().collect();
    let mut drawn = Vec::new();
    for number in 0..MOMENTS {
        let (scenario, when, left) = if number % 8 < 7 && !named.is_empty() {
            let (scenario, name, hit, left) = *named.swap_remove(dice.below(named.len()));
            (scenario, When::Failpoint(format!("{name}:{hit}")), left)
        } else {
            let scenario = [Install, Upgrade, FailedUpgrade, Rollback, Restart, Boot, Uninstall][dice.below(7)];
            let delay = dice.below(LONGEST_DELAY.as_millis() as usize);
            (scenario, When::After(Duration::from_millis(delay as u64)), Lawful)
        };
        let guest = if with_go && dice.below(5) == 0 { Guest::Go } else { Guest::Rust };
        drawn.push(Moment { number, scenario, when, left, guest });
    }
    assert!(named.is_empty(), "{} named moments were not drawn: raise MOMENTS", named.len());
    drawn
}

/// Archives of both versions; compressing them anew for every moment would take most of the time.
struct Archives {
    old: Vec<u8>,
    new: Vec<u8>,
    /// The new version's number, and it does not come up.
    lame: Vec<u8>,
}

impl Archives {
    async fn of(guest: Guest) -> Self {
        let archive = async |version| Package::of(guest, ID, version).archive().await;
        let lame = Package::of(guest, ID, "1.1.0").switches(&json!({"crash_before_handshake": 3}));
        Self { old: archive("1.0.0").await, new: archive("1.1.0").await, lame: lame.archive().await }
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
async fn a_host_killed_at_any_moment_is_followed_by_one_that_finds_a_lawful_state() {
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

/// One moment: prepares, kills, starts again, checks and cleans up.
async fn run(host: &mut Host, moment: &Moment, archives: &Archives) {
    prepare(host, moment.scenario, archives).await;
    let kills_before = host.log().matches(": killed").count();
    let answered = operate_and_die(host, moment, archives).await;
    let reached = host.log().matches(": killed").count() > kills_before;
    if let (When::Failpoint(name), false) = (&moment.when, moment.left == Lawful) {
        assert!(reached, "{name} was not reached");
    }
    eventually("no plugin process is left", || async { host.plugin_processes().is_empty() }).await;
    host.disarm();
    host.spawn().await;

    let note = ended_change(host).await;
    assert_no_leftovers(host).await;
    let placed = host.plugins().join(ID).join("1.0.0");
    eventually("a folder without a record is taken over", || async {
        installed_version(host).await.is_some() || !placed.exists()
    })
    .await;
    let version = installed_version(host).await;
    assert_lawful(moment, answered.as_ref(), version.as_deref());
    assert_reported(host, moment, version.as_deref(), &note);
    match version {
        Some(version) => assert_whole(host, moment, &version, archives).await,
        None => assert_gone(host, moment.scenario, &archives.old).await,
    }
    host.uninstall(ID).await.expect(200);
    assert!(!host.plugins().join(ID).exists() && !record_file(host).exists());
}

async fn prepare(host: &Host, scenario: Scenario, archives: &Archives) {
    if scenario == Install {
        return;
    }
    let body = host.upload(archives.old.clone()).await.expect(201);
    assert_eq!(body["plugin"]["status"], "active", "{body}");
    set_state(host).await;
    if scenario == UpgradeOff {
        host.command(ID, "disable").await.expect(200);
    }
    if scenario == Upgrade {
        // What an earlier version left: the upgrade prunes it.
        let folder = host.plugins().join(ID);
        let manifest = std::fs::read_to_string(folder.join("1.0.0/manifest.yaml")).expect("the manifest");
        std::fs::create_dir(folder.join(OLDEST)).expect("an old version's folder");
        let manifest = manifest.replace("1.0.0", OLDEST);
        std::fs::write(folder.join(OLDEST).join("manifest.yaml"), manifest).expect("an old version's file");
    }
    if scenario == Rollback {
        host.upload(archives.new.clone()).await.expect(201);
    }
}

/// Gives the command and has the host die; what it answered before, if anything.
async fn operate_and_die(host: &mut Host, moment: &Moment, archives: &Archives) -> Option<Answer> {
    if moment.scenario == Boot {
        host.kill();
    }
    if let When::Failpoint(name) = &moment.when {
        host.arm(name);
    }
    if moment.scenario == Boot {
        boot_and_die(host, &moment.when).await;
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

/// Starts the host on a home with an active plugin; it dies on the way, or when the plugin is up.
async fn boot_and_die(host: &mut Host, when: &When) {
    match when {
        When::Failpoint(_) => {
            if host.spawn_or_end().await {
                up_or_dead(host).await;
            }
        }
        When::After(delay) => {
            host.spawn_unready();
            tokio::time::sleep(*delay).await;
        }
    }
    host.kill();
}

async fn operate(host: &Host, scenario: Scenario, archives: &Archives) -> Option<Answer> {
    match scenario {
        Install => Some(host.upload(archives.old.clone()).await),
        Upgrade | UpgradeOff => Some(host.upload(archives.new.clone()).await),
        FailedUpgrade => Some(host.upload(archives.lame.clone()).await),
        Rollback => Some(host.command(ID, "rollback").await),
        Uninstall => Some(host.uninstall(ID).await),
        Restart => {
            kill(host.plugin_pid(ID).expect("the plugin runs"), Signal::KILL);
            eventually("the restart, or the host's end", || async {
                let answer = host.get(&format!("/api/plugins/{ID}")).await;
                answer.status == 0 || (answer.body["status"] == "active" && answer.body["restart_count"] != 0)
            })
            .await;
            None
        }
        Boot => None,
    }
}

async fn up_or_dead(host: &Host) {
    eventually("the plugin is up, or the host's end", || async {
        let answer = host.get(&format!("/api/plugins/{ID}")).await;
        let running = host.recorded(ID, "starts.jsonl").len() > 1;
        answer.status == 0 || (running && answer.body["status"] == "active")
    })
    .await;
}

/// What was answered before the kill holds; otherwise what the moment says.
fn assert_lawful(moment: &Moment, answered: Option<&Answer>, version: Option<&str>) {
    let nothing = None;
    let (old, new) = match moment.scenario {
        Rollback => (Some("1.1.0"), Some("1.0.0")),
        _ => (Some("1.0.0"), Some("1.1.0")),
    };
    let acknowledged = answered.map(|answer| (moment.scenario, answer.status));
    let allowed: &[Option<&str>] = match (acknowledged, moment.left, moment.scenario) {
        (Some((Install, 201) | (FailedUpgrade, 422)), _, _) => &[old],
        (Some((Upgrade | UpgradeOff, 201) | (Rollback, 200)), _, _) => &[new],
        (Some((Uninstall, 200)), _, _) => &[nothing],
        (Some(_), _, _) => panic!("the command failed: {answered:?}"),
        (None, Nothing, _) => &[nothing],
        (None, Old | TakenOver, _) => &[old],
        (None, New, _) => &[new],
        (None, Lawful, Install | Uninstall) => &[nothing, old],
        (None, Lawful, Upgrade | UpgradeOff | Rollback) => &[old, new],
        (None, Lawful, FailedUpgrade | Restart | Boot) => &[old],
    };
    assert!(allowed.contains(&version), "found {version:?}, lawful is {allowed:?}, answered {answered:?}");
}

/// Waits until the host has ended what its predecessor left; gives the note of the last change, `null` when none began.
async fn ended_change(host: &Host) -> Value {
    eventually_some("the unfinished change is ended", || async {
        let note = host.get(&format!("/api/plugins/{ID}")).await.body["last_upgrade"].clone();
        (note["outcome"] != "under_way").then_some(note)
    })
    .await
}

/// A change that was begun and is not the installed version's was noted as what became of it, and left no files.
fn assert_reported(host: &Host, moment: &Moment, version: Option<&str>, note: &Value) {
    if matches!(moment.scenario, Upgrade | UpgradeOff | FailedUpgrade | Rollback) && !note.is_null() {
        match note["version"] == json!(version) {
            true => assert_eq!(note["outcome"], "done", "{note}"),
            false => assert!(["interrupted", "rolled_back"].contains(&note["outcome"].as_str().unwrap()), "{note}"),
        }
    }
    // One that was undone is removed last: when the host dies before, the next upgrade prunes it.
    let undone = note["outcome"] == "rolled_back";
    if !undone && matches!(moment.scenario, Upgrade | UpgradeOff | FailedUpgrade) && version == Some("1.0.0") {
        assert!(!host.versions(ID).contains(&"1.1.0".to_owned()), "what was placed is removed: {note}");
    }
    if moment.scenario == Rollback {
        assert_eq!(host.versions(ID), ["1.0.0", "1.1.0"], "a rollback removes nothing");
    }
}

/// The plugin comes up, record and folder agree, its state is there, and the same version is known as installed.
async fn assert_whole(host: &Host, moment: &Moment, version: &str, archives: &Archives) {
    let scenario = moment.scenario;
    let off = host.plugin(ID).await["status"] == "disabled";
    match (scenario, moment.left) {
        (UpgradeOff, _) if version == "1.0.0" => assert!(off, "an upgrade that did not come about enables nothing"),
        (_, TakenOver) => assert!(off, "what was taken over does not run by itself"),
        (Install, Lawful) => {}
        _ => assert!(!off, "nobody has disabled it"),
    }
    if off {
        host.command(ID, "enable").await.expect(200);
    }
    let record = host.status(ID, "active").await;
    let folder = host.plugins().join(ID).join(version);
    assert_eq!(record["install_path"], folder.to_str().expect("a path as text"));
    assert!(folder.join("manifest.yaml").is_file());
    eventually("the record on disk says so too", || async {
        let text = std::fs::read_to_string(record_file(host)).unwrap_or_default();
        text.contains("status: active") && text.contains(&format!("/{version}"))
    })
    .await;
    assert_eq!(host.plugin_processes().len(), 1);
    assert_eq!(has_state(host).await, scenario != Install);
    let again = if version == "1.0.0" { &archives.old } else { &archives.new };
    assert_eq!(host.upload(again.clone()).await.status, 409);
}

/// Nothing of the plugin is left, and the same package installs with no state of before.
async fn assert_gone(host: &Host, scenario: Scenario, archive: &[u8]) {
    assert!(!record_file(host).exists());
    // An install may have made the plugin's folder and come no further.
    assert!(scenario == Install || !host.plugins().join(ID).exists());
    assert_eq!(host.plugin_processes(), Vec::<i32>::new());
    let body = host.upload(archive.to_vec()).await.expect(201);
    assert_eq!(body["plugin"]["status"], "active", "{body}");
    assert!(!has_state(host).await, "rows of the removed plugin were left");
}

/// What the crash left is swept for good. A `.tmp-` file may also be a record being written at this moment, so the look
/// is repeated: nothing but the sweep takes a leftover away.
async fn assert_no_leftovers(host: &Host) {
    let folders = [host.plugins(), host.plugins().join(ID), host.plugins().join(".staging")];
    let left = || {
        let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
        let unfinished = entries.filter(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name.starts_with(".tmp-") || name.starts_with(".removing-") || entry.path().starts_with(&folders[2])
        });
        unfinished.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    eventually("nothing unfinished is left", || async { left().iter().all(|path| *path == folders[2]) }).await;
}

async fn installed_version(host: &Host) -> Option<String> {
    let answer = host.get(&format!("/api/plugins/{ID}")).await;
    match answer.status {
        404 => None,
        _ => Some(answer.expect(200)["version"].as_str().expect("a version").to_owned()),
    }
}

fn record_file(host: &Host) -> std::path::PathBuf {
    host.plugins().join(format!("{ID}.yml"))
}

async fn set_state(host: &Host) {
    let request = json!({"scope": "s", "scope_id": "", "key": "k", "value": {"v": 1}});
    let results = host.host_calls(ID, json!([{"rpc": "SetState", "request": request}])).await;
    assert_eq!(results[0]["ok"], true, "{results:?}");
}

async fn has_state(host: &Host) -> bool {
    let calls = json!([{"rpc": "GetState", "request": {"scope": "s", "scope_id": "", "key": "k"}}]);
    let result = eventually_some("the plugin has found its host", || async {
        let result = host.host_calls(ID, calls.clone()).await.remove(0);
        (result["code"] != "Unavailable").then_some(result)
    })
    .await;
    assert_eq!(result["ok"], true, "{result}");
    result["response"]["found"] == json!(true)
}
