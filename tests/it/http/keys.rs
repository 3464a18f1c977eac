//! `/v1/keys`: creation, lists, rotation and revocation.

use chrono::TimeDelta;
use dalsegno::domain::keys::{self, Scope};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use sqlx::Connection as _;

use super::{client::Stream, key_setup::KeySetup};
use crate::app::{eventually, noon};

#[tokio::test]
async fn a_key_is_created_shown_once_and_used() {
    let setup = KeySetup::new().await;
    let wanted = json!({ "name": "ci", "scopes": ["read"], "expires_in_secs": 3600 });
    let reply = setup.admin("POST", "/v1/keys", &wanted).await;
    let made = reply.expect(201);
    assert!(reply.head.contains("cache-control: no-store"), "{reply:?}");
    assert_eq!((&made["scopes"], &made["created_by"]), (&json!(["read"]), &json!("admin_key")));
    assert_eq!(made["expires_at"], "2026-11-20T13:00:00Z");
    let text = made["secret"].as_str().unwrap();
    let begins = format!("dals_{}_", made["handle"].as_str().unwrap());
    assert!(text.starts_with(&begins) && text.len() == 82, "{text}");

    setup.get(text, "/v1/campaigns").await.expect(200);
    let listed = setup.admin("GET", "/v1/keys", &Value::Null).await;
    listed.expect(200);
    assert!(!listed.body.contains(&text[18..]), "{listed:?}");
    let shown = eventually("the last use is stored", async || {
        Some(setup.listed(&made["id"]).await).filter(|key| !key["last_used_at"].is_null())
    });
    assert_eq!(shown.await["last_used_at"], "2026-11-20T12:00:00Z");
}

#[tokio::test]
async fn a_wrong_key_and_an_unknown_key_get_the_same_refusal() {
    let setup = KeySetup::new().await;
    let (_, text) = setup.create_key("ci", &["read"]).await;
    let wrong = format!("{}{}", &text[..81], if text.ends_with('0') { '1' } else { '0' });
    let unknown = text.replacen(&text[5..17], "000000000000", 1);
    let mut details = Vec::new();
    for bad in [&wrong, &unknown, "dals_", "sk-1234", &format!("{text}0")] {
        let reply = setup.get(bad, "/v1/campaigns").await;
        details.push(reply.problem(401, "bad_key"));
        let challenge = r#"www-authenticate: Bearer realm="dalsegno", error="invalid_token""#;
        assert!(reply.head.contains(challenge), "{reply:?}");
        assert!(!reply.body.contains(bad) && !reply.head.contains(bad), "{reply:?}");
    }
    details.dedup();
    assert_eq!(details.len(), 1, "{details:?}");
    setup.get(&text, "/v1/campaigns").await.expect(200);
}

#[tokio::test]
async fn an_expired_key_is_refused_like_an_unknown_one() {
    let setup = KeySetup::new().await;
    let pool = &setup.fixture.app.pool;
    let made_with = async |name, expires_in| {
        let new = keys::New {
            name,
            scopes: &[Scope::Read],
            campaigns: None,
            created_by: "cli:test",
            expires_at: Some(noon() + expires_in),
        };
        let mut tx = pool.begin().await.unwrap();
        let made = keys::create(&mut tx, &new, noon() - TimeDelta::days(1)).await.unwrap();
        tx.commit().await.unwrap();
        made.text.expose_secret().to_owned()
    };
    let live = made_with("live", TimeDelta::seconds(1)).await;
    setup.get(&live, "/v1/campaigns").await.expect(200);
    // The expiry itself is too late.
    let dead = made_with("dead", TimeDelta::zero()).await;
    let detail = setup.get(&dead, "/v1/campaigns").await.problem(401, "bad_key");
    assert_eq!(detail, setup.get("x", "/v1/campaigns").await.problem(401, "bad_key"));
}

