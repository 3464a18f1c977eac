//! Who is asked for a key, and how often one may come.

use serde_json::{Value, json};

use super::{
    Ground,
    client::{Reply, send},
    keyed::{ADMIN_KEY, Keyed},
};
use crate::app::eventually;

async fn get_with(ground: &Ground, authorization: &str) -> Reply {
    let headers = [("Authorization", authorization)];
    send(ground.app.address, "GET", "/v1/audit", &headers, "").await
}

fn header<'a>(reply: &'a Reply, name: &str) -> &'a str {
    let line = reply.head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
    line.unwrap_or_else(|| panic!("no {name} in {reply:?}"))
}

#[tokio::test]
async fn on_loopback_nobody_is_asked_and_a_key_that_is_shown_counts() {
    let ground = Ground::with(&[("http.admin_key", ADMIN_KEY)]).await;
    ground.get("/v1/audit").await.expect(200);
    let wanted = json!({ "name": "ci", "scopes": ["read"] });
    let made = ground.post("/v1/keys", &wanted).await.expect(201);
    assert_eq!(made["created_by"], "anonymous");
    let key = format!("bearer {}", made["secret"].as_str().unwrap());
    get_with(&ground, &key).await.problem(403, "missing_scope");
    get_with(&ground, &format!("{key}0")).await.problem(401, "bad_key");
    get_with(&ground, &format!("Bearer {ADMIN_KEY}")).await.expect(200);
    // Meant for something in front.
    get_with(&ground, "Bearer eyJhbGciOi.x.y").await.expect(200);
    get_with(&ground, "Basic dTpw").await.expect(200);
}

#[tokio::test]
async fn the_key_of_the_configuration_may_do_everything() {
    let keyed = Keyed::new().await;
    keyed.admin("GET", "/v1/keys", &Value::Null).await.expect(200);
    let new = json!({ "name": "Spring" });
    keyed.admin("POST", "/v1/campaigns", &new).await.expect(201);
    let lines = keyed.admin("GET", "/v1/audit", &Value::Null).await.expect(200);
    assert_eq!(lines["items"][0]["actor_kind"], "admin_key");
    for wrong in [&ADMIN_KEY[1..], &format!("{ADMIN_KEY}0"), ""] {
        let reply = keyed.get(wrong, "/v1/keys").await;
        assert_eq!(reply.status, 401, "{reply:?}");
    }
    // Not elsewhere than in the header.
    let path = format!("/v1/tasks?key={ADMIN_KEY}");
    keyed.ask(None, "GET", &path, &Value::Null).await.problem(401, "unauthenticated");
}

#[tokio::test]
async fn each_key_has_a_limit_of_its_own_and_is_told_of_it() {
    let keyed = Keyed::with(&[("http.requests_per_minute", "3")]).await;
    let (_, one) = keyed.make("one", &["read"]).await;
    let (_, other) = keyed.make("other", &["read"]).await;
    let first = keyed.get(&one, "/v1/campaigns").await;
    first.expect(200);
    assert_eq!(header(&first, "ratelimit-policy"), "\"requests\";q=3;w=60");
    assert!(header(&first, "ratelimit").starts_with("\"requests\";r=2;"), "{first:?}");
    for _ in 0..2 {
        keyed.get(&one, "/v1/campaigns").await.expect(200);
    }
    let refused = keyed.get(&one, "/v1/campaigns").await;
    let detail = refused.problem(429, "too_many_requests");
    assert!(detail.contains("http.requests_per_minute"), "{detail}");
    assert_eq!(refused.json()["retryable"], true);
    let secs: u32 = header(&refused, "retry-after").parse().unwrap();
    assert!((1..=20).contains(&secs), "{refused:?}");
    assert!(header(&refused, "ratelimit").starts_with("\"requests\";r=0;"), "{refused:?}");
    keyed.get(&other, "/v1/campaigns").await.expect(200);
    // Those without a key share the limit of their address; probes have none.
    for _ in 0..3 {
        keyed.ask(None, "GET", "/v1/tasks", &Value::Null).await.problem(401, "unauthenticated");
    }
    let refused = keyed.ask(None, "GET", "/v1/tasks", &Value::Null).await;
    refused.problem(429, "too_many_requests");
    for _ in 0..5 {
        assert_eq!(keyed.ask(None, "GET", "/livez", &Value::Null).await.status, 200);
    }
}

#[tokio::test]
async fn without_a_limit_nothing_is_said_of_one() {
    let ground = Ground::with(&[("http.requests_per_minute", "0")]).await;
    let reply = ground.get("/v1/tasks").await;
    reply.expect(200);
    assert!(!reply.head.contains("ratelimit"), "{reply:?}");
}

#[tokio::test]
async fn whoever_tries_keys_out_is_held_up_and_those_who_have_one_are_not() {
    let keyed = Keyed::new().await;
    let (_, good) = keyed.make("ci", &["read"]).await;
    keyed.get(&good, "/v1/tasks").await.expect(200);
    let mut tries = 0;
    let refused = loop {
        let reply = keyed.get(&format!("dals_000000000000_{tries:064x}"), "/v1/tasks").await;
        if reply.status == 429 {
            break reply;
        }
        reply.problem(401, "bad_key");
        tries += 1;
        assert!(tries < 10_000, "nobody is held up");
    };
    refused.problem(429, "too_many_bad_keys");
    assert!(tries >= 30, "{tries}");
    header(&refused, "retry-after");
    // One that has been seen lately needs no look, and the key of the configuration never does.
    keyed.get(&good, "/v1/tasks").await.expect(200);
    keyed.admin("GET", "/v1/tasks", &Value::Null).await.expect(200);
}

/// Behind one address: somebody who tries keys out, and somebody who has one.
#[tokio::test]
async fn whoever_tries_keys_out_does_not_lock_out_a_key_that_is_known() {
    let keyed = Keyed::new().await;
    let (_, known) = keyed.make("known", &["read"]).await;
    let (_, new) = keyed.make("new", &["read"]).await;
    keyed.get(&known, "/v1/campaigns").await.expect(200);
    let bad = format!("{known}0");
    let is_locked = async || {
        let reply = keyed.get(&bad, "/v1/campaigns").await;
        assert!([401, 429].contains(&reply.status), "{reply:?}");
        reply.status == 429
    };
    eventually("the address is held up", async || is_locked().await.then_some(())).await;
    keyed.get(&new, "/v1/campaigns").await.problem(429, "too_many_bad_keys");
    // For longer than a key is remembered without another look into the database.
    let began = std::time::Instant::now();
    while began.elapsed() < std::time::Duration::from_secs(5) {
        keyed.get(&known, "/v1/campaigns").await.expect(200);
        is_locked().await;
    }
}
