//! Lists in a total order: one page by one query that an index serves from its first row to its last.
//!
//! A page begins after an order key, never at an offset. A filter by several values of the index's first column is a
//! merge of one ordered walk for each value (`UNION ALL`), not a sort of all their rows; beyond [`MERGED`] values, or
//! where the walks would have too many parameters together, the database chooses.
//!
//! A page is bounded in bytes too. Its query leaves long texts out that are large, and says how many bytes the long
//! texts of a row have; large rows that the page holds in the end are read by a second one. An ordinary page takes one
//! query.

use sea_orm::{
    ColumnTrait, ConnectionTrait, DbBackend, DbErr, EntityTrait, FromQueryResult, IdenStatic as _, Iterable as _,
    ModelTrait, Order, PaginatorTrait, QueryFilter, QueryOrder, QueryResult, QuerySelect as _, QueryTrait, Select,
    Statement, Value,
    sea_query::{
        Alias, ArrayType, Asterisk, CaseStatement, Expr, ExprTrait as _, Func, IntoIden as _, Query, SelectStatement,
        UnionType,
    },
};

use super::PlatformError;
use crate::domain::platform::{
    cursor::{self, Key, List},
    page::{self, PageRequest},
    refusal::Refusal,
};

/// Most values of the leading column that are merged.
const MERGED: usize = 16;
/// Most parameters of such a merge: each walk repeats those of the other filters. SQLite takes 32 766 in a statement,
/// PostgreSQL 65 535, and planning many costs more than a sort saves.
const MERGED_PARAMETERS: usize = 4000;
/// Bytes of a long text up to which it is read with its page; a row whose long texts have more together is read again.
const SMALL: i64 = 8 << 10;
/// Column of a page's query with the bytes of a row's long texts.
const BYTES: &str = "long_bytes";

/// A list: what it is for cursors, its rows and its order.
pub(super) struct Listing<E: EntityTrait> {
    pub list: List,
    pub select: Select<E>,
    /// Columns that are never NULL; the last, the primary key, makes it total.
    pub order: Vec<(E::Column, Order)>,
    /// The first column of the index with the values it may have; an empty list shows nothing.
    pub leading: Option<(E::Column, Vec<String>)>,
    /// Columns with texts that may be long: all whose bound is above `text::MAX_NAME_BYTES`.
    pub long: Vec<E::Column>,
}

/// A row as the query of a page gives it: without those of its long texts that have more than [`SMALL`] bytes.
struct Measured<M> {
    row: M,
    bytes: i64,
}

impl<M: FromQueryResult> FromQueryResult for Measured<M> {
    fn from_query_result(found: &QueryResult, prefix: &str) -> Result<Self, DbErr> {
        Ok(Self { row: M::from_query_result(found, prefix)?, bytes: found.try_get(prefix, BYTES)? })
    }
}

/// Rows of a page and where the next one begins.
pub(super) type Rows<E> = (Vec<<E as EntityTrait>::Model>, Option<String>);

