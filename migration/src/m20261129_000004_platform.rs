//! Tables of the platform: workspaces, boards, tasks, sessions and what happens in them; the event log and what goes
//! with it.
//!
//! Written as SQL: the two databases differ in two words only. Moments are microseconds since 1970 as numbers, because
//! text has no order that both databases share; text that rows are ordered by has the order of its bytes on both. JSON
//! is text, as plugin state is. Each index serves a documented order (docs/platform.md) or a foreign key.

use sea_orm_migration::{
    prelude::*,
    sea_orm::{ConnectionTrait, DatabaseBackend},
};

#[derive(DeriveMigrationName)]
pub struct Migration;

const TABLES: [&str; 23] = [
    "CREATE TABLE instance_setting (
        key {text} NOT NULL PRIMARY KEY,
        value TEXT NOT NULL)",
    "CREATE TABLE workspace (
        id {text} NOT NULL PRIMARY KEY,
        name TEXT NOT NULL,
        description TEXT,
        owner_id TEXT NOT NULL,
        default_executor_id TEXT,
        default_environment_id TEXT,
        default_agent_profile_id TEXT,
        default_config_agent_profile_id TEXT,
        task_prefix TEXT NOT NULL,
        task_sequence BIGINT NOT NULL,
        created_at BIGINT NOT NULL,
        updated_at BIGINT NOT NULL,
        version BIGINT NOT NULL)",
    "CREATE TABLE workflow (
        id {text} NOT NULL PRIMARY KEY,
        workspace_id {text} NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        description TEXT,
        prompt TEXT NOT NULL,
        agent_profile_id TEXT,
        sort_order BIGINT NOT NULL,
        hidden BOOLEAN NOT NULL,
        created_at BIGINT NOT NULL,
        updated_at BIGINT NOT NULL,
        version BIGINT NOT NULL)",
    "CREATE TABLE workflow_step (
        id {text} NOT NULL PRIMARY KEY,
        workflow_id {text} NOT NULL REFERENCES workflow (id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        position BIGINT NOT NULL,
        stage_type TEXT NOT NULL,
        color TEXT NOT NULL,
        prompt TEXT NOT NULL,
        events TEXT NOT NULL,
        allow_manual_move BOOLEAN NOT NULL,
        is_start_step BOOLEAN NOT NULL,
        show_in_command_panel BOOLEAN NOT NULL,
        auto_archive_after_hours BIGINT NOT NULL,
        wip_limit BIGINT NOT NULL,
        pull_from_step_id TEXT,
        agent_profile_id TEXT,
        auto_advance_requires_signal BOOLEAN NOT NULL,
        cancel_triggers_turn_complete BOOLEAN NOT NULL,
        created_at BIGINT NOT NULL,
        updated_at BIGINT NOT NULL,
        version BIGINT NOT NULL)",
    "CREATE TABLE repository (
        id {text} NOT NULL PRIMARY KEY,
        workspace_id {text} NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        source_type TEXT NOT NULL,
        local_path TEXT NOT NULL,
        provider TEXT NOT NULL,
        provider_repo_id TEXT NOT NULL,
        provider_host TEXT NOT NULL,
        provider_scope TEXT NOT NULL,
        provider_owner TEXT NOT NULL,
        provider_name TEXT NOT NULL,
        remote_url TEXT NOT NULL,
        default_branch TEXT NOT NULL,
        worktree_branch_prefix TEXT NOT NULL,
        pull_before_worktree BOOLEAN NOT NULL,
        setup_script TEXT NOT NULL,
        cleanup_script TEXT NOT NULL,
        dev_script TEXT NOT NULL,
        copy_files TEXT NOT NULL,
        created_at BIGINT NOT NULL,
        updated_at BIGINT NOT NULL,
        version BIGINT NOT NULL,
        deleted_at BIGINT)",
    "CREATE TABLE agent (
        id {text} NOT NULL PRIMARY KEY,
        name TEXT NOT NULL,
        position BIGINT NOT NULL,
        supports_mcp BOOLEAN NOT NULL,
        created_at BIGINT NOT NULL,
        updated_at BIGINT NOT NULL,
        version BIGINT NOT NULL)",
    "CREATE TABLE agent_profile (
        id {text} NOT NULL PRIMARY KEY,
        agent_id {text} NOT NULL REFERENCES agent (id) ON DELETE CASCADE,
        agent_display_name TEXT NOT NULL,
        agent_position BIGINT NOT NULL,
        name TEXT NOT NULL,
        model TEXT NOT NULL,
        mode TEXT NOT NULL,
        workspace_id {text} REFERENCES workspace (id) ON DELETE CASCADE,
        enabled BOOLEAN NOT NULL,
        settings TEXT NOT NULL,
        created_at BIGINT NOT NULL,
        updated_at BIGINT NOT NULL,
        version BIGINT NOT NULL)",
    "CREATE TABLE executor (
        id {text} NOT NULL PRIMARY KEY,
        name TEXT NOT NULL,
        type TEXT NOT NULL,
        status TEXT NOT NULL,
        is_system BOOLEAN NOT NULL,
        resumable BOOLEAN NOT NULL,
        config TEXT NOT NULL,
        created_at BIGINT NOT NULL,
        updated_at BIGINT NOT NULL,
        version BIGINT NOT NULL)",
    "CREATE TABLE executor_profile (
        id {text} NOT NULL PRIMARY KEY,
        executor_id {text} NOT NULL,
        name {text} NOT NULL,
        mcp_policy TEXT NOT NULL,
        config TEXT NOT NULL,
        prepare_script TEXT NOT NULL,
        cleanup_script TEXT NOT NULL,
        created_at BIGINT NOT NULL,
        updated_at BIGINT NOT NULL,
        version BIGINT NOT NULL)",
    "CREATE TABLE task (
        id {text} NOT NULL PRIMARY KEY,
        workspace_id {text} NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
        workflow_id {text} NOT NULL REFERENCES workflow (id),
        workflow_step_id {text} REFERENCES workflow_step (id),
        title TEXT NOT NULL,
        description TEXT NOT NULL,
        state TEXT NOT NULL,
        priority TEXT NOT NULL,
        origin TEXT NOT NULL,
        position BIGINT NOT NULL,
        identifier TEXT NOT NULL,
        external_id {text},
        parent_id {text} REFERENCES task (id) ON DELETE SET NULL,
        is_ephemeral BOOLEAN NOT NULL,
        is_internal BOOLEAN NOT NULL,
        source TEXT NOT NULL,
        archived_at BIGINT,
        started_at BIGINT,
        completed_at BIGINT,
        metadata TEXT NOT NULL,
        created_at BIGINT NOT NULL,
        updated_at BIGINT NOT NULL,
        version BIGINT NOT NULL)",
    "CREATE TABLE task_repository (
        id {text} NOT NULL PRIMARY KEY,
        task_id {text} NOT NULL REFERENCES task (id) ON DELETE CASCADE,
        repository_id {text} NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
        base_branch TEXT NOT NULL,
        checkout_branch TEXT NOT NULL,
        pull_request_number BIGINT,
        position BIGINT NOT NULL)",
    "CREATE TABLE task_session (
        id {text} NOT NULL PRIMARY KEY,
        task_id {text} NOT NULL REFERENCES task (id) ON DELETE CASCADE,
        workspace_id {text} NOT NULL,
        name TEXT NOT NULL,
        state TEXT NOT NULL,
        error_message TEXT NOT NULL,
        agent_profile_id TEXT NOT NULL,
        agent_profile_snapshot TEXT NOT NULL,
        executor_id TEXT NOT NULL,
        executor_profile_id TEXT NOT NULL,
        executor_snapshot TEXT NOT NULL,
        repository_id TEXT NOT NULL,
        base_branch TEXT NOT NULL,
        metadata TEXT NOT NULL,
        is_primary BOOLEAN NOT NULL,
        review_status TEXT,
        last_read_message_id TEXT,
        started_at BIGINT NOT NULL,
        completed_at BIGINT,
        updated_at BIGINT NOT NULL,
        version BIGINT NOT NULL)",
    "CREATE TABLE session_turn (
        id {text} NOT NULL PRIMARY KEY,
        session_id {text} NOT NULL REFERENCES task_session (id) ON DELETE CASCADE,
        task_id {text} NOT NULL,
        metadata TEXT NOT NULL,
        started_at BIGINT NOT NULL,
        completed_at BIGINT,
        created_at BIGINT NOT NULL,
        updated_at BIGINT NOT NULL)",
    "CREATE TABLE session_message (
        id {text} NOT NULL PRIMARY KEY,
        session_id {text} NOT NULL REFERENCES task_session (id) ON DELETE CASCADE,
        task_id {text} NOT NULL,
        turn_id TEXT NOT NULL,
        author_type TEXT NOT NULL,
        author_id TEXT NOT NULL,
        type TEXT NOT NULL,
        raw_content TEXT NOT NULL,
        requests_input BOOLEAN NOT NULL,
        metadata TEXT NOT NULL,
        created_at BIGINT NOT NULL,
        updated_at BIGINT NOT NULL,
        version BIGINT NOT NULL)",
    "CREATE TABLE session_commit (
        id {text} NOT NULL PRIMARY KEY,
        session_id {text} NOT NULL REFERENCES task_session (id) ON DELETE CASCADE,
        commit_sha {text} NOT NULL,
        parent_sha TEXT NOT NULL,
        commit_message TEXT NOT NULL,
        author_name TEXT NOT NULL,
        author_email TEXT NOT NULL,
        files_changed BIGINT NOT NULL,
        insertions BIGINT NOT NULL,
        deletions BIGINT NOT NULL,
        committed_at BIGINT NOT NULL,
        created_at BIGINT NOT NULL)",
    "CREATE TABLE session_snapshot (
        id {text} NOT NULL PRIMARY KEY,
        session_id {text} NOT NULL REFERENCES task_session (id) ON DELETE CASCADE,
        branch TEXT NOT NULL,
        head_commit TEXT NOT NULL,
        files TEXT NOT NULL,
        additions BIGINT NOT NULL,
        deletions BIGINT NOT NULL,
        created_at BIGINT NOT NULL)",
    // The payload last: retention reads the rest and never its pages.
    "CREATE TABLE event_log (
        seq {sequence},
        event_id {text} NOT NULL,
        subject TEXT NOT NULL,
        workspace_id TEXT NOT NULL,
        about TEXT,
        size_bytes BIGINT NOT NULL,
        created_at BIGINT NOT NULL,
        payload TEXT NOT NULL)",
    "CREATE TABLE event_cursor (
        name {text} NOT NULL PRIMARY KEY,
        seq BIGINT NOT NULL)",
    "CREATE TABLE idempotency_key (
        scope {text} NOT NULL,
        key {text} NOT NULL,
        fingerprint TEXT NOT NULL,
        result TEXT NOT NULL,
        created_at BIGINT NOT NULL,
        PRIMARY KEY (scope, key))",
    // Order and names of the rest: see INDEXES. These two are rules.
    "CREATE UNIQUE INDEX task_external ON task (workspace_id, external_id)",
    "CREATE UNIQUE INDEX session_commit_sha ON session_commit (session_id, commit_sha)",
    "CREATE UNIQUE INDEX event_log_event ON event_log (event_id)",
    "INSERT INTO event_cursor (name, seq) VALUES ('bus', 0)",
];

