//! Lanes: one job at a time, in order.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use dalsegno::queue::{End, HandlerResult, Job, Options, Registry, Run, admin, enqueue_many};
use serde::{Deserialize, Serialize};

use super::{
    ends::{Do, act},
    ground::{Diary, Ground, until},
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
struct Watch {
    diary: Diary,
    inside: Arc<[AtomicUsize; N_LANES]>,
}

async fn step(job: Step, _run: Run, watch: Watch) -> HandlerResult {
    let n_inside = watch.inside[job.lane].fetch_add(1, Ordering::SeqCst) + 1;
    assert_eq!(n_inside, 1, "two runs of lane {} at once", job.lane);
    tokio::task::yield_now().await;
    watch.diary.note(format!("{} {}", job.lane, job.n));
    watch.inside[job.lane].fetch_sub(1, Ordering::SeqCst);
    Ok(End::Done)
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_keep_the_order_of_every_lane() {
    let (ground, watch) = (Ground::new().await, Watch::default());
    let jobs =
        (0..N_EACH).flat_map(|n| (0..N_LANES).map(move |lane| Step { lane, n })).map(|job| {
            let lane = Some(format!("lane-{}", job.lane));
            (job, Options { lane, ..Options::default() })
        });
    enqueue_many(&ground.pool, jobs).await.expect("enqueues");
    let config = dalsegno::queue::Config { slots: 50, ..Ground::config() };
    let workers = [
        ground.start(config.clone(), Registry::new(watch.clone()).with(step)),
        ground.start(config, Registry::new(watch.clone()).with(step)),
    ];
    let lines = watch.diary.until(N_LANES * N_EACH).await;
    assert_eq!(lines.len(), N_LANES * N_EACH, "something ran twice");
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
        .fetch_one(&ground.pool)
        .await
        .expect("counts");
    assert_eq!(n_left, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_goes_on_after_each_kind_of_end() {
    let (ground, diary) = (Ground::new().await, Diary::default());
    sqlx::query("CREATE TABLE effects (job_id bigint)")
        .execute(&ground.pool)
        .await
        .expect("creates a table");
    let mut last = 0;
    for job in [Do::CommitOwn, Do::FailTwice, Do::GiveUp, Do::Panic, Do::SnoozeOnce, Do::Nothing] {
        last = ground.put_in(&job, "lane").await.job_id;
    }
    let worker = ground.start(Ground::config(), Registry::new(diary.clone()).with(act));
    ground.until_state(last, "gone").await;
    let order: Vec<String> =
        diary.lines().into_iter().map(|line| line[..line.len() - 2].to_owned()).collect();
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
    let (ground, diary) = (Ground::new().await, Diary::default());
    let first = ground.put_in(&Do::Nothing, "lane").await;
    admin::hold_lane(&ground.pool, "lane", "the customer asked for a pause").await.expect("holds");
    let worker = ground.start(Ground::config(), Registry::new(diary.clone()).with(act));
    let elsewhere = ground.put(&Do::Nothing).await;
    ground.until_state(elsewhere.job_id, "gone").await;
    assert_eq!(ground.state(first.job_id).await, "blocked");
    admin::release_lane(&ground.pool, "lane").await.expect("releases");
    ground.until_state(first.job_id, "gone").await;
    until("nothing to be left", async || {
        admin::count_jobs(&ground.pool).await.expect("counts").is_empty()
    })
    .await;
    worker.stop().await;
}
