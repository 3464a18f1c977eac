//! Schedules and cleanups for people and programs.

use chrono::TimeDelta;
use dalsegno::{
    clock::ManualClock,
    doctor::{self, Finding, Status},
    domain::{cleanups, schedules},
    settings::{Environment, Flags},
};
use serde_json::json;
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::{
    after_expiry, fill,
    job::{Worker, wait_for_runs},
};
use crate::{
    app::{TestApp, TestDatabase, noon},
    conversations::world::World,
    http::client::send,
    schedules::put_nightly,
};

async fn examine(database: &TestDatabase, clock: &ManualClock) -> Finding {
    let environment = Environment::from([("DATABASE_URL", database.url().as_str())]);
    let stop = CancellationToken::new();
    let findings = doctor::examine(&environment, &Flags::default(), clock, &stop).await;
    findings.into_iter().find(|finding| finding.check == "cleanup").unwrap()
}

async fn record_success(pool: &PgPool, job_id: i64, now: chrono::DateTime<chrono::Utc>) {
    let mut conn = pool.acquire().await.unwrap();
    let run = cleanups::begin(&mut conn, job_id, job_id, None, now).await.unwrap().unwrap();
    assert!(cleanups::finish(&mut *conn, &run, now).await.unwrap());
}

#[tokio::test]
async fn doctor_warns_when_no_cleanup_succeeded_for_26_hours() {
    let database = TestDatabase::migrated().await;
    let (pool, clock) = (database.pool().await, ManualClock::at(noon()));
    assert_eq!(examine(&database, &clock).await.status, Status::Skipped);
    put_nightly(&pool, noon()).await;
    assert_eq!(examine(&database, &clock).await.status, Status::Ok);
    clock.advance(TimeDelta::hours(27));
    assert_eq!(examine(&database, &clock).await.status, Status::Warn);
    record_success(&pool, 1, noon() + TimeDelta::hours(14)).await;
    assert_eq!(examine(&database, &clock).await.status, Status::Ok);
    clock.advance(TimeDelta::hours(14));
    let warned = examine(&database, &clock).await;
    assert_eq!(warned.status, Status::Warn);
    assert!(warned.fix.contains("cleanup runs"), "{warned:?}");
    let mut conn = pool.acquire().await.unwrap();
    schedules::pause(&mut conn, "cleanup", "moving", noon()).await.unwrap();
    assert!(examine(&database, &clock).await.fix.contains("schedule resume"));
}

