//! The tools over HTTP: `/mcp` of a worker for its turns, `/mcp/{id}` of the service for operators.

use std::net::SocketAddr;

use dalsegno::{
    domain::turn_tokens::{self, Bearer},
    http,
    tools::Turn,
};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::Setup;
use crate::{
    app::{TestApp, noon},
    http::client::{Reply, send},
};

/// The endpoint with which a worker serves its turns.
pub(super) struct Endpoint {
    pub(super) address: SocketAddr,
    server: JoinHandle<()>,
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Setup {
    pub(super) async fn endpoint(&self) -> Endpoint {
        let listener = http::bind_turns().await.unwrap();
        let address = listener.local_addr().unwrap();
        assert!(address.ip().is_loopback());
        let (config, tools) = (self.fixture.config(), self.tools.clone());
        let server = tokio::spawn(async move {
            http::run_turns(&config.http, tools, listener, std::future::pending()).await;
        });
        Endpoint { address, server }
    }

    pub(super) async fn token(&self, turn: &Turn) -> String {
        let bearer = Bearer { session_id: turn.session_id, turn: turn.turn };
        let token = turn_tokens::mint(self.pool(), &bearer, noon()).await.unwrap().unwrap();
        token.expose_secret().to_owned()
    }
}

const NOW: &str = "2026-07-28";
pub(super) const BEFORE: &str = "2025-11-25";

/// Sends one message as a client of this protocol version.
pub(super) async fn send_message(
    (address, path): (SocketAddr, &str),
    token: &str,
    version: &str,
    method: &str,
    mut params: Value,
) -> Reply {
    if version == NOW {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": NOW,
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    }
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let bearer = format!("Bearer {token}");
    let name = params["name"].as_str().unwrap_or_default().to_owned();
    let mut headers = vec![
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", version),
        ("Mcp-Method", method),
    ];
    if !token.is_empty() {
        headers.push(("Authorization", &bearer));
    }
    if !name.is_empty() {
        headers.push(("Mcp-Name", &name));
    }
    send(address, "POST", path, &headers, &body.to_string()).await
}

pub(super) fn call(name: &str, arguments: &Value) -> Value {
    json!({ "name": name, "arguments": arguments })
}

#[tokio::test]
async fn a_turn_lists_and_calls_its_tools_in_both_protocol_versions() {
    let setup = Setup::new().await;
    let (endpoint, turn) = (setup.endpoint().await, setup.turn("helper", "main").await);
    let (at, token) = ((endpoint.address, "/mcp"), setup.token(&turn).await);
    for version in [BEFORE, NOW] {
        if version == BEFORE {
            let params = json!({ "protocolVersion": BEFORE, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
            let begun = send_message(at, &token, version, "initialize", params).await.expect(200);
            assert_eq!(begun["result"]["protocolVersion"], BEFORE, "{begun}");
            assert_eq!(begun["result"]["serverInfo"]["name"], "dalsegno");
        } else {
            let found =
                send_message(at, &token, version, "server/discover", json!({})).await.expect(200);
            assert_eq!(found["result"]["supportedVersions"], json!([BEFORE, NOW]), "{found}");
        }
        let listed = send_message(at, &token, version, "tools/list", json!({})).await.expect(200);
        let names: Vec<&str> = listed["result"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert!(names.contains(&"board_post") && !names.contains(&"dispatch"), "{names:?}");
        let post = call("board_post", &json!({ "text": version }));
        let said = send_message(at, &token, version, "tools/call", post).await.expect(200);
        assert_eq!(said["result"]["isError"], false, "{said}");
        let denied = call("dispatch", &json!({ "tasks": [] }));
        let said = send_message(at, &token, version, "tools/call", denied).await.expect(200);
        assert_eq!(said["result"]["isError"], true, "{said}");
    }
    let posts = setup.posts().await;
    let said: Vec<_> =
        posts.iter().map(|post| (post.sender.as_str(), post.text.as_str())).collect();
    assert_eq!(said, [("helper", BEFORE), ("helper", NOW)]);
}

#[tokio::test]
async fn a_token_is_valid_only_for_its_own_running_turn() {
    let setup = Setup::new().await;
    let endpoint = setup.endpoint().await;
    let at = (endpoint.address, "/mcp");
    let post = || call("board_post", &json!({ "text": "Ahoy." }));
    let ask = async |token: &str| send_message(at, token, BEFORE, "tools/call", post()).await;
    // A different change than that of an earlier attempt, because the same one would not be made again.
    let post_anew = call("board_post", &json!({ "text": "Ahoy once more." }));

    let turn = setup.turn("helper", "main").await;
    let live = setup.token(&turn).await;
    ask(&live).await.expect(200);
    let none = format!("{}{}", turn_tokens::PREFIX, "0".repeat(64));
    for foreign in ["", "x", none.as_str(), "dals_0123456789ab_0", &live[..live.len() - 1]] {
        ask(foreign).await.problem(401, "no_turn");
    }
    let (n_posts, before) = (setup.posts().await.len(), setup.audit().await.len());
    assert_eq!(n_posts, 1);

    // Its run has lost the job; has it back; the turn has ended; another turn of the session has begun.
    let lease = "update dalsegno.jobs set lease = lease + $2 where id = $1";
    let set = async |by: i64| {
        sqlx::query(lease).bind(turn.job_id).bind(by).execute(setup.pool()).await.unwrap();
    };
    set(1000).await;
    ask(&live).await.problem(401, "no_turn");
    set(-1000).await;
    ask(&live).await.expect(200);
    let task = setup.world.task(turn.task_id).await;
    let next = setup.attempt(&task).await;
    ask(&live).await.problem(401, "no_turn");
    setup.fixture.clock.advance(chrono::TimeDelta::seconds(60));
    ask(&live).await.problem(401, "no_turn");
    let token = setup.token(&next).await;
    ask(&live).await.problem(401, "no_turn");
    send_message(at, &token, BEFORE, "tools/call", post_anew).await.expect(200);
    assert_eq!(setup.posts().await.len(), 3);
    let audit = setup.audit().await.split_off(before);
    let denied: Vec<_> = audit.iter().filter(|line| line.starts_with("tool.deny")).collect();
    assert_eq!(denied, ["tool.deny token agent helper"; 2], "the turn that is known to have ended");

    let stored: i64 = sqlx::query_scalar(
        "select count(*) from dalsegno.turn_tokens as t where t::text like '%' || $1 || '%'",
    )
    .bind(&token[turn_tokens::PREFIX.len()..])
    .fetch_one(setup.pool())
    .await
    .unwrap();
    assert_eq!(stored, 0, "only the hash of the token is stored");
}

#[tokio::test]
async fn an_older_turn_does_not_take_the_tools_of_a_newer_one() {
    let setup = Setup::new().await;
    let endpoint = setup.endpoint().await;
    let turn = setup.turn("helper", "main").await;
    let task = setup.world.task(turn.task_id).await;
    let next = setup.attempt(&task).await;
    assert_eq!((next.session_id, next.turn), (turn.session_id, turn.turn + 1));
    let token = setup.token(&next).await;
    // A delayed worker creates the token of its turn now.
    let late = Bearer { session_id: turn.session_id, turn: turn.turn };
    let minted = turn_tokens::mint(setup.pool(), &late, noon()).await.unwrap();
    assert!(minted.is_none());
    let at = (endpoint.address, "/mcp");
    let post = call("board_post", &json!({ "text": "Ahoy." }));
    send_message(at, &token, BEFORE, "tools/call", post).await.expect(200);
    // It may create a new one for its own turn.
    setup.token(&next).await;
}

#[tokio::test]
async fn the_service_endpoint_serves_operators_and_no_turns() {
    let app = TestApp::start_with(
        crate::app::TestDatabase::migrated().await,
        &[("http.require_key", "true"), ("http.admin_key", &"k".repeat(40))],
    )
    .await;
    let world =
        crate::conversations::world::World::over(app.pool.clone(), Default::default()).await;
    let path = format!("/mcp/{}", world.campaign.id);
    let at = (app.address, path.as_str());
    let key = "k".repeat(40);
    let listed = send_message(at, &key, NOW, "tools/list", json!({})).await.expect(200);
    assert!(listed["result"]["tools"].as_array().unwrap().len() >= 9, "{listed}");
    let post = call("board_post", &json!({ "text": "Ahoy.", "to": ["operator"] }));
    let said = send_message(at, &key, BEFORE, "tools/call", post.clone()).await.expect(200);
    assert_eq!(said["result"]["isError"], false, "{said}");
    send_message(at, "", BEFORE, "tools/call", post.clone()).await.problem(401, "unauthenticated");
    let token = format!("{}{}", turn_tokens::PREFIX, "0".repeat(64));
    send_message(at, &token, BEFORE, "tools/call", post.clone()).await.problem(401, "bad_key");
    let nowhere = (app.address, "/mcp/00000000-0000-0000-0000-000000000000");
    send_message(nowhere, &key, BEFORE, "tools/call", post.clone())
        .await
        .problem(404, "unknown_campaign");
    let bearer = format!("Bearer {key}");
    let from = |origin, host| {
        [
            ("Authorization", bearer.as_str()),
            ("Origin", origin),
            ("Host", host),
            ("Content-Type", "application/json"),
        ]
    };
    let reply =
        send(app.address, "POST", &path, &from("http://evil.example", "127.0.0.1"), "{}").await;
    reply.problem(403, "foreign_origin");
    let actors: Vec<String> =
        sqlx::query_scalar("select actor_kind from dalsegno.audit where action = 'tool.call'")
            .fetch_all(&app.pool)
            .await
            .unwrap();
    assert_eq!(actors, ["admin_key"]);
    app.stop().await;
}

#[tokio::test]
async fn recall_by_a_bound_key_hides_facts_of_other_campaigns() {
    let admin = "k".repeat(40);
    let set = [("http.require_key", "true"), ("http.admin_key", admin.as_str())];
    let app = TestApp::start_with(crate::app::TestDatabase::migrated().await, &set).await;
    let world =
        crate::conversations::world::World::over(app.pool.clone(), Default::default()).await;
    let bearer = format!("Bearer {admin}");
    let ask = async |method: &str, path: &str, body: Value| {
        let headers = [("Authorization", bearer.as_str())];
        send(app.address, method, path, &headers, &body.to_string()).await
    };
    let campaign = format!("/v1/campaigns/{}", world.campaign.id);
    ask("PUT", &format!("{campaign}/user"), json!({ "user": "ann" })).await.expect(200);
    let fact = json!({ "attribute": "City", "text": "Lives in Porto." });
    ask("POST", "/v1/users/ann/facts", fact).await.expect(200);
    let path = format!("/mcp/{}", world.campaign.id);
    let recalls = async |campaigns: Value| {
        let name = if campaigns.is_null() { "free" } else { "bound" };
        let wanted = json!({ "name": name, "scopes": ["mcp"], "campaigns": campaigns });
        let key = ask("POST", "/v1/keys", wanted).await.expect(201);
        let (at, words) = ((app.address, path.as_str()), json!({ "words": "porto" }));
        let call = call("recall", &words);
        let key = key["secret"].as_str().unwrap();
        let said = send_message(at, key, BEFORE, "tools/call", call).await.expect(200);
        assert_eq!(said["result"]["isError"], false, "{said}");
        said.to_string().contains("Lives in Porto.")
    };
    assert!(recalls(Value::Null).await);
    assert!(!recalls(json!([world.campaign.id])).await);
    app.stop().await;
}

#[tokio::test]
async fn unknown_protocol_versions_and_invalid_messages_are_refused() {
    let setup = Setup::new().await;
    let (endpoint, turn) = (setup.endpoint().await, setup.turn("helper", "main").await);
    let (at, token) = ((endpoint.address, "/mcp"), setup.token(&turn).await);
    let params = json!({ "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let begun = send_message(at, &token, "2024-11-05", "initialize", params).await.expect(200);
    assert_eq!(begun["result"]["protocolVersion"], BEFORE, "the supported version is offered");
    let bearer = format!("Bearer {token}");
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    for body in ["", "{", "[]", "\0", "{\"jsonrpc\":\"2.0\"}", "null"] {
        let reply = send(at.0, "POST", "/mcp", &headers, body).await;
        assert!((400..500).contains(&reply.status), "{body}: {reply:?}");
        let says_why = reply.json()["code"] == "no_message" || reply.json()["error"].is_object();
        assert!(says_why, "{body}: {reply:?}");
    }
    for method in ["GET", "DELETE"] {
        assert_eq!(send(at.0, method, "/mcp", &headers, "").await.status, 405);
    }
    let evil = [("Authorization", bearer.as_str()), ("Host", "evil.example")];
    assert_eq!(send(at.0, "POST", "/mcp", &evil, "{}").await.status, 403);
}
