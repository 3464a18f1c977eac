//! Whether the queue takes more tasks. A queue that only grows answers everybody late; whoever is told so can wait or go elsewhere.
//!
//! The queue's counters are read at most once a second per process, and what this process has let in since is added, so that the
//! limit costs a request nothing. Several processes together may pass it by what they let in within that second.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Mutex, time::Instant};

use super::Problem;
use crate::{app::App, queue::admin};

/// Where the jobs of tasks wait.
const QUEUE: &str = "turns";
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Turns take seconds to minutes, so the queue becomes shorter at about that pace.
const RETRY_AFTER_SECS: u32 = 10;

#[derive(Debug, Clone, Default)]
pub(super) struct Admission(Arc<Seen>);

#[derive(Debug, Default)]
struct Seen {
    n_waiting: AtomicU64,
    looked_at: Mutex<Option<Instant>>,
}

impl Admission {
    /// Lets so many tasks in, or says why not.
    pub(super) async fn admit(&self, app: &App, n_tasks: u64) -> Result<(), Problem> {
        let limit = app.config.queue.max_waiting;
        if limit == 0 {
            return Ok(());
        }
        self.look(app).await?;
        let n_waiting = self.0.n_waiting.load(Ordering::Relaxed);
        if n_waiting + n_tasks > limit {
            let detail = format!(
                "{n_waiting} tasks wait, and the queue takes {limit}: try again later, add workers, or raise queue.max_waiting"
            );
            let problem = Problem::unavailable("queue_full", detail);
            return Err(Problem { retry_after_secs: Some(RETRY_AFTER_SECS), ..problem });
        }
        self.0.n_waiting.fetch_add(n_tasks, Ordering::Relaxed);
        Ok(())
    }

    /// One request looks for all; the others go by what was seen last.
    async fn look(&self, app: &App) -> Result<(), Problem> {
        let Ok(mut looked_at) = self.0.looked_at.try_lock() else { return Ok(()) };
        if looked_at.is_none_or(|looked_at| looked_at.elapsed() >= LOOK_EVERY) {
            let n_waiting = admin::waiting(&app.pool, QUEUE).await?;
            self.0.n_waiting.store(u64::try_from(n_waiting).unwrap_or(0), Ordering::Relaxed);
            *looked_at = Some(Instant::now());
        }
        Ok(())
    }
}
