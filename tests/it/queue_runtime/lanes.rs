//! Lanes: one job at a time, in order.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use dalsegno::queue::{End, HandlerResult, Job, Options, Registry, Run, admin, enqueue_many};
use serde::{Deserialize, Serialize};

use super::{
    ends::{TestJob, act},
    fixture::{Fixture, HandlerLog, until},
};

const N_LANES: usize = 20;
const N_EACH: usize = 25;

#[derive(Debug, Serialize, Deserialize)]
struct Step {
    lane: usize,
    n: usize,
}

impl Job for Step {
    const KIND: &'static str = "step";
}

#[derive(Clone, Default)]
struct LaneWatch {
    handler_log: HandlerLog,
    inside: Arc<[AtomicUsize; N_LANES]>,
}

async fn step(job: Step, _run: Run, watch: LaneWatch) -> HandlerResult {
    let n_inside = watch.inside[job.lane].fetch_add(1, Ordering::SeqCst) + 1;
    assert_eq!(n_inside, 1, "two runs of lane {} at once", job.lane);
    tokio::task::yield_now().await;
    watch.handler_log.note(format!("{} {}", job.lane, job.n));
    watch.inside[job.lane].fetch_sub(1, Ordering::SeqCst);
    Ok(End::Done)
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_keep_the_order_of_every_lane() {
    let (fixture, watch) = (Fixture::new().await, LaneWatch::default());
    let jobs =
        (0..N_EACH).flat_map(|n| (0..N_LANES).map(move |lane| Step { lane, n })).map(|job| {
            let lane = Some(format!("lane-{}", job.lane));
            (job, Options { lane, ..Options::default() })
        });
    enqueue_many(&fixture.pool, jobs).await.expect("enqueues");
    let config = dalsegno::queue::Config { slots: 50, ..Fixture::config() };
    let workers = [
        fixture.start(config.clone(), Registry::new(watch.clone()).with(step)),
        fixture.start(config, Registry::new(watch.clone()).with(step)),
    ];
    let lines = watch.handler_log.until(N_LANES * N_EACH).await;
    assert_eq!(lines.len(), N_LANES * N_EACH, "a job ran twice");
    for lane in 0..N_LANES {
        let prefix = format!("{lane} ");
        let seen: Vec<usize> =
            lines.iter().filter_map(|line| line.strip_prefix(&prefix)?.parse().ok()).collect();
        assert_eq!(seen, (0..N_EACH).collect::<Vec<_>>(), "lane {lane}");
    }
    for worker in workers {
        worker.stop().await;
    }
    let n_left: i64 = sqlx::query_scalar("SELECT count(*) FROM dalsegno.jobs")
        .fetch_one(&fixture.pool)
        .await
        .expect("counts");
    assert_eq!(n_left, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_continues_after_each_kind_of_end() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    sqlx::query("CREATE TABLE effects (job_id bigint)")
        .execute(&fixture.pool)
        .await
        .expect("creates a table");
    let mut last = 0;
    for job in [
        TestJob::CommitOwn,
        TestJob::FailTwice,
        TestJob::GiveUp,
        TestJob::Panic,
        TestJob::SnoozeOnce,
        TestJob::Nothing,
    ] {
        last = fixture.put_in(&job, "lane").await.job_id;
    }
    let worker = fixture.start(Fixture::config(), Registry::new(handler_log.clone()).with(act));
    fixture.until_state(last, "gone").await;
    let order: Vec<String> =
        handler_log.lines().into_iter().map(|line| line[..line.len() - 2].to_owned()).collect();
    assert_eq!(
        order,
        [
            "CommitOwn",
            "FailTwice",
            "FailTwice",
            "FailTwice",
            "GiveUp",
            "Panic",
            "Panic",
            "Panic",
            "SnoozeOnce",
            "Nothing"
        ]
    );
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_lane_waits_for_its_release() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let first = fixture.put_in(&TestJob::Nothing, "lane").await;
    admin::hold_lane(&fixture.pool, "lane", "the customer asked for a pause").await.expect("holds");
    let worker = fixture.start(Fixture::config(), Registry::new(handler_log.clone()).with(act));
    let elsewhere = fixture.put(&TestJob::Nothing).await;
    fixture.until_state(elsewhere.job_id, "gone").await;
    assert_eq!(fixture.state(first.job_id).await, "blocked");
    admin::release_lane(&fixture.pool, "lane").await.expect("releases");
    fixture.until_state(first.job_id, "gone").await;
    until("no job to be left", async || {
        sqlx::query_scalar("SELECT NOT EXISTS (SELECT FROM dalsegno.job_counts WHERE jobs <> 0)")
            .fetch_one(&fixture.pool)
            .await
            .expect("counts")
    })
    .await;
    worker.stop().await;
}
