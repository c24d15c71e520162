//! Services of the domain: what the host offers beside running plugins. They keep rows and follow the event bus; of HTTP,
//! gRPC and the plugins' actors they know nothing.

pub mod inbox;
