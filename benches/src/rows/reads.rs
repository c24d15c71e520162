//! Lists of the platform over 100 000 tasks: a late page against the first one, and pages of messages and of code
//! statistics against their bare SQL, at the level of the services.

use kandev_host::domain::platform::{
    Scope,
    message::MessageFilter,
    micros,
    page::PageRequest,
    session::{Session, SessionFilter},
    task::TaskFilter,
};
use time::Duration;
use tokio::time::Instant;

use crate::{
    Options, Outcome,
    data::{self, Arg, CODE, Data},
    report::{Bound, Line, Values},
    rounds::alternate,
};

/// The page that is compared with the first.
const LATE: usize = 1000;
const LATE_MOST: f64 = 1.3;
const BARE_MOST: f64 = 1.5;

/// Pages of one round.
const PAGES: usize = 200;
/// Sessions whose messages are asked for in one round, one after the other.
const SESSIONS: usize = 200;
/// Statistics of one round.
const STATS: usize = 20;

pub async fn tasks_page(options: Options) -> Outcome<Vec<Line>> {
    let mut lines = Vec::new();
    for data in data::all(&options).await? {
        let filter = TaskFilter::default();
        let mut late = PageRequest::default();
        for _ in 1..LATE {
            let page = data.platform.tasks.list(&Scope::All, &filter, &late).await?;
            late = PageRequest::new(0, &page.next_cursor.ok_or("fewer pages than that")?);
        }
        let first = PageRequest::default();
        let pages = async |page: &PageRequest| {
            let began = Instant::now();
            for _ in 0..PAGES {
                let page = data.platform.tasks.list(&Scope::All, &filter, page).await?;
                (page.items.len() == 50).then_some(()).ok_or("a page is not full")?;
            }
            Ok(micros_each(began, PAGES))
        };
        let pairs = alternate(options.rounds(), async || pages(&first).await, async || pages(&late).await).await?;
        lines.push(line(
            ["tasks-page", "tasks-page-pg"],
            &data,
            "page 1000 of ListTasks against the first",
            pairs,
            LATE_MOST,
        ));
        data.close().await?;
    }
    Ok(lines)
}

pub async fn messages(options: Options) -> Outcome<Vec<Line>> {
    let mut lines = Vec::new();
    for data in data::all(&options).await? {
        let sessions = sessions(&data).await?;
        let bare = async || {
            let began = Instant::now();
            for session in &sessions {
                let (since, until) = range(session);
                let args = [Arg::Text(session.id.clone()), Arg::Int(micros(since)), Arg::Int(micros(until))];
                let rows = data.bare.rows::<MessageRow>(MESSAGES, &args).await?;
                (!rows.is_empty()).then_some(()).ok_or("no messages")?;
            }
            Ok(micros_each(began, SESSIONS))
        };
        let own = async || {
            let began = Instant::now();
            for session in &sessions {
                let (since, until) = range(session);
                let filter = MessageFilter {
                    session_ids: vec![session.id.clone()],
                    since: Some(since),
                    until: Some(until),
                    ..MessageFilter::default()
                };
                let page = data.platform.messages.list(&Scope::All, &filter, false, &PageRequest::default()).await?;
                (!page.items.is_empty()).then_some(()).ok_or("no messages")?;
            }
            Ok(micros_each(began, SESSIONS))
        };
        let pairs = alternate(options.rounds(), bare, own).await?;
        lines.push(line(["messages", "messages-pg"], &data, "ListMessages by session and time", pairs, BARE_MOST));
        data.close().await?;
    }
    Ok(lines)
}

