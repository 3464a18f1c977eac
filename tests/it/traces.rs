//! A service that sends spans of its turns to a collector.

use std::sync::{Arc, Mutex};

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::post,
};
use serde_json::{Value, json};

use crate::{app::eventually, http::client, service::Service};

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const SECRET: &str = "Basic cGxhbnRlZDpzZWNyZXQ=";

/// A collector of traces that fails at first.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<(HeaderMap, Value)>>>);

impl Collector {
    async fn start(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/v1/traces", post(take)).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        format!("http://{address}")
    }

    /// Returns all accepted spans.
    fn spans(&self) -> Vec<Value> {
        let taken = self.0.lock().unwrap();
        let requests = taken.iter().skip(1).map(|(_, body)| &body["resourceSpans"][0]);
        requests
            .flat_map(|resource| resource["scopeSpans"][0]["spans"].as_array().unwrap().clone())
            .collect()
    }
}

async fn take(
    State(Collector(taken)): State<Collector>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> StatusCode {
    let mut taken = taken.lock().unwrap();
    taken.push((headers, body));
    if taken.len() == 1 { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK }
}

fn attribute<'a>(span: &'a Value, key: &str) -> &'a Value {
    let all = span["attributes"].as_array().unwrap();
    all.iter().find(|one| one["key"] == key).map_or(&Value::Null, |one| &one["value"])
}

fn text<'a>(span: &'a Value, key: &str) -> &'a str {
    let value = attribute(span, key);
    value["stringValue"].as_str().unwrap_or_else(|| panic!("{key}: {span}"))
}

fn number(span: &Value, key: &str) -> i64 {
    attribute(span, key)["intValue"]
        .as_str()
        .unwrap_or_else(|| panic!("{key}: {span}"))
        .parse()
        .unwrap()
}

async fn send(service: &Service, path: &str, headers: &[(&str, &str)], body: Value) -> Value {
    let json = [("Content-Type", "application/json")];
    let headers: Vec<_> = headers.iter().copied().chain(json).collect();
    let reply = client::send(service.address, "POST", path, &headers, &body.to_string()).await;
    assert!((200..300).contains(&reply.status), "{reply:?}");
    reply.json()
}

async fn campaign(service: &Service) -> String {
    let campaign = send(service, "/v1/campaigns", &[], json!({ "name": "Harbour" })).await;
    campaign["id"].as_str().unwrap().to_owned()
}

/// Adds a task and waits for its end.
async fn run_task(
    service: &Service,
    campaign: &str,
    headers: &[(&str, &str)],
    prompt: &str,
) -> Value {
    let path = format!("/v1/campaigns/{campaign}/tasks");
    let task =
        send(service, &path, headers, json!({ "agent": "copywriter", "prompt": prompt })).await;
    let shown = format!("/v1/tasks/{}", task["id"].as_str().unwrap());
    eventually("the task is done", async || {
        let task = client::send(service.address, "GET", &shown, &[], "").await.expect(200);
        (task["state"] == "done").then_some(task)
    })
    .await
}

