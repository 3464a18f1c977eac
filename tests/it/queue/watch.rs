//! Continuous checks for stuck jobs during faults.
//!
//! Each checked state is allowed for a moment, and wrong when it lasts. Its duration is measured from the first check
//! that finds it. It restarts after an outage of the database, during which no worker can progress.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use sqlx::PgPool;
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

/// Longest allowed time after the end of a lease, or after a job became due.
const MAX_WAIT: Duration = crate::app::SOON;
const PAUSE: Duration = Duration::from_millis(250);

const STUCK: &str = "
    SELECT format('job %s runs under lease %s, whose worker is silent', j.id, j.lease)
      FROM dalsegno.jobs AS j JOIN dalsegno.workers AS w ON w.id = j.worker_id
     WHERE j.state = 'running' AND w.lease_until < now()
    UNION ALL
    SELECT format('job %s is due and was not made ready', j.id)
      FROM dalsegno.jobs AS j WHERE j.state = 'scheduled' AND j.run_at < now()
    UNION ALL
    SELECT format('lane %s has jobs and no head', j.lane_id)
      FROM dalsegno.jobs AS j GROUP BY j.lane_id
    HAVING j.lane_id IS NOT NULL AND bool_or(j.state = 'blocked') AND NOT bool_or(j.state <> 'blocked' AND j.lane_seq IS NOT NULL)";

/// Checks every quarter of a second.
pub struct StuckJobWatch {
    stop: CancellationToken,
    task: Mutex<Option<JoinHandle<()>>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl StuckJobWatch {
    pub fn begin(pool: PgPool) -> Self {
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let found = Arc::clone(&seen);
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let mut since: HashMap<String, Instant> = HashMap::new();
            while !stopped.is_cancelled() {
                let stuck: Result<Vec<String>, _> =
                    sqlx::query_scalar(STUCK).fetch_all(&pool).await;
                let now = Instant::now();
                let stuck = stuck.unwrap_or_default();
                since.retain(|what, _| stuck.contains(what));
                for what in stuck {
                    let age = now - *since.entry(what.clone()).or_insert(now);
                    if age > MAX_WAIT {
                        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                        if !found.iter().any(|seen| seen.starts_with(&what)) {
                            found.push(format!("{what} for {age:?}"));
                        }
                    }
                }
                let _ = tokio::time::timeout(PAUSE, stopped.cancelled()).await;
            }
        });
        Self { stop, task: Mutex::new(Some(task)), seen }
    }

    /// Returns the states that lasted too long.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops the checks, after the current one.
    pub async fn end(&self) {
        self.stop.cancel();
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            task.await.unwrap();
        }
    }
}
