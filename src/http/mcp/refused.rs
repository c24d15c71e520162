//! Why HTTP refuses a client of the Model Context Protocol before, or instead of, JSON-RPC.

/// Why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A page asks whose name somebody else may have lent this machine's address.
    #[error(
        "pages of the origin {0} may not use this endpoint: open the host by its IP address or as localhost, or name the \
         origin in http.allowed_origins; clients that are no browsers send no Origin"
    )]
    Origin(String),
    /// All places are taken.
    #[error("too many MCP sessions, end one (DELETE) or try again later (limits.mcp_sessions)")]
    TooMany,
    /// The session has ended or never was.
    #[error("no such session; send initialize for a new one")]
    NoSession,
    /// The session takes no more messages, because its client does not read.
    #[error("the session is busy: its client does not read what it is sent (timing.ask_timeout)")]
    Busy,
    /// What the library says of a message that it does not take.
    #[error("{0}")]
    Message(String),
    /// The client would not understand the answer.
    #[error("{0}")]
    Accept(String),
    /// The body is not declared as JSON.
    #[error("the content-type must be application/json")]
    Media,
}
