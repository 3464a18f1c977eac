//! The text of `job explain` for real rows.

use dalsegno::queue::{Registry, admin};

use super::{
    ends::{TestJob, act},
    fixture::{Fixture, HandlerLog},
};

#[tokio::test(flavor = "multi_thread")]
async fn every_state_is_explained() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let running = fixture.put_in(&TestJob::WaitForCancel, "lane").await.job_id;
    let blocked = fixture.put_in(&TestJob::Nothing, "lane").await.job_id;
    let ready = fixture.put(&TestJob::Nothing).await.job_id;
    let told = admin::explain(&fixture.pool, ready).await.expect("explains");
    assert_eq!(told.because, "It could run now, but no live worker serves the queue `default`.");

    let worker = fixture.start(Fixture::config(), Registry::new(handler_log.clone()).with(act));
    fixture.until_state(ready, "gone").await;
    handler_log.until(2).await;
    let dead = fixture.put(&TestJob::GiveUp).await.job_id;
    fixture.until_state(dead, "dead").await;
    let held = fixture.put_in(&TestJob::Nothing, "held").await.job_id;
    // Either the hold or the worker is first; the other one gets an error.
    let _ = admin::hold_job(&fixture.pool, held, "legal").await;

    let because =
        async |job_id| admin::explain(&fixture.pool, job_id).await.expect("explains").because;
    assert!(
        because(running).await.starts_with("Attempt 1 of 3 started "),
        "{}",
        because(running).await
    );
    let blocked = because(blocked).await;
    let head = format!("It waits for job {running} (`do`) in the lane `lane`, which started ");
    assert!(blocked.starts_with(&head), "{blocked}");
    assert!(blocked.ends_with(". It is next in line."), "{blocked}");
    assert_eq!(because(ready).await, "It ended just now as done.");
    assert_eq!(
        because(dead).await,
        "It became a dead letter just now: its handler reported a permanent failure: it makes no sense."
    );
    assert!(because(10_000).await.starts_with("There is no job 10000"));
    worker.shutdown.hard.cancel();
    worker.stop().await;
}
