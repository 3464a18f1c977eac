//! Requests that stay: each looks into the database again and again, so there are only so many at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Problem;

/// Tasks take seconds to minutes, so places become free at about that pace.
const RETRY_AFTER_SECS: u32 = 5;

#[derive(Debug, Clone)]
pub(super) struct Waiters {
    places: Arc<Semaphore>,
    max: usize,
}

/// A place among those who wait. Free again when dropped.
pub(super) type Place = OwnedSemaphorePermit;

impl Waiters {
    pub(super) fn up_to(max: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS))), max }
    }

    pub(super) fn enter(&self) -> Result<Place, Problem> {
        Arc::clone(&self.places).try_acquire_owned().map_err(|_| {
            let detail = format!(
                "{} requests wait for tasks already: try again in some seconds, ask without waiting, or raise http.max_waiting",
                self.max
            );
            let problem = Problem::unavailable("too_many_waiting", detail);
            Problem { retry_after_secs: Some(RETRY_AFTER_SECS), ..problem }
        })
    }
}
