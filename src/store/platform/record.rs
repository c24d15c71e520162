//! A thing of the domain and its row, and the small conversions between the two.

use sea_orm::{EntityTrait, IntoActiveModel, PrimaryKeyTrait, Select};
use serde::{Serialize, de::DeserializeOwned};
use time::OffsetDateTime;

use super::Owner;
use crate::{
    domain::platform::{from_micros, micros, refusal::Kind, text::may_be_id},
    store::db::DbFault,
};

/// A thing that is one row of one table, found by its id.
pub trait Record: Sized + Send + Sync {
    /// What it is, in messages.
    const KIND: Kind;
    /// Its table.
    type Entity: EntityTrait<Model = Self::Row, PrimaryKey: PrimaryKeyTrait<ValueType: From<String>>>;
    /// Its row.
    type Row: IntoActiveModel<<Self::Entity as EntityTrait>::ActiveModel> + Send + Sync;

    /// Its id.
    fn id(&self) -> &str;
    /// Whose it is: that says who sees it.
    fn owner(&self) -> Owner<'_>;
    /// Its row as it should be.
    fn row(&self) -> Self::Row;
    /// From its row.
    fn of(row: Self::Row) -> Result<Self, DbFault>;
}

/// The query for one row; none for an id that no row may have.
pub(super) fn by_id<R: Record>(id: &str) -> Option<Select<R::Entity>> {
    may_be_id(id).then(|| R::Entity::find_by_id(id.to_owned()))
}

/// All rows as things.
pub(super) fn all_of<R: Record>(rows: Vec<R::Row>) -> Result<Vec<R>, DbFault> {
    rows.into_iter().map(R::of).collect()
}

/// JSON as it is stored.
pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

/// JSON as it was stored.
pub(super) fn parse<T: DeserializeOwned>(what: &str, text: &str) -> Result<T, DbFault> {
    serde_json::from_str(text).map_err(|error| DbFault::Statement(format!("{what} is not what was stored: {error}")))
}

/// A word of a vocabulary.
pub(super) fn word<T>(what: &str, text: &str, of: fn(&str) -> Option<T>) -> Result<T, DbFault> {
    of(text).ok_or_else(|| DbFault::Statement(format!("{what} \"{text}\" is not one of its words")))
}

pub(super) fn at(number: i64) -> OffsetDateTime {
    from_micros(number)
}

pub(super) fn maybe_at(number: Option<i64>) -> Option<OffsetDateTime> {
    number.map(from_micros)
}

pub(super) fn maybe_micros(at: Option<OffsetDateTime>) -> Option<i64> {
    at.map(micros)
}
