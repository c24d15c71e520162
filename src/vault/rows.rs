//! The statements of the vault: rows in, rows out. What is in a ciphertext is not known here.

use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect,
    sea_query::{Expr, OnConflict},
};
use time::OffsetDateTime;

use super::key::Sealed;
use crate::{
    domain::{
        id::PluginId,
        secret::{SecretKind, VaultId},
    },
    entities::vault_entry::{ActiveModel, Column, Entity, Model},
    entities::vault_share,
};

/// The entry that tells which key is the current one, and proves that it is had. No [`crate::domain::secret::VaultId`]
/// has this text.
pub const CHECK_ID: &str = "host:key-check";

const CHECK_KIND: &str = "check";

/// Ids asked for in one statement; both databases take many more.
const IDS_PER_STATEMENT: usize = 1000;

/// Entries with these ids, in no order.
pub async fn read(connection: &impl ConnectionTrait, ids: &[&str]) -> Result<Vec<Model>, DbErr> {
    let mut rows = Vec::with_capacity(ids.len());
    for ids in ids.chunks(IDS_PER_STATEMENT) {
        rows.extend(Entity::find().filter(Column::Id.is_in(ids.iter().copied())).all(connection).await?);
    }
    Ok(rows)
}

/// The key check, held until the transaction ends: writers of the vault go one after the other, also on PostgreSQL, and
/// a rotation goes between them.
pub async fn lock_check(transaction: &DatabaseTransaction) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id(CHECK_ID).lock_exclusive().one(transaction).await
}

/// Every secret of one kind; revisions of configs are none.
pub async fn count(connection: &impl ConnectionTrait, kind: SecretKind) -> Result<u64, DbErr> {
    // As `VaultId::revision` makes it.
    let is_no_revision = Expr::cust("id <> 'plugin:' || owner || ':config:'");
    Entity::find().filter(Column::Kind.eq(kind.name())).filter(is_no_revision).count(connection).await
}

/// Whether an entry is somebody's secret, and none of the host's own.
pub fn is_secret(row: &Model) -> bool {
    let is_revision = |owner: PluginId| row.id == VaultId::revision(&owner).as_str();
    row.id != CHECK_ID && !PluginId::new(&row.owner).is_ok_and(is_revision)
}

/// Every entry but the key check, revisions of configs included: they too are lost with the key.
pub async fn count_all(connection: &impl ConnectionTrait) -> Result<u64, DbErr> {
    Entity::find().filter(Column::Id.ne(CHECK_ID)).count(connection).await
}

/// Entries of one plugin and kind, but for the one called `id`.
pub async fn count_others(
    connection: &impl ConnectionTrait,
    owner: &PluginId,
    kind: SecretKind,
    id: &str,
) -> Result<u64, DbErr> {
    let of_owner = Entity::find().filter(Column::Owner.eq(owner.as_str())).filter(Column::Kind.eq(kind.name()));
    of_owner.filter(Column::Id.ne(id)).count(connection).await
}

/// A row that holds what is sealed.
pub fn entry(id: &str, kind: SecretKind, owner: Option<&PluginId>, sealed: Sealed, now: OffsetDateTime) -> ActiveModel {
    model(id, kind.name(), owner.map_or("", PluginId::as_str), sealed, now)
}

/// The row of the key check.
pub fn check(sealed: Sealed, now: OffsetDateTime) -> ActiveModel {
    model(CHECK_ID, CHECK_KIND, "", sealed, now)
}

fn model(id: &str, kind: &str, owner: &str, sealed: Sealed, now: OffsetDateTime) -> ActiveModel {
    let now = now.replace_nanosecond(0).unwrap_or(now);
    ActiveModel {
        id: Set(id.to_owned()),
        kind: Set(kind.to_owned()),
        owner: Set(owner.to_owned()),
        name: Set(id.to_owned()),
        scope: Set(None),
        workspace_id: Set(None),
        key_id: Set(sealed.key_id),
        nonce: Set(sealed.nonce),
        ciphertext: Set(sealed.ciphertext),
        created_at: Set(now),
        updated_at: Set(now),
    }
}

/// Inserts, or replaces what is sealed and the time of the change.
pub async fn put(transaction: &DatabaseTransaction, row: ActiveModel) -> Result<(), DbErr> {
    let replace = OnConflict::column(Column::Id)
        .update_columns([Column::KeyId, Column::Nonce, Column::Ciphertext, Column::UpdatedAt])
        .to_owned();
    Entity::insert(row).on_conflict(replace).exec_without_returning(transaction).await.map(drop)
}

/// Replaces what is sealed, and nothing else: a rotation is no change of the secret.
pub async fn reseal(transaction: &DatabaseTransaction, id: &str, sealed: Sealed) -> Result<(), DbErr> {
    let change = ActiveModel {
        key_id: Set(sealed.key_id),
        nonce: Set(sealed.nonce),
        ciphertext: Set(sealed.ciphertext),
        ..ActiveModel::default()
    };
    Entity::update_many().set(change).filter(Column::Id.eq(id)).exec(transaction).await.map(drop)
}

/// Entries that are not sealed with the key `key_id`, at most `limit`. The key check is the first.
pub async fn sealed_otherwise(
    transaction: &DatabaseTransaction,
    key_id: &str,
    limit: u64,
) -> Result<Vec<Model>, DbErr> {
    let others = Entity::find().filter(Column::KeyId.ne(key_id));
    // `check` sorts before every word of `SecretKind`.
    others.order_by_asc(Column::Kind).order_by_asc(Column::Id).limit(limit).all(transaction).await
}

/// How many are not sealed with the key `key_id`.
pub async fn count_sealed_otherwise(connection: &impl ConnectionTrait, key_id: &str) -> Result<u64, DbErr> {
    Entity::find().filter(Column::KeyId.ne(key_id)).count(connection).await
}

/// Removes one entry; one that is not there is removed already.
pub async fn delete(transaction: &DatabaseTransaction, id: &str) -> Result<u64, DbErr> {
    Ok(Entity::delete_by_id(id).exec(transaction).await?.rows_affected)
}

/// Removes all that goes with a plugin: its entries, and that it may reveal others.
pub async fn delete_owned(transaction: &DatabaseTransaction, owner: &PluginId) -> Result<(), DbErr> {
    Entity::delete_many().filter(Column::Owner.eq(owner.as_str())).exec(transaction).await?;
    let shares = vault_share::Entity::delete_many().filter(vault_share::Column::PluginId.eq(owner.as_str()));
    shares.exec(transaction).await.map(drop)
}
