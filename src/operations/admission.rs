//! Admission control of the task queue. A queue that only grows delays each caller; a refused caller can wait or go
//! elsewhere.
//!
//! Each process reads the queue's counters at most once a second, and adds the tasks that it has admitted since. The
//! limit therefore costs a request nothing. Several processes together may exceed it by the tasks that they admit
//! within that second.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sqlx::PgPool;
use tokio::time::Instant;

use super::Refusal;
use crate::{
    domain::class::{Kind, QUEUE_FULL},
    queue::admin,
};

/// Queue of the tasks' jobs.
const QUEUE: &str = "turns";
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Turns take seconds to minutes, so the queue shrinks at about that rate.
const RETRY_AFTER_SECS: u32 = 10;

#[derive(Debug, Clone, Default)]
pub struct Admission(Arc<AdmissionState>);

/// Reserved space in the queue for tasks that are about to be added. On drop, the unused part is released.
#[derive(Debug)]
#[must_use = "what is not used of it is given back when it goes: say so behind the commit"]
pub struct QueueReservation {
    admission: Admission,
    n_unused: u64,
    /// Number of the counter reading that it was added to. A later reading has replaced the count, so nothing is
    /// released from it.
    look: u64,
}

#[derive(Debug, Default)]
struct AdmissionState {
    seen: Mutex<CounterReading>,
    /// Held by the request that reads the counters.
    looking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct CounterReading {
    n_waiting: u64,
    look: u64,
    looked_at: Option<Instant>,
}

impl Admission {
    /// Reserves space for `n_tasks`, or refuses them. A limit of 0 disables the check.
    pub async fn admit(
        &self,
        pool: &PgPool,
        limit: u64,
        n_tasks: u64,
    ) -> Result<QueueReservation, Refusal> {
        if limit == 0 {
            return Ok(QueueReservation { admission: self.clone(), n_unused: 0, look: 0 });
        }
        self.refresh_counters(pool).await?;
        let mut seen = self.lock_counters();
        let n_waiting = seen.n_waiting;
        if n_waiting + n_tasks > limit {
            let detail = format!(
                "{n_waiting} tasks are waiting, the limit of queue.max_waiting is {limit}: try again later, add workers, or raise the limit"
            );
            let refusal = Refusal::new(Kind::Unavailable, QUEUE_FULL.code, detail);
            return Err(Refusal { retry_after_secs: Some(RETRY_AFTER_SECS), ..refusal });
        }
        seen.n_waiting += n_tasks;
        Ok(QueueReservation { admission: self.clone(), n_unused: n_tasks, look: seen.look })
    }

    /// Reads the counters if they are old. One request reads; the others use the previous value.
    async fn refresh_counters(&self, pool: &PgPool) -> Result<(), Refusal> {
        let is_old =
            |looked_at: Option<Instant>| looked_at.is_none_or(|at| at.elapsed() >= LOOK_EVERY);
        let Ok(_looking) = self.0.looking.try_lock() else { return Ok(()) };
        if is_old(self.lock_counters().looked_at) {
            let n_waiting = admin::count_waiting(pool, QUEUE).await?;
            let mut seen = self.lock_counters();
            seen.n_waiting = u64::try_from(n_waiting).unwrap_or(0);
            seen.look += 1;
            seen.looked_at = Some(Instant::now());
        }
        Ok(())
    }

    fn lock_counters(&self) -> MutexGuard<'_, CounterReading> {
        self.0.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueReservation {
    /// Marks `n_created` tasks as new. The others existed before, or were refused.
    pub fn mark_used(mut self, n_created: u64) {
        self.n_unused = self.n_unused.saturating_sub(n_created);
    }

    /// Marks all tasks as new.
    pub fn use_all(mut self) {
        self.n_unused = 0;
    }
}

impl Drop for QueueReservation {
    fn drop(&mut self) {
        if self.n_unused == 0 {
            return;
        }
        let mut seen = self.admission.lock_counters();
        if seen.look == self.look {
            seen.n_waiting = seen.n_waiting.saturating_sub(self.n_unused);
        }
    }
}
