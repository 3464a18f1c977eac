//! A connection that one part of the worker owns and that reconnects.

use std::{future::Future, time::Duration};

use sqlx::{Connection, Executor, PgConnection, postgres::PgConnectOptions};
use tokio::time::timeout;

use super::fault::{LOST_STATEMENT, is_lost_statement};
use dalsegno_base::causes::causes;

/// Time limit for the farewell message of a closing connection.
const CLOSE_PATIENCE: Duration = Duration::from_millis(500);

/// One connection that is dropped at the first error and made anew at the next use.
///
/// Each part of a worker has its own, so that it never waits for another part or for handlers that have emptied the
/// pool. Every statement has a time limit on both sides. Here, because a half-open connection never answers; and on the
/// server, so that an abandoned statement cannot commit much later.
pub(super) struct Link {
    options: PgConnectOptions,
    conn: Option<PgConnection>,
    patience: Duration,
    own_session: bool,
}

/// The reason why a statement has no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("cannot connect to the database")]
    Connect(#[source] sqlx::Error),
    #[error("the database refused or the connection broke")]
    Statement(#[source] sqlx::Error),
    #[error("{}", LOST_STATEMENT)]
    LostStatement(#[source] sqlx::Error),
    #[error("the database did not answer within {0:?}")]
    NoAnswer(Duration),
}

impl Link {
    /// Creates a link that connects at its first use. With `own_session`, it makes settings for the session. Behind a
    /// transaction pooler they would stick to a connection that other clients share. There they have to be made for the
    /// role or in the pooler.
    pub(super) fn new(options: PgConnectOptions, patience: Duration, own_session: bool) -> Self {
        Self { options, conn: None, patience, own_session }
    }

    /// Returns the connection, and connects if there is none.
    pub(super) async fn conn(&mut self) -> Result<&mut PgConnection, Error> {
        if self.conn.is_none() {
            let made =
                timeout(self.patience, connect(&self.options, self.patience, self.own_session))
                    .await;
            self.conn =
                Some(made.map_err(|_| Error::NoAnswer(self.patience))?.map_err(Error::Connect)?);
        }
        // The line above filled it. This error is unreachable, and avoids a panic.
        self.conn.as_mut().ok_or(Error::NoAnswer(self.patience))
    }

    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// Drops the connection if the statement on it failed or did not answer.
    pub(super) fn check_answer<T>(
        &mut self,
        answer: Result<Result<T, sqlx::Error>, tokio::time::error::Elapsed>,
    ) -> Result<T, Error> {
        let result = match answer {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) if is_lost_statement(&error) => Error::LostStatement(error),
            Ok(Err(error)) => Error::Statement(error),
            Err(_) => Error::NoAnswer(self.patience),
        };
        self.conn = None;
        Err(result)
    }

    /// Drops the connection, because a statement on it was abandoned half way.
    pub(super) fn disconnect(&mut self) {
        self.conn = None;
    }

    /// Closes the connection in good order.
    pub(super) async fn close(mut self) {
        if let Some(conn) = self.conn.take()
            && let Ok(Err(error)) = timeout(CLOSE_PATIENCE, conn.close()).await
        {
            tracing::debug!(error = causes(&error), "closing a connection");
        }
    }
}

/// Waits for a statement for the patience of its link.
pub(super) async fn wait_for_answer<T>(
    patience: Duration,
    statement: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<Result<T, sqlx::Error>, tokio::time::error::Elapsed> {
    timeout(patience, statement).await
}

async fn connect(
    options: &PgConnectOptions,
    patience: Duration,
    own_session: bool,
) -> Result<PgConnection, sqlx::Error> {
    let mut conn = PgConnection::connect_with(options).await?;
    if own_session {
        // The statements are written for their generic plans. A new plan, or a compilation, costs many times as much as the run.
        let settings = format!(
            "SET statement_timeout = {}; SET plan_cache_mode = force_generic_plan; SET jit = off",
            patience.as_millis()
        );
        conn.execute(sqlx::AssertSqlSafe(settings)).await?;
    }
    Ok(conn)
}
