//! A real plugin process on the SDK, below goplugin's host half, with a host in memory that serves every Host RPC.

mod host_calls;
mod memory_host;
mod plugin_calls;
mod support;
