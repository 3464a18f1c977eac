//! Cancellations of running handlers.

use dalsegno::jobs::trial::{Note, Sleep};

use super::{checker::Expected, supervisor::WorkerSupervisor, trial::Trial};

/// Settings with which the next heartbeat comes after the test.
const RARE_HEARTBEATS: [(&str, &str); 4] = [
    ("DALSEGNO_QUEUE__LEASE_SECS", "10000"),
    ("DALSEGNO_QUEUE__HEARTBEAT_SECS", "3600"),
    ("DALSEGNO_QUEUE__POLL_IDLE_MS", "3600000"),
    ("DALSEGNO_QUEUE__LISTEN_PING_SECS", "3600"),
];

const LISTENERS: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                            AND application_name = 'dalsegno listener' AND state = 'idle' AND query LIKE 'LISTEN%'";

/// Cancels the running head of a lane. Its worker does not learn of it by a heartbeat.
async fn cancel_a_runner(listens: bool) -> Trial {
    let trial = Trial::new().await;
    let listen = ("DALSEGNO_QUEUE__LISTEN", if listens { "true" } else { "false" });
    let mut supervisor =
        WorkerSupervisor::start(&trial, 1, &[&RARE_HEARTBEATS[..], &[listen]].concat());
    trial.until("the worker listens", i64::from(listens), LISTENERS).await;
    let job = trial.job(Some("a"), &Sleep {}).await;
    trial.note(Some("a"), Note::default()).await;
    trial.until("the job runs", 1, "SELECT count(*) FROM trial.starts").await;
    let cancelled: String = sqlx::query_scalar("SELECT dalsegno.cancel($1, 'a test')")
        .bind(job)
        .fetch_one(&trial.pool)
        .await
        .unwrap();
    assert_eq!(cancelled, "requested");
    trial.settle(&mut supervisor, 0).await;
    let expected = Expected { cancelled: [job].into(), ..Expected::default() };
    trial.check(&expected).await;
    drop(supervisor);
    trial.end().await;
    // Dropped by the caller after all have ended, because its drop blocks.
    trial
}

#[tokio::test]
async fn a_cancellation_reaches_a_running_handler_before_the_next_heartbeat() {
    tokio::join!(cancel_a_runner(true), cancel_a_runner(false));
}
