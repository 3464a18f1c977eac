//! Jobs that kill their worker.

use std::time::Duration;

use dalsegno::jobs::trial::{Abort, Note};

use super::{
    checker::Expected,
    supervisor::{SLOTS, WorkerSupervisor},
    trial::Trial,
};
use crate::app::SOON;

/// Ends the backoff after a crash, which would grow to ten seconds.
async fn skip_crash_backoff(trial: &Trial) {
    sqlx::query("UPDATE dalsegno.jobs SET run_at = clock_timestamp() WHERE wait_reason = 'crash'")
        .execute(&trial.pool)
        .await
        .unwrap();
}

/// Waits until the job has killed its `n`th worker, and replaces that.
async fn wait_for_death(trial: &Trial, supervisor: &mut WorkerSupervisor<'_>, n: usize) {
    let deadline = tokio::time::Instant::now() + SOON;
    while supervisor.n_replaced < n {
        assert!(
            tokio::time::Instant::now() < deadline,
            "worker {n} did not die:\n{}",
            supervisor.logs()
        );
        skip_crash_backoff(trial).await;
        supervisor.replace_dead();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_job_that_kills_its_worker_is_dead_after_three_and_its_neighbours_finish() {
    let trial = Trial::new().await;
    let mut supervisor = WorkerSupervisor::start(&trial, 2, &[]);
    supervisor.ready().await;
    let poison = trial.job(Some("poisoned"), &Abort {}).await;
    trial.note(Some("poisoned"), Note::default()).await;
    for n in 1..=3 {
        for lane in 0..SLOTS {
            let lane = format!("neighbour {lane}");
            trial.note(Some(&lane), Note { millis: 300, ..Note::default() }).await;
        }
        wait_for_death(&trial, &mut supervisor, n).await;
    }
    trial.settle(&mut supervisor, 0).await;
    assert_eq!(supervisor.n_replaced, 3, "workers that died");
    let dead = [(poison, "worker_lost")].into();
    let expected = Expected { dead, lost_runs: 2 * SLOTS + 1, ..Expected::default() };
    let journal = trial.check(&expected).await;
    let of_poison: Vec<_> = journal.starts.iter().filter(|start| start.job_id == poison).collect();
    assert_eq!(of_poison.len(), 3);
    // A job that has killed two workers may only run alone.
    let last = of_poison[2];
    let with_it = journal.starts.iter().filter(|start| {
        let run = journal.runs.iter().find(|run| run.lease == start.lease).unwrap();
        start.worker == last.worker && run.ended_at > last.started_at
    });
    assert_eq!(with_it.count(), 1, "the job ran beside others");
    trial.end().await;
}

#[tokio::test]
async fn an_unreadable_payload_is_one_dead_job() {
    let trial = Trial::new().await;
    let mut supervisor = WorkerSupervisor::start(&trial, 1, &[]);
    let unreadable: i64 = sqlx::query_scalar(
        r#"SELECT job_id FROM dalsegno.enqueue(kind => 'trial.note', payload => '{"millis": "many"}', queue => 'turns', lane => 'a')"#,
    )
    .fetch_one(&trial.pool)
    .await
    .unwrap();
    trial.record(unreadable, "trial.note").await;
    trial.note(Some("a"), Note::default()).await;
    trial.settle(&mut supervisor, 0).await;
    assert_eq!(supervisor.n_replaced, 0, "the worker lives");
    let dead = [(unreadable, "bad_payload")].into();
    let journal = trial.check(&Expected { dead, ..Expected::default() }).await;
    let runs = journal.runs.iter().filter(|run| run.job_id == unreadable);
    assert_eq!(runs.count(), 1, "dead at once");
    assert!(journal.dead[0].error.as_ref().unwrap().contains("trial.note"), "{:?}", journal.dead);
    trial.end().await;
}
