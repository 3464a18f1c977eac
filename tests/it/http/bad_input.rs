//! Invalid input: each mistake is a problem document with a stable code, and nothing is stored.

use dalsegno::domain::{Amount, amount::Limit};
use serde_json::{Value, json};

use super::{Fixture, client::send};
use crate::conversations::world::World;

const NIL: &str = "00000000-0000-0000-0000-000000000000";

#[tokio::test]
async fn each_error_in_a_task_has_its_status_and_code() {
    let fixture = Fixture::new().await;
    let ask = |field: &str, value: Value| {
        let mut ask = json!({ "agent": "copywriter", "prompt": "Part one." });
        ask[field] = value;
        ask
    };
    let table = [
        (ask("agent", json!("copywritter")), 404, "unknown_agent", "did you mean `copywriter`?"),
        (ask("prompt", json!(" \n")), 422, "empty_text", "the prompt is empty"),
        (ask("prompt", json!("a\0b")), 422, "nul_in_text", "byte 1"),
        (ask("prompt", json!("x".repeat(262_145))), 413, "text_too_long", "262145 bytes"),
        (ask("instance", json!("Main one")), 422, "bad_instance", "`Main one`"),
        (ask("budget", json!({ "tokens": 0 })), 422, "empty_budget", "must be more than 0"),
        (ask("priority", json!(-1)), 422, "bad_argument", "priority"),
        (ask("promt", json!("x")), 422, "bad_field", "unknown field `promt`"),
        (ask("session", json!("new")), 422, "bad_field", "unknown value `new`, expected"),
        (ask("session", json!(5)), 422, "bad_field", "expected a value of another type"),
        (ask("budget", json!([1])), 422, "bad_field", "invalid type: array, expected an object"),
        (ask("depends_on", json!({})), 422, "bad_field", "invalid type: object, expected an array"),
        (ask("priority", json!(1e9)), 422, "bad_field", "expected a whole number from -2147483648"),
        (ask("prompt", json!(7)), 422, "bad_field", "invalid type"),
        (ask("budget", json!({ "money": 1 })), 422, "bad_field", "unknown field `money`"),
        (json!({ "agent": "copywriter" }), 422, "bad_field", "missing field `prompt`"),
    ];
    for (body, status, code, words) in table {
        let detail = fixture.post(&fixture.tasks(), &body).await.problem(status, code);
        assert!(detail.contains(words), "{detail}");
    }
    let there = format!("/v1/campaigns/{NIL}/tasks");
    let ask = json!({ "agent": "copywriter", "prompt": "x" });
    fixture.post(&there, &ask).await.problem(404, "unknown_campaign");
    assert_eq!(fixture.get("/v1/tasks").await.expect(200)["items"], json!([]));
}

#[tokio::test]
async fn an_invalid_field_is_located() {
    let fixture = Fixture::new().await;
    let body = json!({ "agent": "copywriter", "prompt": "x", "budget": { "tokens": "many" } });
    let reply = fixture.post(&fixture.tasks(), &body).await;
    reply.problem(422, "bad_field");
    assert_eq!(reply.json()["errors"][0]["pointer"], "/budget/tokens", "{reply:?}");
}

#[tokio::test]
async fn an_invalid_list_item_is_located_by_its_index() {
    let fixture = Fixture::new().await;
    let campaign = format!("/v1/campaigns/{}", fixture.world.campaign.id);
    let item = json!({ "kind": "record", "name": "a", "title": "t", "body": null });
    let import = json!({ "items": [item] });
    let key = json!({ "name": "k", "scopes": ["read"], "campaigns": [7] });
    for (path, body, pointer) in [
        (format!("{campaign}/memory/import"), import, "/items/0/body"),
        ("/v1/keys".to_owned(), key, "/campaigns/0"),
    ] {
        let reply = fixture.post(&path, &body).await;
        reply.problem(422, "bad_field");
        assert_eq!(reply.json()["errors"][0]["pointer"], pointer, "{reply:?}");
    }
}

