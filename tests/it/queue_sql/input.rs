//! Invalid input in SQL: a clear error with a hint, or a defined effect.

use sqlx::PgConnection;

use dalsegno::queue::admin;

use super::{
    refusal::{Refusal, refused},
    statements::{claim, register, worker_session},
};
use crate::app::TestDatabase;

/// Arguments of `dalsegno.enqueue`, and its errors.
const REFUSED: &[(&str, &str, &str, &str)] = &[
    ("kind => ''", "DS400", "kind is empty", "Name the kind of a handler."),
    ("kind => '  '", "DS400", "kind is empty", "Name the kind of a handler."),
    ("kind => NULL", "DS400", "kind is empty", "Name the kind of a handler."),
    (
        "kind => repeat('x', 101)",
        "DS400",
        "kind has 101 characters, the limit is 100",
        "Use a shorter name.",
    ),
    ("kind => 'k', payload => NULL", "DS400", "payload is NULL", "for a job without input."),
    ("kind => 'k', queue => ''", "DS400", "queue is empty", "Leave it out for the queue"),
    (
        "kind => 'k', queue => repeat('q', 101)",
        "DS400",
        "queue has 101 characters",
        "Use a shorter name.",
    ),
    ("kind => 'k', lane => ''", "DS400", "lane is the empty string", "Pass NULL"),
    (
        "kind => 'k', lane => repeat('ä', 201)",
        "DS400",
        "lane has 201 characters, the limit is 200",
        "Use an id or a hash as the name of the lane.",
    ),
    ("kind => 'k', group_key => ''", "DS400", "group_key is the empty string", "Pass NULL"),
    (
        "kind => 'k', group_key => repeat('g', 201)",
        "DS400",
        "group_key has 201 characters",
        "Use an id or a hash.",
    ),
    ("kind => 'k', priority => -1", "DS400", "priority is -1", "Use 0 (most urgent) to 32767"),
    ("kind => 'k', priority => 32768", "DS400", "priority is 32768", "Use 0 (most urgent)"),
    ("kind => 'k', priority => NULL", "DS400", "priority is NULL", "Use 0 (most urgent)"),
    ("kind => 'k', max_attempts => 0", "DS400", "max_attempts is 0", "Use 1 to 1000."),
    ("kind => 'k', max_attempts => 1001", "DS400", "max_attempts is 1001", "Use 1 to 1000."),
    ("kind => 'k', max_attempts => NULL", "DS400", "max_attempts is NULL", "Use 1 to 1000."),
    ("kind => 'k', run_at => 'infinity'", "DS400", "run_at is infinity", "or NULL for now."),
    ("kind => 'k', run_at => '294276-12-31'", "DS400", "run_at is 294276-", "up to the year 9999"),
    ("kind => 'k', run_at => '-infinity'", "DS400", "run_at is -infinity", "or NULL for now."),
    ("kind => 'k', timeout_secs => 0", "DS400", "timeout_secs is 0", "a positive number"),
    (
        "kind => 'k', idempotency_key => ''",
        "DS400",
        "idempotency_key is the empty string",
        "Pass NULL for none.",
    ),
    (
        "kind => 'k', idempotency_key => repeat('i', 201)",
        "DS400",
        "idempotency_key has 201 characters",
        "Use a hash of it.",
    ),
    ("kind => 'k', headers => '[]'", "DS400", "headers is a JSON array", "names and values"),
    ("kind => 'k', headers => '\"x\"'", "DS400", "headers is a JSON string", "or NULL"),
    (
        "kind => 'k', payload => to_jsonb(repeat('x', 1048575))",
        "DS413",
        "payload of k has 1048577 bytes, the limit is 1048576",
        "enqueue a reference",
    ),
];

async fn n_traces(conn: &mut PgConnection) -> i64 {
    let counted = sqlx::query_scalar(
        "SELECT (SELECT count(*) FROM dalsegno.jobs) + (SELECT count(*) FROM dalsegno.job_payloads)
              + (SELECT count(*) FROM dalsegno.lanes) + (SELECT count(*) FROM dalsegno.idempotency_keys)
              + (SELECT count(*) FROM dalsegno.transition_deltas)",
    );
    counted.fetch_one(conn).await.unwrap()
}