#[tokio::test]
async fn a_turns_trace_links_to_its_caller_and_to_the_previous_turn() {
    let (folder, collector) = (tempfile::tempdir().unwrap(), Collector::default());
    let endpoint = collector.start().await;
    let settings = [
        ("DALSEGNO_TRACES__ENDPOINT", endpoint.as_str()),
        ("DALSEGNO_TRACES__AUTHORIZATION", SECRET),
        ("DALSEGNO_SIM__LATENCY_MS", "5"),
    ];
    let mut service = Service::start(folder.path(), &settings).await;
    let campaign = campaign(&service).await;
    for (words, headers) in
        [("The tide of planted words.", &[("traceparent", CALLER)][..]), ("And on.", &[])]
    {
        run_task(&service, &campaign, headers, words).await;
    }
    // Spans that are not sent yet are sent at shutdown.
    service.signal("TERM");
    assert_eq!(service.exit_code().await, 0, "{}", service.log());

    let spans = collector.spans();
    let named =
        |name: &str| -> Vec<&Value> { spans.iter().filter(|span| span["name"] == name).collect() };
    let (sent, processed) = (named("send turns"), named("process turns"));
    let (invoked, called) = (named("invoke_agent copywriter"), named("chat sim-1"));
    assert_eq!([&sent, &processed, &invoked, &called].map(Vec::len), [2; 4], "{spans:#?}");

    // The request continues the caller's trace; the turn has its own trace, with a link.
    assert_eq!(sent[0]["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(sent[0]["parentSpanId"], "00f067aa0ba902b7");
    assert_eq!(
        (&sent[0]["kind"], &processed[0]["kind"], &called[0]["kind"]),
        (&json!(4), &json!(5), &json!(3))
    );
    for turn in 0..2 {
        let (sent, processed) = (sent[turn], processed[turn]);
        assert_ne!(processed["traceId"], sent["traceId"]);
        assert!(processed.get("parentSpanId").is_none());
        assert_eq!(processed["links"][0]["spanId"], sent["spanId"]);
        assert_eq!(processed["links"][0]["traceId"], sent["traceId"]);
        assert_eq!(
            (&invoked[turn]["parentSpanId"], &called[turn]["parentSpanId"]),
            (&processed["spanId"], &invoked[turn]["spanId"])
        );
        for span in [invoked[turn], called[turn]] {
            assert_eq!(span["traceId"], processed["traceId"]);
            assert_eq!(
                text(span, "gen_ai.conversation.id"),
                text(processed, "gen_ai.conversation.id")
            );
            assert_eq!(text(span, "gen_ai.agent.name"), "copywriter");
        }
        let call = called[turn];
        assert_eq!(
            (text(call, "gen_ai.operation.name"), text(call, "gen_ai.provider.name")),
            ("chat", "sim")
        );
        assert!(
            number(call, "gen_ai.usage.input_tokens") > 0
                && number(call, "gen_ai.usage.output_tokens") > 0
        );
        let time = |key: &str| call[key].as_str().unwrap().parse::<u64>().unwrap();
        assert!(time("endTimeUnixNano") - time("startTimeUnixNano") >= 5_000_000, "{call}");
        assert_eq!(text(processed, "dalsegno.outcome"), "done");
    }
    let before = &processed[1]["links"][1];
    assert_eq!(
        (&before["traceId"], &before["spanId"]),
        (&processed[0]["traceId"], &processed[0]["spanId"])
    );

    let taken = collector.0.lock().unwrap();
    assert_eq!(taken[0].1, taken[1].1, "a temporarily refused batch is sent again");
    assert!(taken.iter().all(|(headers, _)| headers["authorization"] == SECRET));
    let whole = taken.iter().map(|(_, body)| body.to_string()).collect::<String>();
    assert!(!whole.contains("planted"), "no text of a conversation is in a span");
    assert!(!service.log().contains(SECRET) && service.log().contains("cannot send traces"));
}

/// The second session continues the first one; the third has no memory.
#[tokio::test]
async fn the_first_turn_of_a_successor_links_to_the_last_turn_of_its_predecessor() {
    let (folder, collector) = (tempfile::tempdir().unwrap(), Collector::default());
    let endpoint = collector.start().await;
    let settings =
        [("DALSEGNO_TRACES__ENDPOINT", endpoint.as_str()), ("DALSEGNO_SIM__LATENCY_MS", "0")];
    let mut service = Service::start(folder.path(), &settings).await;
    let campaign = campaign(&service).await;
    let reset = async |task: &Value, fresh: bool| {
        let path = format!("/v1/sessions/{}/reset", task["session_id"].as_str().unwrap());
        send(&service, &path, &[], json!({ "fresh": fresh })).await;
    };
    run_task(&service, &campaign, &[], "Part one.").await;
    let second = run_task(&service, &campaign, &[], "Part two.").await;
    reset(&second, false).await;
    let third = run_task(&service, &campaign, &[], "Part three.").await;
    assert_ne!(third["session_id"], second["session_id"]);
    let fourth = run_task(&service, &campaign, &[], "Part four.").await;
    reset(&fourth, true).await;
    run_task(&service, &campaign, &[], "Something else.").await;
    service.signal("TERM");
    assert_eq!(service.exit_code().await, 0, "{}", service.log());

    let spans = collector.spans();
    let turns: Vec<_> = spans.iter().filter(|span| span["name"] == "process turns").collect();
    assert_eq!(turns.len(), 5);
    let before = |turn: usize| {
        let links = turns[turn]["links"].as_array().unwrap();
        links.get(1).map(|link| (link["traceId"].clone(), link["spanId"].clone()))
    };
    for turn in 1..4 {
        let last = (turns[turn - 1]["traceId"].clone(), turns[turn - 1]["spanId"].clone());
        assert_eq!(before(turn), Some(last), "turn {turn}");
    }
    assert_eq!((before(0), before(4)), (None, None));
}

#[tokio::test]
async fn each_tool_call_has_a_span_beside_those_of_the_model() {
    let (folder, collector) = (tempfile::tempdir().unwrap(), Collector::default());
    let agents = folder.path().join("agents");
    std::fs::create_dir(&agents).unwrap();
    let writer =
        "---\nname: writer\ndescription: Writes\ntools: mcp__dalsegno__status\n---\nYou write.\n";
    std::fs::write(agents.join("writer.md"), writer).unwrap();
    let (endpoint, agents) = (collector.start().await, agents.display().to_string());
    let settings = [
        ("DALSEGNO_TRACES__ENDPOINT", endpoint.as_str()),
        ("DALSEGNO_AGENTS__FOLDER", agents.as_str()),
        ("DALSEGNO_SIM__LATENCY_MS", "5"),
        ("DALSEGNO_SIM__DIRECTIVES", "true"),
    ];
    let mut service = Service::start(folder.path(), &settings).await;
    let send = async |path: &str, body: Value| {
        let json = [("Content-Type", "application/json")];
        client::send(service.address, "POST", path, &json, &body.to_string()).await.expect(201)
    };
    let campaign = send("/v1/campaigns", json!({ "name": "Harbour" })).await;
    let path = format!("/v1/campaigns/{}/tasks", campaign["id"].as_str().unwrap());
    let prompt = "Write. [[sim: call status]] [[sim: also drop_tables]] [[sim: say Done.]]";
    let task = send(&path, json!({ "agent": "writer", "prompt": prompt })).await;
    let shown = format!("/v1/tasks/{}", task["id"].as_str().unwrap());
    eventually("the task is done", async || {
        let task = client::send(service.address, "GET", &shown, &[], "").await.expect(200);
        (task["state"] == "done").then_some(())
    })
    .await;
    service.signal("TERM");
    assert_eq!(service.exit_code().await, 0, "{}", service.log());

    let spans = collector.spans();
    let named =
        |name: &str| -> Vec<&Value> { spans.iter().filter(|span| span["name"] == name).collect() };
    let invoked = named("invoke_agent writer")[0];
    let calls = named("chat sim-1");
    assert_eq!(calls.len(), 2, "{spans:#?}");
    let (done, failed) = (named("execute_tool status")[0], named("execute_tool drop_tables")[0]);
    for span in [calls[0], calls[1], done, failed] {
        assert_eq!(span["parentSpanId"], invoked["spanId"]);
        assert_eq!(text(span, "gen_ai.agent.name"), "writer");
    }
    assert_eq!(text(done, "gen_ai.operation.name"), "execute_tool");
    assert_eq!(text(done, "gen_ai.tool.name"), "status");
    assert_eq!(
        (attribute(done, "error.type"), text(failed, "error.type")),
        (&Value::Null, "failed")
    );
    let tokens = |span: &Value| number(span, "gen_ai.usage.input_tokens");
    assert_eq!(tokens(invoked), tokens(calls[0]) + tokens(calls[1]));
    assert_ne!(text(done, "gen_ai.tool.call.id"), text(failed, "gen_ai.tool.call.id"));
}
