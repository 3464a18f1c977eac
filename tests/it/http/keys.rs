//! `/v1/keys`: creation, lists, rotation and revocation.

use chrono::TimeDelta;
use dalsegno::domain::keys::{self, Scope};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use sqlx::Connection as _;

use super::{client::Stream, keyed::Keyed};
use crate::app::{eventually, noon};

#[tokio::test]
async fn a_key_is_made_shown_once_and_used() {
    let keyed = Keyed::new().await;
    let wanted = json!({ "name": "ci", "scopes": ["read"], "expires_in_secs": 3600 });
    let reply = keyed.admin("POST", "/v1/keys", &wanted).await;
    let made = reply.expect(201);
    assert!(reply.head.contains("cache-control: no-store"), "{reply:?}");
    assert_eq!((&made["scopes"], &made["created_by"]), (&json!(["read"]), &json!("admin_key")));
    assert_eq!(made["expires_at"], "2026-11-20T13:00:00Z");
    let text = made["secret"].as_str().unwrap();
    let begins = format!("dals_{}_", made["handle"].as_str().unwrap());
    assert!(text.starts_with(&begins) && text.len() == 82, "{text}");

    keyed.get(text, "/v1/campaigns").await.expect(200);
    let listed = keyed.admin("GET", "/v1/keys", &Value::Null).await;
    listed.expect(200);
    assert!(!listed.body.contains(&text[18..]), "{listed:?}");
    let shown = eventually("its use is written down", async || {
        Some(keyed.listed(&made["id"]).await).filter(|key| !key["last_used_at"].is_null())
    });
    assert_eq!(shown.await["last_used_at"], "2026-11-20T12:00:00Z");
}

#[tokio::test]
async fn a_key_that_is_wrong_or_unknown_is_refused_in_the_same_words() {
    let keyed = Keyed::new().await;
    let (_, text) = keyed.make("ci", &["read"]).await;
    let wrong = format!("{}{}", &text[..81], if text.ends_with('0') { '1' } else { '0' });
    let unknown = text.replacen(&text[5..17], "000000000000", 1);
    let mut details = Vec::new();
    for bad in [&wrong, &unknown, "dals_", "sk-1234", &format!("{text}0")] {
        let reply = keyed.get(bad, "/v1/campaigns").await;
        details.push(reply.problem(401, "bad_key"));
        let challenge = r#"www-authenticate: Bearer realm="dalsegno", error="invalid_token""#;
        assert!(reply.head.contains(challenge), "{reply:?}");
        assert!(!reply.body.contains(bad) && !reply.head.contains(bad), "{reply:?}");
    }
    details.dedup();
    assert_eq!(details.len(), 1, "{details:?}");
    keyed.get(&text, "/v1/campaigns").await.expect(200);
}

#[tokio::test]
async fn an_expired_key_is_refused_as_an_unknown_one() {
    let keyed = Keyed::new().await;
    let pool = &keyed.ground.app.pool;
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
    keyed.get(&live, "/v1/campaigns").await.expect(200);
    // The expiry itself is too late.
    let dead = made_with("dead", TimeDelta::zero()).await;
    let detail = keyed.get(&dead, "/v1/campaigns").await.problem(401, "bad_key");
    assert_eq!(detail, keyed.get("x", "/v1/campaigns").await.problem(401, "bad_key"));
}

#[tokio::test]
async fn a_revoked_key_is_refused_soon_also_where_it_was_just_used() {
    let keyed = Keyed::new().await;
    let (made, text) = keyed.make("ci", &["read"]).await;
    keyed.get(&text, "/v1/campaigns").await.expect(200);
    let path = format!("/v1/keys/{}/revoke", made["id"].as_str().unwrap());
    let revoked = keyed.admin("POST", &path, &json!({})).await.expect(200);
    assert_eq!(revoked["revoked_at"], "2026-11-20T12:00:00Z");
    eventually("it is refused", async || {
        let reply = keyed.get(&text, "/v1/campaigns").await;
        (reply.status == 401).then(|| reply.problem(401, "bad_key"))
    })
    .await;
    // Revoking again changes nothing, and the name is free.
    let again = keyed.admin("POST", &path, &json!({})).await.expect(200);
    assert_eq!(again["revoked_at"], revoked["revoked_at"]);
    keyed.make("ci", &["read"]).await;
    let rotate = path.replace("revoke", "rotate");
    keyed.admin("POST", &rotate, &json!({})).await.problem(409, "key_revoked");
}

