//! Transactions of operations. Those of requests are limited: none outlives its request, and they cannot use up the
//! connections.
//!
//! A transaction of another system can hold a lock that a request needs for any time, such as that of a conversation's
//! lane. A request waits a moment for it, and is then told to retry. The number of waiting requests is limited so that
//! half of the connections stay free.

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
    StatementError,
    class::Kind,
    transaction::{self, Transactions, begin_search, begin_with_limit, begin_with_limits},
};

/// Longest wait of a request for a lock.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// Time limit of a read that scans a whole table.
pub const LONGEST_SCAN: Duration = Duration::from_secs(5);

/// Limits for the transactions of one request.
#[derive(Debug, Clone)]
pub struct Limits {
    pub places: Arc<Semaphore>,
    /// Places of reads that scan whole tables.
    pub scans: Arc<Semaphore>,
    /// Longest statement.
    pub longest: Duration,
}

/// A transaction that may write, and its place. Without [`OpenTransaction::commit`], it is rolled back.
pub struct OpenTransaction {
    transaction: Transaction<'static, Postgres>,
    _place: Option<OwnedSemaphorePermit>,
}

/// A read that scans a whole table, and its place.
pub struct Scan {
    transaction: Transaction<'static, Postgres>,
    _place: Option<OwnedSemaphorePermit>,
}

/// A sequence of transactions with the same limits, which share one place.
pub struct SeveralTransactions {
    pool: PgPool,
    limits: Option<(Duration, OwnedSemaphorePermit)>,
}

impl Limits {
    /// Waits for places, for at most half of the request's time. This absorbs bursts, and leaves the other half for the work.
    pub async fn acquire_permits(&self, n_places: u32) -> Result<OwnedSemaphorePermit, Refusal> {
        let place = Arc::clone(&self.places).acquire_many_owned(n_places);
        let place = timeout(self.longest / 2, place).await;
        if let Ok(Ok(place)) = place {
            return Ok(place);
        }
        let detail = "too many requests write or wait for other transactions at once: try again in a moment; if this persists, `dalsegno doctor` names the cause";
        Err(Refusal::new(Kind::Unavailable, "database_busy", detail))
    }
}

pub async fn begin(pool: &PgPool, limits: Option<&Limits>) -> Result<OpenTransaction, Refusal> {
    let (transaction, place) = match limits {
        Some(limits) => {
            let place = limits.acquire_permits(1).await?;
            (begin_with_limits(pool, limits.longest, PATIENCE).await?, Some(place))
        }
        None => (transaction::begin(pool).await?, None),
    };
    Ok(OpenTransaction { transaction, _place: place })
}

/// Begins a transaction beside several others, with their limits. It takes the places of both before it holds a connection:
/// transactions that wait for a second connection could hold all of them.
pub async fn begin_alongside(
    pool: &PgPool,
    limits: Option<&Limits>,
) -> Result<(OpenTransaction, Option<Limits>), Refusal> {
    let Some(limits) = limits else { return Ok((begin(pool, None).await?, None)) };
    // A small pool has one place.
    let n_places = (pool.options().get_max_connections() / 2).clamp(1, 2);
    let places = limits.acquire_permits(n_places).await?;
    let transaction = begin_with_limits(pool, limits.longest, PATIENCE).await?;
    let others = Limits { places: Arc::new(Semaphore::new(1)), ..limits.clone() };
    Ok((OpenTransaction { transaction, _place: Some(places) }, Some(others)))
}

/// Begins a transaction for a read without locks.
pub async fn begin_read(
    pool: &PgPool,
    limits: Option<&Limits>,
) -> Result<Transaction<'static, Postgres>, StatementError> {
    match limits {
        Some(limits) => begin_with_limit(pool, limits.longest).await,
        None => transaction::begin(pool).await,
    }
}

/// Begins a read that scans a whole table. Few of them run at once, and each statement may take [`LONGEST_SCAN`].
pub async fn begin_scan(pool: &PgPool, limits: Option<&Limits>) -> Result<Scan, Refusal> {
    let Some(limits) = limits else {
        return Ok(Scan { transaction: begin_search(pool, None).await?, _place: None });
    };
    let places = Arc::clone(&limits.scans);
    let limits = Limits { places, longest: LONGEST_SCAN, ..limits.clone() };
    let place = limits.acquire_permits(1).await?;
    let transaction = begin_search(pool, Some(LONGEST_SCAN)).await?;
    Ok(Scan { transaction, _place: Some(place) })
}

/// Begins a call of several transactions, one after the other.
pub async fn begin_several(
    pool: &PgPool,
    limits: Option<&Limits>,
) -> Result<SeveralTransactions, Refusal> {
    let limits = match limits {
        Some(limits) => Some((limits.longest, limits.acquire_permits(1).await?)),
        None => None,
    };
    Ok(SeveralTransactions { pool: pool.clone(), limits })
}

impl Transactions for SeveralTransactions {
    async fn begin(&self) -> Result<Transaction<'static, Postgres>, StatementError> {
        match &self.limits {
            Some((longest, _)) => begin_with_limits(&self.pool, *longest, PATIENCE).await,
            None => transaction::begin(&self.pool).await,
        }
    }
}

impl OpenTransaction {
    pub async fn commit(self) -> Result<(), StatementError> {
        transaction::commit(self.transaction).await
    }
}

impl Scan {
    pub fn conn(&mut self) -> &mut PgConnection {
        &mut self.transaction
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
    async fn a_request_waits_half_of_its_time_for_a_connection() {
        let limits = Limits {
            places: Arc::new(Semaphore::new(1)),
            scans: Arc::new(Semaphore::new(1)),
            longest: Duration::from_secs(30),
        };
        let first = limits.acquire_permits(1).await.unwrap();
        let begin = Instant::now();
        let (second, ()) = tokio::join!(limits.acquire_permits(1), async move {
            tokio::time::sleep(Duration::from_secs(10)).await;
            drop(first);
        });
        assert_eq!(begin.elapsed().as_secs(), 10);

        let _second = second.unwrap();
        let begin = Instant::now();
        let Err(refusal) = limits.acquire_permits(1).await else {
            panic!("one connection was free")
        };
        assert_eq!((refusal.code, begin.elapsed().as_secs()), ("database_busy", 15));
    }
}
