//! Tokens with which git asks for credentials. Of a token only its hash is here.

use sea_orm::{
    ActiveValue::Set, ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr,
};
use time::OffsetDateTime;

use super::{PlatformError, PlatformStore, Work};
use crate::{
    domain::platform::{
        from_micros,
        git_token::{GitToken, MAX_TOKENS, TokenHash},
        micros,
        text::may_be_id,
    },
    entities::git_credential_token::{ActiveModel, Column, Entity, Model},
};

fn token(row: Model) -> GitToken {
    GitToken {
        id: row.id,
        session_id: row.session_id,
        repository_id: row.repository_id,
        created_at: from_micros(row.created_at),
        expires_at: from_micros(row.expires_at),
        last_used_at: row.last_used_at.map(from_micros),
    }
}

impl PlatformStore {
    /// The token of this hash, if it is still good at `now`. Whether its session is over is not looked at.
    pub async fn git_token(&self, hash: &TokenHash, now: OffsetDateTime) -> Result<Option<GitToken>, PlatformError> {
        let query =
            Entity::find().filter(Column::TokenHash.eq(hash.as_str())).filter(Column::ExpiresAt.gt(micros(now)));
        let row = self.db.repeat(async || Ok::<_, PlatformError>(query.clone().one(self.db.reader()).await?)).await?;
        Ok(row.map(token))
    }

    /// The good tokens of a session, the oldest first; no more than there may be.
    pub async fn git_tokens(&self, session_id: &str, now: OffsetDateTime) -> Result<Vec<GitToken>, PlatformError> {
        if !may_be_id(session_id) {
            return Ok(Vec::new());
        }
        let query = Entity::find()
            .filter(Column::SessionId.eq(session_id))
            .filter(Column::ExpiresAt.gt(micros(now)))
            .order_by_asc(Column::Id)
            .limit(MAX_TOKENS as u64);
        let rows = self.db.repeat(async || Ok::<_, PlatformError>(query.clone().all(self.db.reader()).await?)).await?;
        Ok(rows.into_iter().map(token).collect())
    }

    /// Notes that a token was used.
    pub async fn git_token_used(&self, id: &str, now: OffsetDateTime) -> Result<(), PlatformError> {
        let update =
            Entity::update_many().col_expr(Column::LastUsedAt, Expr::value(micros(now))).filter(Column::Id.eq(id));
        let work = async || {
            update.clone().exec(self.db.writer()).await?;
            Ok::<_, PlatformError>(())
        };
        self.db.repeat(work).await
    }

    /// Deletes a token of a session; it may be gone already.
    pub async fn revoke_git_token(&self, session_id: &str, id: &str) -> Result<(), PlatformError> {
        if !may_be_id(session_id) || !may_be_id(id) {
            return Ok(());
        }
        let delete = Entity::delete_many().filter(Column::Id.eq(id)).filter(Column::SessionId.eq(session_id));
        let work = async || {
            delete.clone().exec(self.db.writer()).await?;
            Ok::<_, PlatformError>(())
        };
        self.db.repeat(work).await
    }

    /// Deletes the tokens that were good until before `now`.
    pub async fn forget_git_tokens(&self, now: OffsetDateTime) -> Result<(), PlatformError> {
        let delete = Entity::delete_many().filter(Column::ExpiresAt.lte(micros(now)));
        let work = async || {
            delete.clone().exec(self.db.writer()).await?;
            Ok::<_, PlatformError>(())
        };
        self.db.repeat(work).await
    }
}

impl Work {
    /// Keeps a new token; one that was kept by an attempt whose answer was lost stays. `false` when the session has as
    /// many as there may be. The session must be locked.
    pub async fn add_git_token(&self, new: &GitToken, hash: &TokenHash) -> Result<bool, PlatformError> {
        let connection = self.transaction();
        if Entity::find_by_id(new.id.clone()).one(connection).await?.is_some() {
            return Ok(true);
        }
        let good = Entity::find()
            .filter(Column::SessionId.eq(&new.session_id))
            .filter(Column::ExpiresAt.gt(micros(new.created_at)));
        if good.count(connection).await? >= MAX_TOKENS as u64 {
            return Ok(false);
        }
        let row = ActiveModel {
            id: Set(new.id.clone()),
            token_hash: Set(hash.as_str().to_owned()),
            session_id: Set(new.session_id.clone()),
            repository_id: Set(new.repository_id.clone()),
            created_at: Set(micros(new.created_at)),
            expires_at: Set(micros(new.expires_at)),
            last_used_at: Set(None),
        };
        Entity::insert(row).exec_without_returning(connection).await?;
        Ok(true)
    }

    /// The session is over: its tokens are good for nothing any more.
    pub async fn end_git_tokens(&self, session_id: &str) -> Result<(), PlatformError> {
        Entity::delete_many().filter(Column::SessionId.eq(session_id)).exec(self.transaction()).await?;
        Ok(())
    }
}
