//! Lookups of keys and cookies in batches: one statement answers all requests that wait for one.
//!
//! A flood of bad ones does not displace good ones: it shares its statements, which follow each other at
//! [`BATCH_EVERY`]. At any rate of requests, lookups take one connection and some 50 statements per second.
//!
//! Race: the request that reads a batch may be dropped half way. The next one in the queue finds its own key unanswered,
//! and reads for all that still wait.

use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sqlx::PgPool;
use tokio::time::{Instant, sleep_until};

use crate::{
    domain::{
        keys::{self, Digest, Key, StoredKey},
        sign_ins::{self, StoredSignIn},
    },
    http::Problem,
};

/// Shortest time between two statements. A lone request after a pause does not wait.
const BATCH_EVERY: Duration = Duration::from_millis(20);

/// Lookups of keys by their handles.
pub(super) type KeyLookups = Lookups<String, StoredKey>;
/// Lookups of sign-ins by the hashes of their cookies.
pub(super) type SignInLookups = Lookups<Digest, SignInWithKey>;

/// Lookups by a key of one type: the handle of an API key, or the digest of a cookie.
#[derive(Debug)]
pub(super) struct Lookups<K, T> {
    /// Keys that requests wait for, with the number of these requests. Each batch reads all of them.
    wanted: Mutex<HashMap<K, usize>>,
    /// Held by the request that reads a batch; the others queue in order of arrival.
    last: tokio::sync::Mutex<Option<Batch<K, T>>>,
}

/// Result of a lookup.
#[derive(Debug)]
pub(super) struct LookupResult<T> {
    pub(super) stored: Option<Arc<T>>,
    /// Time before the statement was sent.
    pub(super) at: Instant,
}

/// A sign-in with its key, which is absent for that of the configuration.
#[derive(Debug)]
pub(super) struct SignInWithKey {
    pub(super) stored: StoredSignIn,
    pub(super) key: Option<Arc<Key>>,
}

#[derive(Debug)]
struct Batch<K, T> {
    began: Instant,
    keys: HashSet<K>,
    stored: Result<HashMap<K, Arc<T>>, Problem>,
}

/// A waiting request. Dropping it removes it from `wanted`.
struct Waiter<'a, K: Eq + Hash, T> {
    lookups: &'a Lookups<K, T>,
    key: K,
}

impl KeyLookups {
    /// Reads the key with this handle from the database, as it is now or later.
    pub(super) async fn find(
        &self,
        pool: &PgPool,
        handle: &str,
    ) -> Result<LookupResult<StoredKey>, Problem> {
        let read = |handles: Vec<String>| async move { read_keys(pool, &handles).await };
        self.find_by(handle.to_owned(), read).await
    }
}

impl SignInLookups {
    /// Reads the sign-in of a cookie with this hash from the database, as it is now or later.
    pub(super) async fn find(
        &self,
        pool: &PgPool,
        cookie: Digest,
    ) -> Result<LookupResult<SignInWithKey>, Problem> {
        let read = |cookies: Vec<Digest>| async move { read_sign_ins(pool, &cookies).await };
        self.find_by(cookie, read).await
    }
}

async fn read_keys(pool: &PgPool, handles: &[String]) -> Result<Vec<(String, StoredKey)>, Problem> {
    let stored = keys::of_handles(pool, handles).await?;
    Ok(stored.into_iter().map(|stored| (stored.key.handle.clone(), stored)).collect())
}

async fn read_sign_ins(
    pool: &PgPool,
    cookies: &[Digest],
) -> Result<Vec<(Digest, SignInWithKey)>, Problem> {
    let stored = sign_ins::of_digests(pool, cookies).await?;
    let ids: Vec<_> = stored.iter().filter_map(|stored| stored.sign_in.key_id).collect();
    // Unknown cookies cost one statement.
    let keys = if ids.is_empty() { Vec::new() } else { keys::of_ids(pool, &ids).await? };
    let keys: HashMap<_, _> = keys.into_iter().map(|key| (key.id, Arc::new(key))).collect();
    let with_key = |stored: StoredSignIn| {
        let key = stored.sign_in.key_id.and_then(|id| keys.get(&id).cloned());
        (stored.digest, SignInWithKey { stored, key })
    };
    Ok(stored.into_iter().map(with_key).collect())
}

impl<K: Clone + Eq + Hash, T> Lookups<K, T> {
    async fn find_by<F: Future<Output = Result<Vec<(K, T)>, Problem>>>(
        &self,
        key: K,
        read: impl FnOnce(Vec<K>) -> F,
    ) -> Result<LookupResult<T>, Problem> {
        let asked_at = Instant::now();
        let _waiter = self.wait_for(key.clone());
        let mut last = self.last.lock().await;
        if let Some(found) = last.as_ref().and_then(|batch| batch.answer(&key, asked_at)) {
            return found;
        }
        if let Some(batch) = &*last {
            sleep_until(batch.began + BATCH_EVERY).await;
        }
        let keys = self.wanted().keys().cloned().collect();
        let batch = last.insert(Batch::read(keys, read).await);
        batch.found(&key)
    }

    fn wait_for(&self, key: K) -> Waiter<'_, K, T> {
        *self.wanted().entry(key.clone()).or_default() += 1;
        Waiter { lookups: self, key }
    }
}

impl<K, T> Lookups<K, T> {
    fn wanted(&self) -> MutexGuard<'_, HashMap<K, usize>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, T> Default for Lookups<K, T> {
    fn default() -> Self {
        Self { wanted: Mutex::default(), last: tokio::sync::Mutex::default() }
    }
}

impl<K: Eq + Hash, T> Drop for Waiter<'_, K, T> {
    fn drop(&mut self) {
        let mut wanted = self.lookups.wanted();
        let others = wanted.get_mut(&self.key).map(|n_waiters| {
            *n_waiters = n_waiters.saturating_sub(1);
            *n_waiters
        });
        if others == Some(0) {
            wanted.remove(&self.key);
        }
    }
}

impl<K: Clone + Eq + Hash, T> Batch<K, T> {
    async fn read<F: Future<Output = Result<Vec<(K, T)>, Problem>>>(
        keys: HashSet<K>,
        read: impl FnOnce(Vec<K>) -> F,
    ) -> Self {
        let began = Instant::now();
        let stored = read(keys.iter().cloned().collect()).await;
        let stored = stored.map(|stored| {
            stored.into_iter().map(|(key, stored)| (key, Arc::new(stored))).collect()
        });
        Self { began, keys, stored }
    }

    /// Returns the batch's result for a key. `None`: the batch was sent before the request came, or without its key.
    fn answer(&self, key: &K, asked_at: Instant) -> Option<Result<LookupResult<T>, Problem>> {
        let has_asked = self.began >= asked_at && self.keys.contains(key);
        has_asked.then(|| self.found(key))
    }

    fn found(&self, key: &K) -> Result<LookupResult<T>, Problem> {
        let stored = self.stored.as_ref().map_err(Problem::clone)?;
        Ok(LookupResult { stored: stored.get(key).cloned(), at: self.began })
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, future};

    use futures_util::{FutureExt as _, future::join_all};

    use super::*;

    #[tokio::test]
    async fn a_dropped_lookup_passes_its_waiters_to_the_next_one() {
        let (lookups, n_read) = (KeyLookups::default(), Cell::new(0));
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
            handles.into_iter().map(|handle| Box::pin(lookups.find_by(handle, read))).collect();
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
