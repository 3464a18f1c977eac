//! `task add --wait` and `--follow`, with the test as the worker.

use dalsegno::domain::{
    feed::{self, Kind},
    tasks::{self, Task},
};
use serde_json::{Value, json};
use tokio::{io::AsyncReadExt as _, process::Child};

use super::{Fixture, ended};
use crate::{
    app::{eventually, noon},
    conversations::world::TurnSettings,
};

impl Fixture {
    fn ask(&self, more: &[&str]) -> Child {
        let campaign = self.campaign();
        let add = ["task", "add", "--campaign", &campaign, "--agent", "copywriter", "Part one."];
        self.spawn(&[&add[..], more].concat())
    }

    /// Returns the task that a command has added.
    async fn task(&self) -> Task {
        eventually("the task exists", async || self.world.tasks().await.pop()).await
    }

    async fn append_event(&self, task: &Task, kind: Kind, data: Value) {
        let event = feed::New {
            campaign_id: Some(task.campaign_id),
            task_id: Some(task.id),
            session_id: None,
            kind,
            data,
        };
        feed::append(&self.world.pool, &[event], noon()).await.unwrap();
    }

    pub(super) async fn answer(&self, task: &Task, words: &str) {
        let (_, begun) = self.world.begin(task, self.world.lease(), TurnSettings::default()).await;
        self.world.commit(&begun, words, TurnSettings::default()).await.unwrap();
    }

    async fn fail(&self, task: &Task, error: &str) {
        let (_, begun) = self.world.begin(task, self.world.lease(), TurnSettings::default()).await;
        self.world.fail(&begun, error, None).await;
    }
}

#[tokio::test]
async fn waiting_prints_only_the_result_and_the_id_to_stderr() {
    let fixture = Fixture::new().await;
    let command = fixture.ask(&["--wait"]);
    let task = fixture.task().await;
    fixture.answer(&task, "The harbour at dawn.").await;
    let output = ended(command).await;
    assert_eq!(output.stderr, format!("task {} is queued\n", task.id), "{output:?}");
    assert_eq!((output.code, output.stdout.as_str()), (0, "The harbour at dawn.\n"), "{output:?}");
}

#[tokio::test]
async fn the_exit_code_tells_how_the_task_ended() {
    let fixture = Fixture::new().await;
    let command = fixture.ask(&["--wait", "--json"]);
    let task = fixture.task().await;
    fixture.fail(&task, "the model is unknown").await;
    let output = ended(command).await;
    assert_eq!((output.code, &output.json()["state"]), (1, &json!("failed")), "{output:?}");
    assert!(output.stderr.contains("the model is unknown") && output.stderr.contains("task retry"));
    let id = task.id.to_string();
    let output = fixture.run(&["task", "show", &id, "--wait", "1m", "--json"]).await;
    assert_eq!((output.code, &output.json()["state"]), (1, &json!("failed")), "{output:?}");
    assert!(output.stderr.contains("the model is unknown"), "{output:?}");
    assert_eq!(fixture.run(&["task", "show", &id]).await.code, 0, "without --wait");

    let fixture = Fixture::new().await;
    let command = fixture.ask(&["--wait"]);
    let task = fixture.task().await;
    let mut conn = fixture.world.pool.acquire().await.unwrap();
    tasks::cancel(&mut conn, task.id, "not needed", noon()).await.unwrap();
    let output = ended(command).await;
    assert_eq!((output.code, output.has("was cancelled")), (9, true), "{output:?}");
    let id = task.id.to_string();
    assert_eq!(fixture.run(&["task", "show", &id, "--wait", "1m"]).await.code, 9);

    let fixture = Fixture::new().await;
    let output = ended(fixture.ask(&["--wait", "--timeout", "1s"])).await;
    assert_eq!((output.code, output.has("is still queued and continues")), (6, true), "{output:?}");
    let id = fixture.task().await.id.to_string();
    let output = fixture.run(&["task", "show", &id, "--wait", "0s"]).await;
    assert_eq!((output.code, output.has("is still queued and continues")), (6, true), "{output:?}");
}

