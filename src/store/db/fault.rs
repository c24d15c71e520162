//! Telling the database's faults apart: by SQLite's result codes and PostgreSQL's error classes, never by text.
//!
//! What a fault means for a caller is [`DbFault`]; what it means at the start is [`super::ConnectError`]'s part.

use sea_orm::{ConnAcquireErr, DbErr, RuntimeErr, sqlx};

/// Why a statement gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DbFault {
    /// The connection broke, or the server ended the transaction for reasons of its own or because of another one; the
    /// same work may succeed when it is done again. A write may still have taken effect.
    #[error("the database gave the work up, or its connection broke: {0}")]
    Lost(String),
    /// No connection, no space, or no answer within `timing.database_timeout`; a write may still have taken effect.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// A row with this key is there already, or one that a row refers to is not there. Another writer may have been
    /// faster: services look before they write, so the same work, done again, finds what is there now and says so. When
    /// it does not, the rows are not as the work takes them to be.
    #[error("the database has other rows than the work needs: {0}")]
    Conflict(String),
    /// The statement itself failed.
    #[error("a database statement failed: {0}")]
    Statement(String),
}

/// What an error of the driver means, whichever database it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The connection broke or the server is restarting.
    Lost,
    /// Another one holds a lock for too long.
    Locked,
    /// Writing is not allowed.
    ReadOnly,
    /// The server knows the host and turns it away: user, password, database name.
    Refused,
    /// No space, no connections, no permission to open.
    Unavailable,
    /// A row is there that must not be, or is missing.
    Conflict,
    /// Anything else.
    Statement,
}

impl Kind {
    pub(super) fn of(error: &sqlx::Error) -> Self {
        match error {
            sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed => Self::Lost,
            sqlx::Error::PoolClosed => Self::Unavailable,
            sqlx::Error::Database(database) => {
                let code = database.code().unwrap_or_default();
                match database.try_downcast_ref::<sqlx::postgres::PgDatabaseError>() {
                    Some(_) => Self::of_postgres(&code),
                    None => Self::of_sqlite(&code),
                }
            }
            _ => Self::Statement,
        }
    }

    /// SQLite's result codes: a primary one is the low byte of an extended one.
    fn of_sqlite(code: &str) -> Self {
        let Ok(code) = code.parse::<i32>() else { return Self::Statement };
        // A reference, a primary key, a unique index, a row's own number.
        if matches!(code, 787 | 1555 | 2067 | 2579) {
            return Self::Conflict;
        }
        match code & 0xff {
            // Busy, locked.
            5 | 6 => Self::Locked,
            // Read-only.
            8 => Self::ReadOnly,
            // Input or output error, full, cannot open.
            10 | 13 | 14 => Self::Unavailable,
            _ => Self::Statement,
        }
    }

    /// PostgreSQL's error codes, appendix A of its manual.
    fn of_postgres(code: &str) -> Self {
        match code {
            // Shut down by an administrator or a crash, still starting, idle for too long; serialisation failure,
            // deadlock: the server ended the transaction and asks for another try. Too many connections: ours of a
            // moment ago may be among them.
            "57P01" | "57P02" | "57P03" | "57P05" | "40001" | "40P01" | "53300" => Self::Lost,
            // A reference, a unique index.
            "23503" | "23505" => Self::Conflict,
            // Connection exceptions.
            code if code.starts_with("08") => Self::Lost,
            "55P03" => Self::Locked,
            // A read-only transaction (a standby, say), insufficient privilege.
            "25006" | "42501" => Self::ReadOnly,
            // No such database; authorisation.
            "3D000" => Self::Refused,
            code if code.starts_with("28") => Self::Refused,
            // Insufficient resources; a statement beyond its time.
            "57014" => Self::Unavailable,
            code if code.starts_with("53") || code.starts_with("58") => Self::Unavailable,
            _ => Self::Statement,
        }
    }
}

/// The driver's error inside the mapper's.
pub(super) fn driver_error(error: &DbErr) -> Option<&sqlx::Error> {
    match error {
        DbErr::Conn(RuntimeErr::SqlxError(cause))
        | DbErr::Exec(RuntimeErr::SqlxError(cause))
        | DbErr::Query(RuntimeErr::SqlxError(cause)) => Some(cause),
        _ => None,
    }
}

impl From<DbErr> for DbFault {
    fn from(error: DbErr) -> Self {
        let kind = match &error {
            DbErr::ConnectionAcquire(ConnAcquireErr::Timeout) => Kind::Lost,
            DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed) => Kind::Unavailable,
            other => driver_error(other).map_or(Kind::Statement, Kind::of),
        };
        match kind {
            Kind::Lost => Self::Lost(error.to_string()),
            Kind::Conflict => Self::Conflict(error.to_string()),
            Kind::Statement => Self::Statement(error.to_string()),
            Kind::Locked | Kind::ReadOnly | Kind::Refused | Kind::Unavailable => Self::Unavailable(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_both_databases_have_their_kind() {
        let sqlite = [("5", Kind::Locked), ("261", Kind::Locked), ("6", Kind::Locked), ("1032", Kind::ReadOnly)];
        let sqlite_more = [("13", Kind::Unavailable), ("14", Kind::Unavailable), ("1299", Kind::Statement)];
        let keys = ["787", "1555", "2067"].map(|code| (code, Kind::Conflict));
        for (code, kind) in sqlite.into_iter().chain(sqlite_more).chain(keys).chain([("", Kind::Statement)]) {
            assert_eq!(Kind::of_sqlite(code), kind, "SQLite {code}");
        }
        let postgres = [
            ("57P01", Kind::Lost),
            ("57P02", Kind::Lost),
            ("57P03", Kind::Lost),
            ("08006", Kind::Lost),
            ("40P01", Kind::Lost),
            ("53300", Kind::Lost),
            ("53100", Kind::Unavailable),
            ("57014", Kind::Unavailable),
            ("55P03", Kind::Locked),
            ("25006", Kind::ReadOnly),
            ("42501", Kind::ReadOnly),
            ("28P01", Kind::Refused),
            ("3D000", Kind::Refused),
            ("40001", Kind::Lost),
            ("23503", Kind::Conflict),
            ("23505", Kind::Conflict),
            ("23502", Kind::Statement),
            ("42P01", Kind::Statement),
        ];
        for (code, kind) in postgres {
            assert_eq!(Kind::of_postgres(code), kind, "PostgreSQL {code}");
        }
    }

    #[test]
    fn a_broken_connection_is_lost_and_a_closed_pool_is_not_worth_another_try() {
        let broken = || sqlx::Error::Io(std::io::ErrorKind::UnexpectedEof.into());
        let lost = DbErr::Query(RuntimeErr::SqlxError(broken().into()));
        assert!(matches!(DbFault::from(lost), DbFault::Lost(_)));
        let lost = DbErr::Conn(RuntimeErr::SqlxError(broken().into()));
        assert!(matches!(DbFault::from(lost), DbFault::Lost(_)));
        let closed = DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed);
        assert!(matches!(DbFault::from(closed), DbFault::Unavailable(_)));
        assert!(matches!(DbFault::from(DbErr::Custom("x".to_owned())), DbFault::Statement(_)));
    }
}
