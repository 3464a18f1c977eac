//! Series of a run that has seen each event: when they begin, which docs/reference/telemetry.md promises to authors of
//! alerts, and that they are those of the reference.

use std::collections::BTreeSet;

use dalsegno::metric_catalogue;
use serde_json::json;

use super::{monitoring, page::Page};
use crate::{
    app::{eventually, get},
    http::client,
    providers::claude::cli::Cli,
    service::Service,
};

/// Metrics whose series may begin with their first event.
const LATE: [&str; 2] = ["dalsegno_http_request", "dalsegno_turn_tool_duration_seconds"];

/// Returns counters and histograms with their labels, by the names of their counting samples.
fn series(metrics: &str) -> BTreeSet<String> {
    let samples = metrics.lines().filter(|line| !line.starts_with('#'));
    let samples = samples.filter_map(|line| line.rsplit_once(' ').map(|(series, _)| series));
    let counts = |series: &&str| {
        let name = series.split('{').next().unwrap();
        let is_late = LATE.iter().any(|late| name.starts_with(late));
        !is_late && (name.ends_with("_total") || name.ends_with("_count"))
    };
    samples.filter(counts).map(str::to_owned).collect()
}

/// A writer on Claude, whose CLI calls a second model by itself and names both differently.
const WRITER: &str =
    "---\nname: writer\ndescription: Writes\nprovider: claude\nmodel: sonnet\n---\nYou write.\n";

const SKETCHER: &str = "---\nname: sketcher\ndescription: Sketches\nprovider: sim\nmodel: sim-1\n\
                        tools: mcp__dalsegno__status\n---\nYou sketch.\n";

/// Returns how a page and the reference differ in names, types, texts and labels.
fn differences(page: &Page) -> Vec<String> {
    let all = metric_catalogue::all();
    let mut differences = Vec::new();
    for metric in &all {
        let expected = (metric.kind.as_str().to_owned(), metric.help.to_owned());
        let found = page.metrics.get(metric.name);
        if found != Some(&expected) {
            differences.push(format!("{}: {found:?} instead of {expected:?}", metric.name));
        }
        let labels: BTreeSet<&str> = metric.labels.iter().copied().collect();
        let others = page.of(metric.name).filter(|sample| sample.label_names() != labels);
        differences.extend(others.map(|sample| format!("{sample:?} instead of {labels:?}")));
        if page.of(metric.name).next().is_none() {
            differences.push(format!("{} has no sample", metric.name));
        }
    }
    let is_unknown = |name: &&String| !all.iter().any(|metric| metric.name == *name);
    let unknown = page.metrics.keys().filter(is_unknown);
    differences.extend(unknown.map(|name| format!("{name} is not in the reference")));
    differences
}

#[tokio::test]
async fn a_run_has_the_series_of_the_reference_and_each_begins_before_its_first_event() {
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
        // Nothing listens there.
        ("DALSEGNO_TRACES__ENDPOINT", "http://127.0.0.1:1"),
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
        ("sketcher", "Write. [[sim: call status]] [[sim: say Done.]]", "done"),
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
    let counted = |page: &Page, name: &str, outcome: &str| {
        let labels = [("queue", "turns"), ("kind", "run_turn"), ("outcome", outcome)];
        page.value(name, &labels).unwrap_or_else(|| panic!("{name} {outcome} is missing"))
    };
    let later = eventually("the turns are measured", async || {
        let later = metrics().await;
        let page = Page::parse(&later);
        let ended = ["done", "failed", "exhausted", "bad_payload", "cancelled"]
            .map(|outcome| counted(&page, "dalsegno_jobs_finished_total", outcome));
        let is_counted = value(&later, output) == "22" && ended == [2.0, 1.0, 0.0, 0.0, 0.0];
        is_counted.then_some(later)
    })
    .await;
    let page = Page::parse(&later);
    let attempts = ["done", "error", "snoozed"]
        .map(|outcome| counted(&page, "dalsegno_job_attempts_finished_total", outcome));
    assert_eq!(attempts, [2.0, 1.0, 0.0]);
    let cost =
        page.value("dalsegno_cost_currency_total", &[("provider", "claude"), ("model", "sonnet")]);
    assert_eq!(cost, Some(0.0005), "in units of the currency");
    let differences = differences(&page);
    assert!(differences.is_empty(), "the page and the reference differ: {differences:#?}");
    let missing: Vec<_> =
        monitoring::selectors().into_iter().filter(|selector| !selector.is_in(&page)).collect();
    assert!(missing.is_empty(), "alerts and dashboard read these: {missing:#?}");
    let new: Vec<_> = series(&later).difference(&series(&fresh)).cloned().collect();
    assert!(new.is_empty(), "series that are missing before their first event: {new:#?}");
}
