//! Disables the plugin and watches its process: whether it ends by itself, and what outlives it.

use std::{collections::BTreeMap, time::Duration};

use reqwest::Method;
use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep},
};

use super::{
    CheckError,
    processes::{Mark, runs},
    report::{Finding, Topic},
    session::{Session, millis, span},
};

const BY_ITSELF: &str = "end when the controller's Shutdown is called: leave serve, close what is open, exit";
const CHILDREN: &str = "end every child before the plugin ends, and keep them in its process group";

/// Stops it.
pub async fn check(session: &mut Session<'_>) -> Result<(), CheckError> {
    session.output.progress("the plugin is asked to stop");
    if !session.runs().await? {
        let why = format!("the plugin does not run: {}", session.last_error().await?);
        session.add(Finding::skipped(Topic::Stop, why));
        return Ok(());
    }
    let Some(pid) = session.view().await?.process.pid.and_then(|pid| i32::try_from(pid).ok()) else {
        session.add(Finding::skipped(Topic::Stop, "its process is not known"));
        return Ok(());
    };
    let at_once = processes(session).await.len();
    let (answer, took) = tokio::join!(session.ask(Method::POST, &["disable"]), until_ended(session, pid));
    let answer = answer?;
    let finding = match (answer.status, took) {
        (200, Some(took)) => judge(session, took),
        (200, None) => Finding::fail(Topic::Stop, "its process is still there", BY_ITSELF),
        _ => Finding::fail(Topic::Stop, answer.fault(), BY_ITSELF),
    };
    session.add(finding);
    leftovers(session, at_once).await;
    Ok(())
}

/// How long the process lived on. The ladder is the host's: Shutdown, TERM after `stop_grace`, KILL after `term_grace`.
fn judge(session: &Session<'_>, took: Duration) -> Finding {
    let (stop, term) = (session.timing.host.stop_grace, session.timing.host.term_grace);
    let finding = if took < stop {
        Finding::pass(Topic::Stop, format!("it ended by itself within {}", span(took)))
    } else if took < stop + term {
        Finding::warn(Topic::Stop, format!("it did not end within {}, but at SIGTERM", span(stop)), BY_ITSELF)
    } else {
        Finding::fail(Topic::Stop, format!("it had to be killed, {} after it was asked", span(took)), BY_ITSELF)
    };
    finding.fact("ms", millis(took))
}

/// Waits for the end of a process, as long as a stop may take.
async fn until_ended(session: &Session<'_>, pid: i32) -> Option<Duration> {
    let begin = Instant::now();
    let deadline = begin + session.timing.host.longest_stop() + session.timing.margin;
    while runs(pid) {
        if Instant::now() >= deadline {
            return None;
        }
        sleep(session.timing.look).await;
    }
    Some(begin.elapsed())
}

/// The plugin's processes; reading `/proc` blocks.
async fn processes(session: &Session<'_>) -> BTreeMap<i32, String> {
    let mark = Mark::of(session.home);
    spawn_blocking(move || mark.processes()).await.unwrap_or_default()
}

async fn leftovers(session: &mut Session<'_>, before: usize) {
    let deadline = Instant::now() + session.timing.farewell;
    let mut left = processes(session).await;
    while !left.is_empty() && Instant::now() < deadline {
        sleep(session.timing.look).await;
        left = processes(session).await;
    }
    let named: Vec<_> = left.iter().map(|(pid, name)| format!("{name} ({pid})")).collect();
    let finding = match (named.as_slice(), before) {
        ([], 0 | 1) => Finding::pass(Topic::Leftovers, "no process of it is left"),
        ([], more) => Finding::pass(Topic::Leftovers, format!("none of its {more} processes is left")),
        (left, _) => {
            let text = format!("{} of its processes outlived it: {}", left.len(), left.join(", "));
            Finding::fail(Topic::Leftovers, text, CHILDREN)
        }
    };
    session.add(finding.fact("processes_before", before).fact("processes_left", named.len()));
}