#[tokio::test]
async fn schedules_are_listed_run_paused_and_resumed_over_http() {
    let app = TestApp::start().await;
    put_nightly(&app.pool, noon()).await;
    let ask = async |method: &str, path: &str, body: &str| {
        let json = [("Content-Type", "application/json")];
        send(app.address, method, path, &json, body).await
    };
    let listed = ask("GET", "/v1/schedules", "").await.expect(200);
    assert_eq!(listed["items"][0]["name"], "cleanup");
    assert_eq!(listed["items"][0]["next_slot"], "2026-11-21T02:00:00Z");
    let paused = ask("POST", "/v1/schedules/cleanup/pause", r#"{"reason":"moving"}"#).await;
    let paused = paused.expect(200);
    assert_eq!((&paused["pause_reason"], &paused["next_slot"]), (&json!("moving"), &json!(null)));
    let run = ask("POST", "/v1/schedules/cleanup/run", "").await.expect(202);
    assert!(run["job_id"].is_i64() && run["state"] == "ready", "{run}");
    let again = ask("POST", "/v1/schedules/cleanup/run", "").await.expect(202);
    assert_eq!(again["state"], "blocked");
    let resumed = ask("POST", "/v1/schedules/cleanup/resume", "").await.expect(200);
    assert_eq!(resumed["paused_at"], json!(null));
    for verb in ["run", "pause", "resume"] {
        let path = format!("/v1/schedules/unknown/{verb}");
        ask("POST", &path, "").await.problem(404, "unknown_schedule");
    }
    ask("GET", "/v1/schedules/unknown", "").await.problem(404, "unknown_schedule");
    app.stop().await;
}

#[tokio::test]
async fn a_recurring_task_is_added_and_removed_over_http() {
    let app = TestApp::start().await;
    let world = World::over(app.pool.clone(), Default::default()).await;
    let ask = async |method: &str, path: &str, body: &str| {
        let json = [("Content-Type", "application/json")];
        send(app.address, method, path, &json, body).await
    };
    let task = json!({ "campaign_id": world.campaign.id, "agent": "copywriter", "prompt": "What is new?" });
    let body = json!({ "cron": "0 30 8 * * MON-FRI", "time_zone": "Europe/Berlin", "task": task });
    let put = ask("PUT", "/v1/schedules/news", &body.to_string()).await.expect(200);
    assert_eq!(
        (&put["next_slot"], &put["source"]),
        (&json!("2026-11-23T07:30:00Z"), &json!("user"))
    );
    let bad = |key: &str, value: &str| {
        let mut bad = body.clone();
        bad[key] = json!(value);
        bad.to_string()
    };
    let path = "/v1/schedules/news";
    ask("PUT", path, &bad("cron", "daily")).await.problem(422, "bad_timetable");
    ask("PUT", path, &bad("time_zone", "Berlin")).await.problem(422, "bad_timetable");
    ask("PUT", "/v1/schedules/NEWS", &body.to_string()).await.problem(422, "bad_value");
    ask("PUT", "/v1/schedules/cleanup", &body.to_string()).await.problem(409, "built_in_schedule");
    let gone = ask("DELETE", path, "").await;
    assert_eq!((gone.status, gone.body.as_str()), (204, ""));
    ask("DELETE", path, "").await.problem(404, "unknown_schedule");
    app.stop().await;
}

#[tokio::test]
async fn cleanups_are_previewed_and_listed_over_http() {
    let app = TestApp::start().await;
    let world = World::over(app.pool.clone(), Default::default()).await;
    fill(&app.pool, world.campaign.id, "old", "sim", 3, 4, noon() - TimeDelta::hours(1)).await;
    let ask = async |path: &str| send(app.address, "GET", path, &[], "").await;
    let seen = ask("/v1/cleanup/preview").await.expect(200);
    assert_eq!((&seen["sessions"], &seen["messages"]), (&json!(3), &json!(12)));
    assert_eq!(seen["groups"][0]["because"], "expired");
    assert_eq!(seen["kept"], json!({}));
    for job_id in 1..=3 {
        record_success(&app.pool, job_id, after_expiry()).await;
    }
    let first = ask("/v1/cleanup/runs?limit=2").await.expect(200);
    let next = first["next"].as_str().unwrap();
    let second = ask(&format!("/v1/cleanup/runs?limit=2&cursor={next}")).await.expect(200);
    let job_ids: Vec<_> = [&first, &second]
        .into_iter()
        .flat_map(|page| page["items"].as_array().unwrap())
        .map(|run| run["job_id"].as_i64().unwrap())
        .collect();
    assert_eq!((job_ids, &second["next"]), (vec![3, 2, 1], &json!(null)));
    ask("/v1/cleanup/runs?limit=0").await.problem(400, "bad_query");
    app.stop().await;
}

#[tokio::test]
async fn a_cleanup_names_the_caller_who_asked_for_it() {
    let app = TestApp::start().await;
    put_nightly(&app.pool, noon()).await;
    let json = [("Content-Type", "application/json")];
    for path in ["/v1/cleanup/run", "/v1/schedules/cleanup/run"] {
        send(app.address, "POST", path, &json, "").await.expect(202);
    }
    let fired = schedules::fire_due(&app.pool, noon() + TimeDelta::hours(15)).await.unwrap();
    assert_eq!(fired.len(), 1);
    let worker = Worker::start(&app.pool, 0);
    wait_for_runs(&app.pool, 3).await;
    worker.stop().await;
    // As an older version records it.
    record_success(&app.pool, 9_000_000, after_expiry()).await;
    let runs = send(app.address, "GET", "/v1/cleanup/runs", &[], "").await.expect(200);
    let runs = runs["items"].as_array().unwrap();
    let callers: Vec<_> = runs.iter().map(|run| run["requested_by"].clone()).collect();
    let expected = [json!(null), json!("schedule"), json!("anonymous"), json!("anonymous")];
    assert_eq!(callers, expected, "newest first");
    let page = app.get("/cleanup").await.body;
    assert!(page.contains("a caller without a key") && page.contains("its schedule"), "{page}");
    app.stop().await;
}
