//! Key lookups in batches: one statement answers all requests that wait for a key at the same moment.
//!
//! A key that is not cached is always looked up, also beside a flood of bad keys: the flood shares its statements, which follow
//! each other at [`BATCH_EVERY`]. So it costs one connection and some 50 statements per second, whatever its rate.
//!
//! Race: the request that reads a batch may be dropped half way. The next one in the queue finds its handle unanswered, and reads.

use std::{
    collections::{HashMap, HashSet},
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sqlx::PgPool;
use tokio::time::{Instant, sleep_until};

use crate::{
    domain::keys::{self, Stored},
    http::Problem,
};

/// Shortest time between two statements. A lone request after a pause does not wait.
const BATCH_EVERY: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
pub(super) struct Lookups {
    /// Handles for the next batch.
    wanted: Mutex<HashSet<String>>,
    /// Held by the request that reads a batch; the others queue in the order in which they came.
    last: tokio::sync::Mutex<Option<Batch>>,
}

/// A key as the database had it.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) stored: Option<Arc<Stored>>,
    /// Before the statement was sent.
    pub(super) at: Instant,
}

#[derive(Debug)]
struct Batch {
    began: Instant,
    handles: HashSet<String>,
    stored: Result<HashMap<String, Arc<Stored>>, Problem>,
}

impl Lookups {
    /// Reads the key with this handle from the database, as it is at this moment or later.
    pub(super) async fn find(&self, pool: &PgPool, handle: &str) -> Result<Found, Problem> {
        let asked_at = Instant::now();
        self.wanted().insert(handle.to_owned());
        let mut last = self.last.lock().await;
        if let Some(found) = last.as_ref().and_then(|batch| batch.answer(handle, asked_at)) {
            return found;
        }
        if let Some(batch) = &*last {
            sleep_until(batch.began + BATCH_EVERY).await;
        }
        let mut handles = mem::take(&mut *self.wanted());
        handles.insert(handle.to_owned());
        let batch = last.insert(Batch::read(pool, handles).await);
        batch.found(handle)
    }

    fn wanted(&self) -> MutexGuard<'_, HashSet<String>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Batch {
    async fn read(pool: &PgPool, handles: HashSet<String>) -> Self {
        let began = Instant::now();
        let asked: Vec<String> = handles.iter().cloned().collect();
        let stored = keys::of_handles(pool, &asked).await.map_err(Problem::from);
        let stored = stored.map(|stored| {
            let by_handle = stored.into_iter().map(|stored| (stored.key.handle.clone(), stored));
            by_handle.map(|(handle, stored)| (handle, Arc::new(stored))).collect()
        });
        Self { began, handles, stored }
    }

    /// `None`: the batch was sent before the request came, or without its handle.
    fn answer(&self, handle: &str, asked_at: Instant) -> Option<Result<Found, Problem>> {
        let has_asked = self.began >= asked_at && self.handles.contains(handle);
        has_asked.then(|| self.found(handle))
    }

    fn found(&self, handle: &str) -> Result<Found, Problem> {
        let stored = self.stored.as_ref().map_err(Problem::clone)?;
        Ok(Found { stored: stored.get(handle).cloned(), at: self.began })
    }
}
