//! A plugin's log: `GET /api/plugins/{id}/logs`, as a list, or with `follow=true` as a stream of server-sent events.
//!
//! A stream reads the log's ring and keeps nothing of its own, so that a slow client costs no memory; it is told how
//! many lines it missed. It ends with the plugin, with the host, or with the client's connection.

use std::convert::Infallible;

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{CACHE_CONTROL, HeaderName, HeaderValue},
    web::{self, Bytes},
};
use futures_util::{Stream, stream};
use serde::{Deserialize, Serialize};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, timeout_at},
};
use utoipa::{IntoParams, ToSchema};

use super::{
    ApiError, Services,
    endpoint::{Content, Endpoint, get},
    query::Query,
};
use crate::{
    actors::{LogEnd, LogFollower},
    domain::{
        action::Action,
        clean,
        log_line::{Batch, Level, LogLine},
    },
};

pub static ROUTES: &[Endpoint] = &[get("/api/plugins/{id}/logs", Action::PluginLogs, || web::to(read))
    .about("A plugin's log, oldest first: a list, or with `follow` a stream of server-sent events")
    .query::<Parameters>()
    .gives::<Lines>(200)
    .gives_of(200, Content::Media("text/event-stream"))
    .refuses(&[429, 504])];

/// Most lines in one piece of a stream.
const BATCH_LINES: usize = 100;

/// What a client that was cut off saw last.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Asks a proxy in between not to hold a stream back.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// `{"lines":[…]}`, oldest first.
#[derive(Serialize, ToSchema)]
#[schema(as = LogLines)]
struct Lines {
    lines: Vec<LogLine>,
}

/// The query as it comes; an empty value counts as left out.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Finer lines are left out.
    #[param(pattern = "^(trace|debug|info|warn|error)?$")]
    level: Option<String>,
    /// The newest lines, so many at most.
    #[param(value_type = Option<usize>)]
    limit: Option<String>,
    /// Lines of this time and later; RFC 3339.
    #[param(value_type = Option<OffsetDateTime>)]
    since: Option<String>,
    /// Answer with a stream that goes on until the plugin is uninstalled.
    #[param(value_type = Option<bool>)]
    follow: Option<String>,
}

/// The query as it is meant.
#[derive(Debug, PartialEq)]
struct Wanted {
    level: Level,
    since: OffsetDateTime,
    limit: Option<usize>,
    follow: bool,
}

impl Parameters {
    fn wanted(self) -> Result<Wanted, ApiError> {
        let given = |value: Option<String>| value.filter(|value| !value.is_empty());
        let bad = |name: &str, value: &str, accepted: &str| {
            ApiError::Query(format!("{name} {} is not understood: write {accepted}", clean::quote(value)))
        };
        let level = match given(self.level) {
            None => Level::Trace,
            Some(name) => Level::named(&name)
                .ok_or_else(|| bad("level", &name, "trace, debug, info, warn or error; finer lines are left out"))?,
        };
        let limit = match given(self.limit) {
            None => None,
            Some(text) => Some(text.parse().map_err(|_| bad("limit", &text, "a number of lines"))?),
        };
        let since = match given(self.since) {
            None => OffsetDateTime::UNIX_EPOCH,
            Some(text) => OffsetDateTime::parse(&text, &Rfc3339)
                .map_err(|_| bad("since", &text, "a time like 2026-11-29T09:00:00Z"))?,
        };
        let follow = match given(self.follow).as_deref() {
            None | Some("false" | "0") => false,
            Some("true" | "1") => true,
            Some(other) => return Err(bad("follow", other, "true or false")),
        };
        Ok(Wanted { level, since, limit, follow })
    }
}

impl Wanted {
    fn accepts(&self, line: &LogLine) -> bool {
        line.level >= self.level && line.time >= self.since
    }
}

/// The handler.
pub async fn read(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
    Query(query): Query<Parameters>,
) -> Result<HttpResponse, ApiError> {
    let wanted = query.wanted()?;
    let log = services.registry.log(&id).await?;
    let limit = wanted.limit.unwrap_or(services.limits.log_lines);
    if !wanted.follow {
        let lines = log.newest(limit, |line| wanted.accepts(line));
        return Ok(HttpResponse::Ok().json(Lines { lines }));
    }
    let place = services.follow_slots.clone().try_acquire_owned().map_err(|_| ApiError::TooManyFollowers)?;
    let seen = request.headers().get(&LAST_EVENT_ID).and_then(|value| value.to_str().ok());
    let follower = match seen {
        Some(seen) => log.resume(seen),
        None => log.follow(limit, |line| wanted.accepts(line)),
    };
    let events =
        Events { follower, wanted, services: services.clone(), due: Instant::now(), ended: false, _place: place };
    let mut answer = HttpResponse::Ok();
    answer.insert_header((CACHE_CONTROL, HeaderValue::from_static("no-store")));
    answer.insert_header((ACCEL_BUFFERING, HeaderValue::from_static("no")));
    Ok(answer.content_type("text/event-stream").streaming(events.stream()))
}

