//! Idempotency keys: one key is one job, for any number of concurrent callers.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use sqlx::{Connection as _, PgConnection};
use tokio::{sync::Barrier, task::JoinSet};

use super::{
    refusal::{Refusal, refused},
    statements::{END_DONE, claim, register, worker_session},
};
use crate::app::{TestDatabase, until_blocked};

const N_CALLS: usize = 10_000;
const N_CONNECTIONS: usize = 64;
const CALL: &str = "SELECT job_id, created, state FROM dalsegno.enqueue('mail', '{\"to\": 1}', lane => 'chat', idempotency_key => 'k')";

async fn call(conn: &mut PgConnection) -> (i64, bool, String) {
    sqlx::query_as(CALL).fetch_one(conn).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_calls_with_one_key_make_one_job() {
    let database = TestDatabase::migrated().await;
    let left = Arc::new(AtomicUsize::new(N_CALLS));
    // The calls begin when all connections are open, so that they meet in the database.
    let all_there = Arc::new(Barrier::new(N_CONNECTIONS));
    let mut callers = JoinSet::new();
    for _ in 0..N_CONNECTIONS {
        let (options, left, all_there) =
            (database.options.clone(), left.clone(), all_there.clone());
        callers.spawn(async move {
            let mut conn = PgConnection::connect_with(&options).await.unwrap();
            all_there.wait().await;
            let mut answers = Vec::new();
            while left.try_update(Relaxed, Relaxed, |n| n.checked_sub(1)).is_ok() {
                answers.push(call(&mut conn).await);
            }
            conn.close().await.unwrap();
            answers
        });
    }
    let answers = callers.join_all().await.concat();
    assert_eq!(answers.len(), N_CALLS);
    let ids: BTreeSet<i64> = answers.iter().map(|answer| answer.0).collect();
    let n_created = answers.iter().filter(|answer| answer.1).count();
    assert!(answers.iter().all(|answer| answer.2 == "ready"));
    assert_eq!((ids.len(), n_created), (1, 1));
    let pool = database.pool().await;
    let counts: (i64, i64, i64, i64) = sqlx::query_as(
        "SELECT (SELECT count(*) FROM dalsegno.jobs), (SELECT count(*) FROM dalsegno.job_payloads),
                (SELECT count(*) FROM dalsegno.idempotency_keys), (SELECT sum(jobs)::bigint FROM dalsegno.job_counts)",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    assert_eq!(counts, (1, 1, 1, 1));
    pool.close().await;
}

#[tokio::test]
async fn a_rolled_back_key_is_available() {
    let database = TestDatabase::migrated().await;
    let pool = database.pool().await;
    let mut open = pool.begin().await.unwrap();
    let (first, ..) = call(&mut open).await;
    let waiting = tokio::spawn({
        let pool = pool.clone();
        async move { call(&mut pool.acquire().await.unwrap()).await }
    });
    until_blocked(&pool).await;
    open.rollback().await.unwrap();
    let (second, created, _) = waiting.await.unwrap();
    assert!(created);
    assert_ne!(first, second);
    pool.close().await;
}

#[tokio::test]
async fn another_job_under_the_same_key_is_a_conflict() {
    let database = TestDatabase::migrated().await;
    let mut conn = worker_session(&database).await;
    let (id, ..) = call(&mut conn).await;
    let conflict = Refusal::new(
        "DS409",
        &format!(
            "idempotency key \"k\" already stands for job {id} with another kind, lane or payload"
        ),
        "Use a new key for a new job; repeat the same call to get the same job.",
    );
    for other in [
        "SELECT dalsegno.enqueue('mail', '{\"to\": 2}', lane => 'chat', idempotency_key => 'k')",
        "SELECT dalsegno.enqueue('mail', '{\"to\": 1}', lane => 'other', idempotency_key => 'k')",
        "SELECT dalsegno.enqueue('mail', '{\"to\": 1}', idempotency_key => 'k')",
        "SELECT dalsegno.enqueue('post', '{\"to\": 1}', lane => 'chat', idempotency_key => 'k')",
        r#"SELECT * FROM dalsegno.enqueue_many('[{"kind": "mail", "payload": {"to": 2}, "lane": "chat", "idempotency_key": "k"}]')"#,
    ] {
        assert_eq!(refused(&mut conn, other).await, conflict, "{other}");
    }
    // The order of the payload's keys, and options about time and place, are not part of the comparison.
    let same = r#"SELECT job_id, created, state FROM dalsegno.enqueue('mail', '{"to": 1}', lane => 'chat',
                  priority => 5, run_at => now() + interval '1 hour', idempotency_key => 'k')"#;
    let found: (i64, bool, String) = sqlx::query_as(same).fetch_one(&mut conn).await.unwrap();
    assert_eq!(found, (id, false, "ready".to_owned()));
}

#[tokio::test]
async fn repeated_keys_within_one_bulk_call_return_the_same_job() {
    let database = TestDatabase::migrated().await;
    let mut conn = worker_session(&database).await;
    let (id, ..) = call(&mut conn).await;
    let jobs = r#"[{"kind": "mail", "payload": {"to": 1}, "lane": "chat", "idempotency_key": "k"},
                   {"kind": "a", "idempotency_key": "new"}, {"kind": "a", "idempotency_key": "new"}]"#;
    let rows: Vec<(i64, bool, String)> = sqlx::query_as(
        "SELECT job_id, created, state FROM dalsegno.enqueue_many($1::jsonb) ORDER BY ord",
    )
    .bind(jobs)
    .fetch_all(&mut conn)
    .await
    .unwrap();
    assert_eq!(rows[0], (id, false, "ready".to_owned()));
    assert!(rows[1].1 && !rows[2].1 && rows[1].0 == rows[2].0, "{rows:?}");
    let refusal = refused(
        &mut conn,
        r#"SELECT * FROM dalsegno.enqueue_many('[{"kind": "a", "idempotency_key": "x"}, {"kind": "b", "idempotency_key": "x"}]')"#,
    )
    .await;
    assert_eq!(refusal.code, "DS409");
    let n_keys: i64 = sqlx::query_scalar("SELECT count(*) FROM dalsegno.idempotency_keys")
        .fetch_one(&mut conn)
        .await
        .unwrap();
    assert_eq!(n_keys, 2, "the key of a refused call is available again");
}

#[tokio::test]
async fn a_key_outlives_its_job() {
    let database = TestDatabase::migrated().await;
    let mut conn = worker_session(&database).await;
    let worker = register(&mut conn, &["mail"]).await;
    let (id, ..) = call(&mut conn).await;
    let lease = claim(&mut conn, worker, &["mail"]).await[0].1;
    assert_eq!(call(&mut conn).await, (id, false, "running".to_owned()));
    let ended = sqlx::query(END_DONE).bind([id].as_slice()).bind([lease].as_slice());
    assert_eq!(ended.fetch_all(&mut conn).await.unwrap().len(), 1);
    assert_eq!(call(&mut conn).await, (id, false, "ended".to_owned()));
    let bulk = r#"SELECT job_id, created, state FROM dalsegno.enqueue_many(
                  '[{"kind": "mail", "payload": {"to": 1}, "lane": "chat", "idempotency_key": "k"}]')"#;
    let found: (i64, bool, String) = sqlx::query_as(bulk).fetch_one(&mut conn).await.unwrap();
    assert_eq!(found, (id, false, "ended".to_owned()));
    assert!(claim(&mut conn, worker, &["mail"]).await.is_empty());
}
