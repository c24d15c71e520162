//! Delivers an event for each pattern that the plugin subscribes to, one at a time, and sees that it is acknowledged.

use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    CheckError,
    report::{Finding, Topic},
    session::{Session, millis, span},
};
use crate::{
    cli::plugin::view::PluginView,
    domain::subject::{Pattern, matches},
};

/// Subjects of the platform that plugins most often listen to: a pattern that matches one is tried with it.
const KNOWN: [&str; 13] = [
    "task.created",
    "task.updated",
    "task.state_changed",
    "task.moved",
    "task.deleted",
    "message.added",
    "turn.started",
    "turn.completed",
    "task_session.state_changed",
    "workspace.created",
    "workflow.created",
    "repository.created",
    "executor.created",
];

/// Stands for a segment that may be anything.
const ANY: &str = "check";

/// Subjects that only plugins and the host itself may publish.
const FOREIGN: &str = "plugin.";

/// How the host notes an event that it gave up, and what it says of one that ended the plugin.
const GIVEN_UP: &str = "failed and was dropped: ";
const CRASHED: &str = "crashed or froze under it";

/// Why it gave one up that the plugin survived: the deadline passed, or the plugin said no.
const LATE: &str = "did not answer within";
const REFUSED: &str = "the plugin answered";

const IN_TIME: &str = "acknowledge an event within its deadline: take it, answer, and do what lasts longer afterwards";
const CRASH: &str = "a handler must survive any payload: a plugin that dies is started again and loses time and events";
const ERROR: &str = "answer an error only for what should be sent again; ignore events that do not concern the plugin";

/// A task for the events to be about; made before the plugin is there.
pub struct Board {
    workspace: Value,
    task: Value,
}

impl Board {
    /// Made by REST. What cannot be made is `null` in the events.
    pub async fn make(session: &Session<'_>) -> Result<Self, CheckError> {
        let workspace = made(session, "workspaces", json!({"name": "plugin check"})).await?;
        let task = json!({"workspace_id": workspace, "title": "made by plugin check"});
        let task = made(session, "tasks", task).await?;
        Ok(Self { workspace, task })
    }

    /// As the platform's own events, as far as they agree.
    fn payload(&self) -> Value {
        json!({"id": self.task, "task_id": self.task, "workspace_id": self.workspace, "title": "made by plugin check",
            "plugin_check": true})
    }
}

/// The id of something new of the platform.
async fn made(session: &Session<'_>, kind: &str, body: Value) -> Result<Value, CheckError> {
    let request = session.api.request(Method::POST, &["api", "v1", kind]).json(&body);
    let answer = session.api.send(request, session.timing.answer).await?;
    Ok(answer.json()["id"].clone())
}

/// A subject that a pattern matches; `None` when nobody but plugins and the host may publish one.
fn example(pattern: &str) -> Option<String> {
    if pattern.starts_with(FOREIGN) {
        return None;
    }
    let known = KNOWN.iter().find(|subject| matches(pattern, subject)).map(|subject| (*subject).to_owned());
    let made = || {
        let segments = pattern.split('.').map(|segment| if matches!(segment, "*" | ">") { ANY } else { segment });
        segments.collect::<Vec<_>>().join(".")
    };
    Some(known.unwrap_or_else(made))
}

/// What became of one event.
enum Fate {
    Acknowledged,
    /// The host's note on it.
    Failed(String),
    Ended(String),
    /// The host said nothing within the deadline.
    Unknown,
}

/// Tries every pattern; stops at the first that ends the plugin.
pub async fn check(session: &mut Session<'_>, board: &Board) -> Result<(), CheckError> {
    let patterns = session.manifest.capabilities.events.clone();
    if patterns.is_empty() {
        session.add(Finding::skipped(Topic::Events, "it subscribes to none"));
    }
    let mut ended = false;
    for (n, pattern) in patterns.iter().enumerate() {
        let subject = match example(pattern) {
            _ if ended => Err("an event before it ended the plugin"),
            _ if !Pattern::new(pattern.as_str()).can_match() => Err("it can match nothing"),
            None => Err("only plugins and the host publish there"),
            Some(subject) => Ok(subject),
        };
        let finding = match subject {
            Err(why) => Finding::skipped(Topic::Events, why),
            Ok(subject) => {
                session.output.progress(&format!("event {} of {}: {subject}", n + 1, patterns.len()));
                let (finding, lives) = deliver(session, &subject, board).await?;
                ended = !lives;
                finding
            }
        };
        session.add(finding.of(pattern));
    }
    Ok(())
}