async fn enqueue(conn: &mut PgConnection, arguments: &str) -> (i64, bool, String) {
    let sql = format!("SELECT job_id, created, state FROM dalsegno.enqueue({arguments})");
    sqlx::query_as(sqlx::AssertSqlSafe(sql)).fetch_one(conn).await.unwrap()
}

#[tokio::test]
async fn each_invalid_argument_is_refused_with_a_hint_and_stores_nothing() {
    let database = TestDatabase::migrated().await;
    let mut conn = worker_session(&database).await;
    for (arguments, code, message, hint) in REFUSED {
        let refusal = refused(&mut conn, &format!("SELECT dalsegno.enqueue({arguments})")).await;
        assert_eq!(refusal.code, *code, "{arguments}: {refusal:?}");
        assert!(refusal.message.contains(message), "{arguments}: {refusal:?}");
        assert!(refusal.hint.contains(hint), "{arguments}: {refusal:?}");
    }
    assert_eq!(n_traces(&mut conn).await, 0);
}

#[tokio::test]
async fn values_at_the_limits_are_accepted() {
    let database = TestDatabase::migrated().await;
    let mut conn = worker_session(&database).await;
    for arguments in [
        "kind => repeat('x', 100), queue => repeat('q', 100), lane => repeat('ä', 200), group_key => repeat('g', 200)",
        "kind => 'k', idempotency_key => repeat('i', 200), timeout_secs => 1",
        "kind => 'k', priority => 0, max_attempts => 1",
        "kind => 'k', priority => 32767, max_attempts => 1000",
        "kind => 'k', payload => to_jsonb(repeat('x', 1048574))",
        "kind => 'k', payload => 'null', headers => '{}'",
    ] {
        let (_, created, state) = enqueue(&mut conn, arguments).await;
        assert!(created && state == "ready", "{arguments}: {state}");
    }
}

#[tokio::test]
async fn the_payload_limit_is_a_setting() {
    let database = TestDatabase::migrated().await;
    let mut conn = worker_session(&database).await;
    sqlx::query("SET dalsegno.max_payload_bytes = 10").execute(&mut conn).await.unwrap();
    enqueue(&mut conn, "kind => 'k', payload => '12345678'").await;
    let limit = "has 12 bytes, the limit is 10";
    for sql in [
        "SELECT dalsegno.enqueue(kind => 'k', payload => '\"1234567890\"')",
        "SELECT * FROM dalsegno.enqueue_many('[{\"kind\": \"k\", \"payload\": \"1234567890\"}]')",
    ] {
        let refusal = refused(&mut conn, sql).await;
        assert!(refusal.code == "DS413" && refusal.message.contains(limit), "{sql}: {refusal:?}");
    }
}

