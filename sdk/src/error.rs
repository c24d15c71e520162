//! The one error type of the SDK: what a handler answers, and what a call of the host fails with.
//!
//! Owns the codes, their gRPC and HTTP numbers, and the bound on texts. When a call is an action, the plugin's own
//! error becomes an HTTP status (`action.rs`).

use std::io;

use thiserror::Error as ThisError;
use tonic::Status;

/// What most functions of the SDK return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The longest error text that is sent, in bytes; what is beyond is cut. It travels in a header, which gRPC bounds.
const MAX_MESSAGE_BYTES: usize = 2048;

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// The caller sent something that can never work.
    InvalidArgument,
    /// The caller did not prove who it is.
    Unauthenticated,
    /// It may not do that; from the host: a capability is not declared in the manifest.
    PermissionDenied,
    /// There is no such thing.
    NotFound,
    /// It exists already, or somebody else changed it meanwhile.
    Conflict,
    /// The state of things does not allow it.
    FailedPrecondition,
    /// A limit was met: too large, too many, too often.
    ResourceExhausted,
    /// It took too long.
    DeadlineExceeded,
    /// Not now; trying again is right.
    Unavailable,
    /// This side does not do that.
    Unimplemented,
    /// A bug, such as a panic in a handler.
    Internal,
    /// Anything else.
    Unknown,
}

impl Code {
    fn to_grpc(self) -> tonic::Code {
        match self {
            Self::InvalidArgument => tonic::Code::InvalidArgument,
            Self::Unauthenticated => tonic::Code::Unauthenticated,
            Self::PermissionDenied => tonic::Code::PermissionDenied,
            Self::NotFound => tonic::Code::NotFound,
            Self::Conflict => tonic::Code::AlreadyExists,
            Self::FailedPrecondition => tonic::Code::FailedPrecondition,
            Self::ResourceExhausted => tonic::Code::ResourceExhausted,
            Self::DeadlineExceeded => tonic::Code::DeadlineExceeded,
            Self::Unavailable => tonic::Code::Unavailable,
            Self::Unimplemented => tonic::Code::Unimplemented,
            Self::Internal => tonic::Code::Internal,
            Self::Unknown => tonic::Code::Unknown,
        }
    }

    fn from_grpc(code: tonic::Code) -> Self {
        match code {
            tonic::Code::InvalidArgument | tonic::Code::OutOfRange => Self::InvalidArgument,
            tonic::Code::Unauthenticated => Self::Unauthenticated,
            tonic::Code::PermissionDenied => Self::PermissionDenied,
            tonic::Code::NotFound => Self::NotFound,
            tonic::Code::AlreadyExists | tonic::Code::Aborted => Self::Conflict,
            tonic::Code::FailedPrecondition => Self::FailedPrecondition,
            tonic::Code::ResourceExhausted => Self::ResourceExhausted,
            tonic::Code::DeadlineExceeded | tonic::Code::Cancelled => Self::DeadlineExceeded,
            tonic::Code::Unavailable => Self::Unavailable,
            tonic::Code::Unimplemented => Self::Unimplemented,
            tonic::Code::Internal | tonic::Code::DataLoss => Self::Internal,
            tonic::Code::Ok | tonic::Code::Unknown => Self::Unknown,
        }
    }

    /// The HTTP status of an action that fails so; `None` for a failure that is not the caller's business, which the
    /// host answers itself (503).
    pub(crate) fn http_status(self) -> Option<u16> {
        match self {
            Self::InvalidArgument => Some(400),
            Self::Unauthenticated => Some(401),
            Self::PermissionDenied => Some(403),
            Self::NotFound => Some(404),
            Self::Conflict | Self::FailedPrecondition => Some(409),
            Self::ResourceExhausted => Some(429),
            Self::Unavailable => Some(503),
            Self::DeadlineExceeded => Some(504),
            Self::Unimplemented | Self::Internal | Self::Unknown => None,
        }
    }
}

