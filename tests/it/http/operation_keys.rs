//! Idempotency keys of changes.

use chrono::TimeDelta;
use dalsegno::{
    domain::{cleanups, operation_keys},
    operations::{ALL, Entry, Method, Run},
};
use serde_json::{Value, json};
use sqlx::PgConnection;

use super::{
    Ground,
    client::{Reply, send},
    keyed::{ADMIN_KEY, Keyed},
};
use crate::{
    app::{eventually, noon},
    purge::job::Worker,
};

const KEY: (&str, &str) = ("Idempotency-Key", "spring-1");

async fn count(ground: &Ground, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(&ground.app.pool).await.unwrap()
}

async fn keys(ground: &Ground) -> Vec<String> {
    let keys = "select key from dalsegno.operation_keys order by key";
    sqlx::query_scalar(keys).fetch_all(&ground.app.pool).await.unwrap()
}

async fn ask(ground: &Ground, method: &str, path: &str, body: &Value, key: &str) -> Reply {
    let headers = [("Content-Type", "application/json"), ("Idempotency-Key", key)];
    let body = if method == "DELETE" { String::new() } else { body.to_string() };
    send(ground.app.address, method, path, &headers, &body).await
}

fn is_replay(reply: &Reply) -> bool {
    reply.head.contains("idempotent-replayed: true")
}

#[tokio::test]
async fn a_change_that_is_sent_again_is_answered_as_the_first_time_and_made_once() {
    let ground = Ground::new().await;
    let spring = json!({ "name": "Spring" });
    let first = ground.post_with("/v1/campaigns", &spring, &[KEY]).await;
    assert!(!is_replay(&first), "{first:?}");
    let again = ground.post_with("/v1/campaigns", &spring, &[KEY]).await;
    assert!(is_replay(&again) && again.head.contains("location: /v1/campaigns/"), "{again:?}");
    assert_eq!(again.expect(200), first.expect(201));
    let made = "select count(*) from dalsegno.campaigns where name = 'Spring'";
    let audited = "select count(*) from dalsegno.audit where action = 'campaign.create'";
    assert_eq!((count(&ground, made).await, count(&ground, audited).await), (1, 1));

    // An explicit default is the same input.
    let pause = "/v1/queues/turns/pause";
    let paused = ask(&ground, "POST", pause, &json!({}), "p").await.expect(200);
    ground.post("/v1/queues/turns/resume", &json!({})).await.expect(200);
    let same = json!({ "reason": "by a request" });
    let again = ask(&ground, "POST", pause, &same, "p").await;
    assert!(is_replay(&again), "{again:?}");
    assert_eq!(again.expect(200), paused);
    let paused = "select count(*) from dalsegno.pauses";
    assert_eq!(count(&ground, paused).await, 0, "nothing was paused again");

    // An answer without a body, and one of several transactions.
    let task =
        json!({ "campaign_id": ground.world.campaign.id, "agent": "copywriter", "prompt": "x" });
    let schedule = json!({ "cron": "0 0 8 * * *", "task": task });
    ask(&ground, "PUT", "/v1/schedules/news", &schedule, "s").await.expect(200);
    for path in ["/v1/schedules/news".to_owned(), webhook(&ground).await] {
        let first = ask(&ground, "DELETE", &path, &json!({}), "d").await;
        let again = ask(&ground, "DELETE", &path, &json!({}), "d").await;
        assert_eq!((first.status, again.status), (204, 204), "{path}: {again:?}");
        assert!(!is_replay(&first) && is_replay(&again), "{path}: {again:?}");
    }
    let reset = format!("/v1/campaigns/{}/agents/reset", ground.world.campaign.id);
    let first = ask(&ground, "POST", &reset, &json!({}), "r").await;
    let again = ask(&ground, "POST", &reset, &json!({}), "r").await;
    assert!(!is_replay(&first) && is_replay(&again), "{again:?}");
    assert_eq!(again.expect(200), first.expect(200));
}

async fn webhook(ground: &Ground) -> String {
    let made = ground.post("/v1/webhooks", &json!({ "url": "https://example.com/" })).await;
    format!("/v1/webhooks/{}", made.expect(201)["id"].as_str().unwrap())
}

#[tokio::test]
async fn another_input_under_the_key_is_a_conflict_and_a_refused_call_leaves_the_key_free() {
    let ground = Ground::new().await;
    let post = async |name: &str| {
        ask(&ground, "POST", "/v1/campaigns", &json!({ "name": name }), "k").await
    };
    assert_eq!(post(" ").await.status, 422);
    post("Spring").await.expect(201);
    let words = post("Summer").await.problem(409, "idempotency_conflict");
    assert!(words.contains("`create_campaign`"), "{words}");
    // Keys belong to an operation.
    ask(&ground, "POST", "/v1/queues/turns/pause", &json!({}), "k").await.expect(200);
    let long = "x".repeat(196);
    let pause = ask(&ground, "POST", "/v1/queues/turns/pause", &json!({}), &long).await;
    pause.problem(422, "bad_idempotency_key");
}

