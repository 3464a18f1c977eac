//! Connections of a worker that the database terminates: each part reconnects.

use std::time::Duration;

use dalsegno::jobs::trial::{Note, NoteEnd};

use super::{checker::Expected, supervisor::WorkerSupervisor, trial::Trial};
use crate::app::SOON;

const PARTS: [&str; 5] = [
    "dalsegno listener",
    "dalsegno claimer",
    "dalsegno heartbeat",
    "dalsegno completer",
    "dalsegno upkeep",
];

async fn terminate(trial: &Trial, part: &str) -> i64 {
    let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                WHERE datname = current_database() AND application_name = $1";
    sqlx::query_scalar(sql).bind(part).fetch_one(&trial.pool).await.unwrap()
}

/// Terminates the connections of each part in turn under load, in `n_rounds` rounds.
pub async fn terminate_backends(n_rounds: usize) {
    let trial = Trial::new().await;
    // Polls so rarely that only the reconnected listener explains the pick-up at the end.
    let mut supervisor =
        WorkerSupervisor::start(&trial, 2, &[("DALSEGNO_QUEUE__POLL_IDLE_MS", "3600000")]);
    supervisor.ready().await;
    let mut n_terminated = 0;
    for at in 0..n_rounds * PARTS.len() {
        n_terminated += terminate(&trial, PARTS[at % PARTS.len()]).await;
        for job in 0..12 {
            let lane = (job % 3 > 0).then(|| format!("lane {}", job % 5));
            let end = if job % 2 == 0 { NoteEnd::Batched } else { NoteEnd::Own };
            // Few, because a failing head blocks its lane until the next second.
            let failures = i16::from(job == 7 && at % 5 == 0);
            let note = Note { millis: 20, end, failures, ..Note::default() };
            trial.note(lane.as_deref(), note).await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    assert!(n_terminated >= n_rounds as i64 * 6, "{n_terminated} connections were ended");
    trial.settle(&mut supervisor, 0).await;
    assert_eq!(supervisor.n_replaced, 0, "a worker ended:\n{}", supervisor.logs());
    trial.check(&Expected::default()).await;
    pick_up_by_notification(&trial, &mut supervisor).await;
    trial.end().await;
}

/// Checks that each notification arrives: both workers sleep until one comes, or for a minute.
async fn pick_up_by_notification(trial: &Trial, supervisor: &mut WorkerSupervisor<'_>) {
    let waiting = "SELECT count(*) FROM dalsegno.workers WHERE gone_at IS NULL AND waiting";
    let picked_up = async {
        for _ in 0..12 {
            trial.until("both workers listen", 2, waiting).await;
            trial.note(None, Note::default()).await;
            trial.settle(supervisor, 0).await;
        }
    };
    tokio::time::timeout(SOON, picked_up).await.expect("notifications arrive");
}

#[tokio::test]
async fn terminated_connections_are_reopened_and_end_no_run() {
    terminate_backends(2).await;
}
