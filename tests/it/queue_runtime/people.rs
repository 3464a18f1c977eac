//! Views and actions of people.

use dalsegno::queue::{
    Error, Options, Registry,
    admin::{self, CancelOutcome, JobFilter, PauseScope},
    enqueue,
};

use super::{
    ends::{Do, act},
    ground::{Diary, Ground},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_queue_claims_nothing_until_it_is_resumed() {
    let (ground, diary) = (Ground::new().await, Diary::default());
    admin::pause(&ground.pool, PauseScope::Queue, "default", "deploy").await.expect("pauses");
    let job = ground.put(&Do::Nothing).await;
    let worker = ground.start(Ground::config(), Registry::new(diary.clone()).with(act));
    super::ground::until("the worker to look in vain", async || {
        sqlx::query_scalar("SELECT count(*) = 1 FROM dalsegno.workers WHERE waiting")
            .fetch_one(&ground.pool)
            .await
            .expect("looks")
    })
    .await;
    assert_eq!(ground.state(job.job_id).await, "ready");
    let told = admin::explain(&ground.pool, job.job_id).await.expect("explains");
    assert_eq!(told.because, "It could run now, but the queue `default` is paused: deploy.");
    let queues = admin::list_queues(&ground.pool).await.expect("lists");
    assert_eq!((queues[0].ready, queues[0].pause_reason.as_deref()), (1, Some("deploy")));
    assert!(admin::resume(&ground.pool, PauseScope::Queue, "default").await.expect("resumes"));
    ground.until_state(job.job_id, "gone").await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_found_shown_and_cancelled() {
    let ground = Ground::new().await;
    let job = ground.put_in(&Do::Nothing, "lane").await;
    let behind = ground.put_in(&Do::GiveUp, "lane").await;
    let filter = JobFilter { lane: Some("lane".into()), ..JobFilter::default() };
    let listed = admin::list_jobs(&ground.pool, &filter).await.expect("lists");
    let states: Vec<(i64, &str)> = listed.iter().map(|job| (job.id, job.state.as_str())).collect();
    assert_eq!(states, [(job.job_id, "ready"), (behind.job_id, "blocked")]);

    let mut conn = ground.pool.acquire().await.expect("connects");
    let detail = admin::find_job(&mut conn, behind.job_id).await.expect("is there");
    assert_eq!(detail.payload, "give_up");
    assert_eq!(admin::find_lane(&mut conn, "lane").await.expect("is there").members.len(), 2);
    drop(conn);

    assert_eq!(
        admin::cancel_job(&ground.pool, job.job_id, "").await.expect("cancels"),
        CancelOutcome::AtOnce
    );
    assert_eq!(ground.state(behind.job_id).await, "ready");
    assert_eq!(
        admin::cancel_job(&ground.pool, job.job_id, "").await.expect("cancels"),
        CancelOutcome::AlreadyEnded
    );
    assert!(matches!(admin::cancel_job(&ground.pool, 999, "").await, Err(Error::NotFound { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_refused_with_a_hint() {
    let ground = Ground::new().await;
    let too_long = Options { lane: Some("x".repeat(201)), ..Options::default() };
    match enqueue(&ground.pool, &Do::Nothing, &too_long).await {
        Err(error @ Error::BadArgument { .. }) => {
            assert!(error.to_string().contains("the limit is 200"), "{error}")
        }
        other => panic!("{other:?}"),
    }
    let negative = Options { priority: Some(-1), ..Options::default() };
    assert!(matches!(
        enqueue(&ground.pool, &Do::Nothing, &negative).await,
        Err(Error::BadArgument { .. })
    ));
    let keyed = Options { idempotency_key: Some("key".into()), ..Options::default() };
    let first = enqueue(&ground.pool, &Do::Nothing, &keyed).await.expect("enqueues");
    let again = enqueue(&ground.pool, &Do::Nothing, &keyed).await.expect("finds the first");
    assert_eq!((again.job_id, again.created), (first.job_id, false));
    assert!(matches!(enqueue(&ground.pool, &Do::Panic, &keyed).await, Err(Error::Conflict { .. })));
}
