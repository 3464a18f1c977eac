//! Authentication and rate limits.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{
    Fixture,
    client::{Reply, send},
    key_setup::{ADMIN_KEY, KeySetup},
};

async fn get_with(fixture: &Fixture, authorization: &str) -> Reply {
    let headers = [("Authorization", authorization)];
    send(fixture.app.address, "GET", "/v1/audit", &headers, "").await
}

fn header<'a>(reply: &'a Reply, name: &str) -> &'a str {
    let line = reply.head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
    line.unwrap_or_else(|| panic!("no {name} in {reply:?}"))
}

#[tokio::test]
async fn loopback_needs_no_key_and_a_given_key_is_checked() {
    let fixture = Fixture::with(&[("http.admin_key", ADMIN_KEY)]).await;
    fixture.get("/v1/audit").await.expect(200);
    let wanted = json!({ "name": "ci", "scopes": ["read"] });
    let made = fixture.post("/v1/keys", &wanted).await.expect(201);
    assert_eq!(made["created_by"], "anonymous");
    let key = format!("bearer {}", made["secret"].as_str().unwrap());
    get_with(&fixture, &key).await.problem(403, "missing_scope");
    get_with(&fixture, &format!("{key}0")).await.problem(401, "bad_key");
    get_with(&fixture, &format!("Bearer {ADMIN_KEY}")).await.expect(200);
    for wrong in
        ["Bearer nope", "Bearer eyJhbGciOi.x.y", "Bearer ", "Bearer", "Basic dTpw", "nope", ""]
    {
        get_with(&fixture, wrong).await.problem(401, "bad_key");
    }
}

#[tokio::test]
async fn with_unauthenticated_access_a_proxys_authorization_header_is_ignored() {
    let fixture = Fixture::with(&[("http.allow_unauthenticated", "true")]).await;
    for proxys in ["Bearer eyJhbGciOi.x.y", "Basic dTpw"] {
        get_with(&fixture, proxys).await.expect(200);
    }
    get_with(&fixture, "Bearer dals_nope").await.problem(401, "bad_key");
}

#[tokio::test]
async fn the_configured_key_has_every_scope() {
    let setup = KeySetup::new().await;
    setup.admin("GET", "/v1/keys", &Value::Null).await.expect(200);
    let new = json!({ "name": "Spring" });
    setup.admin("POST", "/v1/campaigns", &new).await.expect(201);
    let lines = setup.admin("GET", "/v1/audit", &Value::Null).await.expect(200);
    assert_eq!(lines["items"][0]["actor_kind"], "admin_key");
    for wrong in [&ADMIN_KEY[1..], &format!("{ADMIN_KEY}0"), ""] {
        let reply = setup.get(wrong, "/v1/keys").await;
        assert_eq!(reply.status, 401, "{reply:?}");
    }
    // Keys are accepted in the header only.
    let path = format!("/v1/tasks?key={ADMIN_KEY}");
    setup.ask(None, "GET", &path, &Value::Null).await.problem(401, "unauthenticated");
}

#[tokio::test]
async fn each_key_has_its_own_rate_limit_and_gets_it_in_headers() {
    let setup = KeySetup::with(&[("http.requests_per_minute", "3")]).await;
    let (_, one) = setup.create_key("one", &["read"]).await;
    let (_, other) = setup.create_key("other", &["read"]).await;
    let first = setup.get(&one, "/v1/campaigns").await;
    first.expect(200);
    assert_eq!(header(&first, "ratelimit-policy"), "\"requests\";q=3;w=60");
    assert!(header(&first, "ratelimit").starts_with("\"requests\";r=2;"), "{first:?}");
    for _ in 0..2 {
        setup.get(&one, "/v1/campaigns").await.expect(200);
    }
    let refused = setup.get(&one, "/v1/campaigns").await;
    let detail = refused.problem(429, "too_many_requests");
    assert!(detail.contains("http.requests_per_minute"), "{detail}");
    assert_eq!(refused.json()["retryable"], true);
    let secs: u32 = header(&refused, "retry-after").parse().unwrap();
    assert!((1..=20).contains(&secs), "{refused:?}");
    assert!(header(&refused, "ratelimit").starts_with("\"requests\";r=0;"), "{refused:?}");
    setup.get(&other, "/v1/campaigns").await.expect(200);
    // Requests without a key share the limit of their address; probes have none.
    for _ in 0..3 {
        setup.ask(None, "GET", "/v1/tasks", &Value::Null).await.problem(401, "unauthenticated");
    }
    let refused = setup.ask(None, "GET", "/v1/tasks", &Value::Null).await;
    refused.problem(429, "too_many_requests");
    for _ in 0..5 {
        assert_eq!(setup.ask(None, "GET", "/livez", &Value::Null).await.status, 200);
    }
}

