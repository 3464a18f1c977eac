//! Idempotency keys of changes.

use chrono::TimeDelta;
use dalsegno::{
    domain::{cleanups, operation_keys},
    operations::{ALL, Entry, Method, Run},
};
use serde_json::{Value, json};
use sqlx::PgConnection;

use super::{
    Fixture,
    client::{Reply, send},
    key_setup::{ADMIN_KEY, KeySetup},
};
use crate::{
    app::{eventually, noon},
    cleanup::job::Worker,
};

const KEY: (&str, &str) = ("Idempotency-Key", "spring-1");

async fn count(fixture: &Fixture, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(&fixture.app.pool).await.unwrap()
}

async fn keys(fixture: &Fixture) -> Vec<String> {
    let keys = "select key from dalsegno.operation_keys order by key";
    sqlx::query_scalar(keys).fetch_all(&fixture.app.pool).await.unwrap()
}

async fn ask(fixture: &Fixture, method: &str, path: &str, body: &Value, key: &str) -> Reply {
    let headers = [("Content-Type", "application/json"), ("Idempotency-Key", key)];
    let body = if method == "DELETE" { String::new() } else { body.to_string() };
    send(fixture.app.address, method, path, &headers, &body).await
}

fn is_replay(reply: &Reply) -> bool {
    reply.head.contains("idempotent-replayed: true")
}

#[tokio::test]
async fn a_repeated_change_returns_the_first_answer_and_is_made_once() {
    let fixture = Fixture::new().await;
    let spring = json!({ "name": "Spring" });
    let first = fixture.post_with("/v1/campaigns", &spring, &[KEY]).await;
    assert!(!is_replay(&first), "{first:?}");
    let again = fixture.post_with("/v1/campaigns", &spring, &[KEY]).await;
    assert!(is_replay(&again) && again.head.contains("location: /v1/campaigns/"), "{again:?}");
    assert_eq!(again.expect(200), first.expect(201));
    let made = "select count(*) from dalsegno.campaigns where name = 'Spring'";
    let audited = "select count(*) from dalsegno.audit where action = 'campaign.create'";
    assert_eq!((count(&fixture, made).await, count(&fixture, audited).await), (1, 1));

    // An explicit default is the same input.
    let pause = "/v1/queues/turns/pause";
    let paused = ask(&fixture, "POST", pause, &json!({}), "p").await.expect(200);
    fixture.post("/v1/queues/turns/resume", &json!({})).await.expect(200);
    let same = json!({ "reason": "by a request" });
    let again = ask(&fixture, "POST", pause, &same, "p").await;
    assert!(is_replay(&again), "{again:?}");
    assert_eq!(again.expect(200), paused);
    let paused = "select count(*) from dalsegno.pauses";
    assert_eq!(count(&fixture, paused).await, 0, "nothing was paused again");

    // An answer without a body, and one of several transactions.
    let task =
        json!({ "campaign_id": fixture.world.campaign.id, "agent": "copywriter", "prompt": "x" });
    let schedule = json!({ "cron": "0 0 8 * * *", "task": task });
    ask(&fixture, "PUT", "/v1/schedules/news", &schedule, "s").await.expect(200);
    for path in ["/v1/schedules/news".to_owned(), webhook(&fixture).await] {
        let first = ask(&fixture, "DELETE", &path, &json!({}), "d").await;
        let again = ask(&fixture, "DELETE", &path, &json!({}), "d").await;
        assert_eq!((first.status, again.status), (204, 204), "{path}: {again:?}");
        assert!(!is_replay(&first) && is_replay(&again), "{path}: {again:?}");
    }
    let reset = format!("/v1/campaigns/{}/agents/reset", fixture.world.campaign.id);
    let first = ask(&fixture, "POST", &reset, &json!({}), "r").await;
    let again = ask(&fixture, "POST", &reset, &json!({}), "r").await;
    assert!(!is_replay(&first) && is_replay(&again), "{again:?}");
    assert_eq!(again.expect(200), first.expect(200));
}

async fn webhook(fixture: &Fixture) -> String {
    let made = fixture.post("/v1/webhooks", &json!({ "url": "https://example.com/" })).await;
    format!("/v1/webhooks/{}", made.expect(201)["id"].as_str().unwrap())
}

#[tokio::test]
async fn another_input_under_the_key_is_a_conflict_and_a_refused_call_frees_the_key() {
    let fixture = Fixture::new().await;
    let post = async |name: &str| {
        ask(&fixture, "POST", "/v1/campaigns", &json!({ "name": name }), "k").await
    };
    assert_eq!(post(" ").await.status, 422);
    post("Spring").await.expect(201);
    let words = post("Summer").await.problem(409, "idempotency_conflict");
    assert!(words.contains("`create_campaign`"), "{words}");
    // Keys belong to an operation.
    ask(&fixture, "POST", "/v1/queues/turns/pause", &json!({}), "k").await.expect(200);
    let long = "x".repeat(196);
    let pause = ask(&fixture, "POST", "/v1/queues/turns/pause", &json!({}), &long).await;
    pause.problem(422, "bad_idempotency_key");
}

