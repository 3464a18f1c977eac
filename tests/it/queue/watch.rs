//! Looks all the time whether something is stuck while faults happen.
//!
//! What is looked for is allowed for a moment and wrong when it lasts. How long it lasts is measured here, from the first
//! look that saw it, and starts again when the database was away: nobody can help a job then.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use sqlx::PgPool;
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

/// How long after the end of a lease, or after the moment that it became due, something may wait to be moved.
const PATIENCE: Duration = crate::app::SOON;
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

/// A look every quarter of a second.
pub struct Watch {
    stop: CancellationToken,
    task: Mutex<Option<JoinHandle<()>>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Watch {
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
                    if age > PATIENCE {
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

    /// What lasted too long.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops looking, after the look that is under way.
    pub async fn end(&self) {
        self.stop.cancel();
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            task.await.unwrap();
        }
    }
}