#[tokio::test]
async fn a_key_belongs_to_the_name_of_an_api_key() {
    let keyed = Keyed::new().await;
    let mut made = Vec::new();
    for caller in ["one", "two"] {
        let new = json!({ "name": caller, "scopes": ["operate"] });
        let key = keyed.ask(Some(ADMIN_KEY), "POST", "/v1/keys", &new).await.expect(201);
        let bearer = format!("Bearer {}", key["secret"].as_str().unwrap());
        let headers = [("Authorization", bearer.as_str()), KEY];
        let body = json!({ "name": "Spring" }).to_string();
        let address = keyed.ground.app.address;
        made.push(send(address, "POST", "/v1/campaigns", &headers, &body).await.expect(201));
    }
    assert_ne!(made[0]["id"], made[1]["id"]);
}

#[tokio::test]
async fn two_calls_with_one_key_at_once_make_one_change() {
    let ground = Ground::new().await;
    let spring = json!({ "name": "Spring" });
    let sent = (0..8).map(|_| ground.post_with("/v1/campaigns", &spring, &[KEY]));
    let replies = futures_util::future::join_all(sent).await;
    let created: Vec<_> = replies.iter().filter(|reply| reply.status == 201).collect();
    assert_eq!(created.len(), 1, "{replies:?}");
    let first = created[0].json();
    assert!(replies.iter().all(|reply| reply.json() == first), "{replies:?}");
    let made = "select count(*) from dalsegno.campaigns where name = 'Spring'";
    assert_eq!(count(&ground, made).await, 1);
}

#[tokio::test]
async fn an_answer_with_a_secret_takes_no_key() {
    let ground = Ground::new().await;
    let new = json!({ "name": "ci", "scopes": ["read"] });
    let words =
        ask(&ground, "POST", "/v1/keys", &new, "k").await.problem(400, "no_idempotency_key");
    assert!(words.contains("secret"), "{words}");
    assert_eq!(count(&ground, "select count(*) from dalsegno.api_keys").await, 0);
    assert_eq!(count(&ground, "select count(*) from dalsegno.operation_keys").await, 0);
}

#[tokio::test]
async fn every_change_looks_at_the_key_and_no_read_does() {
    let ground = Ground::new().await;
    let nil = "00000000-0000-0000-0000-000000000000";
    let is_one_answer = |entry: &&Entry| matches!(entry.run, Run::Once(_));
    for Entry { spec, .. } in ALL.iter().filter(is_one_answer) {
        let path = spec
            .path_fields()
            .fold(spec.path.to_owned(), |path, name| path.replace(&format!("{{{name}}}"), nil));
        // An empty key is refused before the input is parsed.
        let reply = ask(&ground, spec.method.as_str(), &path, &json!({}), " ").await;
        let is_refused = reply.status == 400 && reply.json()["code"] == "bad_idempotency_key";
        // A preview takes a body, and changes nothing.
        let changes = spec.method != Method::Get && spec.id != "preview_bulk_action";
        assert_eq!(is_refused, changes, "{}: {reply:?}", spec.id);
    }
}

#[tokio::test]
async fn forgetting_a_user_removes_the_keys_of_what_is_known_about_the_user() {
    let ground = Ground::new().await;
    let facts = "/v1/users/turns/facts";
    let fact = json!({ "attribute": "City", "text": "Lives in Bergen." });
    ask(&ground, "POST", facts, &fact, "f").await.expect(200);
    let put = format!("/v1/campaigns/{}/user", ground.world.campaign.id);
    ask(&ground, "PUT", &put, &json!({ "user": "turns" }), "u").await.expect(200);
    ask(&ground, "POST", "/v1/campaigns", &json!({ "name": "Spring" }), "c").await.expect(201);
    // A queue may have the same name.
    ask(&ground, "POST", "/v1/queues/turns/pause", &json!({}), "q").await.expect(200);
    assert_eq!(keys(&ground).await, ["c", "f", "q", "u"]);
    ground.post("/v1/users/turns/forget", &json!({})).await.expect(200);
    assert_eq!(keys(&ground).await, ["c", "q"]);
}

#[tokio::test]
async fn an_erasure_leaves_the_key_of_a_queue_that_is_called_as_a_schedule_of_the_campaign() {
    let ground = Ground::new().await;
    let campaign = ground.world.campaign.id;
    let task = json!({ "campaign_id": campaign, "agent": "copywriter", "prompt": "x" });
    let schedule = json!({ "cron": "0 0 8 * * *", "task": task });
    ask(&ground, "PUT", "/v1/schedules/turns", &schedule, "s").await.expect(200);
    ask(&ground, "POST", "/v1/queues/turns/pause", &json!({}), "q").await.expect(200);
    let reset = format!("/v1/campaigns/{campaign}/agents/reset");
    ask(&ground, "POST", &reset, &json!({}), "r").await.expect(200);
    ground.post(&format!("/v1/campaigns/{campaign}/erasure"), &json!({})).await.expect(202);
    let kept = keys(&ground).await;
    assert!(kept.contains(&"q".to_owned()), "{kept:?}");
    let mut tx = ground.app.pool.begin().await.unwrap();
    operation_keys::remove_of_campaign(&mut *tx, campaign).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(keys(&ground).await, ["q"]);
}

