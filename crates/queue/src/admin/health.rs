//! What a diagnosis wants to know about the queue.

use std::time::Duration;

use sqlx::{
    PgExecutor, PgPool,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions},
};
use tokio::time::timeout;
use uuid::Uuid;

use crate::error::Error;

/// The state of the queue as a whole. Lists name at most five.
#[derive(Debug, Clone)]
pub struct Health {
    /// Queues with ready jobs that no living worker serves.
    pub deserted: Option<String>,
    /// What is paused.
    pub paused: Option<String>,
    pub dead: i64,
    pub held_lanes: i64,
    /// A transaction that stays open keeps vacuum from cleaning up behind the queue.
    pub oldest_transaction_secs: f64,
    /// Of the transactions that have written something, in any database of the server.
    pub oldest_writer_secs: f64,
}

pub async fn health(executor: impl PgExecutor<'_>) -> Result<Health, Error> {
    sqlx::query_file_as!(Health, "src/sql/queue_health.sql")
        .fetch_one(executor)
        .await
        .map_err(Error::of("look at the queue"))
}

/// Sends a notification through the pool and waits for it on a connection of `session`. False where something in between
/// swallows it, so that workers have to poll.
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
        Ok(Err(error)) => Err(Error::of("probe its notifications")(error)),
        Err(_elapsed) => Ok(false),
    }
}
