//! Waits and streams with `--url`: like on the database, and across the server's absence.

use std::{net::SocketAddr, process::Stdio};

use dalsegno::domain::amount::Limit;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    process::Child,
};
use uuid::Uuid;

use super::ended;
use crate::{
    app::{TestApp, TestDatabase, eventually},
    cluster::scratch_folder,
    conversations::world::{TurnSettings, World},
    service::dalsegno,
};

fn spawn(folder: &TempDir, address: SocketAddr, arguments: &[&str]) -> Child {
    let mut command = dalsegno(folder.path());
    command.args(arguments).args(["--url", &format!("http://{address}")]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(true).spawn().unwrap()
}

fn event(id: i64, kind: &str) -> String {
    let data = json!({ "id": id, "created_at": "2026-11-20T12:00:00Z", "campaign_id": null,
                       "task_id": null, "session_id": null, "kind": kind, "data": {} });
    format!("event: {kind}\nid: {id}\ndata: {data}\n\n")
}

const STREAM: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n:\n\n";

/// Answers one request, and returns its head.
async fn answer(listener: &TcpListener, text: &str) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    let head = head_of(&mut stream).await;
    stream.write_all(text.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    head
}

async fn head_of(stream: &mut TcpStream) -> String {
    let (mut head, mut buffer) = (String::new(), [0; 4096]);
    while !head.contains("\r\n\r\n") {
        let n_read = stream.read(&mut buffer).await.unwrap();
        head.push_str(std::str::from_utf8(&buffer[..n_read]).unwrap());
    }
    head.to_ascii_lowercase()
}

#[tokio::test]
async fn a_task_on_a_server_is_followed_to_its_end() {
    let app = TestApp::start_with(TestDatabase::migrated().await, &[]).await;
    let world = World::over(app.pool.clone(), Limit::default()).await;
    let folder = scratch_folder();
    let campaign = world.campaign.id.to_string();
    for stay in ["--wait", "--follow"] {
        let ask = ["task", "add", "--campaign", &campaign, "--agent", "copywriter", "Go.", stay];
        let command = spawn(&folder, app.address, &ask);
        let task = eventually("the task exists", async || {
            world.tasks().await.into_iter().find(|task| task.ended_at.is_none())
        })
        .await;
        let (_, begun) = world.begin(&task, world.lease(), TurnSettings::default()).await;
        world.commit(&begun, "The harbour at dawn.", TurnSettings::default()).await.unwrap();
        let output = ended(command).await;
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (0, "The harbour at dawn.\n"),
            "{output:?}"
        );
        assert_eq!(output.has("task.queued  agent=copywriter"), stay == "--follow", "{output:?}");
        let id = task.id.to_string();
        let show = ["task", "show", &id, "--wait", "1m", "--json"];
        let shown = ended(spawn(&folder, app.address, &show)).await.json();
        assert_eq!(shown["state"], "done");
    }
}

#[tokio::test]
async fn a_broken_stream_is_resumed_after_its_last_event() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let folder = scratch_folder();
    let command = spawn(&folder, address, &["feed", "--after", "3", "--limit", "3", "--json"]);
    let cut = format!("{STREAM}{}event: turn", event(7, "turn.started"));
    let first = answer(&listener, &cut).await;
    assert!(first.starts_with("get /v1/feed?after=3 ") && !first.contains("last-event-id"));
    let busy = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\r\n";
    assert!(answer(&listener, busy).await.contains("last-event-id: 7\r\n"));
    let problem = json!({ "code": "database_busy", "detail": "busy", "status": 503 });
    let broken = format!("{STREAM}event: error\ndata: {problem}\n\n");
    assert!(answer(&listener, &broken).await.contains("last-event-id: 7\r\n"));
    let rest = format!("{STREAM}{}{}", event(8, "turn.done"), event(9, "task.queued"));
    assert!(answer(&listener, &rest).await.contains("last-event-id: 7\r\n"));
    let output = ended(command).await;
    let events = output.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ids: Vec<Value> = events.map(|event| event["id"].clone()).collect();
    assert_eq!((output.code, ids), (0, vec![json!(7), json!(8), json!(9)]));
}

#[tokio::test]
async fn losing_the_server_reports_the_running_task_and_the_next_step() {
    let folder = scratch_folder();
    let (campaign, id) = (Uuid::now_v7().to_string(), Uuid::now_v7());
    let task = json!({
        "id": id, "campaign_id": campaign, "agent": "copywriter", "instance": "main",
        "session_mode": "continue", "state": "queued", "prompt": "Go.", "budget_micros": null,
        "spent_micros": 0, "spent_tokens": 0, "job_id": 1, "created_at": "2026-11-20T12:00:00Z",
        "created": true,
    })
    .to_string();
    let added = format!(
        "HTTP/1.1 201 Created\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{task}",
        task.len()
    );
    for stay in ["--wait", "--follow"] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let add = ["task", "add", "--campaign", &campaign, "--agent", "copywriter", "Go."];
        let command = spawn(&folder, address, &[&add[..], &[stay, "--timeout", "1s"]].concat());
        answer(&listener, &added).await;
        drop(listener);
        let output = ended(command).await;
        assert_eq!(output.code, 7, "{output:?}");
        let words = format!("the connection was lost before the end of task {id}");
        assert!(output.has(&words) && output.has(&format!("task show {id} --wait")), "{output:?}");
        assert!(output.has(&format!("no server can be reached at http://{address}")), "{output:?}");
    }
}