/// Returns the number of full scans of this connection.
async fn full_scans(conn: &mut PgConnection) -> i64 {
    let scans = "select seq_scan from pg_stat_xact_user_tables where relid = 'dalsegno.operation_keys'::regclass";
    sqlx::query_scalar(scans).fetch_one(conn).await.unwrap()
}

#[tokio::test]
async fn the_keys_of_a_campaign_and_of_a_user_are_found_by_indexes() {
    let ground = Ground::new().await;
    let mut tx = ground.app.pool.begin().await.unwrap();
    sqlx::query("set local enable_seqscan = off").execute(&mut *tx).await.unwrap();
    let before = full_scans(&mut tx).await;
    operation_keys::remove_of_campaign(&mut *tx, ground.world.campaign.id).await.unwrap();
    operation_keys::remove_of_user(&mut *tx, "ann").await.unwrap();
    assert_eq!(full_scans(&mut tx).await, before);
}

#[tokio::test]
async fn many_calls_of_several_transactions_leave_each_other_the_connections_they_need() {
    // Long enough for a slow machine.
    let ground = Ground::with(&[("http.request_timeout_secs", "300")]).await;
    let reset = format!("/v1/campaigns/{}/agents/reset", ground.world.campaign.id);
    let names: Vec<String> = (0..40).map(|n| format!("reset-{n}")).collect();
    let body = json!({});
    let asked = names.iter().map(|key| ask(&ground, "POST", &reset, &body, key));
    for reply in futures_util::future::join_all(asked).await {
        reply.expect(200);
    }
    assert_eq!(keys(&ground).await.len(), 40);
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_any_more_is_a_conflict_that_says_where_to_look() {
    let ground = Ground::new().await;
    let pause = "/v1/queues/turns/pause";
    ask(&ground, "POST", pause, &json!({}), "p").await.expect(200);
    sqlx::query("update dalsegno.operation_keys set output = '{}'")
        .execute(&ground.app.pool)
        .await
        .unwrap();
    let again = ask(&ground, "POST", pause, &json!({}), "p").await;
    let words = again.problem(409, "idempotency_conflict");
    assert!(words.contains("was made") && words.contains("dalsegno audit ls"), "{words}");
}

#[tokio::test]
async fn a_name_that_is_given_to_another_key_has_no_idempotency_keys() {
    let keyed = Keyed::new().await;
    let make = async || {
        let (key, secret) = keyed.make("shop", &["operate"]).await;
        let bearer = format!("Bearer {secret}");
        let headers = [("Authorization", bearer.as_str()), KEY];
        let body = json!({ "name": "Spring" }).to_string();
        let made = send(keyed.ground.app.address, "POST", "/v1/campaigns", &headers, &body).await;
        (key, made)
    };
    let (key, made) = make().await;
    made.expect(201);
    let revoke = format!("/v1/keys/{}/revoke", key["id"].as_str().unwrap());
    keyed.admin("POST", &revoke, &json!({})).await.expect(200);
    make().await.1.expect(201);
}

#[tokio::test]
async fn the_cleanup_removes_keys_that_are_older_than_their_retention() {
    let ground = Ground::new().await;
    ask(&ground, "POST", "/v1/campaigns", &json!({ "name": "Spring" }), "c").await.expect(201);
    let keys = "select count(*) from dalsegno.operation_keys";
    // The worker's cleanup comes eight days after noon.
    let old = "update dalsegno.operation_keys set created_at = $1";
    let late = "insert into dalsegno.operation_keys (caller, operation, key, input_sha256, created_at, output)
                values ('', 'create_campaign', 'late', sha256(''), $1, '{}')";
    for (sql, at) in [(old, noon() - TimeDelta::days(23)), (late, noon() - TimeDelta::days(21))] {
        sqlx::query(sql).bind(at).execute(&ground.app.pool).await.unwrap();
    }
    cleanups::request(&ground.app.pool).await.unwrap();
    let worker = Worker::start(&ground.app.pool, 0);
    eventually("old ones are gone", async || (count(&ground, keys).await == 1).then_some(())).await;
    worker.stop().await;
    let left: String = sqlx::query_scalar("select key from dalsegno.operation_keys")
        .fetch_one(&ground.app.pool)
        .await
        .unwrap();
    assert_eq!(left, "late");
}
