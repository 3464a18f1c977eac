//! Views and actions of people.

use dalsegno::queue::{
    Error, Options, Registry,
    admin::{self, CancelOutcome, JobFilter, PauseScope},
    enqueue,
};

use super::{
    ends::{TestJob, act},
    fixture::{Fixture, HandlerLog},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_queue_claims_nothing_until_it_is_resumed() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    admin::pause(&fixture.pool, PauseScope::Queue, "default", "deploy").await.expect("pauses");
    let job = fixture.put(&TestJob::Nothing).await;
    let worker = fixture.start(Fixture::config(), Registry::new(handler_log.clone()).with(act));
    super::fixture::until("the worker to find no job", async || {
        sqlx::query_scalar("SELECT count(*) = 1 FROM dalsegno.workers WHERE waiting")
            .fetch_one(&fixture.pool)
            .await
            .expect("looks")
    })
    .await;
    assert_eq!(fixture.state(job.job_id).await, "ready");
    let told = admin::explain(&fixture.pool, job.job_id).await.expect("explains");
    assert_eq!(told.because, "It could run now, but the queue `default` is paused: deploy.");
    let queues = admin::list_queues(&fixture.pool).await.expect("lists");
    assert_eq!((queues[0].ready, queues[0].pause_reason.as_deref()), (1, Some("deploy")));
    assert!(admin::resume(&fixture.pool, PauseScope::Queue, "default").await.expect("resumes"));
    fixture.until_state(job.job_id, "gone").await;
    worker.stop().await;
}

#[tokio::test]
async fn a_lane_lists_its_first_hundred_jobs_and_says_if_there_are_more() {
    let fixture = Fixture::new().await;
    for _ in 0..100 {
        fixture.put_in(&TestJob::Nothing, "lane").await;
    }
    let mut conn = fixture.pool.acquire().await.expect("connects");
    let lane = admin::find_lane(&mut conn, "lane").await.expect("exists");
    assert_eq!((lane.members.len(), lane.is_cut), (100, false));
    fixture.put_in(&TestJob::Nothing, "lane").await;
    let lane = admin::find_lane(&mut conn, "lane").await.expect("exists");
    assert_eq!((lane.members.len(), lane.is_cut), (100, true));
}

#[tokio::test]
async fn lanes_with_jobs_and_held_lanes_are_listed_page_by_page() {
    let fixture = Fixture::new().await;
    let mut stuck = 0;
    for lane in ["ready", "held", "empty", "stuck"] {
        stuck = fixture.put_in(&TestJob::Nothing, lane).await.job_id;
    }
    fixture.put_in(&TestJob::Nothing, "stuck").await;
    // Its promotion was forgotten.
    for sql in [
        format!("DELETE FROM dalsegno.jobs WHERE id = {stuck}"),
        "DELETE FROM dalsegno.jobs AS j USING dalsegno.lanes AS l WHERE l.id = j.lane_id AND l.key = 'empty'".to_owned(),
        "SELECT dalsegno.enqueue('k', lane => 'later', run_at => now() + interval '1 hour')".to_owned(),
        "SELECT dalsegno.set_lane_policy('unused', 'hold')".to_owned(),
    ] {
        sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&fixture.pool).await.expect("prepares a lane");
    }
    for lane in ["held", "unused"] {
        admin::hold_lane(&fixture.pool, lane, "a look").await.expect("holds");
    }
    let list = async |only_held: bool, after: &str, limit: i64| {
        let mut conn = fixture.pool.acquire().await.expect("connects");
        admin::list_lanes(&mut conn, only_held, after, limit).await
    };
    let names = async |only_held, after, limit| list(only_held, after, limit).await.expect("lists");
    assert_eq!(names(false, "", 9).await, ["ready", "held", "stuck", "unused"]);
    assert_eq!(names(false, "", 2).await, ["ready", "held"]);
    assert_eq!(names(false, "held", 2).await, ["stuck", "unused"]);
    assert_eq!(names(true, "", 9).await, ["held", "unused"]);
    assert_eq!(names(true, "held", 9).await, ["unused"]);
    assert!(names(false, "unused", 9).await.is_empty());
    let refused = list(false, "no-lane", 9).await.expect_err("it has no place in the list");
    assert!(refused.to_string().starts_with("there is no lane `no-lane`"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_found_shown_and_cancelled() {
    let fixture = Fixture::new().await;
    let job = fixture.put_in(&TestJob::Nothing, "lane").await;
    let behind = fixture.put_in(&TestJob::GiveUp, "lane").await;
    let filter = JobFilter { lane: Some("lane".into()), ..JobFilter::default() };
    let listed = admin::list_jobs(&fixture.pool, &filter).await.expect("lists");
    let states: Vec<(i64, &str)> = listed.iter().map(|job| (job.id, job.state.as_str())).collect();
    assert_eq!(states, [(job.job_id, "ready"), (behind.job_id, "blocked")]);

    let mut conn = fixture.pool.acquire().await.expect("connects");
    let detail = admin::find_job(&mut conn, behind.job_id).await.expect("exists");
    assert_eq!(detail.payload, "give_up");
    assert_eq!(admin::find_lane(&mut conn, "lane").await.expect("exists").members.len(), 2);
    drop(conn);

    assert_eq!(
        admin::cancel_job(&fixture.pool, job.job_id, "").await.expect("cancels"),
        CancelOutcome::AtOnce
    );
    assert_eq!(fixture.state(behind.job_id).await, "ready");
    assert_eq!(
        admin::cancel_job(&fixture.pool, job.job_id, "").await.expect("cancels"),
        CancelOutcome::AlreadyEnded
    );
    assert!(matches!(admin::cancel_job(&fixture.pool, 999, "").await, Err(Error::NotFound { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_refused_with_a_hint() {
    let fixture = Fixture::new().await;
    let too_long = Options { lane: Some("x".repeat(201)), ..Options::default() };
    match enqueue(&fixture.pool, &TestJob::Nothing, &too_long).await {
        Err(error @ Error::BadArgument { .. }) => {
            assert!(error.to_string().contains("the limit is 200"), "{error}")
        }
        other => panic!("{other:?}"),
    }
    let negative = Options { priority: Some(-1), ..Options::default() };
    assert!(matches!(
        enqueue(&fixture.pool, &TestJob::Nothing, &negative).await,
        Err(Error::BadArgument { .. })
    ));
    let keyed = Options { idempotency_key: Some("key".into()), ..Options::default() };
    let first = enqueue(&fixture.pool, &TestJob::Nothing, &keyed).await.expect("enqueues");
    let again = enqueue(&fixture.pool, &TestJob::Nothing, &keyed).await.expect("finds the first");
    assert_eq!((again.job_id, again.created), (first.job_id, false));
    assert!(matches!(
        enqueue(&fixture.pool, &TestJob::Panic, &keyed).await,
        Err(Error::Conflict { .. })
    ));
}
