//! Turns and messages: a person asks, an agent thinks, reads, changes and answers.

use serde_json::json;

use super::{Chunk, dice::Dice, words, work::SPAN};
use crate::domain::platform::{
    Map, from_micros,
    message::Message,
    micros,
    session::{Session, Turn},
    words::{AuthorType, MessageType, SessionState},
};

/// Messages of one turn, about.
const TURN: u32 = 4;
/// Longest time between two messages, in microseconds.
const PAUSE: i64 = 60_000_000;

/// What the talk is about.
pub struct About {
    pub thing: &'static str,
    pub file: &'static str,
}

/// A message before it has its place.
struct Said {
    kind: MessageType,
    text: String,
    requests_input: bool,
    metadata: Map,
}

/// Fills a session with so many messages in turns.
pub fn talk(dice: &mut Dice, session: &mut Session, messages: u32, about: &About, chunk: &mut Chunk) {
    let mut at = micros(session.started_at);
    let pause = (SPAN / 3 / i64::from(messages.max(1))).clamp(2, PAUSE);
    let mut left = messages;
    while left > 0 {
        let count = if left < 2 * TURN { left } else { TURN };
        left -= count;
        let mut turn = turn(dice, session, at);
        for n in 0..count {
            at += dice.between(1, pause);
            let is_last = n + 1 == count;
            let message = message(dice, session, &turn, at, n, is_last, about);
            if is_last && !session.state.is_final() {
                session.last_read_message_id = Some(message.id.clone());
            }
            chunk.messages.push(message);
        }
        if left > 0 || session.state != SessionState::Running {
            turn.completed_at = Some(from_micros(at));
            turn.updated_at = from_micros(at);
        }
        at += 1;
        chunk.turns.push(turn);
    }
    session.updated_at = session.completed_at.unwrap_or(from_micros(at));
}

fn turn(dice: &mut Dice, session: &Session, at: i64) -> Turn {
    Turn {
        id: dice.id(at),
        session_id: session.id.clone(),
        task_id: session.task_id.clone(),
        metadata: Map::new(),
        started_at: from_micros(at),
        completed_at: None,
        created_at: from_micros(at),
        updated_at: from_micros(at),
    }
}

/// The first of a turn is a person's, the others are the agent's.
fn message(dice: &mut Dice, session: &Session, turn: &Turn, at: i64, n: u32, is_last: bool, about: &About) -> Message {
    let is_first = turn.started_at == session.started_at;
    let (author_type, said) = match n {
        0 => (AuthorType::User, asked(dice, is_first, about)),
        _ if is_last && session.state == SessionState::WaitingForInput => (AuthorType::Agent, question(dice)),
        _ if is_last => (AuthorType::Agent, plain(MessageType::Content, *dice.pick(words::ANSWERS))),
        _ => (AuthorType::Agent, step(dice, about)),
    };
    let Said { kind, text, requests_input, metadata } = said;
    Message {
        id: dice.id(at),
        session_id: session.id.clone(),
        task_id: session.task_id.clone(),
        turn_id: turn.id.clone(),
        author_type,
        author_id: String::new(),
        message_type: kind,
        raw_content: text,
        requests_input,
        metadata,
        created_at: from_micros(at),
        updated_at: from_micros(at),
        version: 1,
    }
}

fn plain(kind: MessageType, text: impl Into<String>) -> Said {
    Said { kind, text: text.into(), requests_input: false, metadata: Map::new() }
}

/// A first prompt carries what is for agents only.
fn asked(dice: &mut Dice, is_first: bool, About { thing, file }: &About) -> Said {
    let text = match is_first {
        true => format!(
            "<kandev-system>Work in a branch of your own. Begin with {file}.</kandev-system>\n\n{} {thing}. {}",
            dice.pick(words::VERBS),
            dice.pick(words::GOALS)
        ),
        false => (*dice.pick(words::REPLIES)).to_owned(),
    };
    plain(MessageType::Message, text)
}

fn question(dice: &mut Dice) -> Said {
    let (kind, text) = match dice.one_in(2) {
        true => (MessageType::PermissionRequest, "May I run `make integration`? It takes about ten minutes."),
        false => (MessageType::ClarificationRequest, "Should the old name keep working, and for how long?"),
    };
    Said { requests_input: true, ..plain(kind, text) }
}

/// One thing an agent does on its way.
fn step(dice: &mut Dice, About { thing, file }: &About) -> Said {
    use MessageType::*;
    let often =
        [(6, Thinking), (6, ToolRead), (5, ToolEdit), (5, ToolExecute), (3, Progress), (2, ToolCall), (2, Todo)];
    let seldom = [(2, AgentPlan), (2, Status), (1, Log), (1, Error), (1, ScriptExecution)];
    let kind = if dice.one_in(6) { dice.weighted(&seldom) } else { dice.weighted(&often) };
    let text = match kind {
        Thinking => (*dice.pick(words::THOUGHTS)).to_owned(),
        ToolRead => format!("Read {file}, lines {} to {}", dice.between(1, 80), dice.between(81, 300)),
        ToolEdit => format!("Edit {file}: {} lines added, {} deleted", dice.between(1, 40), dice.below(20)),
        ToolExecute => format!("make test: {} passed, {} failed", dice.between(40, 900), dice.below(3)),
        Progress => format!("{} of 7 steps", dice.between(1, 7)),
        ToolCall => format!("Search for \"{}\"", dice.pick(words::LABELS)),
        Todo => format!("- [x] reproduce\n- [ ] change {file}\n- [ ] test {thing}"),
        AgentPlan => format!("1. Reproduce the problem with {thing}\n2. Write a failing test\n3. Change {file}"),
        Status => "The worktree is ready".to_owned(),
        Log => format!("agent: {} tokens used", dice.between(500, 90_000)),
        Error => "The command ended with exit code 2; trying again".to_owned(),
        _ => "setup: dependencies are up to date".to_owned(),
    };
    let tool = matches!(kind, ToolRead | ToolEdit | ToolExecute | ToolCall);
    let metadata = match tool {
        true => {
            Map::from_iter([("tool_call_id".to_owned(), json!(dice.hex(8))), ("status".to_owned(), json!("complete"))])
        }
        false => Map::new(),
    };
    Said { metadata, ..plain(kind, text) }
}
