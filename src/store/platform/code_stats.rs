//! Code statistics of sessions (host-data.md §5): one query a page, whatever its length.

use sea_orm::{
    ColumnTrait, DbBackend, EntityTrait, FromQueryResult, QueryFilter, QuerySelect, QueryTrait, Statement,
    sea_query::{Alias, Expr, ExprTrait as _, Func, Query, SelectStatement},
};

use super::{PlatformError, PlatformStore, sessions};
use crate::{
    domain::platform::{
        Scope,
        cursor::{self, Key, List},
        page::{Page, PageRequest},
        session::SessionFilter,
        stats::CodeStats,
    },
    entities::{instance_setting, session_commit, session_snapshot},
    store::db::DbFault,
};

/// Since when this database records commits; written by its schema.
const ACTIVATED: &str = "commit_capture_activated_at";

#[derive(FromQueryResult)]
struct Row {
    id: String,
    started_at: i64,
    commits: i64,
    insertions: i64,
    deletions: i64,
    peak_added: i64,
    peak_deleted: i64,
    /// The same in every row: when this database began to record commits.
    activated: Option<String>,
}

impl PlatformStore {
    /// A page of code statistics, in the order of [`PlatformStore::sessions`].
    pub async fn code_stats(
        &self,
        scope: &Scope,
        filter: &SessionFilter,
        page: &PageRequest,
    ) -> Result<Page<CodeStats>, PlatformError> {
        let Some(statement) = statement(self.db.reader().get_database_backend(), scope, filter, page)? else {
            return Ok(Page { items: Vec::new(), next_cursor: None });
        };
        let work = async || {
            let rows = Row::find_by_statement(statement.clone()).all(self.db.reader()).await?;
            Ok::<_, PlatformError>(rows)
        };
        let mut rows = self.db.repeat(work).await?;
        let limit = page.limit() as usize;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let key = |row: &Row| [Key::Int(row.started_at), Key::Text(row.id.clone())];
        let next_cursor = rows.last().filter(|_| more).map(|row| cursor::encode(List::CodeStats, &key(row)));
        let activated = rows.first().map(Row::recorded_since).transpose()?.unwrap_or_default();
        Ok(Page { items: rows.into_iter().map(|row| row.stats(activated)).collect(), next_cursor })
    }
}

impl Row {
    /// In microseconds.
    fn recorded_since(&self) -> Result<i64, DbFault> {
        let since = self.activated.as_deref().and_then(|since| since.parse::<f64>().ok());
        let since = since.ok_or_else(|| DbFault::Statement(format!("instance setting {ACTIVATED} is not a moment")))?;
        Ok(since as i64)
    }

    fn stats(self, activated: i64) -> CodeStats {
        CodeStats {
            committed_lines_available: self.commits > 0 || self.started_at >= activated,
            session_id: self.id,
            lines_added_committed: self.insertions,
            lines_deleted_committed: self.deletions,
            lines_added_peak_pending: self.peak_added,
            lines_deleted_peak_pending: self.peak_deleted,
        }
    }
}

/// The query of a page; none when nothing can match.
pub(super) fn statement(
    backend: DbBackend,
    scope: &Scope,
    filter: &SessionFilter,
    page: &PageRequest,
) -> Result<Option<Statement>, PlatformError> {
    let sessions = sessions::listing(List::CodeStats, scope, filter).query(backend, page)?;
    Ok(sessions.map(|sessions| backend.build(&statistics(sessions))))
}

/// The page of sessions with five numbers each: the commits of the page are read once, the peaks are in an index.
fn statistics(sessions: SelectStatement) -> SelectStatement {
    use session_commit::Column as Commit;
    let of = |column: &'static str| Expr::col((Alias::new("page"), Alias::new(column)));
    let number = |expr: Expr| Expr::from(Func::coalesce([expr, Expr::value(0i64)])).cast_as(Alias::new("BIGINT"));
    let commit = |column: Commit| Expr::col((session_commit::Entity, column));
    let peak = |column: session_snapshot::Column| {
        let largest = session_snapshot::Entity::find()
            .select_only()
            .expr(number(column.into_expr().max()))
            .filter(session_snapshot::Column::SessionId.into_expr().eq(of("id")));
        subquery(largest.into_query())
    };
    let activated = instance_setting::Entity::find_by_id(ACTIVATED.to_owned())
        .select_only()
        .column(instance_setting::Column::Value)
        .into_query();
    Query::select()
        .expr_as(of("id"), Alias::new("id"))
        .expr_as(of("started_at"), Alias::new("started_at"))
        .expr_as(commit(Commit::Id).count(), Alias::new("commits"))
        .expr_as(number(commit(Commit::Insertions).sum()), Alias::new("insertions"))
        .expr_as(number(commit(Commit::Deletions).sum()), Alias::new("deletions"))
        .expr_as(peak(session_snapshot::Column::Additions), Alias::new("peak_added"))
        .expr_as(peak(session_snapshot::Column::Deletions), Alias::new("peak_deleted"))
        .expr_as(subquery(activated), Alias::new("activated"))
        .from_subquery(sessions, Alias::new("page"))
        .left_join(session_commit::Entity, commit(Commit::SessionId).eq(of("id")))
        .group_by_columns(["started_at", "id"].map(|column| (Alias::new("page"), Alias::new(column))))
        .order_by((Alias::new("page"), Alias::new("started_at")), sea_orm::Order::Desc)
        .order_by((Alias::new("page"), Alias::new("id")), sea_orm::Order::Asc)
        .take()
}

fn subquery(query: SelectStatement) -> Expr {
    Expr::SubQuery(None, Box::new(query.into()))
}