/// Publishes one and waits; whether the plugin lives on.
async fn deliver(session: &Session<'_>, subject: &str, board: &Board) -> Result<(Finding, bool), CheckError> {
    let before = session.view().await?;
    let begin = Instant::now();
    let body = json!({"subject": subject, "payload": board.payload()});
    let request = session.api.request(Method::POST, &["api", "v1", "events"]).json(&body);
    let answer = session.api.send(request, session.timing.answer).await?;
    if answer.status != 202 {
        return Ok((
            Finding::skipped(Topic::Events, format!("{subject} cannot be published: {}", answer.fault())),
            true,
        ));
    }
    let fate = fate(session, &before, begin).await?;
    let took = begin.elapsed();
    let deadline = span(session.timing.host.delivery_timeout);
    let finding = match &fate {
        Fate::Acknowledged => Finding::pass(Topic::Events, format!("{subject} was acknowledged within {}", span(took)))
            .fact("acknowledged_ms", millis(took)),
        Fate::Failed(note) if note.contains(LATE) => {
            Finding::fail(Topic::Events, format!("{subject} was not acknowledged within {deadline}"), IN_TIME)
        }
        Fate::Failed(note) if note.contains(REFUSED) => {
            Finding::warn(Topic::Events, format!("{subject} was answered with an error: {note}"), ERROR)
        }
        Fate::Failed(note) => Finding::fail(Topic::Events, format!("{subject} was lost: {note}"), CRASH),
        Fate::Ended(why) => Finding::fail(Topic::Events, format!("{subject} ended the plugin: {why}"), CRASH),
        Fate::Unknown => {
            Finding::fail(Topic::Events, format!("{subject} was not acknowledged within {deadline}"), IN_TIME)
        }
    };
    Ok((finding.fact("subject", subject), !matches!(fate, Fate::Ended(_))))
}

async fn fate(session: &Session<'_>, before: &PluginView, begin: Instant) -> Result<Fate, CheckError> {
    let deadline = begin + session.timing.host.delivery_timeout + session.timing.margin;
    loop {
        let now = session.view().await?;
        if now.process.delivered > before.process.delivered {
            return Ok(Fate::Acknowledged);
        }
        if !now.is_active() || now.process.pid != before.process.pid {
            return Ok(Fate::Ended(now.last_error.unwrap_or_else(|| "it is gone".to_owned())));
        }
        if now.process.failed > before.process.failed {
            let note = session.note(GIVEN_UP).await?.unwrap_or_default();
            if !note.contains(LATE) && !note.contains(REFUSED) {
                session.settle().await?;
            }
            let now = session.view().await?;
            let ended = !now.is_active() || note.contains(CRASHED);
            return Ok(if ended { Fate::Ended(now.last_error.unwrap_or(note)) } else { Fate::Failed(note) });
        }
        if Instant::now() >= deadline {
            return Ok(Fate::Unknown);
        }
        sleep(session.timing.look).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_tried_with_a_subject_that_it_matches() {
        for (pattern, subject) in [
            ("task.created", Some("task.created")),
            ("task.*", Some("task.created")),
            (">", Some("task.created")),
            ("message.>", Some("message.added")),
            ("*", Some("check")),
            ("demo.*.x", Some("demo.check.x")),
            ("shell.output.>", Some("shell.output.check")),
            ("plugin.other.done", None),
            ("plugin.lifecycle.*", None),
        ] {
            assert_eq!(example(pattern).as_deref(), subject, "{pattern}");
            assert!(subject.is_none_or(|subject| matches(pattern, subject)), "{pattern}");
        }
    }
}
