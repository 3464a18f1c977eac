//! Jobs that may only run alone, as heartbeats report them.

use sqlx::{Connection as _, PgConnection, Row as _};
use uuid::Uuid;

use super::statements::{CLAIM_ALONE, WORKER_RENEW, register, worker_session};
use crate::app::TestDatabase;

/// Returns whether the worker's heartbeat reports a job, and whether the worker could claim it.
async fn look(conn: &mut PgConnection, worker: Uuid, kinds: &[&str]) -> (bool, bool) {
    let runs = [0_i64; 0];
    let renew =
        sqlx::query(WORKER_RENEW).bind(worker).bind(3600.0_f64).bind(&runs[..]).bind(&runs[..]);
    let renewed = renew.fetch_one(&mut *conn).await.unwrap();
    let is_reported = renewed.get::<Option<f64>, _>("alone_secs?").is_some();
    let mut tx = conn.begin().await.unwrap();
    let claim = sqlx::query(CLAIM_ALONE).bind(["default"].as_slice()).bind(worker).bind(kinds);
    let claimed = claim.fetch_all(&mut *tx).await.unwrap();
    tx.rollback().await.unwrap();
    (is_reported, !claimed.is_empty())
}

/// Workers make room for a reported job, and would do so in vain for others.
#[tokio::test]
async fn a_heartbeat_reports_only_jobs_that_its_worker_may_claim() {
    let database = TestDatabase::migrated().await;
    let mut conn = worker_session(&database).await;
    let enqueue = "select dalsegno.enqueue('k', group_key => 'g')";
    sqlx::query(enqueue).execute(&mut conn).await.unwrap();
    let worker = register(&mut conn, &["k"]).await;
    assert_eq!(look(&mut conn, worker, &["k"]).await, (false, false), "it has lost no worker");
    let lose_two_workers = "update dalsegno.jobs set crash_count = 2";
    sqlx::query(lose_two_workers).execute(&mut conn).await.unwrap();
    assert_eq!(look(&mut conn, worker, &["k"]).await, (true, true));
    let other = register(&mut conn, &["other"]).await;
    assert_eq!(look(&mut conn, other, &["other"]).await, (false, false), "another kind");
    for (scope, name) in [("queue", "default"), ("group", "g")] {
        let pause = sqlx::query("select dalsegno.pause($1, $2)").bind(scope).bind(name);
        pause.execute(&mut conn).await.unwrap();
        assert_eq!(look(&mut conn, worker, &["k"]).await, (false, false), "paused {scope}");
        let resume = sqlx::query("select dalsegno.resume($1, $2)").bind(scope).bind(name);
        resume.execute(&mut conn).await.unwrap();
    }
    assert_eq!(look(&mut conn, worker, &["k"]).await, (true, true), "after the pauses");
}

/// Workers that may claim the job make room for it in the order of their ids.
#[tokio::test]
async fn a_heartbeat_counts_the_workers_that_make_room_before_its_own() {
    let database = TestDatabase::migrated().await;
    let mut conn = worker_session(&database).await;
    sqlx::query("select dalsegno.enqueue('k')").execute(&mut conn).await.unwrap();
    let mut workers = Vec::new();
    for kind in ["k", "k", "k", "k", "other"] {
        workers.push(register(&mut conn, &[kind]).await);
    }
    let other = workers.pop().unwrap();
    let other_id =
        "update dalsegno.workers set id = '00000000-0000-0000-0000-000000000001' where id = $1";
    sqlx::query(other_id).bind(other).execute(&mut conn).await.unwrap();
    workers.sort();
    let n_ahead = async |conn: &mut PgConnection, worker: Uuid| {
        let runs = [0_i64; 0];
        let renew =
            sqlx::query(WORKER_RENEW).bind(worker).bind(3600.0_f64).bind(&runs[..]).bind(&runs[..]);
        renew.fetch_one(conn).await.unwrap().get::<i64, _>("n_ahead!")
    };
    let last = workers[3];
    assert_eq!(n_ahead(&mut conn, last).await, 0, "there is no such job");
    let lose_two_workers = "update dalsegno.jobs set crash_count = 2";
    sqlx::query(lose_two_workers).execute(&mut conn).await.unwrap();
    assert_eq!(n_ahead(&mut conn, workers[0]).await, 0);
    assert_eq!(n_ahead(&mut conn, last).await, 3);
    for (sql, worker, n) in [
        ("update dalsegno.workers set draining = true where id = $1", workers[0], 2),
        (
            "update dalsegno.workers set lease_until = now() - interval '1 s' where id = $1",
            workers[1],
            1,
        ),
    ] {
        sqlx::query(sql).bind(worker).execute(&mut conn).await.unwrap();
        assert_eq!(n_ahead(&mut conn, last).await, n, "{sql}");
    }
}