/// A stream under way.
struct Events {
    follower: LogFollower,
    wanted: Wanted,
    services: web::Data<Services>,
    /// When the client hears from the host again, at the latest. At once in the beginning: it sees that it is
    /// connected.
    due: Instant,
    ended: bool,
    /// One of `limits.log_followers`.
    _place: OwnedSemaphorePermit,
}

impl Events {
    fn stream(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        stream::unfold(self, |mut events| async move {
            let piece = events.next().await?;
            Some((Ok(Bytes::from(piece)), events))
        })
    }

    /// The next piece: lines, the end, or a comment when nothing was said for `timing.log_keep_alive`.
    async fn next(&mut self) -> Option<String> {
        if self.ended {
            return None;
        }
        let mut piece = String::new();
        while piece.is_empty() {
            // What was written before the stop is still told; the lines of the stop itself are on disk.
            if self.services.stop.has_begun() {
                self.follower.end_here();
            }
            let next = tokio::select! {
                biased;
                next = timeout_at(self.due, self.follower.next(BATCH_LINES)) => next,
                () = self.services.stop.begun() => continue,
            };
            match next {
                Err(_) => piece.push_str(": keep-alive\n\n"),
                Ok(Ok(batch)) => self.render(batch, &mut piece),
                Ok(Err(end)) => {
                    self.ended = true;
                    let reason = match end {
                        LogEnd::Uninstalled => "uninstalled",
                        LogEnd::HostStopping => "stopping",
                    };
                    piece = event("end", None, &serde_json::json!({"reason": reason}));
                }
            }
        }
        self.due = Instant::now() + self.services.timing.log_keep_alive;
        Some(piece)
    }

    fn render(&self, batch: Batch, piece: &mut String) {
        if batch.skipped > 0 {
            piece.push_str(&event("skipped", None, &serde_json::json!({"count": batch.skipped})));
        }
        for (number, line) in batch.lines.iter().filter(|(_, line)| self.wanted.accepts(line)) {
            piece.push_str(&event("line", Some(self.follower.position(*number, line)), line));
        }
    }
}

/// One server-sent event. JSON has no raw line ends, so the data is one line.
fn event(name: &str, id: Option<String>, data: &impl Serialize) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("{id}event: {name}\ndata: {}\n\n", serde_json::to_string(data).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use actix_web::ResponseError;

    use super::*;
    use crate::http::query;

    fn wanted(query: &str) -> Result<Wanted, ApiError> {
        query::read::<Parameters>(query)?.wanted()
    }

    #[test]
    fn a_query_says_level_time_number_and_whether_to_follow() {
        let all = Wanted { level: Level::Trace, since: OffsetDateTime::UNIX_EPOCH, limit: None, follow: false };
        assert_eq!(wanted("").unwrap(), all);
        assert_eq!(wanted("level=&limit=&since=&follow=").unwrap(), all);
        let some = wanted("level=warn&limit=7&since=2026-11-29T09:00:00%2B01:00&follow=true").unwrap();
        let since = time::macros::datetime!(2026-11-29 08:00 UTC);
        assert_eq!(some, Wanted { level: Level::Warn, since, limit: Some(7), follow: true });
    }

    #[test]
    fn a_value_that_is_not_understood_is_400_with_the_accepted_ones() {
        for (query, text) in [
            (
                "level=loud",
                "level \"loud\" is not understood: write trace, debug, info, warn or error; finer lines are left out",
            ),
            ("limit=-1", "limit \"-1\" is not understood: write a number of lines"),
            ("since=today", "since \"today\" is not understood: write a time like 2026-11-29T09:00:00Z"),
            ("lvl=warn", "invalid query: unknown field `lvl`, expected one of `level`, `limit`, `since`, `follow`"),
            ("follow=yes", "follow \"yes\" is not understood: write true or false"),
        ] {
            let error = wanted(query).unwrap_err();
            assert_eq!((error.status_code().as_u16(), error.to_string().as_str()), (400, text));
        }
    }

    #[test]
    fn an_event_is_one_block_whatever_its_text() {
        let text = event("line", Some("e.1".to_owned()), &"a\nb\r\n\ndata: x");
        assert_eq!(text, "id: e.1\nevent: line\ndata: \"a\\nb\\r\\n\\ndata: x\"\n\n");
    }
}
