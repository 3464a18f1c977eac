//! A job that may only run alone, beside busy workers.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use dalsegno::queue::{
    End, HandlerResult, Job, Options, Registry, Run,
    admin::{self, PauseScope},
    enqueue,
};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::{
    ends::{TestJob, act},
    fixture::{Fixture, HandlerLog, until},
};

/// A job that runs until the test lets it end.
#[derive(Debug, Serialize, Deserialize)]
struct LonelyJob;

impl Job for LonelyJob {
    const KIND: &'static str = "lonely";
}

async fn run_lonely_job(_: LonelyJob, _: Run, go_on: Arc<Notify>) -> HandlerResult {
    go_on.notified().await;
    Ok(End::Done)
}

/// Puts a job that has lost two workers, and could have run an hour ago.
async fn put_alone<J: Job>(fixture: &Fixture, job: &J, options: &Options) -> i64 {
    put_alone_since(fixture, job, options, "1 hour").await
}

/// Puts a job that has lost two workers, and could have run for this time.
async fn put_alone_since<J: Job>(
    fixture: &Fixture,
    job: &J,
    options: &Options,
    ready_for: &str,
) -> i64 {
    let mut tx = fixture.pool.begin().await.expect("begins");
    let job = enqueue(&mut *tx, job, options).await.expect("enqueues");
    sqlx::query(
        "UPDATE dalsegno.jobs SET crash_count = 2, run_at = now() - $2::text::interval WHERE id = $1",
    )
    .bind(job.job_id)
    .bind(ready_for)
    .execute(&mut *tx)
    .await
    .expect("marks it");
    tx.commit().await.expect("commits");
    job.job_id
}

async fn last_renewal(fixture: &Fixture) -> DateTime<Utc> {
    sqlx::query_scalar("SELECT min(renewed_at) FROM dalsegno.workers")
        .fetch_one(&fixture.pool)
        .await
        .expect("there is a worker")
}

/// Waits until the workers know what the database knows now. The first heartbeat may have begun before; the answer to
/// the second is applied when the third is sent. One worker may be a heartbeat ahead of another.
async fn until_informed(fixture: &Fixture) {
    for _ in 0..4 {
        let before = last_renewal(fixture).await;
        until("a heartbeat", async || last_renewal(fixture).await > before).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_makes_no_room_for_a_job_that_it_cannot_claim() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let worker = fixture.start(Fixture::config(), Registry::new(handler_log.clone()).with(act));
    fixture.put(&TestJob::WaitForCancel).await;
    handler_log.until(1).await;
    let of_unknown_kind = put_alone(&fixture, &LonelyJob, &Options::default()).await;
    admin::pause(&fixture.pool, PauseScope::Group, "paused", "").await.expect("pauses");
    let options = Options { group_key: Some("paused".to_owned()), ..Options::default() };
    let paused = put_alone(&fixture, &TestJob::Nothing, &options).await;
    until_informed(&fixture).await;
    let next = fixture.put(&TestJob::Nothing).await;
    fixture.until_state(next.job_id, "gone").await;
    for job in [of_unknown_kind, paused] {
        assert_eq!(fixture.state(job).await, "ready");
    }
    worker.shutdown.hard.cancel();
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_makes_room_only_until_another_worker_has_claimed_the_job() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let go_on = Arc::new(Notify::new());
    let of_both_kinds = Registry::new((handler_log.clone(), Arc::clone(&go_on)))
        .with::<TestJob, _, _>(|job, run, (handler_log, _)| act(job, run, handler_log))
        .with::<LonelyJob, _, _>(|job, run, (_, go_on)| run_lonely_job(job, run, go_on));
    let busy = fixture.start(Fixture::config(), of_both_kinds);
    fixture.put(&TestJob::WaitForCancel).await;
    handler_log.until(1).await;
    let lonely = put_alone(&fixture, &LonelyJob, &Options::default()).await;
    until_informed(&fixture).await;
    let next = fixture.put(&TestJob::Nothing).await;
    until_informed(&fixture).await;
    assert_eq!(fixture.state(next.job_id).await, "ready", "the busy worker makes room");
    let idle =
        fixture.start(Fixture::config(), Registry::new(Arc::clone(&go_on)).with(run_lonely_job));
    fixture.until_state(lonely, "running").await;
    fixture.until_state(next.job_id, "gone").await;
    assert_eq!(fixture.state(lonely).await, "running");
    go_on.notify_one();
    fixture.until_state(lonely, "gone").await;
    idle.stop().await;
    busy.shutdown.hard.cancel();
    busy.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_busy_workers_goes_on_with_other_jobs() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let go_on = Arc::new(Notify::new());
    let first = fixture.start(Fixture::config(), Registry::new(handler_log.clone()).with(act));
    fixture.put(&TestJob::WaitForCancel).await;
    handler_log.until(1).await;
    let of_both_kinds = Registry::new((handler_log.clone(), Arc::clone(&go_on)))
        .with::<TestJob, _, _>(|job, run, (handler_log, _)| act(job, run, handler_log))
        .with::<LonelyJob, _, _>(|job, run, (_, go_on)| run_lonely_job(job, run, go_on));
    let second = fixture.start(Fixture::config(), of_both_kinds);
    let busy = fixture.put(&LonelyJob).await;
    fixture.until_state(busy.job_id, "running").await;
    // Long enough for the first worker, and half a minute too short for the next one.
    let options = Options::default();
    let alone = put_alone_since(&fixture, &TestJob::Nothing, &options, "40 seconds").await;
    until_informed(&fixture).await;
    let next = fixture.put(&TestJob::Nothing).await;
    fixture.until_state(next.job_id, "gone").await;
    assert_eq!(fixture.state(alone).await, "ready");
    go_on.notify_one();
    first.shutdown.hard.cancel();
    second.shutdown.hard.cancel();
    first.stop().await;
    second.stop().await;
}
