//! The life of one connection: requests are answered in the order in which they are done, news come between them, and
//! it ends when its client does, does not read, does not answer pings, or when the host stops.

use std::{io, rc::Rc};

use actix_ws::{AggregatedMessage, CloseCode, CloseReason, MessageStream, ProtocolError, Session};
use bytestring::ByteString;
use serde_json::{
    json,
    value::{RawValue, to_raw_value},
};
use time::OffsetDateTime;
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval_at, timeout},
};
use tracing::Instrument;

use super::{
    super::Services,
    hub::Seat,
    inside::{Inside, NoAnswer},
};
use crate::{
    config::Timing,
    domain::{
        gateway::{
            frame::{self, Code, Request},
            request::{Asked, Call, Refused, asked},
        },
        principal::Principal,
    },
};

/// Requests of one connection worked on at once; further ones are not read yet.
const AT_ONCE: usize = 16;

/// Why a connection with a large frame ends.
const TOO_LARGE: &str = "a frame is too large (limits.ws_frame_bytes)";

/// Answers a request that nothing else is to be said to.
const DONE: &str = r#"{"success":true}"#;

/// One connection.
pub struct Connection {
    seat: Seat,
    session: Session,
    asker: Rc<Asker>,
    timing: Timing,
}

/// What works on requests needs.
struct Asker {
    inside: Rc<Inside>,
    principal: Principal,
    /// Of one frame, in either direction.
    frame_bytes: usize,
}

