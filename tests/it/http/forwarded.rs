//! Addresses of clients behind proxies.

use serde_json::json;

use super::{
    Fixture,
    client::{Reply, send},
};

const LIMIT: [(&str, &str); 1] = [("http.requests_per_minute", "3")];
const PROXY: (&str, &str) = ("http.trusted_proxies", "10.0.0.0/8, 127.0.0.1");

async fn get(fixture: &Fixture, headers: &[(&str, &str)]) -> Reply {
    send(fixture.app.address, "GET", "/v1/tasks", headers, "").await
}

#[tokio::test]
async fn behind_a_trusted_proxy_each_client_has_its_own_rate_limit() {
    let fixture = Fixture::with(&[LIMIT[0], PROXY]).await;
    for n in 0..3 {
        // Addresses claimed by the client are to the left of those that proxies add.
        let spoofed = format!("198.51.100.{n}, 203.0.113.9, 10.1.2.3");
        get(&fixture, &[("X-Forwarded-For", &spoofed)]).await.expect(200);
    }
    for header in
        [("X-Forwarded-For", "198.51.100.77, 203.0.113.9"), ("Forwarded", "for=203.0.113.9")]
    {
        get(&fixture, &[header]).await.problem(429, "too_many_requests");
    }
    get(&fixture, &[("Forwarded", "for=203.0.113.9, for=203.0.113.10;proto=https")])
        .await
        .expect(200);
    // A proxy that sets one header passes the other on unchanged.
    let both = [("Forwarded", "for=198.51.100.1"), ("X-Forwarded-For", "203.0.113.11")];
    get(&fixture, &both).await.problem(400, "bad_forwarding");
}

#[tokio::test]
async fn without_a_trusted_proxy_forwarded_headers_are_ignored() {
    let fixture = Fixture::with(&LIMIT).await;
    for n in 0..3 {
        let spoofed = format!("203.0.113.{n}");
        get(&fixture, &[("X-Forwarded-For", &spoofed)]).await.expect(200);
    }
    for header in [("X-Forwarded-For", "203.0.113.50"), ("Forwarded", "for=203.0.113.51")] {
        get(&fixture, &[header]).await.problem(429, "too_many_requests");
    }
}

#[tokio::test]
async fn the_audit_log_shows_the_real_client_address() {
    for (set, expected) in [(&[PROXY][..], "203.0.113.9"), (&[], "127.0.0.1")] {
        let fixture = Fixture::with(set).await;
        let spoofed = [("X-Forwarded-For", "198.51.100.1, 203.0.113.9")];
        let body = json!({ "name": "Spring" });
        fixture.post_with("/v1/campaigns", &body, &spoofed).await.expect(201);
        let lines = fixture.get("/v1/audit").await.expect(200);
        assert_eq!(lines["items"][0]["peer"], expected, "{lines}");
    }
}
