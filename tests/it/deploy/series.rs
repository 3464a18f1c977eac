//! The begin of series, which docs/reference/telemetry.md promises to authors of alerts.

use std::collections::BTreeSet;

use serde_json::json;

use crate::{
    app::{eventually, get},
    http::client,
    providers::claude::cli::Cli,
    service::Service,
};

/// Returns counters and histograms with their labels, by the names of their counting samples.
fn series(metrics: &str) -> BTreeSet<String> {
    let samples = metrics.lines().filter(|line| !line.starts_with('#'));
    let samples = samples.filter_map(|line| line.rsplit_once(' ').map(|(series, _)| series));
    let counts = |series: &&str| {
        let name = series.split('{').next().unwrap();
        name.ends_with("_total") || name.ends_with("_count")
    };
    samples.filter(counts).map(str::to_owned).collect()
}

/// A writer on Claude, whose CLI calls a second model by itself and names both differently.
const WRITER: &str =
    "---\nname: writer\ndescription: Writes\nprovider: claude\nmodel: sonnet\n---\nYou write.\n";

const SKETCHER: &str =
    "---\nname: sketcher\ndescription: Sketches\nprovider: sim\nmodel: sim-1\n---\nYou sketch.\n";

#[tokio::test]
async fn every_counter_and_histogram_exists_before_the_first_event() {
    let folder = tempfile::tempdir().unwrap();
    let agents = folder.path().join("config/agents");
    std::fs::create_dir_all(&agents).unwrap();
    for (name, text) in [("writer.md", WRITER), ("sketcher.md", SKETCHER)] {
        std::fs::write(agents.join(name), text).unwrap();
    }
    let (program, key) = (Cli::Fake.program(), folder.path().join("key"));
    std::fs::write(&key, "sk-ant-dummy-0123456789").unwrap();
    let credentials =
        format!("[{{ name = \"main\", kind = \"api_key\", file = \"{}\" }}]", key.display());
    let environment = [
        ("DALSEGNO_CLAUDE__PROGRAM", program.to_str().unwrap()),
        ("DALSEGNO_CLAUDE__CREDENTIALS", &credentials),
        ("DALSEGNO_CLAUDE__PASS_VARIABLES", "[\"FAKE_CLAUDE\"]"),
        ("FAKE_CLAUDE", "two models, and a NUL in their names"),
        ("DALSEGNO_SIM__LATENCY_MS", "0"),
        ("DALSEGNO_SIM__DIRECTIVES", "true"),
    ];
    let service = Service::start(folder.path(), &environment).await;
    let metrics = async || get(service.address, "/metrics").await.unwrap().body;
    let fresh = metrics().await;
    let value = |metrics: &str, series: &str| {
        let line = metrics.lines().find(|line| line.starts_with(series));
        line.unwrap_or_else(|| panic!("{series} is missing")).rsplit_once(' ').unwrap().1.to_owned()
    };
    let output = r#"dalsegno_tokens_total{provider="claude",model="sonnet",type="output"}"#;
    assert_eq!(value(&fresh, output), "0");

    let post = async |path: &str, body: serde_json::Value| {
        let headers = [("Content-Type", "application/json")];
        let reply = client::send(service.address, "POST", path, &headers, &body.to_string()).await;
        assert!((200..300).contains(&reply.status), "{reply:?}");
        reply.json()
    };
    let campaign = post("/v1/campaigns", json!({ "name": "Harbour" })).await;
    let tasks = format!("/v1/campaigns/{}/tasks", campaign["id"].as_str().unwrap());
    let mut wanted = Vec::new();
    for (agent, prompt, state) in [
        ("writer", "Write.", "done"),
        ("sketcher", "Write.", "done"),
        ("sketcher", "[[sim: error 400]]", "failed"),
    ] {
        let task =
            post(&tasks, json!({ "agent": agent, "prompt": prompt, "instance": state })).await;
        wanted.push((format!("/v1/tasks/{}", task["id"].as_str().unwrap()), state));
    }
    for (path, state) in &wanted {
        eventually("the task ends", async || {
            let task = client::send(service.address, "GET", path, &[], "").await.expect(200);
            let has_ended =
                ["done", "failed", "cancelled"].contains(&task["state"].as_str().unwrap());
            has_ended.then(|| assert_eq!(task["state"], *state, "{task}"))
        })
        .await;
    }
    let later = eventually("the turns are measured", async || {
        let later = metrics().await;
        (value(&later, output) == "22").then_some(later)
    })
    .await;
    let new: Vec<_> = series(&later).difference(&series(&fresh)).cloned().collect();
    assert!(new.is_empty(), "series that are missing before their first event: {new:#?}");
}
