//! The transactions of operations. Those of requests have limits: none outlives its request, and none keeps others from the database.
//!
//! A transaction of another system can hold what a request needs for as long as it likes, such as the lane of a conversation. A request
//! waits a moment for it and is then asked to come again. Only so many requests wait at once that half of the connections stay free.

use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
    time::Duration,
};

use sqlx::{PgConnection, PgPool, Postgres, Transaction};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::Refusal;
use crate::domain::{
    Failed,
    class::Kind,
    transaction::{self, Transactions, begin_waiting, begin_within},
};

/// How long a request waits for a lock.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// The limits of the transactions of one request.
#[derive(Debug, Clone)]
pub struct Limits {
    pub places: Arc<Semaphore>,
    /// The places of reads that go through whole tables.
    pub scans: Arc<Semaphore>,
    /// The longest statement.
    pub longest: Duration,
}

/// A transaction that may write, and its place. Nothing of it exists without [`OpenTransaction::commit`].
pub struct OpenTransaction {
    transaction: Transaction<'static, Postgres>,
    _place: Option<OwnedSemaphorePermit>,
}

/// Transactions with the same limits, which share one place.
pub struct SeveralTransactions {
    pool: PgPool,
    limits: Option<(Duration, OwnedSemaphorePermit)>,
}

impl Limits {
    /// Waits for a place during half of the request's time: a burst of requests is no fault, and what it needs is done in the other half.
    pub async fn enter(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        let place = timeout(self.longest / 2, Arc::clone(&self.places).acquire_owned()).await;
        if let Ok(Ok(place)) = place {
            return Ok(place);
        }
        let detail = "as many requests as may at once write or wait for other transactions: try again in a moment; if it stays so, \
                      `dalsegno doctor` looks for what holds the database up";
        Err(Refusal::new(Kind::Unavailable, "database_busy", detail))
    }
}

pub async fn begin(pool: &PgPool, limits: Option<&Limits>) -> Result<OpenTransaction, Refusal> {
    let (transaction, place) = match limits {
        Some(limits) => {
            let place = limits.enter().await?;
            (begin_waiting(pool, limits.longest, PATIENCE).await?, Some(place))
        }
        None => (transaction::begin(pool).await?, None),
    };
    Ok(OpenTransaction { transaction, _place: place })
}

/// For a transaction beside those of a call, which has its place.
pub async fn begin_beside(
    pool: &PgPool,
    limits: Option<&Limits>,
) -> Result<Transaction<'static, Postgres>, Failed> {
    match limits {
        Some(limits) => begin_waiting(pool, limits.longest, PATIENCE).await,
        None => transaction::begin(pool).await,
    }
}

/// For a read that takes no locks.
pub async fn begin_read(
    pool: &PgPool,
    limits: Option<&Limits>,
) -> Result<Transaction<'static, Postgres>, Failed> {
    match limits {
        Some(limits) => begin_within(pool, limits.longest).await,
        None => transaction::begin(pool).await,
    }
}

/// For a call that takes several transactions, one after the other.
pub async fn begin_several(
    pool: &PgPool,
    limits: Option<&Limits>,
) -> Result<SeveralTransactions, Refusal> {
    let limits = match limits {
        Some(limits) => Some((limits.longest, limits.enter().await?)),
        None => None,
    };
    Ok(SeveralTransactions { pool: pool.clone(), limits })
}

impl Transactions for SeveralTransactions {
    async fn begin(&self) -> Result<Transaction<'static, Postgres>, Failed> {
        match &self.limits {
            Some((longest, _)) => begin_waiting(&self.pool, *longest, PATIENCE).await,
            None => transaction::begin(&self.pool).await,
        }
    }
}

impl OpenTransaction {
    pub async fn commit(self) -> Result<(), Failed> {
        transaction::commit(self.transaction).await
    }
}

impl Deref for OpenTransaction {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.transaction
    }
}

impl DerefMut for OpenTransaction {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.transaction
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_for_a_place_during_half_of_its_time() {
        let limits = Limits {
            places: Arc::new(Semaphore::new(1)),
            scans: Arc::new(Semaphore::new(1)),
            longest: Duration::from_secs(30),
        };
        let first = limits.enter().await.unwrap();
        let begin = Instant::now();
        let (second, ()) = tokio::join!(limits.enter(), async move {
            tokio::time::sleep(Duration::from_secs(10)).await;
            drop(first);
        });
        assert_eq!(begin.elapsed().as_secs(), 10);

        let _second = second.unwrap();
        let begin = Instant::now();
        let Err(refusal) = limits.enter().await else { panic!("there was one place") };
        assert_eq!((refusal.code, begin.elapsed().as_secs()), ("database_busy", 15));
    }
}
