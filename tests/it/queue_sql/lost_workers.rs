//! Jobs of workers that ended long ago are taken back like those of recently lost workers.

use sqlx::{PgConnection, Row as _};
use uuid::Uuid;

use super::statements::{DELETE_OLD_WORKERS, RESCUE, WORKER_STOP, claim, register, worker_session};
use crate::app::TestDatabase;

const WEEK_SECS: f64 = 7.0 * 86_400.0;

/// Registers a worker that runs one job and ended `days` days ago.
async fn register_lost_worker(conn: &mut PgConnection, days: i32) -> (Uuid, i64) {
    sqlx::query("select dalsegno.enqueue('k')").execute(&mut *conn).await.unwrap();
    let worker = register(conn, &["k"]).await;
    let claimed = claim(conn, worker, &["k"]).await;
    assert_eq!(claimed.len(), 1);
    sqlx::query(WORKER_STOP).bind(worker).execute(&mut *conn).await.unwrap();
    sqlx::query(
        "update dalsegno.workers set gone_at = now() - make_interval(days => $2) where id = $1",
    )
    .bind(worker)
    .bind(days)
    .execute(conn)
    .await
    .unwrap();
    (worker, claimed[0].0)
}

/// Returns the jobs that a worker takes back.
async fn rescue(conn: &mut PgConnection) -> Vec<i64> {
    let me = register(conn, &["k"]).await;
    let rescue = sqlx::query(RESCUE).bind(me).bind(0.0_f64).bind(1.0_f64).bind(100_i32);
    let rows = rescue.fetch_all(conn).await.unwrap();
    rows.iter().map(|row| row.get("id!")).collect()
}

async fn cleanup(conn: &mut PgConnection) -> i64 {
    sqlx::query_scalar(DELETE_OLD_WORKERS).bind(WEEK_SECS).fetch_one(conn).await.unwrap()
}

#[tokio::test]
async fn a_lost_workers_job_is_taken_back_after_any_time() {
    let database = TestDatabase::migrated().await;
    let mut conn = worker_session(&database).await;
    for days in [0, 2, 30] {
        let (_, job) = register_lost_worker(&mut conn, days).await;
        assert_eq!(rescue(&mut conn).await, [job], "gone for {days} days");
        sqlx::query("delete from dalsegno.jobs").execute(&mut conn).await.unwrap();
    }
}

#[tokio::test]
async fn a_worker_is_forgotten_only_after_its_jobs_are_taken_back() {
    let database = TestDatabase::migrated().await;
    let mut conn = worker_session(&database).await;
    let (_, job) = register_lost_worker(&mut conn, 30).await;
    assert_eq!(cleanup(&mut conn).await, 0, "the worker runs a job");
    assert_eq!(rescue(&mut conn).await, [job]);
    assert_eq!(cleanup(&mut conn).await, 1);
}

#[tokio::test]
async fn a_job_of_an_unknown_worker_is_taken_back() {
    let database = TestDatabase::migrated().await;
    let mut conn = worker_session(&database).await;
    let (worker, job) = register_lost_worker(&mut conn, 30).await;
    let forget = sqlx::query("delete from dalsegno.workers where id = $1").bind(worker);
    forget.execute(&mut conn).await.unwrap();
    assert_eq!(rescue(&mut conn).await, [0_i64; 0], "its worker is unknown");
    cleanup(&mut conn).await;
    assert_eq!(rescue(&mut conn).await, [job]);
}