const INDEXES: [(&str, &str); 30] = [
    ("workspace_newest", "workspace (created_at DESC, id)"),
    ("workflow_order", "workflow (sort_order, created_at, id)"),
    ("workflow_workspace", "workflow (workspace_id, sort_order, created_at, id)"),
    ("workflow_step_order", "workflow_step (workflow_id, position, id)"),
    ("repository_newest", "repository (workspace_id, created_at DESC, id)"),
    ("repository_provider", "repository (workspace_id, provider, provider_host, provider_repo_id)"),
    ("agent_order", "agent (position, id)"),
    ("agent_profile_order", "agent_profile (agent_position, agent_id, created_at, id) WHERE workspace_id IS NULL"),
    ("agent_profile_workspace", "agent_profile (workspace_id) WHERE workspace_id IS NOT NULL"),
    ("agent_profile_agent", "agent_profile (agent_id)"),
    ("executor_order", "executor (created_at, id)"),
    ("executor_profile_order", "executor_profile (executor_id, name, id)"),
    ("task_newest", "task (created_at DESC, id)"),
    ("task_workspace", "task (workspace_id, created_at DESC, id)"),
    ("task_workflow", "task (workflow_id, created_at DESC, id)"),
    ("task_step", "task (workflow_step_id)"),
    ("task_parent", "task (parent_id, created_at DESC, id)"),
    ("task_repository_order", "task_repository (task_id, position, id)"),
    ("task_repository_repository", "task_repository (repository_id)"),
    ("task_session_newest", "task_session (started_at DESC, id)"),
    ("task_session_workspace", "task_session (workspace_id, started_at DESC, id)"),
    ("task_session_task", "task_session (task_id, started_at DESC, id)"),
    ("session_turn_order", "session_turn (session_id, started_at, id)"),
    ("session_message_order", "session_message (created_at, id)"),
    ("session_message_session", "session_message (session_id, created_at, id)"),
    ("session_message_task", "session_message (task_id, created_at, id)"),
    ("session_commit_newest", "session_commit (session_id, created_at DESC, id)"),
    ("session_snapshot_newest", "session_snapshot (session_id, created_at DESC, id)"),
    ("session_snapshot_lines", "session_snapshot (session_id, additions, deletions)"),
    ("idempotency_key_age", "idempotency_key (created_at)"),
];

