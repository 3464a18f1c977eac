//! What a diagnosis wants to know about the queue.

use std::time::Duration;

use sqlx::{
    PgConnection, PgExecutor,
    postgres::{PgConnectOptions, PgListener},
};
use tokio::time::timeout;
use uuid::Uuid;

use crate::queue::error::Error;

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
    sqlx::query_file_as!(Health, "src/queue/sql/queue_health.sql")
        .fetch_one(executor)
        .await
        .map_err(Error::of("look at the queue"))
}

/// Sends a notification through the database and waits for it. False where a transaction pooler such as
/// PgBouncer swallows it, so that workers have to poll.
pub async fn notifications_arrive(
    options: &PgConnectOptions,
    patience: Duration,
) -> Result<bool, Error> {
    let channel = format!("dalsegno_probe_{}", Uuid::new_v4().simple());
    let heard = async {
        let mut sender = <PgConnection as sqlx::Connection>::connect_with(options).await?;
        let pool = sqlx::postgres::PgPoolOptions::new().max_connections(1);
        let mut listener =
            PgListener::connect_with(&pool.connect_with(options.clone()).await?).await?;
        listener.listen(&channel).await?;
        sqlx::query("select pg_notify($1, '')").bind(&channel).execute(&mut sender).await?;
        listener.recv().await.map(drop)
    };
    match timeout(patience, heard).await {
        Ok(Ok(())) => Ok(true),
        Ok(Err(error)) => Err(Error::of("probe its notifications")(error)),
        Err(_elapsed) => Ok(false),
    }
}