#[tokio::test]
async fn no_refusal_of_a_body_names_a_rust_type() {
    let fixture = Fixture::new().await;
    let campaign = format!("/v1/campaigns/{}", fixture.world.campaign.id);
    let wrong = [json!(7), json!("x"), json!([7]), json!({ "x": 7 }), json!(null), json!(1.5)];
    let mut n_refused = 0;
    for path in [
        fixture.tasks(),
        format!("{}/bulk", fixture.tasks()),
        format!("{campaign}/flows"),
        format!("{campaign}/posts"),
        format!("{campaign}/memory"),
        format!("{campaign}/memory/import"),
        format!("{campaign}/agents/reset"),
        "/v1/campaigns".to_owned(),
        "/v1/keys".to_owned(),
        "/v1/webhooks".to_owned(),
        "/v1/bulk-actions".to_owned(),
        "/v1/users/u/facts".to_owned(),
    ] {
        let fields = [
            "agent",
            "session",
            "budget",
            "depends_on",
            "after",
            "priority",
            "on_failure",
            "items",
            "filter",
            "action",
            "scopes",
            "campaigns",
            "kinds",
            "inputs",
            "audience",
            "reply_to",
            "limit",
            "fresh",
            "kind",
        ];
        let whole = wrong.iter().cloned();
        let parts =
            fields.iter().flat_map(|field| wrong.iter().map(move |part| json!({ *field: part })));
        for body in whole.chain(parts) {
            let many = json!([body]);
            let body = if path.ends_with("/bulk") { &many } else { &body };
            let reply = fixture.post(&path, body).await;
            if !matches!(reply.status, 400 | 422) {
                continue;
            }
            n_refused += 1;
            for word in [
                "struct",
                "enum",
                "variant",
                "tuple",
                "expected unit",
                "sequence",
                " map",
                "usize",
                "u64",
                "i32",
                "i16",
            ] {
                assert!(!reply.body.contains(word), "`{word}` to {body}: {reply:?}");
            }
        }
    }
    assert!(n_refused > 500, "{n_refused}");
}

#[tokio::test]
async fn a_timestamp_out_of_range_is_refused_in_every_field_and_parameter() {
    let fixture = Fixture::new().await;
    let campaign = format!("/v1/campaigns/{}", fixture.world.campaign.id);
    let far = [
        "-4713-01-01T00:00:00Z",
        "-262143-01-01T00:00:00Z",
        "0000-06-01T00:00:00Z",
        "+10000-01-01T00:00:00Z",
    ];
    for far in far {
        let ask = json!({ "agent": "copywriter", "prompt": "Part one.", "run_at": far });
        let entry =
            json!({ "kind": "record", "name": "a", "title": "t", "body": "b", "expires_at": far });
        let record = json!({ "name": "a", "title": "t", "body": "b", "expires_at": far });
        let fact = json!({ "attribute": "Diet", "text": "Eats no meat.", "expires_at": far });
        let bulk = json!({ "filter": { "created_before": far }, "action": "cancel" });
        for (path, body, pointer) in [
            (fixture.tasks(), &ask, "/run_at"),
            (format!("/v1/webhooks/{NIL}/replay"), &json!({ "since": far }), "/since"),
            (
                format!("{campaign}/memory/import"),
                &json!({ "items": [entry] }),
                "/items/0/expires_at",
            ),
            (format!("{campaign}/memory"), &record, "/expires_at"),
            ("/v1/users/u/facts".to_owned(), &fact, "/expires_at"),
            ("/v1/bulk-actions".to_owned(), &bulk, "/filter/created_before"),
        ] {
            let reply = fixture.post(&path, body).await;
            let detail = reply.problem(422, "bad_field");
            assert!(detail.contains("from 0001 to 9999"), "{path}: {detail}");
            assert_eq!(reply.json()["errors"][0]["pointer"], pointer, "{reply:?}");
        }
        let many = fixture.post(&format!("{}/bulk", fixture.tasks()), &json!([ask])).await;
        many.problem(422, "bad_items");
        let wrong = &many.json()["errors"][0];
        assert_eq!((&wrong["pointer"], &wrong["code"]), (&json!("/0/run_at"), &json!("bad_field")));
        let query = format!("/v1/audit?created_after={}", far.replace('+', "%2B"));
        let detail = fixture.get(&query).await.problem(400, "bad_query");
        assert!(detail.contains("from 0001 to 9999"), "{detail}");
    }
    assert_eq!(fixture.get("/v1/tasks").await.expect(200)["items"], json!([]));
    for edge in ["0001-01-01T00:00:00Z", "9999-12-30T23:59:59Z"] {
        let ask = json!({ "agent": "copywriter", "prompt": "Part one.", "run_at": edge });
        fixture.post(&fixture.tasks(), &ask).await.expect(201);
        fixture.post(&format!("{}/bulk", fixture.tasks()), &json!([ask])).await.expect(201);
        fixture.get(&format!("/v1/audit?created_after={edge}")).await.expect(200);
    }
}

