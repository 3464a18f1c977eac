//! A cancellation reaches a handler that runs.

use dalsegno::jobs::trial::{Note, Sleep};

use super::{
    checker::Expected,
    crew::Crew,
    trial::{SETTLED, Trial},
};

/// Cancels a running head of a lane. By the clock of the database, its run has to be over within a second.
async fn cancel_a_runner(settings: &[(&str, &str)]) -> Trial {
    let trial = Trial::new().await;
    let mut crew = Crew::start(&trial, 1, settings);
    let job = trial.job(Some("a"), &Sleep {}).await;
    trial.note(Some("a"), Note::default()).await;
    trial.until("the job runs", 1, "SELECT count(*) FROM trial.starts").await;
    let cancelled: String = sqlx::query_scalar("SELECT dalsegno.cancel($1, 'a test')")
        .bind(job)
        .fetch_one(&trial.pool)
        .await
        .unwrap();
    assert_eq!(cancelled, "requested");
    let at: chrono::DateTime<chrono::Utc> =
        sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(&trial.pool).await.unwrap();
    trial.settle(&mut crew, 0, SETTLED).await;
    let expected = Expected { cancelled: [job].into(), ..Expected::default() };
    let journal = trial.check(&expected).await;
    let run = journal.runs.iter().find(|run| run.job_id == job).unwrap();
    let took_ms = (run.ended_at - at).num_milliseconds();
    println!("cancelled after {took_ms} ms");
    assert!(took_ms <= 1_000, "{took_ms} ms\n{}", crew.logs());
    drop(crew);
    trial.end().await;
    // Dropped by the caller when all are ready: its drop blocks.
    trial
}

#[tokio::test]
async fn a_cancellation_reaches_a_running_handler_within_a_second() {
    let polling = [("DALSEGNO_QUEUE__LISTEN", "false")];
    tokio::join!(cancel_a_runner(&[]), cancel_a_runner(&polling));
}
