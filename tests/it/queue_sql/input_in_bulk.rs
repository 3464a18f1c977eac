//! Invalid input in a bulk call: all or none, and the error names the element.

use sqlx::PgConnection;

use super::{
    refusal::{Refusal, refused},
    statements::worker_session,
};
use crate::app::TestDatabase;

async fn bulk(conn: &mut PgConnection, jobs: &str) -> Vec<(i64, i64, bool, String)> {
    let sql = "SELECT ord, job_id, created, state FROM dalsegno.enqueue_many($1::jsonb)";
    sqlx::query_as(sql).bind(jobs).fetch_all(conn).await.unwrap()
}

#[tokio::test]
async fn one_bad_element_is_named_and_nothing_is_enqueued() {
    let database = TestDatabase::migrated().await;
    let mut conn = worker_session(&database).await;
    for (bad, code, message, hint) in [
        ("{}", "DS400", "cannot enqueue: kind is empty", "Name the kind"),
        (r#"{"kind": "b", "priority": -3}"#, "DS400", "priority is -3", "Use 0"),
        (r#"{"kind": "b", "max_attempts": 0}"#, "DS400", "max_attempts is 0", "Use 1 to 1000"),
        (r#"{"kind": "b", "lane": ""}"#, "DS400", "lane is the empty string", "Pass NULL"),
        (r#"{"kind": "b", "headers": []}"#, "DS400", "headers is a JSON array", "an object"),
        (r#"{"kind": "b", "run_at": "infinity"}"#, "DS400", "run_at is infinity", "NULL for now"),
        (r#"{"kind": "b", "run_at": "soon"}"#, "DS400", "\"soon\"", "dalsegno.enqueue"),
        (r#"{"kind": "b", "run_at": "2026-02-31"}"#, "DS400", "2026-02-31", "dalsegno.enqueue"),
        (r#"{"kind": "b", "priority": "high"}"#, "DS400", "\"high\"", "dalsegno.enqueue"),
        (r#"{"kind": "b", "priority": 1e99}"#, "DS400", "integer", "dalsegno.enqueue"),
        (
            r#"{"kind": "b", "lanes": "l"}"#,
            "DS400",
            "unknown key \"lanes\"",
            "kind, payload, queue",
        ),
        ("7", "DS400", "not an object", "dalsegno.enqueue"),
        ("null", "DS400", "not an object", "dalsegno.enqueue"),
    ] {
        let call = format!(
            r#"SELECT * FROM dalsegno.enqueue_many('[{{"kind": "a", "lane": "l"}}, {bad}, {{"kind": ""}}]')"#
        );
        let refusal = refused(&mut conn, &call).await;
        assert_eq!(refusal.code, code, "{bad}: {refusal:?}");
        assert!(refusal.message.starts_with("element 2: "), "{bad}: {refusal:?}");
        assert!(refusal.message.contains(message), "{bad}: {refusal:?}");
        assert!(refusal.hint.contains(hint), "{bad}: {refusal:?}");
    }
    let n_traces: i64 = sqlx::query_scalar(
        "SELECT (SELECT count(*) FROM dalsegno.jobs) + (SELECT count(*) FROM dalsegno.lanes)",
    )
    .fetch_one(&mut conn)
    .await
    .unwrap();
    assert_eq!(n_traces, 0);
}

#[tokio::test]
async fn a_payload_over_the_limit_is_named() {
    let database = TestDatabase::migrated().await;
    let mut conn = worker_session(&database).await;
    let call = "SELECT * FROM dalsegno.enqueue_many(jsonb_build_array(
                  jsonb_build_object('kind', 'a'), jsonb_build_object('kind', 'b', 'payload', repeat('x', 1048576))))";
    let refusal = refused(&mut conn, call).await;
    let expected = Refusal::new(
        "DS413",
        "element 2: payload of b has 1048578 bytes, the limit is 1048576",
        "Store the data elsewhere and enqueue a reference, or raise dalsegno.max_payload_bytes.",
    );
    assert_eq!(refusal, expected);
}

#[tokio::test]
async fn input_that_is_not_an_array_is_refused() {
    let database = TestDatabase::migrated().await;
    let mut conn = worker_session(&database).await;
    for jobs in ["'{}'", "'7'", "'null'", "NULL"] {
        let refusal =
            refused(&mut conn, &format!("SELECT * FROM dalsegno.enqueue_many({jobs})")).await;
        let expected = Refusal::new(
            "DS400",
            "cannot enqueue: jobs is not a JSON array",
            "Pass an array of objects whose keys are the arguments of dalsegno.enqueue.",
        );
        assert_eq!(refusal, expected, "{jobs}");
    }
    assert_eq!(bulk(&mut conn, "[]").await, []);
}

/// Both forms of a call have to give a handler the same payload, and one key has to stand for both.
#[tokio::test]
async fn both_forms_store_the_same_payload() {
    let database = TestDatabase::migrated().await;
    let mut conn = worker_session(&database).await;
    for payload in ["null", "{}", "[]", "7", "\"text\"", r#"{"a": null}"#] {
        let single: (i64, String) = sqlx::query_as(
            "SELECT e.job_id, p.payload::text FROM dalsegno.enqueue('k', $1::jsonb, idempotency_key => $1) AS e
               CROSS JOIN LATERAL (SELECT $1::jsonb AS payload) AS p",
        )
        .bind(payload)
        .fetch_one(&mut conn)
        .await
        .unwrap();
        let element = format!(
            r#"[{{"kind": "k", "payload": {payload}, "idempotency_key": {}}}, {{"kind": "k", "payload": {payload}}}]"#,
            serde_json::Value::from(payload)
        );
        let rows = bulk(&mut conn, &element).await;
        assert_eq!((rows[0].1, rows[0].2), (single.0, false), "{payload}");
        let stored: String =
            sqlx::query_scalar("SELECT payload::text FROM dalsegno.job_payloads WHERE job_id = $1")
                .bind(rows[1].1)
                .fetch_one(&mut conn)
                .await
                .unwrap();
        assert_eq!(stored, single.1);
    }
}
