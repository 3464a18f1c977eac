//! A worker that cannot renew its lease, while the rest of its connections work.

use dalsegno::queue::{Config, Registry};
use sqlx::{PgConnection, Postgres, Transaction};
use uuid::Uuid;

use super::{
    ends::{TestJob, act},
    fixture::{Fixture, HandlerLog, until},
};
use crate::queue_sql::statements::RESCUE;

/// Returns a configuration that stops the runs 4 s after the last answered renewal, ten minutes before the lease ends.
/// A claim is given up after 10 s.
fn config() -> Config {
    Config { lease_secs: 604, lease_margin_secs: 600, ..Fixture::config() }
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

/// Declares the worker lost and takes its jobs back, as another worker does when the lease has ended.
async fn rescue(conn: &mut PgConnection) {
    let other = Uuid::new_v4();
    sqlx::query("UPDATE dalsegno.workers SET lease_until = now() - interval '1 second'")
        .execute(&mut *conn)
        .await
        .expect("ends the lease");
    let register = "INSERT INTO dalsegno.workers (id, lease_until, slots, queues, renewing_since)
                    VALUES ($1, now() + interval '1 hour', 1, '{}', now() - interval '1 day')";
    sqlx::query(register).bind(other).execute(&mut *conn).await.expect("registers another worker");
    let rescue = sqlx::query(RESCUE).bind(other).bind(604.0_f64).bind(0.0_f64).bind(1_000_i32);
    assert_eq!(rescue.fetch_all(&mut *conn).await.expect("rescues").len(), 1);
    let sign_off = sqlx::query("DELETE FROM dalsegno.workers WHERE id = $1").bind(other);
    sign_off.execute(&mut *conn).await.expect("signs it off");
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
    // At once: the lock keeps the worker from renewing, too, and after the fence it claims nothing.
    let late = fixture.put(&TestJob::Nothing).await;
    let renewals = block_renewals(&fixture).await;
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

/// Refuses changes of ended runs, and counts the refusals: a sequence is not rolled back.
const REFUSE_CHANGES: &str = "
    CREATE SEQUENCE public.refusals;
    CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $body$
    BEGIN PERFORM nextval('public.refusals'); RAISE EXCEPTION 'told to refuse'; END $body$;
    CREATE TRIGGER refuse BEFORE UPDATE ON dalsegno.runs FOR EACH STATEMENT EXECUTE FUNCTION public.refuse()";

#[tokio::test(flavor = "multi_thread")]
async fn crash_marks_of_interrupted_runs_are_removed_when_the_first_try_fails() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let worker = fixture.start(config(), Registry::new(handler_log.clone()).with(act));
    let job = fixture.put(&TestJob::WaitForCancel).await;
    handler_log.until(1).await;
    sqlx::raw_sql(REFUSE_CHANGES).execute(&fixture.pool).await.expect("creates the trigger");
    let mut renewals = block_renewals(&fixture).await;
    assert_eq!(handler_log.until(2).await[1], "stopped Some(LeaseLost)");
    rescue(&mut renewals).await;
    renewals.commit().await.expect("lets renewals continue");
    let refused = "SELECT is_called FROM public.refusals";
    until("the first try is refused", async || is_true(&fixture, refused).await).await;
    assert_eq!(fixture.outcomes(job.job_id).await, ["lost"]);
    fixture.until_state(job.job_id, "running").await;
    sqlx::raw_sql("DROP TRIGGER refuse ON dalsegno.runs")
        .execute(&fixture.pool)
        .await
        .expect("drops the trigger");
    until("the run counts as interrupted", async || {
        fixture.outcomes(job.job_id).await == ["interrupted"]
    })
    .await;
    let marks = "SELECT crash_count::integer FROM dalsegno.jobs WHERE id = $1";
    let marks = sqlx::query_scalar::<_, i32>(marks).bind(job.job_id).fetch_one(&fixture.pool);
    assert_eq!(marks.await.expect("reads the crash count"), 0);
    worker.shutdown.hard.cancel();
    worker.stop().await;
}
