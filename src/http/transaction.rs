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

use sqlx::{PgConnection, Postgres, Transaction};
use tokio::{sync::OwnedSemaphorePermit, time::timeout};

use super::Problem;
use crate::{
    app::App,
    domain::{
        Failed,
        transaction::{self, begin_waiting, begin_within},
    },
};

/// How long a request waits for what another transaction holds, and before that for its place among those that wait.
const PATIENCE: Duration = Duration::from_secs(2);

/// A transaction that may write, and its place. Nothing of it exists unless [`commit`] succeeds.
pub(super) struct RequestTransaction {
    transaction: Transaction<'static, Postgres>,
    _place: OwnedSemaphorePermit,
}

pub(super) async fn begin(app: &App) -> Result<RequestTransaction, Problem> {
    let place = timeout(PATIENCE, Arc::clone(&app.places).acquire_owned()).await;
    let Ok(Ok(place)) = place else {
        let detail = "as many requests as may at once write or wait for other transactions: try again in a moment; if it stays so, \
                      `dalsegno doctor` looks for what holds the database up";
        return Err(Problem::unavailable("database_busy", detail));
    };
    let transaction = begin_waiting(&app.pool, longest(app), PATIENCE).await?;
    Ok(RequestTransaction { transaction, _place: place })
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
