//! sea-orm models of the tables, nothing else. Rows never leave `store`.

pub mod inbox_item;
pub mod plugin_state;
pub mod plugin_state_usage;
