//! Faults of the database, told apart from errors of a single statement.
//!
//! The only place that reads sqlx's error type, so that the API, the CLI and the queue agree on which errors are
//! temporary.

use std::error::Error;

use sqlx::error::DatabaseError;

/// A condition of the database under which the same statement can succeed later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The server cannot be reached, the connection broke, or the server is starting or stopping.
    Away,
    /// Another transaction won: a deadlock or a serialization failure.
    Conflict,
    /// The server has no disk space, memory or connections left.
    Full,
    /// The server accepts no writes: a standby that has not taken over yet, or a server set to read-only.
    ReadOnly,
    /// A statement hit a time limit, or a person cancelled it.
    Busy,
    /// Another transaction holds a lock that this one waited for.
    Locked,
}

/// Returns the fault behind an error of sqlx, or `None` for an error that the statement, its data or the program
/// causes.
///
/// Names every variant of the sqlx in `Cargo.lock`. The enum is `non_exhaustive`: a variant that a later version adds
/// is logged and counts as a lost connection. A needless retry costs less than a request that is refused for good.
pub fn fault_of(error: &sqlx::Error) -> Option<Fault> {
    use sqlx::Error as E;
    match error {
        // A load balancer without a server behind it accepts and closes: `Protocol` in the start-up, `Tls` in the
        // handshake.
        E::Io(_)
        | E::Tls(_)
        | E::Protocol(_)
        | E::PoolTimedOut
        | E::PoolClosed
        | E::WorkerCrashed
        | E::BeginFailed => Some(Fault::Away),
        E::Database(error) => fault_of_answer(&error.code().unwrap_or_default(), error.message()),
        E::Configuration(_)
        | E::InvalidArgument(_)
        | E::RowNotFound
        | E::TypeNotFound { .. }
        | E::ColumnIndexOutOfBounds { .. }
        | E::ColumnNotFound(_)
        | E::ColumnDecode { .. }
        | E::Encode(_)
        | E::Decode(_)
        | E::AnyDriverError(_)
        | E::Migrate(_)
        | E::InvalidSavePointStatement
        | E::ConfigFile(_) => None,
        unknown => {
            tracing::error!(
                error = %unknown,
                "unknown error of sqlx: retrying as after a lost connection"
            );
            Some(Fault::Away)
        }
    }
}

/// Advice for the user if [`is_lost_statement`] is true.
pub const LOST_STATEMENT: &str = "a transaction pooler shares this connection with other clients: for PgBouncer 1.21 or newer with max_prepared_statements above 0 set database.pooler = \"transaction\"; other poolers are not supported, so connect database.url directly; docs/how-to/pgbouncer.md has an example";

/// Returns true if a prepared statement is gone, or another client has prepared one under its name: two clients share a
/// connection.
pub fn is_lost_statement(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    code.is_some_and(|code| matches!(code.as_ref(), "26000" | "42P05"))
}

/// Returns true if the database was unavailable: no connection, no connection that may write, or no space. Any next
/// statement would fail as well, so the run that met this error uses up no attempt.
pub fn is_unavailable(error: &(dyn Error + 'static)) -> bool {
    let Some(error) = sqlx_error(error) else { return false };
    match fault_of(error) {
        Some(Fault::Away | Fault::ReadOnly) => true,
        Some(Fault::Full) => !has_code(error, &STATEMENT_TOO_LARGE),
        Some(Fault::Conflict | Fault::Busy | Fault::Locked) | None => false,
    }
}

/// Returns true if no connection could be made or kept, or the server has no room for one. At a start, waiting may
/// help. A read-only server does not count: a start that has to write the schema is refused there.
pub fn is_outage<E: Error + 'static>(error: &E) -> bool {
    matches!(sqlx_error(error).and_then(fault_of), Some(Fault::Away | Fault::Full))
}

/// Returns the error of sqlx in a chain of causes.
pub fn sqlx_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a sqlx::Error> {
    match error.downcast_ref() {
        Some(found) => Some(found),
        None => sqlx_error(error.source()?),
    }
}

/// Codes for memory and limits such as `temp_file_limit`: the statement itself may be too large, and would fail each
/// time.
const STATEMENT_TOO_LARGE: [&str; 2] = ["53200", "53400"];

fn has_code(error: &sqlx::Error, codes: &[&str]) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    code.is_some_and(|code| codes.contains(&code.as_ref()))
}

