//! sea-orm models of the tables, nothing else. Rows never leave `store` and `vault`.

pub mod inbox_item;
pub mod plugin_state;
pub mod plugin_state_usage;
pub mod vault_entry;
pub mod vault_share;
