//! The transactions of requests that are no operations yet; the limits are those of `operations`.

use std::time::Duration;

use sqlx::{PgPool, Postgres, Transaction};
use tokio::sync::OwnedSemaphorePermit;

use super::Problem;
use crate::{
    app::App,
    domain::{
        Failed,
        transaction::{Transactions, begin_waiting},
    },
    operations::{self, Limits, OpenTransaction, PATIENCE},
};

/// The place of a request that takes several transactions, one after the other, each with the same limits.
pub(super) struct RequestTransactions {
    pool: PgPool,
    longest: Duration,
    _place: OwnedSemaphorePermit,
}

pub(super) async fn begin(app: &App) -> Result<OpenTransaction, Problem> {
    Ok(operations::begin(&app.pool, Some(&limits(app))).await?)
}

/// For a request that begins its transactions itself.
pub(super) async fn begin_several(app: &App) -> Result<RequestTransactions, Problem> {
    let limits = limits(app);
    let place = limits.enter().await?;
    Ok(RequestTransactions { pool: app.pool.clone(), longest: limits.longest, _place: place })
}

/// For a read that takes no locks.
pub(super) async fn begin_read(app: &App) -> Result<Transaction<'static, Postgres>, Failed> {
    operations::begin_read(&app.pool, Some(&limits(app))).await
}

pub(super) async fn commit(begun: OpenTransaction) -> Result<(), Failed> {
    begun.commit().await
}

pub(super) fn limits(app: &App) -> Limits {
    let longest = Duration::from_secs(app.config.request_timeout_secs);
    Limits { places: app.places.clone(), longest }
}

impl Transactions for RequestTransactions {
    async fn begin(&self) -> Result<Transaction<'static, Postgres>, Failed> {
        begin_waiting(&self.pool, self.longest, PATIENCE).await
    }
}
