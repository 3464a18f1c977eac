//! Key lookups in batches: one statement answers all requests that wait for a key.
//!
//! A flood of bad keys does not displace good ones: it shares its statements, which follow each other at
//! [`BATCH_EVERY`]. At any rate of requests, lookups take one connection and some 50 statements per second.
//!
//! Race: the request that reads a batch may be dropped half way. The next one in the queue finds its handle unanswered,
//! and reads for all that still wait.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sqlx::PgPool;
use tokio::time::{Instant, sleep_until};

use crate::{
    domain::keys::{self, StoredKey},
    http::Problem,
};

/// Shortest time between two statements. A lone request after a pause does not wait.
const BATCH_EVERY: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
pub(super) struct Lookups {
    /// Handles that requests wait for, with the number of these requests. Each batch reads all of them.
    wanted: Mutex<HashMap<String, usize>>,
    /// Held by the request that reads a batch; the others queue in order of arrival.
    last: tokio::sync::Mutex<Option<Batch>>,
}

/// Result of looking up a key.
#[derive(Debug, Clone)]
pub(super) struct LookupResult {
    pub(super) stored: Option<Arc<StoredKey>>,
    /// Time before the statement was sent.
    pub(super) at: Instant,
}

#[derive(Debug)]
struct Batch {
    began: Instant,
    handles: HashSet<String>,
    stored: Result<HashMap<String, Arc<StoredKey>>, Problem>,
}

/// A waiting request. Dropping it removes it from `wanted`.
struct Waiter<'a> {
    lookups: &'a Lookups,
    handle: &'a str,
}

impl Lookups {
    /// Reads the key with this handle from the database, as it is now or later.
    pub(super) async fn find(&self, pool: &PgPool, handle: &str) -> Result<LookupResult, Problem> {
        let read = |handles: Vec<String>| async move {
            keys::of_handles(pool, &handles).await.map_err(Problem::from)
        };
        self.find_by(handle, read).await
    }

    async fn find_by<F: Future<Output = Result<Vec<StoredKey>, Problem>>>(
        &self,
        handle: &str,
        read: impl FnOnce(Vec<String>) -> F,
    ) -> Result<LookupResult, Problem> {
        let asked_at = Instant::now();
        let _waiter = self.wait_for(handle);
        let mut last = self.last.lock().await;
        if let Some(found) = last.as_ref().and_then(|batch| batch.answer(handle, asked_at)) {
            return found;
        }
        if let Some(batch) = &*last {
            sleep_until(batch.began + BATCH_EVERY).await;
        }
        let handles = self.wanted().keys().cloned().collect();
        let batch = last.insert(Batch::read(handles, read).await);
        batch.found(handle)
    }

    fn wait_for<'a>(&'a self, handle: &'a str) -> Waiter<'a> {
        *self.wanted().entry(handle.to_owned()).or_default() += 1;
        Waiter { lookups: self, handle }
    }

    fn wanted(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut wanted = self.lookups.wanted();
        let others = wanted.get_mut(self.handle).map(|n_waiters| {
            *n_waiters = n_waiters.saturating_sub(1);
            *n_waiters
        });
        if others == Some(0) {
            wanted.remove(self.handle);
        }
    }
}

impl Batch {
    async fn read<F: Future<Output = Result<Vec<StoredKey>, Problem>>>(
        handles: HashSet<String>,
        read: impl FnOnce(Vec<String>) -> F,
    ) -> Self {
        let began = Instant::now();
        let stored = read(handles.iter().cloned().collect()).await;
        let stored = stored.map(|stored| {
            let by_handle = stored.into_iter().map(|stored| (stored.key.handle.clone(), stored));
            by_handle.map(|(handle, stored)| (handle, Arc::new(stored))).collect()
        });
        Self { began, handles, stored }
    }

    /// Returns the batch's result for a key. `None`: the batch was sent before the request came, or without its handle.
    fn answer(&self, handle: &str, asked_at: Instant) -> Option<Result<LookupResult, Problem>> {
        let has_asked = self.began >= asked_at && self.handles.contains(handle);
        has_asked.then(|| self.found(handle))
    }

    fn found(&self, handle: &str) -> Result<LookupResult, Problem> {
        let stored = self.stored.as_ref().map_err(Problem::clone)?;
        Ok(LookupResult { stored: stored.get(handle).cloned(), at: self.began })
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, future};

    use futures_util::{FutureExt as _, future::join_all};

    use super::*;

    #[tokio::test]
    async fn a_dropped_lookup_passes_its_waiters_to_the_next_one() {
        let (lookups, n_read) = (Lookups::default(), Cell::new(0));
        let read = |_handles| {
            n_read.set(n_read.get() + 1);
            let is_first = n_read.get() == 1;
            async move {
                if is_first {
                    future::pending::<()>().await;
                }
                Ok(Vec::new())
            }
        };
        let handles: Vec<String> = (0..200).map(|n| n.to_string()).collect();
        let held = lookups.last.lock().await;
        let mut waiting: Vec<_> =
            handles.iter().map(|handle| Box::pin(lookups.find_by(handle, read))).collect();
        assert!(waiting.iter_mut().all(|waits| waits.now_or_never().is_none()));
        drop(held);
        let mut reader = waiting.remove(0);
        assert!((&mut reader).now_or_never().is_none());
        assert_eq!(n_read.get(), 1);
        drop(reader);
        let found = join_all(waiting).await;
        assert!(found.iter().all(Result::is_ok), "{found:?}");
        assert!(n_read.get() <= 3, "{} statements", n_read.get());
        assert!(lookups.wanted().is_empty());
    }
}