/// How a connection ends, when the client did not end it.
struct End(CloseCode, &'static str);

impl Connection {
    pub fn new(seat: Seat, session: Session, services: &Services, inside: Rc<Inside>, principal: Principal) -> Self {
        let frame_bytes = usize::try_from(services.limits.ws_frame_bytes).unwrap_or(usize::MAX);
        let asker = Rc::new(Asker { inside, principal, frame_bytes });
        Self { seat, session, asker, timing: services.timing.clone() }
    }

    /// Until it ends.
    pub async fn run(mut self, messages: MessageStream) {
        let end = self.talk(messages).await;
        let Self { session, timing, .. } = self;
        let reason = match end {
            // The client waits for the same back (RFC 6455 §5.5.1).
            Ok(reason) => reason.map(|CloseReason { code, .. }| CloseReason { code, description: None }),
            Err(End(code, text)) => {
                tracing::debug!(reason = text, "a connection of /ws was ended");
                Some(CloseReason { code, description: Some(text.to_owned()) })
            }
        };
        // Whoever does not read does not get this either.
        let _ = timeout(timing.linger, session.close(reason)).await;
    }

    /// `Ok` when the client has closed it, with what it said, or is gone.
    async fn talk(&mut self, messages: MessageStream) -> Result<Option<CloseReason>, End> {
        let most = self.asker.frame_bytes;
        let mut messages = messages.max_frame_size(most).aggregate_continuations().max_continuation_size(most);
        // Tasks of their own: they go on, and give back what they hold of the host, while a client does not read.
        let mut work = JoinSet::new();
        let mut pings = interval_at(Instant::now() + self.timing.ws_ping, self.timing.ws_ping);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut heard = Instant::now();
        loop {
            tokio::select! {
                frame = self.seat.frames.recv() => match frame {
                    _ if self.seat.hub().is_closed() => return Err(End(CloseCode::Away, "the host is stopping")),
                    Some(frame) => self.send(frame).await?,
                    None => return Err(self.let_go()),
                },
                Some(answer) = work.join_next() => match answer {
                    Ok(answer) => self.send(answer).await?,
                    Err(_) => return Err(End(CloseCode::Error, "an answer was lost")),
                },
                message = messages.recv(), if work.len() < AT_ONCE => {
                    heard = Instant::now();
                    match message {
                        Some(Ok(AggregatedMessage::Text(text))) => match self.take(&text) {
                            Taken::Answer(answer) => self.send(answer.into()).await?,
                            Taken::Work(request, call) => {
                                let asker = Rc::clone(&self.asker);
                                let answer = async move { ByteString::from(asker.answer(&request, call).await) };
                                work.spawn_local(answer.in_current_span());
                            }
                        },
                        Some(Ok(AggregatedMessage::Binary(_))) => {
                            return Err(End(CloseCode::Unsupported, "frames must be texts"));
                        }
                        Some(Ok(AggregatedMessage::Ping(bytes))) => {
                            let _ = timeout(self.timing.ws_write, self.session.pong(&bytes)).await;
                        }
                        Some(Ok(AggregatedMessage::Pong(_))) => {}
                        Some(Ok(AggregatedMessage::Close(reason))) => return Ok(reason),
                        None => return Ok(None),
                        Some(Err(error)) => return Err(unlawful(&error)),
                    }
                },
                _ = pings.tick() => {
                    // Work in hand keeps messages from being read, and pongs with them.
                    if work.len() < AT_ONCE && heard.elapsed() >= self.timing.ws_pong_wait {
                        return Err(End(CloseCode::Policy, "no answer to pings"));
                    }
                    if !matches!(timeout(self.timing.ws_write, self.session.ping(b"")).await, Ok(Ok(()))) {
                        return Err(self.let_go());
                    }
                }
            }
        }
    }

    /// Answers at once what needs no work.
    fn take(&self, text: &str) -> Taken {
        let request = match frame::parse(text) {
            Ok(request) => request,
            Err(bad) => return Taken::Answer(frame::refusal_of(&bad, now())),
        };
        match asked(&request, self.asker.principal.user_id().unwrap_or_default()) {
            Ok(Asked::Health) => Taken::Answer(response(&request, r#"{"status":"ok"}"#.to_owned())),
            Ok(Asked::AsItIs) => Taken::Answer(response(&request, DONE.to_owned())),
            Ok(Asked::Follow(topic, id)) => match self.seat.follow(topic, &id) {
                Ok(()) => Taken::Answer(response(&request, DONE.to_owned())),
                Err(_) => {
                    let text = "this connection follows as many things as it may; unsubscribe from some";
                    Taken::Answer(refusal(&request, Code::ValidationError, text))
                }
            },
            Ok(Asked::Leave(topic, id)) => {
                self.seat.leave(topic, &id);
                Taken::Answer(response(&request, DONE.to_owned()))
            }
            Ok(Asked::Rest(call)) => Taken::Work(Box::new(request), call),
            Err(Refused { code, text, detail }) => {
                let details = detail.and_then(|code| to_raw_value(&json!({"code": code})).ok());
                Taken::Answer(frame::refusal(&request, code, &text, details.as_deref(), now()))
            }
        }
    }

    async fn send(&mut self, frame: ByteString) -> Result<(), End> {
        match timeout(self.timing.ws_write, self.session.text(frame)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(End(CloseCode::Abnormal, "the client is gone")),
            Err(_) => Err(self.let_go()),
        }
    }

    fn let_go(&self) -> End {
        self.seat.let_go();
        End(CloseCode::Policy, "it did not read what it was sent; connect again and look at what there is")
    }
}

/// A frame that cannot be taken. The library tells a message that is too large in all by an error of no kind of its
/// own.
fn unlawful(error: &ProtocolError) -> End {
    match error {
        ProtocolError::Overflow => End(CloseCode::Size, TOO_LARGE),
        // Of a kind with a wrong text; an extension would give these bits a meaning, but none was agreed upon.
        ProtocolError::Io(error) if error.to_string().contains("reserved bits") => {
            End(CloseCode::Protocol, "a frame has reserved bits set: no extension is spoken here")
        }
        ProtocolError::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
            End(CloseCode::Invalid, "a text is not UTF-8")
        }
        ProtocolError::Io(_) => End(CloseCode::Size, TOO_LARGE),
        _ => End(CloseCode::Protocol, "a frame is against RFC 6455"),
    }
}

/// What becomes of a message.
enum Taken {
    Answer(String),
    Work(Box<Request>, Call),
}

impl Asker {
    async fn answer(&self, request: &Request, call: Call) -> String {
        match self.inside.ask(self.principal, call, &request.metadata, self.frame_bytes).await {
            Ok(answer) if (200..300).contains(&answer.status) => response(request, answer.body),
            Ok(answer) => refused(request, answer.status, answer.body),
            Err(NoAnswer(code, text)) => refusal(request, code, text),
        }
    }
}

fn now() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}

/// Answers of REST are JSON, or nothing.
fn response(request: &Request, body: String) -> String {
    let body = if body.is_empty() { DONE.to_owned() } else { body };
    match RawValue::from_string(body) {
        Ok(body) => frame::response(request, &body, now()),
        Err(_) => refusal(request, Code::InternalError, "the answer is no JSON"),
    }
}

fn refusal(request: &Request, code: Code, text: &str) -> String {
    frame::refusal(request, code, text, None, now())
}

/// A refusal by REST, whole under `details`.
fn refused(request: &Request, status: u16, body: String) -> String {
    #[derive(serde::Deserialize)]
    struct Said {
        error: String,
    }
    let text = serde_json::from_str(&body).map_or_else(|_| "request failed".to_owned(), |said: Said| said.error);
    let details = RawValue::from_string(body).ok();
    frame::refusal(request, Code::of_status(status), &text, details.as_deref(), now())
}
