//! A job that is cancelled while a worker claims it.

use sqlx::{Connection as _, PgConnection};

use super::statements::{claim, register, worker_session};
use crate::app::{TestDatabase, until_blocked};

#[tokio::test]
async fn a_cancellation_that_waited_for_a_claim_keeps_no_lock_on_the_job() {
    let database = TestDatabase::migrated().await;
    let mut worker = worker_session(&database).await;
    let me = register(&mut worker, &["k"]).await;
    let enqueue = sqlx::query_scalar("select job_id from dalsegno.enqueue('k')");
    let job_id: i64 = enqueue.fetch_one(&mut worker).await.unwrap();
    let mut canceller = PgConnection::connect_with(&database.options).await.unwrap();
    let watcher = database.pool().await;

    let mut claiming = worker.begin().await.unwrap();
    assert_eq!(claim(&mut claiming, me, &["k"]).await.len(), 1);
    let mut cancelling = canceller.begin().await.unwrap();
    let cancel = sqlx::query_scalar::<_, String>("select dalsegno.cancel($1, 'not wanted')");
    let cancel = cancel.bind(job_id).fetch_one(&mut *cancelling);
    let commit = async {
        until_blocked(&watcher).await;
        claiming.commit().await.unwrap();
    };
    let (said, ()) = tokio::join!(cancel, commit);
    assert_eq!(said.unwrap(), "requested");

    // What the worker does at the end, before the cancellation has committed.
    let lock = "select id from dalsegno.jobs where id = $1 for update nowait";
    let locked = sqlx::query_scalar::<_, i64>(lock).bind(job_id).fetch_one(&mut worker).await;
    assert_eq!(locked.unwrap(), job_id);
    cancelling.commit().await.unwrap();
}
