//! sea-orm models of the tables, nothing else. Rows never leave `store` and `vault`.

pub mod agent;
pub mod agent_profile;
pub mod event_cursor;
pub mod event_log;
pub mod executor;
pub mod executor_profile;
pub mod idempotency_key;
pub mod inbox_item;
pub mod instance_setting;
pub mod marketplace_source;
pub mod plugin_state;
pub mod plugin_state_usage;
pub mod plugin_user_state;
pub mod repository;
pub mod session_commit;
pub mod session_message;
pub mod session_snapshot;
pub mod session_turn;
pub mod task;
pub mod task_repository;
pub mod task_session;
pub mod vault_entry;
pub mod vault_share;
pub mod workflow;
pub mod workflow_step;
pub mod workspace;
