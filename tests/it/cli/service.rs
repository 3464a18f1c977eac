//! The commands beside a real service, whose workers run the simulation.

use serde_json::{Value, json};

use super::{Fixture, text};
use crate::{
    app::eventually,
    http::client::{Stream, send},
    service::Service,
};

impl Fixture {
    pub(super) async fn serve(&self) -> Service {
        let url = self.world.url();
        let quick = [
            ("DATABASE_URL", url.as_str()),
            ("DALSEGNO_SIM__LATENCY_MS", "0"),
            ("DALSEGNO_SIM__CHUNK_DELAY_MS", "0"),
            // Large enough that nothing is compacted without a request, small enough that it can be.
            ("DALSEGNO_SIM__WINDOW_TOKENS", "16384"),
        ];
        Service::start(self.path(), &quick).await
    }
}

#[tokio::test]
async fn task_add_waits_for_the_answer() {
    let fixture = Fixture::new().await;
    let _service = fixture.serve().await;
    let done = fixture.add("Part one.", &["--wait"]).await;
    assert_eq!(done["state"], "done", "{done}");
    let campaign = fixture.campaign();
    let add = ["task", "add", "--campaign", &campaign, "--agent", "copywriter", "Part two."];
    let output = fixture.run(&[&add[..], &["--follow"]].concat()).await;
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.has("turn.started") && output.has("turn.done"), "{output:?}");
    assert!(!output.stdout.trim().is_empty(), "{output:?}");
    let sessions = fixture.json(&["session", "ls"]).await;
    assert_eq!((sessions.as_array().unwrap().len(), &sessions[0]["turns"]), (1, &json!(2)));
    let id = text(&sessions[0]["id"]);
    let transcript = fixture.json(&["session", "transcript", id]).await;
    let roles: Vec<&Value> = transcript.as_array().unwrap().iter().map(|m| &m["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
}

#[tokio::test]
async fn a_task_over_http_is_answered_and_streamed() {
    let fixture = Fixture::new().await;
    let service = fixture.serve().await;
    let path = format!("/v1/campaigns/{}/tasks", fixture.world.campaign.id);
    let ask = json!({ "agent": "copywriter", "prompt": "Part one." }).to_string();
    let added = send(service.address, "POST", &path, &[], &ask).await.expect(201);
    let path = format!("/v1/tasks/{}", text(&added["id"]));
    let events = format!("{path}/events");
    let mut stream = Stream::open(service.address, &events, None).await.ok().unwrap();
    let mut kinds = Vec::new();
    while let Some(sent) = stream.next().await {
        kinds.push(sent.event);
    }
    assert_eq!(kinds.first().map(String::as_str), Some("task.queued"), "{kinds:?}");
    assert!(kinds.contains(&"turn.done".to_owned()), "{kinds:?}");
    assert_eq!(kinds.last().map(String::as_str), Some("end"), "{kinds:?}");
    let waited = send(service.address, "GET", &format!("{path}?wait=5s"), &[], "").await;
    assert_eq!(waited.expect(200)["state"], "done");
}

#[tokio::test]
async fn a_request_with_nothing_to_compact_is_answered_at_once() {
    let fixture = Fixture::new().await;
    let _service = fixture.serve().await;
    fixture.add("Part one.", &["--wait"]).await;
    let sessions = fixture.json(&["session", "ls"]).await;
    let id = text(&sessions[0]["id"]);
    let output = fixture.run(&["session", "compact", id]).await;
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.starts_with("nothing to compact: "), "{output:?}");
    let asked = fixture.json(&["session", "compact", id]).await;
    assert_eq!(asked["answer"]["outcome"], "nothing", "{asked}");
    assert_eq!(fixture.json(&["job", "ls", "--state", "dead"]).await, json!([]));
}

#[tokio::test]
async fn a_worker_compacts_a_session_on_request() {
    let fixture = Fixture::new().await;
    let _service = fixture.serve().await;
    for part in 1..=7 {
        let prompt = format!("Part {part}: {}", "the harbour, the pier and the crane. ".repeat(60));
        fixture.add(&prompt, &["--wait"]).await;
    }
    let sessions = fixture.json(&["session", "ls"]).await;
    let id = text(&sessions[0]["id"]);
    let asked = fixture.json(&["session", "compact", id]).await;
    let job = asked["job_id"].to_string();
    let ended = eventually("the compaction has ended", async || {
        let job = fixture.json(&["job", "explain", &job]).await;
        ["ended", "dead"].contains(&text(&job["state"])).then_some(job)
    });
    let ended = ended.await;
    assert_eq!(ended["state"], "ended", "{ended}");
    let shown = fixture.json(&["session", "show", id]).await;
    assert_eq!(shown["compactions"][0]["cause"], "manual", "{shown}");
    assert_eq!(shown["compactions"][0]["outcome"], "applied", "{shown}");
    let view = fixture.json(&["session", "transcript", id, "--view"]).await;
    // Prompts of people precede the summary.
    let mut roles = view.as_array().unwrap().iter().map(|output| &output["role"]);
    assert_eq!(roles.find(|role| *role != "user").unwrap(), "system", "{view}");
    assert_eq!(fixture.json(&["session", "uncompact", id]).await["generation"], 0);
}
