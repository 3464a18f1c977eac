//! The transactions of requests: none outlives its request, and none keeps others from the database.
//!
//! What a request needs can be held by a transaction of another system that stays open as long as it likes, such as the lane of a
//! conversation. A request waits a moment for it and is then asked to come again; and so many of them wait at once that half of the
//! connections are free for others.

use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
    time::Duration,
};

use sqlx::{PgConnection, PgPool, Postgres, Transaction};
use tokio::{sync::OwnedSemaphorePermit, time::timeout};

use super::Problem;
use crate::{
    app::App,
    domain::{
        Failed,
        transaction::{self, Transactions, begin_waiting, begin_within},
    },
};

/// How long a request waits for what another transaction holds.
const PATIENCE: Duration = Duration::from_secs(2);

/// A transaction that may write, and its place. Nothing of it exists unless [`commit`] succeeds.
pub(super) struct RequestTransaction {
    transaction: Transaction<'static, Postgres>,
    _place: OwnedSemaphorePermit,
}

/// The place of an operation that takes several transactions, one after the other, each with the same limits.
pub(super) struct RequestTransactions {
    pool: PgPool,
    longest: Duration,
    _place: OwnedSemaphorePermit,
}

pub(super) async fn begin(app: &App) -> Result<RequestTransaction, Problem> {
    let place = enter(app).await?;
    let transaction = begin_waiting(&app.pool, longest(app), PATIENCE).await?;
    Ok(RequestTransaction { transaction, _place: place })
}

/// For an operation that begins its transactions itself.
pub(super) async fn begin_several(app: &App) -> Result<RequestTransactions, Problem> {
    let place = enter(app).await?;
    Ok(RequestTransactions { pool: app.pool.clone(), longest: longest(app), _place: place })
}

/// Waits for a place during half of the request's time: a burst of requests is no fault, and what it needs is done in the other half.
async fn enter(app: &App) -> Result<OwnedSemaphorePermit, Problem> {
    let place = timeout(longest(app) / 2, Arc::clone(&app.places).acquire_owned()).await;
    if let Ok(Ok(place)) = place {
        return Ok(place);
    }
    let detail = "as many requests as may at once write or wait for other transactions: try again in a moment; if it stays so, \
                  `dalsegno doctor` looks for what holds the database up";
    Err(Problem::unavailable("database_busy", detail))
}

/// For a look that takes no locks.
pub(super) async fn begin_read(app: &App) -> Result<Transaction<'static, Postgres>, Failed> {
    begin_within(&app.pool, longest(app)).await
}

pub(super) async fn commit(begun: RequestTransaction) -> Result<(), Failed> {
    transaction::commit(begun.transaction).await
}

fn longest(app: &App) -> Duration {
    Duration::from_secs(app.config.request_timeout_secs)
}

impl Transactions for RequestTransactions {
    async fn begin(&self) -> Result<Transaction<'static, Postgres>, Failed> {
        begin_waiting(&self.pool, self.longest, PATIENCE).await
    }
}

impl Deref for RequestTransaction {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.transaction
    }
}

impl DerefMut for RequestTransaction {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.transaction
    }
}
