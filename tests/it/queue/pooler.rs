//! The queue behind PgBouncer in transaction mode.

use dalsegno::jobs::trial::{Note, NoteEnd};

use super::{
    checker::Expected,
    supervisor::{SLOTS, WorkerSupervisor},
    trial::Trial,
};
use crate::poolers::pgbouncer::{DOCUMENTED, NEW, PgBouncer};

/// Two workers that share four connections of the server; one of them is killed three times.
#[tokio::test]
async fn workers_with_shared_connections_lose_and_duplicate_nothing() {
    let trial = Trial::new().await;
    let options = trial.pool.connect_options();
    let Some(pgbouncer) = PgBouncer::start(NEW, &options, DOCUMENTED).await else {
        return trial.end().await;
    };
    let url = pgbouncer.url();
    let settings = [("DATABASE_URL", url.as_str()), ("DALSEGNO_DATABASE__POOLER", "transaction")];
    let mut supervisor = WorkerSupervisor::start(&trial, 2, &settings);
    supervisor.ready().await;
    for round in 0..3_usize {
        for at in 0..40_usize {
            let lane = (at % 3 > 0).then(|| format!("lane {}", at % 7));
            let end = if at % 4 == 0 { NoteEnd::Batched } else { NoteEnd::Own };
            let note = Note { millis: 60, end, ..Note::default() };
            trial.note(lane.as_deref(), note).await;
        }
        let begun = (round * 40 + 10) as i64;
        trial.until("jobs are running", begun, "SELECT count(*) FROM trial.starts").await;
        supervisor.kill(round % 2).await;
        supervisor.workers[round % 2].ready().await;
    }
    trial.settle(&mut supervisor, 0).await;
    let expected = Expected { lost_runs: 3 * SLOTS, ..Expected::default() };
    trial.check(&expected).await;
    let logs = supervisor.logs();
    assert!(!logs.contains("prepared statement"), "{logs}\n{}", pgbouncer.log());
    drop(supervisor);
    trial.end().await;
}