#[tokio::test]
async fn a_revoked_key_is_refused_soon_even_after_recent_use() {
    let setup = KeySetup::new().await;
    let (made, text) = setup.create_key("ci", &["read"]).await;
    setup.get(&text, "/v1/campaigns").await.expect(200);
    let path = format!("/v1/keys/{}/revoke", made["id"].as_str().unwrap());
    let revoked = setup.admin("POST", &path, &json!({})).await.expect(200);
    assert_eq!(revoked["revoked_at"], "2026-11-20T12:00:00Z");
    eventually("the key is refused", async || {
        let reply = setup.get(&text, "/v1/campaigns").await;
        (reply.status == 401).then(|| reply.problem(401, "bad_key"))
    })
    .await;
    // Revoking again changes nothing, and the name is free.
    let again = setup.admin("POST", &path, &json!({})).await.expect(200);
    assert_eq!(again["revoked_at"], revoked["revoked_at"]);
    setup.create_key("ci", &["read"]).await;
    let rotate = path.replace("revoke", "rotate");
    setup.admin("POST", &rotate, &json!({})).await.problem(409, "key_revoked");
}

#[tokio::test]
async fn a_rotated_key_and_its_successor_are_both_valid_for_a_while() {
    let setup = KeySetup::new().await;
    let (old, old_text) = setup.create_key("ci", &["read", "enqueue"]).await;
    let path = format!("/v1/keys/{}/rotate", old["id"].as_str().unwrap());
    let new = setup.admin("POST", &path, &json!({ "overlap_secs": 60 })).await.expect(201);
    let new_text = new["secret"].as_str().unwrap();
    assert_eq!((&new["name"], &new["scopes"]), (&old["name"], &old["scopes"]));
    assert_eq!((&new["expires_at"], new_text == old_text), (&Value::Null, false));
    for text in [&old_text, new_text] {
        setup.get(text, "/v1/campaigns").await.expect(200);
    }
    let replaced = setup.listed(&old["id"]).await;
    assert_eq!(replaced["expires_at"], "2026-11-20T12:01:00Z");
    assert_eq!(replaced["replaced_by"], new["id"]);
    setup.admin("POST", &path, &json!({})).await.problem(409, "key_replaced");
    // Without an overlap, the old key is refused at once by processes that have not cached it.
    let path = format!("/v1/keys/{}/rotate", new["id"].as_str().unwrap());
    let last = setup.admin("POST", &path, &json!({ "overlap_secs": 0 })).await.expect(201);
    eventually("the previous key is refused", async || {
        (setup.get(new_text, "/v1/campaigns").await.status == 401).then_some(())
    })
    .await;
    setup.get(last["secret"].as_str().unwrap(), "/v1/campaigns").await.expect(200);
}

#[tokio::test]
async fn a_successor_expires_when_the_old_key_would_have() {
    let setup = KeySetup::new().await;
    let wanted = json!({ "name": "ci", "scopes": ["read"], "expires_in_secs": 7200 });
    let old = setup.admin("POST", "/v1/keys", &wanted).await.expect(201);
    let path = format!("/v1/keys/{}/rotate", old["id"].as_str().unwrap());
    // The overlap does not extend the old key's expiry.
    let new = setup.admin("POST", &path, &json!({})).await.expect(201);
    assert_eq!(new["expires_at"], "2026-11-20T14:00:00Z");
    assert_eq!(setup.listed(&old["id"]).await["expires_at"], "2026-11-20T14:00:00Z");
}

#[tokio::test]
async fn a_repeated_key_is_not_looked_up_each_time() {
    let setup = KeySetup::new().await;
    let (_, text) = setup.create_key("ci", &["read"]).await;
    for _ in 0..200 {
        setup.get(&text, "/v1/agents").await.expect(200);
    }
    // The statistics of a connection are complete after its end.
    let pool = &setup.fixture.app.pool;
    let options = pool.connect_options();
    pool.close().await;
    let mut own = sqlx::PgConnection::connect_with(&options).await.unwrap();
    let n_reads = "select coalesce(t.idx_scan, 0) + coalesce(t.seq_scan, 0) from pg_stat_user_tables as t
                    where t.relname = 'api_keys' and not exists
                          (select from pg_stat_activity as a
                            where a.datname = current_database() and a.pid <> pg_backend_pid() and a.backend_type = 'client backend')";
    let n_reads: i64 = eventually("all other connections have ended", async || {
        sqlx::query_scalar(n_reads).fetch_optional(&mut own).await.unwrap()
    })
    .await;
    own.close().await.unwrap();
    assert!((1..100).contains(&n_reads), "200 requests caused {n_reads} lookups");
}

