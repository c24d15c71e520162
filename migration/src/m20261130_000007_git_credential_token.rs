//! Table of the tokens with which git asks for credentials: one session, one repository each, and of the token itself
//! only its hash. They go with their session.

use sea_orm_migration::{
    prelude::*,
    sea_orm::{ConnectionTrait, DatabaseBackend},
};

#[derive(DeriveMigrationName)]
pub struct Migration;

const STATEMENTS: [&str; 4] = [
    "CREATE TABLE git_credential_token (
        id {text} NOT NULL PRIMARY KEY,
        token_hash {text} NOT NULL,
        session_id {text} NOT NULL REFERENCES task_session (id) ON DELETE CASCADE,
        repository_id {text} NOT NULL,
        created_at BIGINT NOT NULL,
        expires_at BIGINT NOT NULL,
        last_used_at BIGINT)",
    "CREATE UNIQUE INDEX git_credential_token_hash ON git_credential_token (token_hash)",
    "CREATE INDEX git_credential_token_session ON git_credential_token (session_id, id)",
    "CREATE INDEX git_credential_token_age ON git_credential_token (expires_at)",
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let text = match manager.get_database_backend() {
            DatabaseBackend::Postgres => "TEXT COLLATE \"C\"",
            _ => "TEXT",
        };
        for statement in STATEMENTS {
            manager.get_connection().execute_unprepared(&statement.replace("{text}", text)).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.get_connection().execute_unprepared("DROP TABLE git_credential_token").await.map(drop)
    }
}
