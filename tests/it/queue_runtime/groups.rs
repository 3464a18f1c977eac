//! Groups: claims look at 32 of them, and reach all.

use dalsegno::queue::{Options, Registry, enqueue};

use super::{
    ends::{TestJob, act},
    fixture::{Fixture, HandlerLog},
};

/// The worker is not woken between the claims of a round: it polls once an hour.
#[tokio::test(flavor = "multi_thread")]
async fn groups_with_jobs_of_unknown_kinds_hide_no_group_behind_them() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let strange = "SELECT count(dalsegno.enqueue('strange', group_key => 'group-' || n)) FROM generate_series(100, 199) AS n";
    let n_strange: i64 = sqlx::query_scalar(strange).fetch_one(&fixture.pool).await.unwrap();
    let put = async |group: &str| {
        let options = Options { group_key: Some(group.to_owned()), ..Options::default() };
        enqueue(&fixture.pool, &TestJob::Nothing, &options).await.unwrap().job_id
    };
    let last = put("z").await;
    let worker =
        fixture.start(Fixture::notification_config(), Registry::new(handler_log).with(act));
    fixture.until_state(last, "gone").await;
    for group in ["group-150", "group-050", "group-199"] {
        fixture.until_state(put(group).await, "gone").await;
    }
    let left = "SELECT count(*) FROM dalsegno.jobs WHERE kind = 'strange' AND state = 'ready'";
    let n_left: i64 = sqlx::query_scalar(left).fetch_one(&fixture.pool).await.unwrap();
    assert_eq!((n_strange, n_left), (100, 100));
    worker.stop().await;
}