/// Otherwise a worker with a handler for the kind would get a job whose payload it cannot read.
#[tokio::test]
async fn a_nul_character_is_refused() {
    let database = TestDatabase::migrated().await;
    let mut conn = worker_session(&database).await;
    let escaped = refused(&mut conn, r#"SELECT dalsegno.enqueue('k', '{"a": "\u0000"}')"#).await;
    assert_eq!(escaped, Refusal::new("22P05", "unsupported Unicode escape sequence", ""));
    for sql in [
        "SELECT dalsegno.enqueue($1)",
        "SELECT dalsegno.enqueue('k', lane => $1)",
        "SELECT dalsegno.enqueue('k', idempotency_key => $1)",
        "SELECT * FROM dalsegno.enqueue_many($1::jsonb)",
    ] {
        let answer = sqlx::query(sql).bind("a\0b").fetch_all(&mut conn).await;
        let refusal = Refusal::of(&answer.unwrap_err());
        assert_eq!(refusal.code, "22021", "{sql}: {refusal:?}");
    }
    assert_eq!(n_traces(&mut conn).await, 0);
}

#[tokio::test]
async fn a_run_at_in_the_far_past_means_now() {
    let database = TestDatabase::migrated().await;
    let mut conn = worker_session(&database).await;
    let worker = register(&mut conn, &["k"]).await;
    let (first, ..) = enqueue(&mut conn, "kind => 'k'").await;
    let (past, _, state) = enqueue(&mut conn, "kind => 'k', run_at => '4713-01-01 BC'").await;
    assert_eq!(state, "ready");
    let bulk = "SELECT job_id FROM dalsegno.enqueue_many('[{\"kind\": \"k\", \"run_at\": \"0001-01-01T00:00:00Z\"}]')";
    let in_bulk: i64 = sqlx::query_scalar(bulk).fetch_one(&mut conn).await.unwrap();
    let order: Vec<i64> = sqlx::query_scalar("SELECT id FROM dalsegno.jobs ORDER BY run_at, id")
        .fetch_all(&mut conn)
        .await
        .unwrap();
    assert_eq!(order, [first, past, in_bulk], "an old date gives no precedence");
    assert_eq!(claim(&mut conn, worker, &["k"]).await.len(), 3);
}

#[tokio::test]
async fn an_unknown_kind_is_not_claimed_and_stays_visible() {
    let database = TestDatabase::migrated().await;
    let mut conn = worker_session(&database).await;
    let worker = register(&mut conn, &["known"]).await;
    for arguments in ["'typo'", "'typo', lane => 'l'", "'typo', group_key => 'g'"] {
        let (id, _, state) = enqueue(&mut conn, arguments).await;
        assert_eq!(state, "ready");
        assert!(claim(&mut conn, worker, &["known"]).await.is_empty());
        let told = admin::explain(&mut conn, id).await.unwrap();
        assert!(told.because.contains("has a handler for the kind `typo`"), "{}", told.because);
        assert!(told.next.contains(&format!("dalsegno job cancel {id}")), "{}", told.next);
    }
    // Later jobs do not wait for them.
    let (known, ..) = enqueue(&mut conn, "'known', group_key => 'g'").await;
    let claimed = claim(&mut conn, worker, &["known"]).await;
    assert_eq!(claimed.iter().map(|job| job.0).collect::<Vec<_>>(), [known]);
}

#[tokio::test]
async fn invalid_input_of_people_is_refused_with_a_hint_too() {
    let database = TestDatabase::migrated().await;
    let mut conn = worker_session(&database).await;
    let worker = register(&mut conn, &["k"]).await;
    let (running, ..) = enqueue(&mut conn, "'k'").await;
    claim(&mut conn, worker, &["k"]).await;
    let (ready, ..) = enqueue(&mut conn, "'k'").await;
    for (call, code, message) in [
        ("hold_job(999, 'r')".to_owned(), "DS404", "job 999 is not on the queue"),
        (format!("hold_job({ready}, ' ')"), "DS400", "no reason given"),
        (format!("hold_job({running}, 'r')"), "DS409", "is running"),
        (format!("release_job({ready})"), "DS409", "is not held"),
        ("release_job(999)".to_owned(), "DS404", "job 999 is not on the queue"),
        ("retry(999)".to_owned(), "DS404", "neither on the queue nor a dead letter"),
        ("hold_lane('l', '')".to_owned(), "DS400", "no reason given"),
    ] {
        let refusal = refused(&mut conn, &format!("SELECT dalsegno.{call}")).await;
        assert!(refusal.code == code && refusal.message.contains(message), "{call}: {refusal:?}");
        assert!(!refusal.hint.is_empty(), "{call}: {refusal:?}");
    }
    for (call, answer) in [
        ("cancel(999)::text", "unknown"),
        ("hold_lane('no such lane', 'r')::text", "false"),
        ("release_lane('no such lane')::text", "false"),
        ("resume('queue', 'not paused')::text", "false"),
    ] {
        let sql = format!("SELECT dalsegno.{call}");
        let said: String =
            sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch_one(&mut conn).await.unwrap();
        assert_eq!(said, answer, "{call}");
    }
}