#[tokio::test]
async fn a_rotated_key_and_its_successor_both_hold_for_a_while() {
    let keyed = Keyed::new().await;
    let (old, old_text) = keyed.make("ci", &["read", "enqueue"]).await;
    let path = format!("/v1/keys/{}/rotate", old["id"].as_str().unwrap());
    let new = keyed.admin("POST", &path, &json!({ "overlap_secs": 60 })).await.expect(201);
    let new_text = new["secret"].as_str().unwrap();
    assert_eq!((&new["name"], &new["scopes"]), (&old["name"], &old["scopes"]));
    assert_eq!((&new["expires_at"], new_text == old_text), (&Value::Null, false));
    for text in [&old_text, new_text] {
        keyed.get(text, "/v1/campaigns").await.expect(200);
    }
    let replaced = keyed.listed(&old["id"]).await;
    assert_eq!(replaced["expires_at"], "2026-11-20T12:01:00Z");
    assert_eq!(replaced["replaced_by"], new["id"]);
    keyed.admin("POST", &path, &json!({})).await.problem(409, "key_replaced");
    // Without an overlap, the old key is refused at once by processes that have not cached it.
    let path = format!("/v1/keys/{}/rotate", new["id"].as_str().unwrap());
    let last = keyed.admin("POST", &path, &json!({ "overlap_secs": 0 })).await.expect(201);
    eventually("the one before is refused", async || {
        (keyed.get(new_text, "/v1/campaigns").await.status == 401).then_some(())
    })
    .await;
    keyed.get(last["secret"].as_str().unwrap(), "/v1/campaigns").await.expect(200);
}

#[tokio::test]
async fn a_successor_lives_as_long_as_the_old_one_was_meant_to() {
    let keyed = Keyed::new().await;
    let wanted = json!({ "name": "ci", "scopes": ["read"], "expires_in_secs": 7200 });
    let old = keyed.admin("POST", "/v1/keys", &wanted).await.expect(201);
    let path = format!("/v1/keys/{}/rotate", old["id"].as_str().unwrap());
    // The overlap does not extend the old key's expiry.
    let new = keyed.admin("POST", &path, &json!({})).await.expect(201);
    assert_eq!(new["expires_at"], "2026-11-20T14:00:00Z");
    assert_eq!(keyed.listed(&old["id"]).await["expires_at"], "2026-11-20T14:00:00Z");
}

#[tokio::test]
async fn a_key_that_is_shown_again_and_again_is_not_looked_up_each_time() {
    let keyed = Keyed::new().await;
    let (_, text) = keyed.make("ci", &["read"]).await;
    for _ in 0..200 {
        keyed.get(&text, "/v1/agents").await.expect(200);
    }
    // The statistics of a connection are complete after its end.
    let pool = &keyed.ground.app.pool;
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
    assert!((1..100).contains(&n_reads), "200 requests looked {n_reads} times");
}

#[tokio::test]
async fn mistakes_in_a_key_are_told() {
    let keyed = Keyed::new().await;
    let post = async |body: Value| keyed.admin("POST", "/v1/keys", &body).await;
    post(json!({ "name": "a b", "scopes": ["read"] })).await.problem(422, "bad_value");
    post(json!({ "name": "ci", "scopes": [] })).await.problem(422, "bad_value");
    post(json!({ "name": "ci", "scopes": ["write"] })).await.problem(422, "bad_field");
    let dead = json!({ "name": "ci", "scopes": ["read"], "expires_in_secs": 0 });
    post(dead).await.problem(422, "key_expired");
    keyed.make("ci", &["read"]).await;
    let taken = post(json!({ "name": "ci", "scopes": ["admin"] })).await;
    assert!(taken.problem(409, "key_name_taken").contains("key rotate ci"));
    let nobody = "/v1/keys/00000000-0000-0000-0000-000000000000/rotate";
    keyed.admin("POST", nobody, &json!({})).await.problem(404, "unknown_key");
}

#[tokio::test]
async fn a_key_is_rotated_once_however_many_ask_at_once() {
    let keyed = Keyed::new().await;
    let (old, _) = keyed.make("ci", &["read"]).await;
    let path = format!("/v1/keys/{}/rotate", old["id"].as_str().unwrap());
    let body = json!({});
    let asked = (0..5).map(|_| keyed.admin("POST", &path, &body));
    let replies = futures_util::future::join_all(asked).await;
    let mut statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409, 409]);
}

#[tokio::test]
async fn the_last_use_is_written_at_most_once_a_minute() {
    let keyed = Keyed::new().await;
    let (made, _) = keyed.make("ci", &["read"]).await;
    let id = made["id"].as_str().unwrap().parse().unwrap();
    let pool = &keyed.ground.app.pool;
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
    let keyed = Keyed::new().await;
    let (made, going) = keyed.make("going", &["read"]).await;
    let (_, staying) = keyed.make("staying", &["read"]).await;
    let task = keyed.ground.world.add("Part one.").await;
    let address = keyed.ground.app.address;
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
    keyed.admin("POST", &revoke, &json!({})).await.expect(200);
    assert_eq!(feed.next().await, None);
    assert_eq!(events.next().await, None);
    keyed.ground.world.add("Part two.").await;
    assert_eq!(others.next().await.unwrap().event, "task.queued");
}