/// A failure: a code and a text for whoever called.
///
/// ```
/// use kandev_plugin_sdk::{Code, Error};
///
/// let error = Error::not_found("no board named \"x\"; `boards` lists them");
/// assert_eq!(error.code(), Code::NotFound);
/// assert_eq!(error.to_string(), "no board named \"x\"; `boards` lists them");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, ThisError)]
#[error("{message}")]
pub struct Error {
    code: Code,
    message: String,
    from_host: bool,
}

macro_rules! constructors {
    ($($(#[$meta:meta])* $name:ident => $code:ident;)*) => {
        $($(#[$meta])*
        pub fn $name(message: impl Into<String>) -> Self {
            Self::new(Code::$code, message)
        })*
    };
}

impl Error {
    /// A failure with this code.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), from_host: false }
    }

    constructors! {
        /// The caller sent something that can never work.
        invalid_argument => InvalidArgument;
        /// The caller did not prove who it is.
        unauthenticated => Unauthenticated;
        /// The caller may not do that.
        permission_denied => PermissionDenied;
        /// There is no such thing.
        not_found => NotFound;
        /// It exists already, or was changed meanwhile.
        conflict => Conflict;
        /// The state of things does not allow it.
        failed_precondition => FailedPrecondition;
        /// A limit was met.
        resource_exhausted => ResourceExhausted;
        /// Not now; the host delivers an event again that fails so (as any that fails).
        unavailable => Unavailable;
        /// A bug.
        internal => Internal;
    }

    /// Any other error, with its text; code [`Code::Unknown`], as an error of a plugin written in Go gets.
    pub fn other(error: impl std::error::Error) -> Self {
        Self::new(Code::Unknown, error.to_string())
    }

    /// An extension that the author did not write; the text is the contract's (wire.md §2).
    pub(crate) fn not_implemented(what: &str) -> Self {
        Self::new(Code::Unimplemented, format!("pluginsdk: plugin does not implement {what}"))
    }

    /// What kind of failure it is.
    pub fn code(&self) -> Code {
        self.code
    }

    /// Whether a call of the host failed, in contrast to the plugin itself.
    pub fn is_from_host(&self) -> bool {
        self.from_host
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::other(error)
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::other(error)
    }
}

/// What the host answered.
impl From<Status> for Error {
    fn from(status: Status) -> Self {
        Self { code: Code::from_grpc(status.code()), message: status.message().to_owned(), from_host: true }
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        Status::new(error.code.to_grpc(), cut(error.message))
    }
}

/// The text within the bound, cut between two characters.
fn cut(mut text: String) -> String {
    const MARK: &str = "…";
    if text.len() > MAX_MESSAGE_BYTES {
        text.truncate(text.floor_char_boundary(MAX_MESSAGE_BYTES - MARK.len()));
        text.push_str(MARK);
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Code; 12] = [
        Code::InvalidArgument,
        Code::Unauthenticated,
        Code::PermissionDenied,
        Code::NotFound,
        Code::Conflict,
        Code::FailedPrecondition,
        Code::ResourceExhausted,
        Code::DeadlineExceeded,
        Code::Unavailable,
        Code::Unimplemented,
        Code::Internal,
        Code::Unknown,
    ];

    #[test]
    fn every_code_survives_the_wire() {
        for code in ALL {
            let error = Error::from(Status::from(Error::new(code, "why")));
            assert_eq!(error, Error { code, message: "why".into(), from_host: true });
        }
    }

    #[test]
    fn only_failures_that_concern_the_caller_have_an_http_status() {
        let statuses = ALL.map(Code::http_status);
        let expected = [400, 401, 403, 404, 409, 409, 429, 504, 503].map(Some);
        assert_eq!((&statuses[..9], &statuses[9..]), (&expected[..], &[None; 3][..]));
    }

    proptest! {
        #[test]
        fn any_text_is_cut_to_the_bound_and_keeps_its_beginning(text in ".{0,3000}") {
            let sent = cut(text.clone());
            prop_assert!(sent.len() <= MAX_MESSAGE_BYTES);
            prop_assert!(text.starts_with(sent.trim_end_matches('…')) || text == sent);
        }
    }
}