#[tokio::test]
async fn a_body_that_is_not_json_or_too_long_is_refused() {
    let fixture = Fixture::new().await;
    let address = fixture.app.address;
    let post = async |headers: &[(&str, &str)], body: &str| {
        send(address, "POST", "/v1/campaigns", headers, body).await
    };
    post(&[], "{ name: x }").await.problem(400, "bad_json");
    post(&[], r#"{"name":"x"} {"name":"y"}"#).await.problem(400, "bad_json");
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    post(&form, "name=x").await.problem(415, "not_json");
    let long = json!({ "name": "x", "brief": "x".repeat(4_194_304) }).to_string();
    let detail = post(&[], &long).await.problem(413, "body_too_large");
    assert!(detail.contains("http.max_body_bytes"), "{detail}");
}

#[tokio::test]
async fn queries_and_ids_are_parsed_strictly() {
    let fixture = Fixture::new().await;
    for (path, code, words) in [
        ("/v1/tasks?stat=done", "bad_query", "unknown query parameter `stat`"),
        ("/v1/tasks?state=finished", "bad_query", "`state` is not valid: unknown value `finished`"),
        ("/v1/tasks?limit=0", "bad_query", "from 1 to 200"),
        ("/v1/tasks?limit=201", "bad_query", "from 1 to 200"),
        ("/v1/tasks?cursor=2", "bad_query", "cursor"),
        ("/v1/tasks/none", "bad_id", "`none` is not an id"),
        ("/v1/campaigns/1", "bad_id", "`1` is not an id"),
    ] {
        let detail = fixture.get(path).await.problem(400, code);
        assert!(detail.contains(words), "{path}: {detail}");
    }
}

#[tokio::test]
async fn unknown_ids_are_not_found() {
    let fixture = Fixture::new().await;
    for (path, code) in [
        (format!("/v1/campaigns/{NIL}"), "unknown_campaign"),
        (format!("/v1/tasks/{NIL}"), "unknown_task"),
        (format!("/v1/tasks/{NIL}/explain"), "unknown_task"),
        (format!("/v1/sessions/{NIL}"), "unknown_session"),
        (format!("/v1/sessions/{NIL}/messages"), "unknown_session"),
        (format!("/v1/sessions/{NIL}/view"), "unknown_session"),
        (format!("/v1/sessions/{NIL}/archives"), "unknown_session"),
        (format!("/v1/sessions/{NIL}/turns"), "unknown_session"),
        (format!("/v1/sessions/{NIL}/turns/1"), "unknown_session"),
    ] {
        fixture.get(&path).await.problem(404, code);
    }
    for (path, code) in [
        (format!("/v1/tasks/{NIL}/cancel"), "unknown_task"),
        (format!("/v1/tasks/{NIL}/retry"), "unknown_task"),
        (format!("/v1/sessions/{NIL}/reset"), "unknown_session"),
        (format!("/v1/sessions/{NIL}/uncompact"), "unknown_session"),
        (format!("/v1/sessions/{NIL}/interrupt"), "unknown_session"),
    ] {
        fixture.post(&path, &json!({})).await.problem(404, code);
    }
    send(fixture.app.address, "DELETE", "/v1/tasks", &[], "")
        .await
        .problem(405, "method_not_allowed");
}

#[tokio::test]
async fn a_spent_budget_reports_whether_waiting_helps() {
    let fixture = Fixture::new().await;
    let world =
        World::over(fixture.app.pool.clone(), Limit { micros: None, tokens: Some(100) }).await;
    let spent = Amount { micros: 0, tokens: 100 };
    world.spend_all(spent).await;
    let path = format!("/v1/campaigns/{}/tasks", world.campaign.id);
    let reply = fixture.post(&path, &json!({ "agent": "copywriter", "prompt": "x" })).await;
    let detail = reply.problem(409, "budget_exceeded");
    assert!(detail.contains("100 tokens of 100 tokens are spent"), "{detail}");
    assert_eq!(reply.json()["retryable"], false);
}

#[tokio::test]
async fn a_page_of_another_origin_is_refused() {
    let fixture = Fixture::new().await;
    let task = fixture.world.add("Part one.").await;
    let path = format!("/v1/tasks/{}/cancel", task.id);
    let foreign = [("Origin", "http://evil.example")];
    let reply = fixture.post_with(&path, &json!({}), &foreign).await;
    reply.problem(403, "foreign_origin");
    let own = format!("http://{}", fixture.app.address);
    fixture.post_with(&path, &json!({}), &[("Origin", &own)]).await.expect(200);
}

/// A proxy that sends a host name of its own makes each form foreign, so the refusal names the header.
#[tokio::test]
async fn a_proxy_that_replaces_the_host_is_named_as_a_cause() {
    let fixture = Fixture::with(&[("http.allowed_hosts", "dalsegno.example")]).await;
    let task = fixture.world.add("Part one.").await;
    let path = format!("/v1/tasks/{}/cancel", task.id);
    let through = async |host: &str| {
        let headers = [("Origin", "https://dalsegno.example"), ("Host", host)];
        fixture.post_with(&path, &json!({}), &headers).await
    };
    let detail = through("localhost").await.problem(403, "foreign_origin");
    assert!(detail.contains("pass on the header Host"), "{detail}");
    through("dalsegno.example").await.expect(200);
    let settings = include_str!("../../../config/default.toml");
    assert!(!settings.contains("`Host: localhost`"), "the documented proxy breaks the forms");
    let needed = "A proxy has to pass on the header Host as the browser sent it";
    assert!(settings.contains(needed), "the settings do not say what a proxy has to do");
}

/// DNS rebinding: such a page has the same origin, and only its host name gives it away.
#[tokio::test]
async fn a_foreign_host_name_is_refused() {
    let fixture =
        Fixture::with(&[("http.allowed_hosts", "dalsegno.example, dalsegno.internal")]).await;
    let port = fixture.app.address.port();
    let get = async |host: &str, path: &str| {
        send(fixture.app.address, "GET", path, &[("Host", host)], "").await
    };
    let evil = format!("evil.example:{port}");
    let origin = format!("http://{evil}");
    let headers = [("Host", evil.as_str()), ("Origin", origin.as_str())];
    let rebound =
        send(fixture.app.address, "POST", "/v1/campaigns", &headers, r#"{"name":"x"}"#).await;
    let detail = rebound.problem(403, "unknown_host");
    assert!(detail.contains("`evil.example`") && detail.contains("http.allowed_hosts"), "{detail}");
    for path in ["/v1/tasks", "/metrics", "/nothing"] {
        get(&evil, path).await.problem(403, "unknown_host");
    }
    for host in ["localhost", &format!("127.0.0.1:{port}"), "[::1]:80", "Dalsegno.Internal:80"] {
        get(host, "/v1/tasks").await.expect(200);
    }
    // Probes may use any host name.
    assert_eq!(get(&evil, "/livez").await.status, 200);
    assert_eq!(
        fixture.get("/v1/campaigns").await.expect(200)["items"].as_array().unwrap().len(),
        1
    );
}

#[tokio::test]
async fn every_refusal_names_the_next_step() {
    let fixture = Fixture::new().await;
    let address = fixture.app.address;
    let detail = fixture.get("/v2/tasks").await.problem(404, "not_found");
    assert!(detail.contains("/v1/tasks"), "{detail}");
    let reply = send(address, "DELETE", "/v1/tasks", &[], "").await;
    let detail = reply.problem(405, "method_not_allowed");
    assert!(detail.contains("Allow") && reply.head.contains("allow: GET"), "{reply:?}");
    let foreign = [("Origin", "http://evil.example")];
    let detail =
        send(address, "GET", "/v1/tasks", &foreign, "").await.problem(403, "foreign_origin");
    assert!(detail.contains("leave out the header Origin"), "{detail}");

    let task = fixture.world.add("Part one.").await;
    let path = format!("/v1/tasks/{}", task.id);
    let detail =
        fixture.post(&format!("{path}/retry"), &json!({})).await.problem(409, "task_not_ended");
    assert!(detail.contains(&format!("dalsegno task cancel {}", task.id)), "{detail}");
    fixture.post(&format!("{path}/cancel"), &json!({})).await.expect(200);
    let detail =
        fixture.post(&format!("{path}/cancel"), &json!({})).await.problem(409, "task_ended");
    assert!(detail.contains(&format!("dalsegno task retry {}", task.id)), "{detail}");

    let id = fixture.world.turn("Part two.", Default::default()).await.session.id;
    let undo = format!("/v1/sessions/{id}/uncompact");
    let detail = fixture.post(&undo, &json!({})).await.problem(409, "nothing_to_undo");
    assert!(detail.contains("dalsegno session compact"), "{detail}");
    let close = "update dalsegno.sessions set state = 'closed', closed_at = now(), closed_because = 'reset' where id = $1";
    sqlx::query(close).bind(id).execute(&fixture.app.pool).await.unwrap();
    let detail = fixture.post(&undo, &json!({})).await.problem(409, "session_closed");
    assert!(detail.contains(&format!("dalsegno session show {id}")), "{detail}");
}

#[tokio::test]
async fn an_unreachable_database_is_retryable() {
    let fixture = Fixture::new().await;
    fixture.app.pool.close().await;
    let reply = fixture.get("/v1/tasks").await;
    let detail = reply.problem(503, "database_unreachable");
    assert_eq!(reply.json()["retryable"], true);
    assert!(!detail.contains("select"), "{detail}");
}