#[tokio::test]
async fn without_a_rate_limit_no_limit_header_is_sent() {
    let fixture = Fixture::with(&[("http.requests_per_minute", "0")]).await;
    let reply = fixture.get("/v1/tasks").await;
    reply.expect(200);
    assert!(!reply.head.contains("ratelimit"), "{reply:?}");
}

#[tokio::test]
async fn repeated_bad_keys_are_answered_429_and_good_keys_never() {
    let setup = KeySetup::new().await;
    let (_, known) = setup.create_key("known", &["read"]).await;
    let (_, new) = setup.create_key("new", &["read"]).await;
    setup.get(&known, "/v1/tasks").await.expect(200);
    let mut tries = 0;
    let refused = loop {
        // Includes the handle of an existing key.
        let handle = if tries % 2 == 0 { "000000000000" } else { &known[5..17] };
        let reply = setup.get(&format!("dals_{handle}_{tries:064x}"), "/v1/tasks").await;
        if reply.status == 429 {
            break reply;
        }
        reply.problem(401, "bad_key");
        tries += 1;
        assert!(tries < 10_000, "no bad key is answered 429");
    };
    refused.problem(429, "too_many_bad_keys");
    assert!(tries >= 30, "{tries}");
    header(&refused, "retry-after");
    setup.get(&known, "/v1/tasks").await.expect(200);
    setup.get(&new, "/v1/tasks").await.expect(200);
    setup.admin("GET", "/v1/tasks", &Value::Null).await.expect(200);
}

/// Sends bad keys on one connection, several at a time, until `stop`. Counts the answered ones.
async fn flood(address: SocketAddr, first: u64, n_bad: &AtomicU64, stop: &AtomicBool) {
    const AT_ONCE: u64 = 4;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut n_answered = 0;
    while !stop.load(Ordering::Relaxed) {
        let requests: String = (0..AT_ONCE)
            .map(|place| {
                let secret = first + n_answered + place;
                let handle = secret & 0xffff_ffff;
                format!(
                    "GET /v1/campaigns HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer dals_{handle:012x}_{secret:064x}\r\n\r\n"
                )
            })
            .collect();
        stream.write_all(requests.as_bytes()).await.unwrap();
        let (mut answers, mut buffer) = (String::new(), vec![0; 64 * 1024]);
        while answers.matches(r#""retryable":"#).count() < AT_ONCE as usize {
            let n_bytes = stream.read(&mut buffer).await.unwrap();
            assert!(n_bytes > 0, "{answers}");
            answers.push_str(std::str::from_utf8(&buffer[..n_bytes]).unwrap());
        }
        assert!(!answers.contains("HTTP/1.1 2"), "{answers}");
        n_answered += AT_ONCE;
        n_bad.fetch_add(AT_ONCE, Ordering::Relaxed);
    }
}

/// Known keys, and keys that the service has not cached yet, from the address of the flood.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_bad_keys_blocks_no_good_key() {
    const SECS: u64 = 6;
    let setup = KeySetup::new().await;
    let (_, known) = setup.create_key("known", &["read"]).await;
    let mut fresh = Vec::new();
    for n in 0..40 {
        fresh.push(setup.create_key(&format!("fresh-{n}"), &["read"]).await.1);
    }
    let (address, stop) = (setup.fixture.app.address, Arc::new(AtomicBool::new(false)));
    let n_bad = Arc::<AtomicU64>::default();
    let floods: Vec<_> = (0..200)
        .map(|n: u64| {
            let (n_bad, stop) = (Arc::clone(&n_bad), Arc::clone(&stop));
            tokio::spawn(async move { flood(address, n << 40, &n_bad, &stop).await })
        })
        .collect();
    let began = Instant::now();
    let (mut n_asked, mut refused) = (0, Vec::new());
    // Longer than a key stays cached, and through a flood.
    let is_flooded = || n_bad.load(Ordering::Relaxed) > 1_000;
    while began.elapsed() < Duration::from_secs(SECS) || !fresh.is_empty() || !is_flooded() {
        let next = fresh.pop();
        for key in [Some(&known), next.as_ref()].into_iter().flatten() {
            let reply = setup.get(key, "/v1/campaigns").await;
            n_asked += 1;
            if reply.status != 200 {
                refused.push(reply);
            }
        }
    }
    let took = began.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    futures_util::future::join_all(floods).await.into_iter().for_each(Result::unwrap);
    let n_bad = n_bad.load(Ordering::Relaxed);
    println!(
        "{n_bad} bad keys in {took:.1} s ({:.0} per second); beside them {n_asked} requests with good keys, {} refused",
        n_bad as f64 / took,
        refused.len()
    );
    assert!(refused.is_empty(), "{} of {n_asked}: {:?}", refused.len(), refused[0]);
}
