//! Lists in a total order: one page by one query that an index serves from its first row to its last.
//!
//! A page begins after an order key, never at an offset. A filter by several values of the index's first column is a
//! merge of one ordered walk for each value (`UNION ALL`), not a sort of all their rows; beyond [`MERGED`] values the
//! database chooses.

use sea_orm::{
    ColumnTrait, ConnectionTrait, DbBackend, EntityTrait, ModelTrait, Order, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect as _, QueryTrait, Select, Statement, Value,
    sea_query::{ArrayType, Asterisk, Expr, ExprTrait as _, IntoIden as _, Query, SelectStatement, UnionType},
};

use super::PlatformError;
use crate::domain::platform::{
    cursor::{self, Key, List},
    page::PageRequest,
    refusal::Refusal,
};

/// Most values of the leading column that are merged.
const MERGED: usize = 16;

/// A list: what it is for cursors, its rows and its order.
pub(super) struct Listing<E: EntityTrait> {
    pub list: List,
    pub select: Select<E>,
    /// Columns that are never NULL; the last makes it total.
    pub order: Vec<(E::Column, Order)>,
    /// The first column of the index with the values it may have; an empty list shows nothing.
    pub leading: Option<(E::Column, Vec<String>)>,
}

/// Rows of a page and where the next one begins.
pub(super) type Rows<E> = (Vec<<E as EntityTrait>::Model>, Option<String>);

impl<E> Listing<E>
where
    E: EntityTrait,
    E::Model: ModelTrait<Entity = E>,
{
    /// One page.
    pub async fn page(&self, connection: &impl ConnectionTrait, page: &PageRequest) -> Result<Rows<E>, PlatformError> {
        let Some(statement) = self.statement(connection.get_database_backend(), page)? else {
            return Ok((Vec::new(), None));
        };
        let mut rows = E::find().from_raw_sql(statement).all(connection).await?;
        let limit = page.limit() as usize;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| more).map(|last| self.cursor(last));
        Ok((rows, next))
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
        Ok(self.query(backend, page)?.map(|query| backend.build(&query)))
    }

    /// The same, to be put into another query: one row more than the page has, when there is one.
    pub fn query(&self, backend: DbBackend, page: &PageRequest) -> Result<Option<SelectStatement>, PlatformError> {
        let after = page.after(self.list)?.map(|keys| self.after(&keys)).transpose()?;
        let select = match after {
            Some(after) => self.select.clone().filter(after),
            None => self.select.clone(),
        };
        Ok(self.restricted(backend, select, 0, u64::from(page.limit()) + 1))
    }

    /// In order, restricted to the leading column's values, at most `limit` rows after the first `offset`.
    pub fn restricted(
        &self,
        backend: DbBackend,
        select: Select<E>,
        offset: u64,
        limit: u64,
    ) -> Option<SelectStatement> {
        let mut query = match &self.leading {
            None => self.ordered(select).into_query(),
            Some((_, values)) if values.is_empty() => return None,
            Some((column, values)) if values.len() == 1 => {
                self.ordered(select.filter(column.eq(values[0].as_str()))).into_query()
            }
            Some((column, values)) if values.len() > MERGED => {
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