pub async fn code_stats(options: Options) -> Outcome<Vec<Line>> {
    let mut lines = Vec::new();
    for data in data::all(&options).await? {
        let filter = SessionFilter {
            workspace_ids: vec![data.code_workspace.clone()],
            states: vec!["COMPLETED".to_owned()],
            ..SessionFilter::default()
        };
        let bare = async || {
            let began = Instant::now();
            for _ in 0..STATS {
                let args = [Arg::Text(data.code_workspace.clone())];
                let rows = data.bare.rows::<StatsRow>(STATISTICS, &args).await?;
                let full = rows.len() == 201 && rows.iter().all(|row| row.2 == i64::from(CODE));
                full.then_some(()).ok_or("not the sessions that were made")?;
            }
            Ok(micros_each(began, STATS) / 1000.0)
        };
        let own = async || {
            let began = Instant::now();
            for _ in 0..STATS {
                let page = data.platform.code.stats(&Scope::All, &filter, &PageRequest::new(200, "")).await?;
                (page.items.len() == 200).then_some(()).ok_or("a page is not full")?;
            }
            Ok(micros_each(began, STATS) / 1000.0)
        };
        let pairs = alternate(options.rounds(), bare, own).await?;
        let what = "code statistics of 200 sessions, 20 commits and snapshots each";
        let line = line(["code-stats", "code-stats-pg"], &data, what, pairs, BARE_MOST);
        lines.push(Line { unit: "ms", ..line });
        data.close().await?;
    }
    Ok(lines)
}

fn line(names: [&'static str; 2], data: &Data, what: &'static str, pairs: crate::rounds::Pairs, most: f64) -> Line {
    let row = if data.suffix.is_empty() { names[0] } else { names[1] };
    Line { row, what, unit: "µs", values: Values::Pairs(pairs), bound: Bound::RatioAtMost(most) }
}

fn micros_each(began: Instant, count: usize) -> f64 {
    began.elapsed().as_secs_f64() * 1e6 / count as f64
}

/// Sessions that were talked in.
async fn sessions(data: &Data) -> Outcome<Vec<Session>> {
    let filter = SessionFilter { states: vec!["COMPLETED".to_owned()], ..SessionFilter::default() };
    let page = data.platform.sessions.list(&Scope::All, &filter, &PageRequest::new(SESSIONS as i32, "")).await?;
    Ok(page.items)
}

/// Most of what was said in a session.
fn range(session: &Session) -> (time::OffsetDateTime, time::OffsetDateTime) {
    (session.started_at + Duration::seconds(30), session.started_at + Duration::hours(1))
}

type MessageRow = (String, String, String, String, String, String, String, String, bool, String, i64, i64, i64);

const MESSAGES: &str = "SELECT id, session_id, task_id, turn_id, author_type, author_id, type, raw_content, \
    requests_input, metadata, created_at, updated_at, version FROM session_message \
    WHERE session_id = $1 AND created_at >= $2 AND created_at < $3 ORDER BY created_at, id LIMIT 51";

type StatsRow = (String, i64, i64, i64, i64, i64, i64);

/// Each table is read once for the page.
const STATISTICS: &str = "WITH page AS MATERIALIZED ( \
      SELECT id, started_at FROM task_session WHERE workspace_id = $1 AND state IN ('COMPLETED') \
        AND EXISTS (SELECT 1 FROM task WHERE task.id = task_session.task_id AND is_internal = FALSE) \
      ORDER BY started_at DESC, id LIMIT 201), \
    commits AS ( \
      SELECT page.id, count(*) AS count, CAST(sum(c.insertions) AS BIGINT) AS added, \
        CAST(sum(c.deletions) AS BIGINT) AS deleted \
      FROM page JOIN session_commit c ON c.session_id = page.id GROUP BY page.id), \
    peaks AS ( \
      SELECT page.id, max(s.additions) AS added, max(s.deletions) AS deleted \
      FROM page JOIN session_snapshot s ON s.session_id = page.id GROUP BY page.id) \
    SELECT page.id, page.started_at, coalesce(commits.count, 0), coalesce(commits.added, 0), \
      coalesce(commits.deleted, 0), coalesce(peaks.added, 0), coalesce(peaks.deleted, 0) \
    FROM page LEFT JOIN commits ON commits.id = page.id LEFT JOIN peaks ON peaks.id = page.id \
    ORDER BY page.started_at DESC, page.id";
