//! A worker that cannot renew its lease, while the rest of its connections work.

use dalsegno::queue::{Config, Registry};
use sqlx::{Postgres, Transaction};

use super::{
    ends::{TestJob, act},
    fixture::{Fixture, HandlerLog, until},
};

/// Returns a configuration that stops the runs 6 s after the last answered renewal, ten minutes before the lease ends.
fn config() -> Config {
    Config { lease_secs: 606, lease_margin_secs: 600, ..Fixture::config() }
}

/// Keeps the worker from renewing its lease until the transaction ends.
async fn block_renewals(fixture: &Fixture) -> Transaction<'static, Postgres> {
    let mut tx = fixture.pool.begin().await.expect("begins");
    sqlx::query("SELECT id FROM dalsegno.workers FOR UPDATE")
        .execute(&mut *tx)
        .await
        .expect("locks the row of the worker");
    tx
}

async fn is_true(fixture: &Fixture, question: &'static str) -> bool {
    sqlx::query_scalar(question).fetch_one(&fixture.pool).await.expect("answers")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_is_answered_after_the_fence_starts_no_run() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let worker = fixture.start(config(), Registry::new(handler_log.clone()).with(act));
    fixture.put(&TestJob::WaitForCancel).await;
    handler_log.until(1).await;
    // From then on, the claimer does not write the row of the worker.
    let waits = "SELECT EXISTS (SELECT FROM dalsegno.workers WHERE waiting)";
    until("the worker waits", async || is_true(&fixture, waits).await).await;
    let mut claims = fixture.pool.begin().await.expect("begins");
    sqlx::query("LOCK TABLE dalsegno.pauses").execute(&mut *claims).await.expect("blocks claims");
    let renewals = block_renewals(&fixture).await;
    let late = fixture.put(&TestJob::Nothing).await;
    let in_flight = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()
                        AND application_name = 'dalsegno claimer' AND wait_event_type = 'Lock')";
    until("a claim is in flight", async || is_true(&fixture, in_flight).await).await;
    assert_eq!(handler_log.until(2).await[1], "stopped Some(LeaseLost)");
    claims.rollback().await.expect("lets claims continue");
    until("the job is given back or done", async || {
        !fixture.outcomes(late.job_id).await.is_empty()
    })
    .await;
    assert_eq!(fixture.outcomes(late.job_id).await, ["given_back"]);
    assert_eq!(handler_log.lines().len(), 2, "the job has started");
    renewals.rollback().await.expect("lets renewals continue");
    fixture.until_state(late.job_id, "gone").await;
    assert_eq!(fixture.outcomes(late.job_id).await, ["given_back", "done"]);
    worker.shutdown.hard.cancel();
    worker.stop().await;
}