#[tokio::test]
async fn following_prints_events_as_they_happen() {
    let fixture = Fixture::new().await;
    let mut command = fixture.ask(&["--follow", "--json"]);
    let task = fixture.task().await;
    fixture.append_event(&task, Kind::TurnStarted, json!({ "turn": 1 })).await;
    // Events are printed before the end, not after it.
    let mut told = String::new();
    let stdout = command.stdout.as_mut().unwrap();
    while !told.contains("turn.started") {
        let mut bytes = [0; 4096];
        let n_read = stdout.read(&mut bytes).await.unwrap();
        assert!(n_read > 0, "ended early: {told}");
        told.push_str(std::str::from_utf8(&bytes[..n_read]).unwrap());
    }
    fixture.append_event(&task, Kind::TurnDone, json!({ "turn": 1 })).await;
    fixture.answer(&task, "The harbour at dawn.").await;
    let output = ended(command).await;
    told.push_str(&output.stdout);
    let lines: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<_> = lines.iter().filter_map(|line| line["kind"].as_str()).collect();
    assert_eq!(kinds, ["task.queued", "turn.started", "turn.done"]);
    assert_eq!(lines.last().unwrap()["result"], "The harbour at dawn.");
    assert_eq!(output.code, 0);
}

#[tokio::test]
async fn following_separates_the_result_from_the_events() {
    let fixture = Fixture::new().await;
    let command = fixture.ask(&["--follow"]);
    fixture.answer(&fixture.task().await, "The harbour at dawn.").await;
    let output = ended(command).await;
    assert_eq!((output.code, output.stdout.as_str()), (0, "The harbour at dawn.\n"), "{output:?}");
    assert!(output.stderr.contains("task.queued  agent=copywriter"), "{output:?}");
}

#[tokio::test]
async fn a_signal_ends_the_wait_and_not_the_task() {
    let fixture = Fixture::new().await;
    let command = fixture.ask(&["--wait"]);
    let task = fixture.task().await;
    let pid = command.id().unwrap().to_string();
    std::process::Command::new("kill").args(["-s", "INT", &pid]).status().unwrap();
    assert_eq!(ended(command).await.code, 130);
    assert_eq!(fixture.world.task(task.id).await.state, tasks::State::Queued);
}

#[tokio::test]
async fn an_interrupted_wait_names_its_task_and_the_pause_of_the_campaign() {
    let fixture = Fixture::new().await;
    fixture.json(&["campaign", "pause", "Harbour", "--reason", "client call"]).await;
    let mut command = fixture.ask(&["--wait"]);
    let mut told = String::new();
    let stderr = command.stderr.as_mut().unwrap();
    while !told.contains("is paused: client call") {
        let mut bytes = [0; 4096];
        let n_read = stderr.read(&mut bytes).await.unwrap();
        assert!(n_read > 0, "ended early: {told}");
        told.push_str(std::str::from_utf8(&bytes[..n_read]).unwrap());
    }
    let id = fixture.task().await.id;
    let pid = command.id().unwrap().to_string();
    std::process::Command::new("kill").args(["-s", "INT", &pid]).status().unwrap();
    let output = ended(command).await;
    let next = format!("task {id} continues; `dalsegno task show {id} --wait 10m` waits for it\n");
    assert_eq!(output.code, 130);
    assert!(output.stderr.ends_with(&next), "{output:?}");
}

#[tokio::test]
async fn the_answer_is_printed_as_it_streams() {
    let fixture = Fixture::new().await;
    let command = fixture.ask(&["--follow"]);
    let task = fixture.task().await;
    fixture.append_event(&task, Kind::TurnProgress, json!({ "text": "The harbour" })).await;
    fixture.append_event(&task, Kind::TurnProgress, json!({ "text": " at dawn." })).await;
    fixture.append_event(&task, Kind::TurnDone, json!({ "turn": 1, "ahead": null })).await;
    fixture.answer(&task, "The harbour at dawn.").await;
    let output = ended(command).await;
    assert!(output.stderr.contains("The harbour at dawn.\n"), "{output:?}");
    assert!(output.stderr.contains("turn=1") && !output.stderr.contains("null"), "{output:?}");
    // Stdout alone has the whole result.
    assert_eq!(output.stdout, "The harbour at dawn.\n");
}
