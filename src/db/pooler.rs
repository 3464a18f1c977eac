//! Transaction poolers: PgBouncer from 1.21 that keeps prepared statements, and no other.
//!
//! sqlx sends Parse and Sync before Bind: a statement is prepared in one transaction and executed in the next, which a pooler may
//! give to another connection of the server. PgBouncer from 1.21 on, with `max_prepared_statements`, prepares it there as well, and
//! renames it. That name identifies it, in any state of its pool.

use serde::Deserialize;
use sqlx::{Connection as _, PgConnection, postgres::PgConnectOptions};

use super::Error;

/// The way from a client to the server: `database.pooler`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pooler {
    /// Each connection has a session of its own on the server: no pooler, or one in session mode.
    None,
    /// PgBouncer in transaction mode.
    Transaction,
}

impl Pooler {
    /// `extra_float_digits` stays in where there should be no pooler: PgBouncer refuses it, and so identifies itself.
    pub(super) fn prepare(self, options: PgConnectOptions) -> PgConnectOptions {
        match self {
            Self::None => options,
            Self::Transaction => options.extra_float_digits(None),
        }
    }

    /// Whether a connection leads over what `database.pooler` says.
    pub(super) async fn is_as_configured(
        self,
        conn: &mut PgConnection,
    ) -> Result<bool, sqlx::Error> {
        match inspect(conn).await {
            Ok(renames) => Ok(renames == (self == Self::Transaction)),
            Err(error) if is_lost_statement(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Explains a refused connection, where a pooler is the reason.
    pub(super) fn explain(self, error: &sqlx::Error) -> Option<Error> {
        let words = error.as_database_error().map(|error| error.message());
        let is_parameter = words?.starts_with("unsupported startup parameter");
        (is_parameter && self == Self::None).then_some(Error::PoolerNotSet)
    }

    pub(super) fn contradiction(self) -> Error {
        match self {
            Self::None => Error::PoolerNotSet,
            Self::Transaction => Error::PoolerNotSupported,
        }
    }
}

/// Whether the server knows a statement of this connection by a name that PgBouncer made up. In a transaction, which
/// PgBouncer refuses in its statement mode.
async fn inspect(conn: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let mut tx = conn.begin().await?;
    let renamed = sqlx::query_scalar!(
        r#"select coalesce(bool_or(starts_with(name, 'PGBOUNCER_')), false) as "renamed!"
             from pg_prepared_statements where statement = current_query()"#
    );
    let renamed = renamed.fetch_one(&mut *tx).await?;
    tx.rollback().await?;
    Ok(renamed)
}

/// A statement that another client has prepared, or that is not on the connection to which the pooler brought us; or a
/// transaction in statement mode.
fn is_lost_statement(error: &sqlx::Error) -> bool {
    let Some(error) = error.as_database_error() else { return false };
    let is_lost = error.code().is_some_and(|code| matches!(code.as_ref(), "26000" | "42P05"));
    is_lost || error.message().contains("statement pooling mode")
}
