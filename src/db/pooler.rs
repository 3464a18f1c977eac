//! Detection of transaction poolers. PgBouncer from 1.21 with prepared statements is the only one that is supported.
//!
//! sqlx sends Parse and Sync before Bind: a statement is prepared in one transaction and executed in the next, which a
//! pooler may give to another server connection. PgBouncer from 1.21 on, with `max_prepared_statements`, prepares it
//! there as well, and renames it. That name identifies PgBouncer, in any state of its pool.
//!
//! Other transaction poolers are identified by their effect: two connections that are open at the same time share a
//! session of the server, or one connection gets two sessions. A server, or a pooler in session mode, never does that.
//! This test runs only behind a pooler: a server that has read our startup parameters itself is reached directly.

use std::{collections::HashSet, time::Duration};

use serde::Deserialize;
use sqlx::{Connection as _, Executor as _, PgConnection, Row as _, postgres::PgConnectOptions};
use tokio::time::timeout;

use super::CLOSE_LIMIT;
use crate::causes::causes;

/// Connections that compare their sessions: with up to three poolers behind one address, two of them have the same
/// pooler.
const N_COMPARED_SESSIONS: usize = 4;

/// Timeout of the comparison: a pooler in session mode may have too few connections left for it.
const ASKING_LIMIT: Duration = Duration::from_secs(2);

/// The kind of pooler before the server: `database.pooler`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pooler {
    /// Each connection has a session of its own on the server: no pooler, or one in session mode.
    None,
    /// PgBouncer in transaction mode.
    Transaction,
}

impl Pooler {
    /// Removes `extra_float_digits` for PgBouncer. Without a pooler it stays: a PgBouncer refuses or drops it, and so
    /// identifies itself.
    pub(super) fn prepare(self, options: PgConnectOptions) -> PgConnectOptions {
        match self {
            Self::None => options,
            Self::Transaction => options.extra_float_digits(None),
        }
    }

    /// Checks that a connection, made with `options`, passes the pooler that `database.pooler` names, or none.
    pub(super) async fn is_as_configured(
        self,
        options: &PgConnectOptions,
        conn: &mut PgConnection,
    ) -> Result<bool, sqlx::Error> {
        let traits = match inspect(conn).await {
            Err(error) if is_lost_statement(&error) => return Ok(false),
            inspected => inspected?,
        };
        Ok(match self {
            Self::Transaction => traits.renames,
            Self::None if traits.renames => false,
            Self::None => traits.is_direct || !shares_sessions(options, conn).await,
        })
    }

    /// Returns true if the error is PgBouncer's refusal of a startup parameter that is meant for servers.
    pub(super) fn is_contradicted_by(self, error: &sqlx::Error) -> bool {
        let words = error.as_database_error().map(|error| error.message());
        let is_parameter =
            words.is_some_and(|words| words.starts_with("unsupported startup parameter"));
        is_parameter && self == Self::None
    }
}

/// Traits of a connection's path to the server.
struct Traits {
    /// The server has our statement under a name that PgBouncer generated.
    renames: bool,
    /// The server has read our startup parameters, so the connection passes no pooler.
    is_direct: bool,
}

/// Reads the traits. In a transaction, which PgBouncer refuses in its statement mode.
async fn inspect(conn: &mut PgConnection) -> Result<Traits, sqlx::Error> {
    let mut tx = conn.begin().await?;
    let traits = sqlx::query_as!(
        Traits,
        r#"select coalesce(bool_or(starts_with(name, 'PGBOUNCER_')), false) as "renames!",
                  (select source = 'client' from pg_settings where name = 'extra_float_digits') as "is_direct!"
             from pg_prepared_statements where statement = current_query()"#
    );
    let traits = traits.fetch_one(&mut *tx).await?;
    tx.rollback().await?;
    Ok(traits)
}

/// Returns true if server sessions change hands between transactions. False also if that stays unknown: the error of
/// the first lost statement then names `database.pooler`.
async fn shares_sessions(options: &PgConnectOptions, conn: &mut PgConnection) -> bool {
    let mut others = Vec::new();
    let asked = timeout(ASKING_LIMIT, sessions_meet(options, conn, &mut others)).await;
    for other in others {
        let _ = timeout(CLOSE_LIMIT, other.close()).await;
    }
    match asked {
        Ok(Ok(meet)) => return meet,
        Ok(Err(error)) => {
            tracing::debug!(error = causes(&error), "cannot find out the mode of the pooler")
        }
        Err(_elapsed) => {
            tracing::debug!("a pooler has no {N_COMPARED_SESSIONS} connections to tell its mode")
        }
    }
    false
}

/// Compares the sessions of several connections. `others` stay open meanwhile: an ended session proves nothing.
async fn sessions_meet(
    options: &PgConnectOptions,
    conn: &mut PgConnection,
    others: &mut Vec<PgConnection>,
) -> Result<bool, sqlx::Error> {
    let mut seen = HashSet::new();
    if !has_own_session(conn, &mut seen).await? {
        return Ok(true);
    }
    while others.len() + 1 < N_COMPARED_SESSIONS {
        let mut other = PgConnection::connect_with(options).await?;
        let is_alone = has_own_session(&mut other, &mut seen).await;
        others.push(other);
        if !is_alone? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns true if the connection keeps a session that no other one had. It asks twice in a row, for poolers that
/// rotate among their server connections. Other poolers reuse the last one, also for the next client.
async fn has_own_session(
    conn: &mut PgConnection,
    seen: &mut HashSet<String>,
) -> Result<bool, sqlx::Error> {
    let first = session(conn).await?;
    Ok(first == session(conn).await? && seen.insert(first))
}

/// Identifies a session among those of all servers. A simple query, which needs no prepared statement.
async fn session(conn: &mut PgConnection) -> Result<String, sqlx::Error> {
    let row = conn.fetch_one(sqlx::raw_sql(
        "select pid || ' ' || extract(epoch from backend_start) from pg_stat_activity where pid = pg_backend_pid()",
    ));
    row.await?.try_get(0)
}

/// Returns true for errors of transaction poolers: the statement was prepared by another client, is missing on this
/// server connection, or the pooler refuses transactions (statement mode).
fn is_lost_statement(error: &sqlx::Error) -> bool {
    let Some(error) = error.as_database_error() else { return false };
    let is_lost = error.code().is_some_and(|code| matches!(code.as_ref(), "26000" | "42P05"));
    is_lost || error.message().contains("statement pooling mode")
}
