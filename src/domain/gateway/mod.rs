//! What is said over `GET /ws` (platform-rest.md §12): its frames, what is told of events and to whom, and what clients
//! may ask. Who is connected and how frames travel is the edge's part.

pub mod frame;
pub mod interest;
pub mod lengths;
pub mod notice;
pub mod request;
