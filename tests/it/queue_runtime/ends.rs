//! Ends of runs.

use std::time::{Duration, Instant};

use dalsegno::queue::{
    Backoff, End, HandlerResult, Job, JobError, LaneFailure, Options, Policy, Registry, Run, Stop,
    Until, admin, enqueue,
};
use serde::{Deserialize, Serialize};

use super::{
    faults::until_listening,
    ground::{Diary, Ground},
};

/// A job that ends as it says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Do {
    Nothing,
    FailTwice,
    FailAlways,
    SnoozeOnce,
    GiveUp,
    Panic,
    WaitForCancel,
    IgnoreCancel,
    TakeTooLong,
    CommitOwn,
    CommitStale,
}

impl Job for Do {
    const KIND: &'static str = "do";

    fn policy() -> Policy {
        Policy {
            max_attempts: 3,
            backoff: Backoff { first: Duration::from_millis(50), cap: Duration::from_millis(200) },
            deadline: Some(Duration::from_secs(120)),
            lane_failure: LaneFailure::Continue,
            ..Policy::default()
        }
    }
}

pub async fn act(job: Do, run: Run, diary: Diary) -> HandlerResult {
    diary.note(format!("{job:?} {}", run.attempt()));
    match job {
        Do::Nothing => Ok(End::Done),
        Do::FailTwice if run.attempt() < 3 => Err(JobError::retry("not yet")),
        Do::FailTwice => Ok(End::Done),
        Do::FailAlways => Err(JobError::retry("never")),
        Do::SnoozeOnce if diary.lines().len() > 1 => Ok(End::Done),
        Do::SnoozeOnce => Ok(End::Snooze {
            until: Until::After(Duration::from_millis(100)),
            reason: "rate limit".into(),
        }),
        Do::GiveUp => Err(JobError::fail("it makes no sense")),
        Do::Panic => panic!("out of cheese"),
        Do::WaitForCancel => {
            run.cancel().cancelled().await;
            diary.note(format!("stopped {:?}", run.stop_reason()));
            Err(JobError::retry("interrupted"))
        }
        Do::IgnoreCancel | Do::TakeTooLong => std::future::pending().await,
        Do::CommitOwn | Do::CommitStale => {
            let mut tx = run.pool().begin().await.map_err(JobError::retry)?;
            sqlx::query("INSERT INTO effects VALUES ($1)")
                .bind(run.job_id())
                .execute(&mut *tx)
                .await
                .map_err(JobError::retry)?;
            if matches!(job, Do::CommitStale) {
                // The effect of a rescue on the row: another lease.
                sqlx::query(
                    "UPDATE dalsegno.jobs SET lease = nextval('dalsegno.leases') WHERE id = $1",
                )
                .bind(run.job_id())
                .execute(run.pool())
                .await
                .map_err(JobError::retry)?;
            }
            Ok(run.commit(tx).await?)
        }
    }
}

