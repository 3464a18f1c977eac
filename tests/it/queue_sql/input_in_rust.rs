//! Invalid input through the crate's functions: the same refusals, as typed errors.

use chrono::{TimeZone as _, Utc};
use dalsegno::queue::{self, Error, Job, Options, Policy};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgPool;

use crate::app::TestDatabase;

#[derive(Serialize, Deserialize)]
struct Letter {
    text: String,
}

impl Job for Letter {
    const KIND: &'static str = "letter";
}

#[derive(Serialize, Deserialize)]
struct NamelessJob {}

impl Job for NamelessJob {
    const KIND: &'static str = "";
}

#[derive(Serialize, Deserialize)]
struct JobWithoutAttempts {}

impl Job for JobWithoutAttempts {
    const KIND: &'static str = "never_tried";

    fn policy() -> Policy {
        Policy { max_attempts: 0, ..Policy::default() }
    }
}

#[derive(Serialize, Deserialize)]
struct Unit;

impl Job for Unit {
    const KIND: &'static str = "unit";
}

fn letter() -> Letter {
    Letter { text: "dear".to_owned() }
}

async fn refuse(pool: &PgPool, job: &impl Job, options: Options) -> Error {
    queue::enqueue(pool, job, &options).await.expect_err("refused")
}

fn bad_argument(error: Error) -> String {
    match error {
        Error::BadArgument { message, hint } => format!("{message} | {hint}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn each_invalid_argument_names_the_problem_and_the_accepted_values() {
    let database = TestDatabase::migrated().await;
    let pool = database.pool().await;
    let none = Options::default;
    for (options, said) in [
        (Options { lane: Some("l".repeat(201)), ..none() }, "lane has 201 characters"),
        (Options { priority: Some(-1), ..none() }, "priority is -1"),
        (Options { headers: Some(json!([1])), ..none() }, "headers is a JSON array"),
        (Options { timeout_secs: Some(-5), ..none() }, "timeout_secs is -5"),
        (Options { queue: Some(String::new()), ..none() }, "queue is empty"),
        (Options { lane: Some("a\0b".to_owned()), ..none() }, "U+0000"),
    ] {
        let told = bad_argument(refuse(&pool, &letter(), options).await);
        assert!(told.contains(said) && !told.ends_with("| "), "{told}");
    }
    let told = bad_argument(refuse(&pool, &NamelessJob {}, none()).await);
    assert!(told.contains("kind is empty"), "{told}");
    let told = bad_argument(refuse(&pool, &JobWithoutAttempts {}, none()).await);
    assert!(told.contains("max_attempts is 0"), "{told}");
    let nul = Letter { text: "a\0b".to_owned() };
    let told = bad_argument(refuse(&pool, &nul, none()).await);
    assert!(told.contains("U+0000") && told.contains("Remove it"), "{told}");
    pool.close().await;
}

#[tokio::test]
async fn oversized_and_conflicting_payloads_have_their_own_errors() {
    let database = TestDatabase::migrated().await;
    let pool = database.pool().await;
    let large = Letter { text: "x".repeat(1 << 20) };
    let error = refuse(&pool, &large, Options::default()).await;
    assert!(matches!(error, Error::TooLarge { .. }), "{error:?}");
    let keyed = || Options { idempotency_key: Some("k".to_owned()), ..Options::default() };
    let made = queue::enqueue(&pool, &letter(), &keyed()).await.unwrap();
    let error = refuse(&pool, &Letter { text: "other".to_owned() }, keyed()).await;
    let said = format!("already stands for job {}", made.job_id);
    assert!(
        matches!(&error, Error::Conflict { message, .. } if message.contains(&said)),
        "{error:?}"
    );
    pool.close().await;
}

#[tokio::test]
async fn a_bulk_call_names_the_element_and_enqueues_none() {
    let database = TestDatabase::migrated().await;
    let pool = database.pool().await;
    let bad = Options { priority: Some(40_000), ..Options::default() };
    let jobs = [(letter(), Options::default()), (letter(), Options::default()), (letter(), bad)];
    let told = bad_argument(queue::enqueue_many(&pool, jobs).await.expect_err("refused"));
    assert!(told.starts_with("element 3: ") && told.contains("priority is 40000"), "{told}");
    let n_jobs: i64 =
        sqlx::query_scalar("SELECT count(*) FROM dalsegno.jobs").fetch_one(&pool).await.unwrap();
    assert_eq!(n_jobs, 0);
    pool.close().await;
}

#[tokio::test]
async fn defaults_are_the_same_from_rust() {
    let database = TestDatabase::migrated().await;
    let pool = database.pool().await;
    let past = Options {
        run_at: Some(Utc.with_ymd_and_hms(1, 1, 1, 0, 0, 0).unwrap()),
        ..Options::default()
    };
    assert_eq!(queue::enqueue(&pool, &letter(), &past).await.unwrap().state, "ready");
    // An empty payload is the same payload in both forms.
    let keyed = || Options { idempotency_key: Some("u".to_owned()), ..Options::default() };
    let one = queue::enqueue(&pool, &Unit, &keyed()).await.unwrap();
    let many =
        queue::enqueue_many(&pool, [(Unit, keyed()), (Unit, Options::default())]).await.unwrap();
    assert_eq!(many[0].job_id, one.job_id);
    let stored: String =
        sqlx::query_scalar("SELECT payload::text FROM dalsegno.job_payloads WHERE job_id = $1")
            .bind(many[1].job_id)
            .fetch_one(&pool)
            .await
            .unwrap();
    assert_eq!(stored, "null");
    pool.close().await;
}