/// Tables that go, each before what it refers to.
const DROPPED: [&str; 19] = [
    "idempotency_key",
    "event_cursor",
    "event_log",
    "session_snapshot",
    "session_commit",
    "session_message",
    "session_turn",
    "task_session",
    "task_repository",
    "task",
    "executor_profile",
    "executor",
    "agent_profile",
    "agent",
    "repository",
    "workflow_step",
    "workflow",
    "workspace",
    "instance_setting",
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let (text, sequence, now) = match manager.get_database_backend() {
            DatabaseBackend::Postgres => (
                "TEXT COLLATE \"C\"",
                "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
                "(extract(epoch FROM now()) * 1000000)::bigint::text",
            ),
            // A number is never given twice, also after the newest row was deleted.
            _ => ("TEXT", "INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL", "CAST(unixepoch() AS TEXT) || '000000'"),
        };
        let connection = manager.get_connection();
        for table in TABLES {
            let statement = table.replace("{text}", text).replace("{sequence}", sequence);
            connection.execute_unprepared(&statement).await?;
        }
        for (name, columns) in INDEXES {
            connection.execute_unprepared(&format!("CREATE INDEX {name} ON {columns}")).await?;
        }
        // From here on this database records commits; of earlier sessions it cannot know any (host-data.md §5).
        let activated =
            format!("INSERT INTO instance_setting (key, value) VALUES ('commit_capture_activated_at', {now})");
        connection.execute_unprepared(&activated).await?;
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in DROPPED {
            manager.get_connection().execute_unprepared(&format!("DROP TABLE {table}")).await?;
        }
        Ok(())
    }
}