#[tokio::test]
async fn an_idempotency_key_belongs_to_the_name_of_an_api_key() {
    let setup = KeySetup::new().await;
    let mut made = Vec::new();
    for caller in ["one", "two"] {
        let new = json!({ "name": caller, "scopes": ["operate"] });
        let key = setup.ask(Some(ADMIN_KEY), "POST", "/v1/keys", &new).await.expect(201);
        let bearer = format!("Bearer {}", key["secret"].as_str().unwrap());
        let headers = [("Authorization", bearer.as_str()), KEY];
        let body = json!({ "name": "Spring" }).to_string();
        let address = setup.fixture.app.address;
        made.push(send(address, "POST", "/v1/campaigns", &headers, &body).await.expect(201));
    }
    assert_ne!(made[0]["id"], made[1]["id"]);
}

#[tokio::test]
async fn concurrent_calls_with_one_key_make_one_change() {
    let fixture = Fixture::new().await;
    let spring = json!({ "name": "Spring" });
    let sent = (0..8).map(|_| fixture.post_with("/v1/campaigns", &spring, &[KEY]));
    let replies = futures_util::future::join_all(sent).await;
    let created: Vec<_> = replies.iter().filter(|reply| reply.status == 201).collect();
    assert_eq!(created.len(), 1, "{replies:?}");
    let first = created[0].json();
    assert!(replies.iter().all(|reply| reply.json() == first), "{replies:?}");
    let made = "select count(*) from dalsegno.campaigns where name = 'Spring'";
    assert_eq!(count(&fixture, made).await, 1);
}

#[tokio::test]
async fn an_operation_that_returns_a_secret_refuses_an_idempotency_key() {
    let fixture = Fixture::new().await;
    let new = json!({ "name": "ci", "scopes": ["read"] });
    let words = ask(&fixture, "POST", "/v1/keys", &new, "k")
        .await
        .problem(400, "idempotency_not_supported");
    assert!(words.contains("secret"), "{words}");
    assert_eq!(count(&fixture, "select count(*) from dalsegno.api_keys").await, 0);
    assert_eq!(count(&fixture, "select count(*) from dalsegno.operation_keys").await, 0);
}

#[tokio::test]
async fn every_change_checks_the_idempotency_key_and_no_read_does() {
    let fixture = Fixture::new().await;
    let nil = "00000000-0000-0000-0000-000000000000";
    let is_one_answer = |entry: &&Entry| matches!(entry.run, Run::Once(_));
    for Entry { spec, .. } in ALL.iter().filter(is_one_answer) {
        let path = spec
            .path_fields()
            .fold(spec.path.to_owned(), |path, name| path.replace(&format!("{{{name}}}"), nil));
        // An empty key is refused before the input is parsed.
        let reply = ask(&fixture, spec.method.as_str(), &path, &json!({}), " ").await;
        let is_refused = reply.status == 400 && reply.json()["code"] == "bad_idempotency_key";
        // A preview takes a body, and changes nothing.
        let previews = [
            "preview_bulk_action",
            "preview_agent_context",
            "estimate_task",
            "estimate_flow",
            "estimate_session",
        ];
        let changes = spec.method != Method::Get && !previews.contains(&spec.id);
        assert_eq!(is_refused, changes, "{}: {reply:?}", spec.id);
    }
}

#[tokio::test]
async fn forgetting_a_user_removes_the_idempotency_keys_of_its_facts() {
    let fixture = Fixture::new().await;
    let facts = "/v1/users/turns/facts";
    let fact = json!({ "attribute": "City", "text": "Lives in Bergen." });
    ask(&fixture, "POST", facts, &fact, "f").await.expect(200);
    let put = format!("/v1/campaigns/{}/user", fixture.world.campaign.id);
    ask(&fixture, "PUT", &put, &json!({ "user": "turns" }), "u").await.expect(200);
    ask(&fixture, "POST", "/v1/campaigns", &json!({ "name": "Spring" }), "c").await.expect(201);
    // A queue may have the same name.
    ask(&fixture, "POST", "/v1/queues/turns/pause", &json!({}), "q").await.expect(200);
    assert_eq!(keys(&fixture).await, ["c", "f", "q", "u"]);
    fixture.post("/v1/users/turns/forget", &json!({})).await.expect(200);
    assert_eq!(keys(&fixture).await, ["c", "q"]);
}

