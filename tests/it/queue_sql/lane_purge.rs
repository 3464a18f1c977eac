//! A lane that is deleted while a job is added to it.

use sqlx::{Connection as _, PgConnection};

use super::statements::{DELETE_OLD_LANES, worker_session};
use crate::app::{TestDatabase, until_blocked};

#[tokio::test]
async fn a_job_for_later_is_added_to_a_lane_that_is_purged_at_that_moment() {
    let database = TestDatabase::migrated().await;
    let mut purger = worker_session(&database).await;
    let mut caller = PgConnection::connect_with(&database.options).await.unwrap();
    let watcher = database.pool().await;
    let old = "insert into dalsegno.lanes (key, used_at) values ('lane', now() - interval '1 day')";
    sqlx::query(old).execute(&watcher).await.unwrap();

    // The purge locks its lanes before it deletes them.
    let mut purging = purger.begin().await.unwrap();
    let lock = "select id from dalsegno.lanes where key = 'lane' for update";
    let purged: i64 = sqlx::query_scalar(lock).fetch_one(&mut *purging).await.unwrap();
    let add = "select job_id from dalsegno.enqueue('k', lane => 'lane', run_at => now() + interval '1 day')";
    let add = sqlx::query_scalar::<_, i64>(add).fetch_one(&mut caller);
    let purge = async {
        until_blocked(&watcher).await;
        let delete = sqlx::query_scalar::<_, i64>(DELETE_OLD_LANES).bind(7200.0_f64).bind(10_i32);
        assert_eq!(delete.fetch_one(&mut *purging).await.unwrap(), 1);
        purging.commit().await.unwrap();
    };
    let (added, ()) = tokio::join!(add, purge);

    let lane = "select j.lane_id from dalsegno.jobs as j join dalsegno.lanes as l on l.id = j.lane_id where j.id = $1";
    let lane = sqlx::query_scalar::<_, i64>(lane).bind(added.unwrap()).fetch_one(&watcher);
    assert_ne!(lane.await.unwrap(), purged);
}