#[tokio::test]
async fn invalid_fields_of_a_key_are_refused_with_a_reason() {
    let setup = KeySetup::new().await;
    let post = async |body: Value| setup.admin("POST", "/v1/keys", &body).await;
    post(json!({ "name": "a b", "scopes": ["read"] })).await.problem(422, "bad_value");
    post(json!({ "name": "ci", "scopes": [] })).await.problem(422, "bad_value");
    post(json!({ "name": "ci", "scopes": ["write"] })).await.problem(422, "bad_field");
    let dead = json!({ "name": "ci", "scopes": ["read"], "expires_in_secs": 0 });
    post(dead).await.problem(422, "key_expired");
    setup.create_key("ci", &["read"]).await;
    let taken = post(json!({ "name": "ci", "scopes": ["admin"] })).await;
    assert!(taken.problem(409, "key_name_taken").contains("key rotate ci"));
    let unknown = "/v1/keys/00000000-0000-0000-0000-000000000000/rotate";
    setup.admin("POST", unknown, &json!({})).await.problem(404, "unknown_key");
}

#[tokio::test]
async fn concurrent_rotations_rotate_a_key_once() {
    let setup = KeySetup::new().await;
    let (old, _) = setup.create_key("ci", &["read"]).await;
    let path = format!("/v1/keys/{}/rotate", old["id"].as_str().unwrap());
    let body = json!({});
    let asked = (0..5).map(|_| setup.admin("POST", &path, &body));
    let replies = futures_util::future::join_all(asked).await;
    let mut statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409, 409]);
}

#[tokio::test]
async fn the_last_use_is_stored_at_most_once_a_minute() {
    let setup = KeySetup::new().await;
    let (made, _) = setup.create_key("ci", &["read"]).await;
    let id = made["id"].as_str().unwrap().parse().unwrap();
    let pool = &setup.fixture.app.pool;
    let used_at = async |after_secs| {
        keys::record_use(pool, id, noon() + TimeDelta::seconds(after_secs)).await.unwrap();
        (keys::get(pool, id).await.unwrap().last_used_at.unwrap() - noon()).num_seconds()
    };
    assert_eq!(used_at(0).await, 0);
    assert_eq!(used_at(59).await, 0);
    assert_eq!(used_at(60).await, 60);
    // A process with a slow clock changes nothing.
    assert_eq!(used_at(30).await, 60);
}

#[tokio::test]
async fn a_stream_does_not_outlive_its_key() {
    let setup = KeySetup::new().await;
    let (made, going) = setup.create_key("going", &["read"]).await;
    let (_, staying) = setup.create_key("staying", &["read"]).await;
    let task = setup.fixture.world.add("Part one.").await;
    let address = setup.fixture.app.address;
    let open = async |key: &str, path: &str| {
        let bearer = format!("Bearer {key}");
        Stream::open_with(address, path, &[("Authorization", &bearer)]).await.ok().unwrap()
    };
    let of_task = format!("/v1/tasks/{}/events", task.id);
    let mut feed = open(&going, "/v1/feed").await;
    let mut events = open(&going, &of_task).await;
    let mut others = open(&staying, "/v1/feed").await;
    assert_eq!(feed.next().await.unwrap().event, "begin");
    assert_eq!(events.next().await.unwrap().event, "task.queued");
    assert_eq!(others.next().await.unwrap().event, "begin");
    let revoke = format!("/v1/keys/{}/revoke", made["id"].as_str().unwrap());
    setup.admin("POST", &revoke, &json!({})).await.expect(200);
    assert_eq!(feed.next().await, None);
    assert_eq!(events.next().await, None);
    setup.fixture.world.add("Part two.").await;
    assert_eq!(others.next().await.unwrap().event, "task.queued");
}
