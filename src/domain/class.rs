//! Classes of errors, from which exit codes of commands and statuses of requests follow. Each error is classified beside its
//! definition.

use sqlx::error::DatabaseError;

use super::StatementError;
use crate::queue::{self, Fault};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The request cannot be parsed.
    Malformed,
    /// Something in the request is wrong.
    Invalid,
    TooLarge,
    /// The caller is not allowed to do this.
    Forbidden,
    NotFound,
    /// The request is valid, but conflicts with the current state.
    Conflict,
    /// The caller has as many open requests as it may have.
    TooMany,
    /// The database does not answer now.
    Unavailable,
    /// A fault of the service or of its installation.
    Internal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    pub kind: Kind,
    /// Stable: programs decide by it.
    pub code: &'static str,
    /// The same request can succeed later without any action.
    pub retryable: bool,
    /// Text that replaces the error's own message.
    pub words: Option<&'static str>,
    /// The next step, where the error's own message does not name one.
    pub advice: Option<&'static str>,
}

const DATABASE_AWAY: &str =
    "try again when the database answers; `dalsegno doctor` finds the cause";
const DATABASE_BUSY: &str =
    "try again in a moment; if this persists, `dalsegno doctor` names the cause";
const DATABASE_LOCKED: &str = "another transaction holds a lock that this request needs, for example of a system that added a task and has not committed: try again in a moment; if this persists, `dalsegno doctor` names the cause";
const DATABASE_CONFLICT: &str =
    "another transaction changed the same rows at the same moment: try again at once";
const DATABASE_FULL: &str = "the database server ran out of disk space, memory or connections: its log says which; fix that, then try again";
const DATABASE_READ_ONLY: &str = "the database server accepts no writes: it is a standby, or default_transaction_read_only is on";
const NO_TEXT: &str = "a text in the request contains the character U+0000, which the database cannot store: remove it";
const INTERNAL: &str = "`dalsegno doctor` and the log of the service show the cause";

/// A value that a constraint of the database refuses.
pub const BAD_VALUE: Class = Class::of(Kind::Invalid, "bad_value");
/// An argument that the queue refuses.
pub const BAD_ARGUMENT: Class = Class::of(Kind::Invalid, "bad_argument");
/// The job does not exist.
pub const UNKNOWN_JOB: Class = Class::of(Kind::NotFound, "unknown_job");
pub const UNKNOWN_LANE: Class = Class::of(Kind::NotFound, "unknown_lane");
pub const UNKNOWN_QUEUE: Class = Class::of(Kind::NotFound, "unknown_queue");
/// The job is in another state.
pub const JOB_CONFLICT: Class = Class::of(Kind::Conflict, "conflict");
/// The queue accepts no more tasks for now.
pub const QUEUE_FULL: Class = Class::of(Kind::Unavailable, "queue_full");
pub const NUL_IN_TEXT: Class = Class::of(Kind::Invalid, "nul_in_text");

/// An error that may end a command or a request.
pub trait Classify: std::error::Error + Send + Sync + 'static {
    fn class(&self) -> Class;
}

impl Class {
    pub const fn of(kind: Kind, code: &'static str) -> Self {
        let advice = match kind {
            Kind::Unavailable => Some(DATABASE_AWAY),
            Kind::Internal => Some(INTERNAL),
            _ => None,
        };
        Self { kind, code, retryable: matches!(kind, Kind::Unavailable), words: None, advice }
    }
}

impl Classify for queue::Error {
    fn class(&self) -> Class {
        match self {
            Self::BadArgument { .. } => BAD_ARGUMENT,
            Self::TooLarge { .. } => Class::of(Kind::TooLarge, "payload_too_large"),
            Self::NotFound { .. } => UNKNOWN_JOB,
            Self::UnknownLane { .. } => UNKNOWN_LANE,
            Self::UnknownQueue(_) => UNKNOWN_QUEUE,
            Self::Conflict { .. } => JOB_CONFLICT,
            Self::EncodePayload { .. } => Class::of(Kind::Internal, "internal"),
            Self::Database { source, .. } => of_database(source),
        }
    }
}

impl Classify for StatementError {
    fn class(&self) -> Class {
        of_database(&self.source)
    }
}

/// Returns true if an error, or a cause of it, means that the database is unavailable for now.
pub fn is_database_away(error: &(dyn std::error::Error + 'static)) -> bool {
    of_cause(error).kind == Kind::Unavailable
}

/// Returns the class of the database error among the causes of an error.
pub fn of_cause(error: &(dyn std::error::Error + 'static)) -> Class {
    queue::sqlx_error(error).map_or(Class::of(Kind::Internal, "internal"), of_database)
}

fn of_database(error: &sqlx::Error) -> Class {
    if let Some(mistake) = crate::db::user_mistake(error) {
        return Class { words: Some(mistake.message), ..BAD_VALUE };
    }
    if is_no_text(error) {
        return Class { words: Some(NO_TEXT), ..NUL_IN_TEXT };
    }
    let unavailable =
        |code, advice| Class { advice: Some(advice), ..Class::of(Kind::Unavailable, code) };
    match queue::fault_of(error) {
        Some(Fault::Away) => Class::of(Kind::Unavailable, "database_unreachable"),
        Some(Fault::Conflict) => unavailable("database_conflict", DATABASE_CONFLICT),
        Some(Fault::Full) => unavailable("database_full", DATABASE_FULL),
        Some(Fault::ReadOnly) => unavailable("database_read_only", DATABASE_READ_ONLY),
        Some(Fault::Busy) => unavailable("database_busy", DATABASE_BUSY),
        Some(Fault::Locked) => unavailable("database_busy", DATABASE_LOCKED),
        None if queue::is_lost_statement(error) => {
            Class { advice: Some(queue::LOST_STATEMENT), ..Class::of(Kind::Internal, "internal") }
        }
        None => Class::of(Kind::Internal, "internal"),
    }
}

/// Returns true if a text has a character that Postgres cannot store in text or JSON.
fn is_no_text(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    code.is_some_and(|code| matches!(code.as_ref(), "22021" | "22P05"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{sessions, tasks};

    #[test]
    fn an_unreachable_database_is_distinguished_from_a_bug() {
        let away = StatementError { action: "x", source: sqlx::Error::PoolTimedOut };
        let fault = StatementError { action: "x", source: sqlx::Error::RowNotFound };
        assert!(is_database_away(&tasks::Error::from(sessions::Error::from(away))));
        let away = StatementError { action: "x", source: sqlx::Error::PoolTimedOut };
        assert!(!is_database_away(&fault));
        assert_eq!((away.class().kind, away.class().retryable), (Kind::Unavailable, true));
        assert_eq!((fault.class().kind, fault.class().retryable), (Kind::Internal, false));
    }
}