fn fault_of_answer(code: &str, message: &str) -> Option<Fault> {
    match code {
        // Every answer of Postgres has a code. Something between made this one up, or cut it short.
        "" => Some(Fault::Away),
        "25006" => Some(Fault::ReadOnly),
        "55P03" => Some(Fault::Locked),
        "57014" | "25P03" | "25P04" => Some(Fault::Busy),
        // A volume that is gone or broken.
        "58000" | "58030" => Some(Fault::Away),
        code if code.starts_with("08") || code.starts_with("57P") => Some(Fault::Away),
        code if code.starts_with("40") => Some(Fault::Conflict),
        code if code.starts_with("53") => Some(Fault::Full),
        // Postgres has a code for a full volume (ENOSPC) but none for a used-up quota (EDQUOT), whose text comes from
        // the C library.
        "XX000" if message.ends_with("Disk quota exceeded") => Some(Fault::Full),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use sqlx::Error as E;

    use super::*;

    /// The version whose variants [`fault_of`] and the list below name.
    const SQLX_VERSION: &str = "name = \"sqlx-core\"\nversion = \"0.9.0\"\n";

    #[test]
    fn a_newer_sqlx_is_pinned_only_after_its_errors_are_classified_here() {
        assert!(
            include_str!("../../../Cargo.lock").contains(SQLX_VERSION),
            "sqlx was updated: compare its `enum Error` with `fault_of` and with this test, then change SQLX_VERSION"
        );
    }

    #[test]
    fn every_sqlx_error_is_a_database_fault_or_a_bug() {
        let boxed = || -> Box<dyn Error + Send + Sync> { "no".into() };
        let text = || "no".to_owned();
        let faults = [
            E::Io(io::ErrorKind::ConnectionReset.into()),
            E::Tls(boxed()),
            E::Protocol("expected to read 5 bytes, got 0 bytes at EOF".to_owned()),
            E::PoolTimedOut,
            E::PoolClosed,
            E::WorkerCrashed,
            E::BeginFailed,
        ];
        for error in faults {
            assert_eq!(fault_of(&error), Some(Fault::Away), "{error:?}");
        }
        let errors = [
            E::Configuration(boxed()),
            E::InvalidArgument(text()),
            E::RowNotFound,
            E::TypeNotFound { type_name: text() },
            E::ColumnIndexOutOfBounds { index: 1, len: 1 },
            E::ColumnNotFound(text()),
            E::ColumnDecode { index: text(), source: boxed() },
            E::Encode(boxed()),
            E::Decode(boxed()),
            E::AnyDriverError(boxed()),
            E::Migrate(Box::new(sqlx::migrate::MigrateError::VersionMissing(1))),
            E::InvalidSavePointStatement,
        ];
        for error in errors {
            assert_eq!(fault_of(&error), None, "{error:?}");
        }
    }

    #[test]
    fn sqlstate_codes_are_sorted_by_class() {
        let faults = [
            "", "08P01", "57P01", "58030", "40P01", "53100", "25006", "57014", "55P03", "23505",
            "42P05",
        ];
        let expected = [
            Some(Fault::Away),
            Some(Fault::Away),
            Some(Fault::Away),
            Some(Fault::Away),
            Some(Fault::Conflict),
            Some(Fault::Full),
            Some(Fault::ReadOnly),
            Some(Fault::Busy),
            Some(Fault::Locked),
            None,
            None,
        ];
        assert_eq!(faults.map(|code| fault_of_answer(code, "")), expected);
    }

    #[test]
    fn an_exhausted_quota_counts_as_a_full_volume() {
        let of = |message| fault_of_answer("XX000", message);
        let words = "could not extend file \"base/5/16384\": Disk quota exceeded";
        assert_eq!(of(words), Some(Fault::Full));
        assert_eq!(of("cache lookup failed for relation 16384"), None);
    }

    #[test]
    fn database_faults_are_found_behind_other_errors() {
        #[derive(Debug, thiserror::Error)]
        #[error("adding a task")]
        struct WrappedError(#[source] E);
        assert!(is_unavailable(&WrappedError(E::Protocol("closed".to_owned()))));
        assert!(!is_unavailable(&WrappedError(E::RowNotFound)));
        assert!(!is_unavailable(&io::Error::other("no answer of a provider")));
    }
}