#[tokio::test]
async fn an_erasure_keeps_the_key_of_a_queue_with_the_name_of_a_campaigns_schedule() {
    let fixture = Fixture::new().await;
    let campaign = fixture.world.campaign.id;
    let task = json!({ "campaign_id": campaign, "agent": "copywriter", "prompt": "x" });
    let schedule = json!({ "cron": "0 0 8 * * *", "task": task });
    ask(&fixture, "PUT", "/v1/schedules/turns", &schedule, "s").await.expect(200);
    ask(&fixture, "POST", "/v1/queues/turns/pause", &json!({}), "q").await.expect(200);
    let reset = format!("/v1/campaigns/{campaign}/agents/reset");
    ask(&fixture, "POST", &reset, &json!({}), "r").await.expect(200);
    fixture.post(&format!("/v1/campaigns/{campaign}/erasure"), &json!({})).await.expect(202);
    let kept = keys(&fixture).await;
    assert!(kept.contains(&"q".to_owned()), "{kept:?}");
    let mut tx = fixture.app.pool.begin().await.unwrap();
    operation_keys::remove_of_campaign(&mut *tx, campaign).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(keys(&fixture).await, ["q"]);
}

/// Returns the number of full scans of this connection.
async fn full_scans(conn: &mut PgConnection) -> i64 {
    let scans = "select seq_scan from pg_stat_xact_user_tables where relid = 'dalsegno.operation_keys'::regclass";
    sqlx::query_scalar(scans).fetch_one(conn).await.unwrap()
}

#[tokio::test]
async fn idempotency_keys_of_a_campaign_and_a_user_are_found_by_index() {
    let fixture = Fixture::new().await;
    let mut tx = fixture.app.pool.begin().await.unwrap();
    sqlx::query("set local enable_seqscan = off").execute(&mut *tx).await.unwrap();
    let before = full_scans(&mut tx).await;
    operation_keys::remove_of_campaign(&mut *tx, fixture.world.campaign.id).await.unwrap();
    operation_keys::remove_of_user(&mut *tx, "ann").await.unwrap();
    assert_eq!(full_scans(&mut tx).await, before);
}

#[tokio::test]
async fn concurrent_multi_transaction_calls_leave_each_other_enough_connections() {
    // Long enough for a slow machine.
    let fixture = Fixture::with(&[("http.request_timeout_secs", "300")]).await;
    let reset = format!("/v1/campaigns/{}/agents/reset", fixture.world.campaign.id);
    let names: Vec<String> = (0..40).map(|n| format!("reset-{n}")).collect();
    let body = json!({});
    let asked = names.iter().map(|key| ask(&fixture, "POST", &reset, &body, key));
    for reply in futures_util::future::join_all(asked).await {
        reply.expect(200);
    }
    assert_eq!(keys(&fixture).await.len(), 40);
}

#[tokio::test]
async fn an_unreadable_stored_answer_is_a_conflict_with_the_next_step() {
    let fixture = Fixture::new().await;
    let pause = "/v1/queues/turns/pause";
    ask(&fixture, "POST", pause, &json!({}), "p").await.expect(200);
    sqlx::query("update dalsegno.operation_keys set output = '{}'")
        .execute(&fixture.app.pool)
        .await
        .unwrap();
    let again = ask(&fixture, "POST", pause, &json!({}), "p").await;
    let words = again.problem(409, "idempotency_conflict");
    assert!(words.contains("was made") && words.contains("dalsegno audit ls"), "{words}");
}

#[tokio::test]
async fn a_reused_key_name_starts_without_idempotency_keys() {
    let setup = KeySetup::new().await;
    let make = async || {
        let (key, secret) = setup.create_key("shop", &["operate"]).await;
        let bearer = format!("Bearer {secret}");
        let headers = [("Authorization", bearer.as_str()), KEY];
        let body = json!({ "name": "Spring" }).to_string();
        let made = send(setup.fixture.app.address, "POST", "/v1/campaigns", &headers, &body).await;
        (key, made)
    };
    let (key, made) = make().await;
    made.expect(201);
    let revoke = format!("/v1/keys/{}/revoke", key["id"].as_str().unwrap());
    setup.admin("POST", &revoke, &json!({})).await.expect(200);
    make().await.1.expect(201);
}

#[tokio::test]
async fn the_cleanup_removes_idempotency_keys_past_their_retention() {
    let fixture = Fixture::new().await;
    ask(&fixture, "POST", "/v1/campaigns", &json!({ "name": "Spring" }), "c").await.expect(201);
    let keys = "select count(*) from dalsegno.operation_keys";
    // The worker's cleanup comes eight days after noon.
    let old = "update dalsegno.operation_keys set created_at = $1";
    let late = "insert into dalsegno.operation_keys (caller, operation, key, input_sha256, created_at, output)
                values ('', 'create_campaign', 'late', sha256(''), $1, '{}')";
    for (sql, at) in [(old, noon() - TimeDelta::days(23)), (late, noon() - TimeDelta::days(21))] {
        sqlx::query(sql).bind(at).execute(&fixture.app.pool).await.unwrap();
    }
    cleanups::request(&fixture.app.pool, "cli:ann@vm").await.unwrap();
    let worker = Worker::start(&fixture.app.pool, 0);
    eventually("old rows are removed", async || (count(&fixture, keys).await == 1).then_some(()))
        .await;
    worker.stop().await;
    let left: String = sqlx::query_scalar("select key from dalsegno.operation_keys")
        .fetch_one(&fixture.app.pool)
        .await
        .unwrap();
    assert_eq!(left, "late");
}