impl<E> Listing<E>
where
    E: EntityTrait,
    E::Model: ModelTrait<Entity = E>,
{
    /// One page: at most its limit of rows, and of [`page::MAX_BYTES`] of long texts, but always one when there is one.
    /// A row that is deleted meanwhile may be left out.
    pub async fn page(&self, connection: &impl ConnectionTrait, page: &PageRequest) -> Result<Rows<E>, PlatformError> {
        match self.statement(connection.get_database_backend(), page)? {
            Some(statement) => self.read(connection, statement, page.limit()).await,
            None => Ok((Vec::new(), None)),
        }
    }

    /// The same by the number of rows that go before. Their cost grows with it.
    pub async fn page_at(
        &self,
        connection: &impl ConnectionTrait,
        offset: u64,
        limit: u32,
    ) -> Result<Rows<E>, PlatformError> {
        let backend = connection.get_database_backend();
        match self.restricted(backend, self.measured(), offset, u64::from(limit) + 1) {
            Some(query) => self.read(connection, backend.build(&query), limit).await,
            None => Ok((Vec::new(), None)),
        }
    }

    /// What fits into a page, of a query with one row more.
    async fn read(
        &self,
        connection: &impl ConnectionTrait,
        statement: Statement,
        limit: u32,
    ) -> Result<Rows<E>, PlatformError> {
        let mut found = Measured::<E::Model>::find_by_statement(statement).all(connection).await?;
        let bytes = |measured: &Measured<E::Model>| usize::try_from(measured.bytes).unwrap_or_default();
        let fitting = page::fitting(found.iter().take(limit as usize).map(bytes));
        let more = found.len() > fitting;
        found.truncate(fitting);
        let next = found.last().filter(|_| more).map(|last| self.cursor(&last.row));
        Ok((self.whole(connection, found).await?, next))
    }

    /// The rows with their long texts.
    async fn whole(
        &self,
        connection: &impl ConnectionTrait,
        found: Vec<Measured<E::Model>>,
    ) -> Result<Vec<E::Model>, PlatformError> {
        let large: Vec<_> = found.iter().filter(|measured| measured.bytes > SMALL).collect();
        let Some((id, _)) = self.order.last().filter(|_| !large.is_empty()) else {
            return Ok(found.into_iter().map(|measured| measured.row).collect());
        };
        let ids = large.iter().map(|measured| measured.row.get(*id));
        let mut whole = E::find().filter(id.is_in(ids)).all(connection).await?;
        let take = |measured: Measured<E::Model>| {
            if measured.bytes <= SMALL {
                return Some(measured.row);
            }
            let place = whole.iter().position(|row| row.get(*id) == measured.row.get(*id))?;
            Some(whole.swap_remove(place))
        };
        Ok(found.into_iter().filter_map(take).collect())
    }

    /// How many rows the whole list has.
    pub async fn count(&self, connection: &impl ConnectionTrait) -> Result<u64, PlatformError>
    where
        E::Model: Sync,
    {
        let select = match &self.leading {
            None => self.select.clone(),
            Some((_, values)) if values.is_empty() => return Ok(0),
            Some((column, values)) => self.select.clone().filter(column.is_in(values)),
        };
        Ok(PaginatorTrait::count(select, connection).await?)
    }

    /// The query of a page; none when nothing can match.
    pub fn statement(&self, backend: DbBackend, page: &PageRequest) -> Result<Option<Statement>, PlatformError> {
        let query = self.part(backend, self.measured(), page)?;
        Ok(query.map(|query| backend.build(&query)))
    }

    /// The rows of a page, whole, to be put into another query: one more than the page has, when there is one.
    pub fn query(&self, backend: DbBackend, page: &PageRequest) -> Result<Option<SelectStatement>, PlatformError> {
        self.part(backend, self.select.clone(), page)
    }

    fn part(
        &self,
        backend: DbBackend,
        select: Select<E>,
        page: &PageRequest,
    ) -> Result<Option<SelectStatement>, PlatformError> {
        let after = page.after(self.list)?.map(|keys| self.after(&keys)).transpose()?;
        let select = match after {
            Some(after) => select.filter(after),
            None => select,
        };
        Ok(self.restricted(backend, select, 0, u64::from(page.limit()) + 1))
    }

    /// Rows as [`Measured`]. How long a text is both databases know without reading it.
    fn measured(&self) -> Select<E> {
        let length = |column: &E::Column| {
            let length = Func::cust("octet_length").arg(Expr::col((E::default(), *column)));
            match column.def().is_null() {
                true => Expr::from(Func::coalesce([length.into(), Expr::value(0)])),
                false => length.into(),
            }
        };
        let mut select = self.select.clone().select_only();
        for column in E::Column::iter() {
            select = match self.long.iter().find(|long| long.as_str() == column.as_str()) {
                None => select.column(column),
                Some(long) => {
                    let text = CaseStatement::new().case(length(long).gt(SMALL), "").finally(column.into_expr());
                    select.expr_as(text, column.as_str())
                }
            };
        }
        let bytes = self.long.iter().map(length).reduce(|sum, more| sum.add(more));
        select.expr_as(bytes.unwrap_or_else(|| Expr::value(0)).cast_as(Alias::new("BIGINT")), BYTES)
    }

    /// In order, restricted to the leading column's values, at most `limit` rows after the first `offset`.
    fn restricted(&self, backend: DbBackend, select: Select<E>, offset: u64, limit: u64) -> Option<SelectStatement> {
        let mut query = match &self.leading {
            None => self.ordered(select).into_query(),
            Some((_, values)) if values.is_empty() => return None,
            Some((column, values)) if values.len() == 1 => {
                self.ordered(select.filter(column.eq(values[0].as_str()))).into_query()
            }
            Some((column, values)) if !merges(backend, &select, values.len()) => {
                self.ordered(select.filter(column.is_in(values))).into_query()
            }
            Some((column, values)) => {
                let walks = values.iter().map(|value| select.clone().filter(column.eq(value.as_str())));
                self.merged(backend, walks, offset.saturating_add(limit))?
            }
        };
        query.limit(limit);
        if offset > 0 {
            query.offset(offset);
        }
        Some(query)
    }

    /// One ordered walk for each value, merged. SQLite orders the walks by itself; PostgreSQL has to be told, and how
    /// much of each is needed.
    fn merged(
        &self,
        backend: DbBackend,
        walks: impl Iterator<Item = Select<E>>,
        needed: u64,
    ) -> Option<SelectStatement> {
        let mut walks = walks.enumerate().map(|(n, walk)| match backend {
            DbBackend::Postgres => {
                let walk = self.ordered(walk).limit(needed).into_query();
                Query::select().column(Asterisk).from_subquery(walk, format!("walk{n}")).take()
            }
            _ => walk.into_query(),
        });
        let mut merged = walks.next()?;
        for walk in walks {
            merged.union(UnionType::All, walk);
        }
        for (column, order) in &self.order {
            merged.order_by(column.into_iden(), order.clone());
        }
        Some(merged)
    }

    fn ordered(&self, mut select: Select<E>) -> Select<E> {
        for (column, order) in &self.order {
            select = select.order_by(*column, order.clone());
        }
        select
    }

    fn cursor(&self, row: &E::Model) -> String {
        let key = |value: Value| match value {
            Value::BigInt(number) => Key::Int(number.unwrap_or_default()),
            Value::String(text) => Key::Text(text.unwrap_or_default()),
            _ => Key::Int(0),
        };
        let keys: Vec<_> = self.order.iter().map(|(column, _)| key(row.get(*column))).collect();
        cursor::encode(self.list, &keys)
    }

    /// `a >= x AND (a > x OR (b >= y AND (b > y OR …)))`: the first part is the range of the index.
    fn after(&self, keys: &[Key]) -> Result<Expr, Refusal> {
        if keys.len() != self.order.len() {
            return Err(Refusal::BadCursor);
        }
        let mut condition: Option<Expr> = None;
        for ((column, order), key) in self.order.iter().zip(keys).rev() {
            let lawful = matches!(
                (key, E::Model::get_value_type(*column)),
                (Key::Int(_), ArrayType::BigInt) | (Key::Text(_), ArrayType::String)
            );
            if !lawful {
                return Err(Refusal::BadCursor);
            }
            let value = || match key {
                Key::Int(number) => Value::from(*number),
                Key::Text(text) => Value::from(text.as_str()),
            };
            let (beyond, from) = match order {
                Order::Desc => (column.lt(value()), column.lte(value())),
                _ => (column.gt(value()), column.gte(value())),
            };
            condition = Some(match condition {
                None => beyond,
                Some(rest) => from.and(beyond.or(rest)),
            });
        }
        condition.ok_or(Refusal::BadCursor)
    }
}

/// Whether so many walks over these rows are worth a merge.
fn merges<E: EntityTrait>(backend: DbBackend, select: &Select<E>, walks: usize) -> bool {
    if walks > MERGED {
        return false;
    }
    // The walk's own value and, on PostgreSQL, its limit.
    let parameters = select.build(backend).values.map_or(0, |values| values.0.len()) + 2;
    walks * parameters <= MERGED_PARAMETERS
}
