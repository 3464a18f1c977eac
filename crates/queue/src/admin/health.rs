//! The state of the queue for diagnoses.

use std::time::Duration;

use sqlx::{
    PgExecutor, PgPool,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions},
};
use tokio::time::timeout;
use uuid::Uuid;

use crate::error::Error;

const OLD_TRANSACTION_SECS: f64 = 600.0;
const OLD_WRITER_SECS: f64 = 180.0;

/// The state of the queue as a whole. Lists name at most five things.
#[derive(Debug, Clone)]
pub struct Health {
    /// Queues with ready jobs that no live worker serves.
    pub deserted: Option<String>,
    /// Paused queues and groups.
    pub paused: Option<String>,
    pub dead: i64,
    pub held_lanes: i64,
    /// Age of the oldest open transaction. It keeps vacuum from removing dead rows of the queue.
    pub oldest_transaction_secs: f64,
    /// Age of the oldest transaction that has written something, in any database of the server.
    pub oldest_writer_secs: f64,
}

impl Health {
    /// Returns true if a transaction is older than dumps take; it was usually forgotten.
    pub fn has_old_transaction(&self) -> bool {
        self.oldest_transaction_secs >= OLD_TRANSACTION_SECS
    }

    /// Returns true if a transaction with writes is older than those of the service, which last milliseconds.
    pub fn has_old_writer(&self) -> bool {
        self.oldest_writer_secs >= OLD_WRITER_SECS
    }
}

pub async fn health(executor: impl PgExecutor<'_>) -> Result<Health, Error> {
    sqlx::query_file_as!(Health, "src/sql/queue_health.sql")
        .fetch_one(executor)
        .await
        .map_err(Error::of("read the state of the queue"))
}

/// Sends a notification through the pool and waits for it on a connection of `session`. Returns false if it does not
/// arrive, so that workers have to poll.
pub async fn notifications_arrive(
    pool: &PgPool,
    session: &PgConnectOptions,
    patience: Duration,
) -> Result<bool, Error> {
    let channel = format!("dalsegno_probe_{}", Uuid::new_v4().simple());
    let heard = async {
        let own = PgPoolOptions::new().max_connections(1);
        let mut listener =
            PgListener::connect_with(&own.connect_with(session.clone()).await?).await?;
        listener.listen(&channel).await?;
        sqlx::query("select pg_notify($1, '')").bind(&channel).execute(pool).await?;
        listener.recv().await.map(drop)
    };
    match timeout(patience, heard).await {
        Ok(Ok(())) => Ok(true),
        Ok(Err(error)) => Err(Error::of("probe notifications")(error)),
        Err(_elapsed) => Ok(false),
    }
}