fn registry(diary: &Diary) -> Registry<Diary> {
    Registry::new(diary.clone()).with(act)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_runs_and_is_gone() {
    let (ground, diary) = (Ground::new().await, Diary::default());
    let worker = ground.start(Ground::config(), registry(&diary));
    let job = ground.put(&Do::Nothing).await;
    ground.until_state(job.job_id, "gone").await;
    assert_eq!(diary.lines(), ["Nothing 1"]);
    assert_eq!(ground.outcomes(job.job_id).await, ["done"]);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_tried_again_after_a_backoff() {
    let (ground, diary) = (Ground::new().await, Diary::default());
    let worker = ground.start(Ground::config(), registry(&diary));
    let began = Instant::now();
    let job = ground.put(&Do::FailTwice).await;
    ground.until_state(job.job_id, "gone").await;
    assert_eq!(diary.lines(), ["FailTwice 1", "FailTwice 2", "FailTwice 3"]);
    assert_eq!(ground.outcomes(job.job_id).await, ["retry", "retry", "done"]);
    assert!(
        began.elapsed() >= Duration::from_millis(37 + 75),
        "the backoff was not kept: {:?}",
        began.elapsed()
    );
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_always_fails_is_dead_after_its_attempts() {
    let (ground, diary) = (Ground::new().await, Diary::default());
    let worker = ground.start(Ground::config(), registry(&diary));
    let job = ground.put(&Do::FailAlways).await;
    ground.until_state(job.job_id, "dead").await;
    assert_eq!(ground.outcomes(job.job_id).await, ["retry", "retry", "failed"]);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snooze_burns_no_attempt() {
    let (ground, diary) = (Ground::new().await, Diary::default());
    let worker = ground.start(Ground::config(), registry(&diary));
    let job = ground.put(&Do::SnoozeOnce).await;
    ground.until_state(job.job_id, "gone").await;
    assert_eq!(diary.lines(), ["SnoozeOnce 1", "SnoozeOnce 1"]);
    assert_eq!(ground.outcomes(job.job_id).await, ["snooze", "done"]);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn giving_up_is_final_and_a_person_can_undo_it() {
    let (ground, diary) = (Ground::new().await, Diary::default());
    let worker = ground.start(Ground::config(), registry(&diary));
    let job = ground.put(&Do::GiveUp).await;
    ground.until_state(job.job_id, "dead").await;
    assert_eq!(diary.lines(), ["GiveUp 1"]);
    admin::retry_job(&ground.pool, job.job_id).await.expect("redrives");
    diary.until(2).await;
    ground.until_state(job.job_id, "dead").await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_payload_is_one_dead_job_and_nothing_else() {
    let (ground, diary) = (Ground::new().await, Diary::default());
    let bad: i64 =
        sqlx::query_scalar("SELECT job_id FROM dalsegno.enqueue('do', '{\"unheard\": [1]}')")
            .fetch_one(&ground.pool)
            .await
            .expect("enqueues");
    let worker = ground.start(Ground::config(), registry(&diary));
    ground.until_state(bad, "dead").await;
    let (reason, error): (String, String) =
        sqlx::query_as("SELECT reason::text, error FROM dalsegno.dead_jobs WHERE id = $1")
            .bind(bad)
            .fetch_one(&ground.pool)
            .await
            .expect("is a dead letter");
    assert_eq!(reason, "bad_payload");
    assert!(error.contains("the payload is not valid for a `do` job"), "{error}");
    let good = ground.put(&Do::Nothing).await;
    ground.until_state(good.job_id, "gone").await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_a_failed_attempt() {
    let (ground, diary) = (Ground::new().await, Diary::default());
    let worker = ground.start(Ground::config(), registry(&diary));
    let job = ground.put(&Do::Panic).await;
    ground.until_state(job.job_id, "dead").await;
    let error: String = sqlx::query_scalar("SELECT error FROM dalsegno.dead_jobs WHERE id = $1")
        .bind(job.job_id)
        .fetch_one(&ground.pool)
        .await
        .expect("is a dead letter");
    assert_eq!(error, "the handler panicked: out of cheese");
    assert_eq!(diary.lines().len(), 3);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancellation_reaches_the_handler_before_the_next_heartbeat() {
    for listen in [true, false] {
        let (ground, diary) = (Ground::new().await, Diary::default());
        let config = dalsegno::queue::Config { listen, ..Ground::deaf_to_time() };
        let worker = ground.start(config, registry(&diary));
        // A job can be claimed before the listener listens.
        if listen {
            until_listening(&ground, None).await;
        }
        let job = ground.put(&Do::WaitForCancel).await;
        diary.until(1).await;
        let found =
            admin::cancel_job(&ground.pool, job.job_id, "changed my mind").await.expect("cancels");
        assert_eq!(found, admin::Cancelled::Requested);
        diary.until(2).await;
        ground.until_state(job.job_id, "gone").await;
        assert_eq!(diary.lines()[1], format!("stopped {:?}", Some(Stop::Cancelled)));
        assert_eq!(ground.outcomes(job.job_id).await, ["cancelled"]);
        worker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_ignores_its_cancellation_is_dropped_after_the_grace() {
    let (ground, diary) = (Ground::new().await, Diary::default());
    let config = dalsegno::queue::Config { cancel_grace_secs: 1, ..Ground::config() };
    let worker = ground.start(config, registry(&diary));
    let job = ground.put(&Do::IgnoreCancel).await;
    diary.until(1).await;
    admin::cancel_job(&ground.pool, job.job_id, "").await.expect("cancels");
    ground.until_state(job.job_id, "gone").await;
    assert_eq!(ground.outcomes(job.job_id).await, ["cancelled"]);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_ends_the_attempt() {
    let (ground, diary) = (Ground::new().await, Diary::default());
    let config = dalsegno::queue::Config { cancel_grace_secs: 0, ..Ground::config() };
    let worker = ground.start(config, registry(&diary));
    let options = Options { timeout_secs: Some(1), ..Options::default() };
    let job = enqueue(&ground.pool, &Do::TakeTooLong, &options).await.expect("enqueues");
    diary.until(2).await;
    let runs = admin::find_job(&mut ground.pool.acquire().await.expect("connects"), job.job_id)
        .await
        .expect("is there")
        .runs;
    assert_eq!(runs[0].outcome, "retry");
    assert_eq!(runs[0].error.as_deref(), Some("the attempt exceeded its deadline of 1 s"));
    worker.shutdown.hard.cancel();
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_commits_its_end_with_its_writes() {
    let (ground, diary) = (Ground::new().await, Diary::default());
    sqlx::query("CREATE TABLE effects (job_id bigint)")
        .execute(&ground.pool)
        .await
        .expect("creates a table");
    let worker = ground.start(Ground::config(), registry(&diary));
    let job = ground.put(&Do::CommitOwn).await;
    ground.until_state(job.job_id, "gone").await;
    let effects: Vec<i64> = sqlx::query_scalar("SELECT job_id FROM effects")
        .fetch_all(&ground.pool)
        .await
        .expect("reads");
    assert_eq!(effects, [job.job_id]);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_without_its_lease_commits_nothing() {
    let (ground, diary) = (Ground::new().await, Diary::default());
    sqlx::query("CREATE TABLE effects (job_id bigint)")
        .execute(&ground.pool)
        .await
        .expect("creates a table");
    let worker = ground.start(Ground::config(), registry(&diary));
    let job = ground.put(&Do::CommitStale).await;
    diary.until(1).await;
    let next = ground.put(&Do::Nothing).await;
    ground.until_state(next.job_id, "gone").await;
    let n_effects: i64 = sqlx::query_scalar("SELECT count(*) FROM effects")
        .fetch_one(&ground.pool)
        .await
        .expect("reads");
    assert_eq!(n_effects, 0);
    assert_eq!(ground.state(job.job_id).await, "running", "the new holder's row is untouched");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_gives_back_what_does_not_finish_and_burns_nothing() {
    let (ground, diary) = (Ground::new().await, Diary::default());
    let config = dalsegno::queue::Config { drain_timeout_secs: 1, ..Ground::config() };
    let worker = ground.start(config, registry(&diary));
    let free = ground.put(&Do::WaitForCancel).await;
    let laned = ground.put_in(&Do::WaitForCancel, "lane").await;
    diary.until(2).await;
    worker.stop().await;
    assert_eq!(diary.lines()[2], format!("stopped {:?}", Some(Stop::Drain)));
    for job in [free, laned] {
        assert_eq!(ground.state(job.job_id).await, "ready");
        assert_eq!(ground.outcomes(job.job_id).await, ["given_back"]);
        let attempt: i16 = sqlx::query_scalar("SELECT attempt FROM dalsegno.jobs WHERE id = $1")
            .bind(job.job_id)
            .fetch_one(&ground.pool)
            .await
            .expect("is there");
        assert_eq!(attempt, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_without_a_handler_is_left_alone() {
    let (ground, diary) = (Ground::new().await, Diary::default());
    let strange: i64 = sqlx::query_scalar("SELECT job_id FROM dalsegno.enqueue('strange')")
        .fetch_one(&ground.pool)
        .await
        .expect("enqueues");
    let worker = ground.start(Ground::config(), registry(&diary));
    let known = ground.put(&Do::Nothing).await;
    ground.until_state(known.job_id, "gone").await;
    assert_eq!(ground.state(strange).await, "ready");
    assert!(ground.outcomes(strange).await.is_empty());
    let told = admin::explain(&ground.pool, strange).await.expect("explains");
    assert!(told.because.contains("has a handler for the kind `strange`"), "{}", told.because);
    worker.stop().await;
}
