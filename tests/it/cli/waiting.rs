//! `task add --wait` and `--follow`, with the test as the worker.

use dalsegno::domain::{
    feed::{self, Kind},
    tasks::{self, Task},
    turn_phases,
    turn_phases::{Failure, TurnEnd},
};
use serde_json::{Value, json};
use tokio::{io::AsyncReadExt as _, process::Child};

use super::{Ground, ended};
use crate::{
    app::{eventually, noon},
    conversations::world::Now,
};

impl Ground {
    fn ask(&self, more: &[&str]) -> Child {
        let campaign = self.campaign();
        let add = ["task", "add", "--campaign", &campaign, "--agent", "copywriter", "Part one."];
        self.spawn(&[&add[..], more].concat())
    }

    /// Returns the task that a command has added.
    async fn task(&self) -> Task {
        eventually("the task is there", async || self.world.tasks().await.pop()).await
    }

    async fn tell(&self, task: &Task, kind: Kind, data: Value) {
        let event = feed::New {
            campaign_id: Some(task.campaign_id),
            task_id: Some(task.id),
            session_id: None,
            kind,
            data,
        };
        feed::append(&self.world.pool, &[event], noon()).await.unwrap();
    }

    async fn answer(&self, task: &Task, words: &str) {
        let (_, begun) = self.world.begin(task, self.world.lease(), Now::default()).await;
        self.world.commit(&begun, words, Now::default()).await.unwrap();
    }

    async fn fail(&self, task: &Task, error: &str) {
        let (_, begun) = self.world.begin(task, self.world.lease(), Now::default()).await;
        let ending = TurnEnd {
            turn: &begun,
            calls: &[],
            messages: &[],
            record: Default::default(),
            now: noon(),
        };
        let mut tx = self.world.pool.begin().await.unwrap();
        let failure = Failure {
            error,
            rebuild: None,
            ends_task: true,
            forgotten: false,
            interrupted: false,
            rejected: false,
        };
        turn_phases::fail(&mut tx, &ending, &failure).await.unwrap();
        tx.commit().await.unwrap();
    }
}

#[tokio::test]
async fn waiting_prints_the_result_and_nothing_else() {
    let ground = Ground::new().await;
    let command = ground.ask(&["--wait"]);
    ground.answer(&ground.task().await, "The harbour at dawn.").await;
    let said = ended(command).await;
    assert_eq!((said.code, said.stdout.as_str()), (0, "The harbour at dawn.\n"), "{said:?}");
}

#[tokio::test]
async fn the_exit_code_says_how_the_task_ended() {
    let ground = Ground::new().await;
    let command = ground.ask(&["--wait", "--json"]);
    let task = ground.task().await;
    ground.fail(&task, "the model is unknown").await;
    let said = ended(command).await;
    assert_eq!((said.code, &said.json()["state"]), (1, &json!("failed")), "{said:?}");
    assert!(said.stderr.contains("the model is unknown") && said.stderr.contains("task retry"));
    let id = task.id.to_string();
    let said = ground.run(&["task", "show", &id, "--wait", "1m", "--json"]).await;
    assert_eq!((said.code, &said.json()["state"]), (1, &json!("failed")), "{said:?}");
    assert!(said.stderr.contains("the model is unknown"), "{said:?}");
    assert_eq!(ground.run(&["task", "show", &id]).await.code, 0, "without --wait");

    let ground = Ground::new().await;
    let command = ground.ask(&["--wait"]);
    let task = ground.task().await;
    let mut conn = ground.world.pool.acquire().await.unwrap();
    tasks::cancel(&mut conn, task.id, "not needed", noon()).await.unwrap();
    let said = ended(command).await;
    assert_eq!((said.code, said.has("was cancelled")), (9, true), "{said:?}");
    let id = task.id.to_string();
    assert_eq!(ground.run(&["task", "show", &id, "--wait", "1m"]).await.code, 9);

    let ground = Ground::new().await;
    let said = ended(ground.ask(&["--wait", "--timeout", "1s"])).await;
    assert_eq!((said.code, said.has("is still queued and continues")), (6, true), "{said:?}");
    let id = ground.task().await.id.to_string();
    let said = ground.run(&["task", "show", &id, "--wait", "0s"]).await;
    assert_eq!((said.code, said.has("is still queued and continues")), (6, true), "{said:?}");
}

#[tokio::test]
async fn following_tells_what_happens_as_it_happens() {
    let ground = Ground::new().await;
    let mut command = ground.ask(&["--follow", "--json"]);
    let task = ground.task().await;
    ground.tell(&task, Kind::TurnStarted, json!({ "turn": 1 })).await;
    // Events are printed before the end, not after it.
    let mut told = String::new();
    let stdout = command.stdout.as_mut().unwrap();
    while !told.contains("turn.started") {
        let mut bytes = [0; 4096];
        let n_read = stdout.read(&mut bytes).await.unwrap();
        assert!(n_read > 0, "ended early: {told}");
        told.push_str(std::str::from_utf8(&bytes[..n_read]).unwrap());
    }
    ground.tell(&task, Kind::TurnDone, json!({ "turn": 1 })).await;
    ground.answer(&task, "The harbour at dawn.").await;
    let said = ended(command).await;
    told.push_str(&said.stdout);
    let lines: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<_> = lines.iter().filter_map(|line| line["kind"].as_str()).collect();
    assert_eq!(kinds, ["task.queued", "turn.started", "turn.done"]);
    assert_eq!(lines.last().unwrap()["result"], "The harbour at dawn.");
    assert_eq!(said.code, 0);
}

#[tokio::test]
async fn following_keeps_the_result_apart_from_the_news() {
    let ground = Ground::new().await;
    let command = ground.ask(&["--follow"]);
    ground.answer(&ground.task().await, "The harbour at dawn.").await;
    let said = ended(command).await;
    assert_eq!((said.code, said.stdout.as_str()), (0, "The harbour at dawn.\n"), "{said:?}");
    assert!(said.stderr.contains("task.queued  agent=copywriter"), "{said:?}");
}

#[tokio::test]
async fn a_signal_ends_the_waiting_and_not_the_task() {
    let ground = Ground::new().await;
    let command = ground.ask(&["--wait"]);
    let task = ground.task().await;
    let pid = command.id().unwrap().to_string();
    std::process::Command::new("kill").args(["-s", "INT", &pid]).status().unwrap();
    assert_eq!(ended(command).await.code, 130);
    assert_eq!(ground.world.task(task.id).await.state, tasks::State::Queued);
}

#[tokio::test]
async fn the_answer_is_shown_as_it_comes() {
    let ground = Ground::new().await;
    let command = ground.ask(&["--follow"]);
    let task = ground.task().await;
    ground.tell(&task, Kind::TurnProgress, json!({ "text": "The harbour" })).await;
    ground.tell(&task, Kind::TurnProgress, json!({ "text": " at dawn." })).await;
    ground.tell(&task, Kind::TurnDone, json!({ "turn": 1, "ahead": null })).await;
    ground.answer(&task, "The harbour at dawn.").await;
    let said = ended(command).await;
    assert!(said.stderr.contains("The harbour at dawn.\n"), "{said:?}");
    assert!(said.stderr.contains("turn=1") && !said.stderr.contains("null"), "{said:?}");
    // Stdout alone has the whole result.
    assert_eq!(said.stdout, "The harbour at dawn.\n");
}
