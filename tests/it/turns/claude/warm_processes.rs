//! Processes that wait for the next turn of their session.

use super::{Setup, WRITER};
use crate::{app::eventually, providers::claude::host::processes_of};

pub fn warm(more: &str) -> String {
    WRITER.replace("model:", &format!("warm: true\n{more}model:"))
}

impl Setup {
    pub async fn ahead(&self) -> Vec<bool> {
        let feed = self.fixture.feed().await.into_iter();
        let done = feed.filter(|event| event.kind == "turn.done");
        done.map(|event| event.data["ahead"].as_bool().unwrap()).collect()
    }

    fn processes(&self) -> usize {
        let folder = self.fixture.folder().display().to_string();
        processes_of(&folder).len()
    }
}

#[tokio::test]
async fn a_turn_uses_the_process_that_the_previous_turn_started() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    fixture.write_agent("writer", &warm(""));
    let worker = fixture.start_worker().await;
    for turn in 0..3 {
        setup.run_prompt(&format!("Part {turn}, please.")).await;
    }
    assert_eq!(setup.ahead().await, [false, true, true]);
    assert_eq!(setup.session_starts().await, ["new", "resumed", "resumed"]);
    let said = setup.api.last_messages();
    assert_eq!(said.len(), 5, "{said:?}");
    assert!(said[0].contains("Part 0") && said[4].contains("Part 2"), "{said:?}");
    assert!(setup.processes() > 0, "the next process waits");
    fixture.settled().await;
    worker.stop().await;
    eventually("no process waits any more", async || (setup.processes() == 0).then_some(())).await;
}

#[tokio::test]
async fn a_process_started_with_other_options_is_not_used() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    fixture.write_agent("writer", &warm(""));
    let worker = fixture.start_worker().await;
    setup.run_prompt("One.").await;
    fixture.settled().await;
    // The same prompt, and another tool: the session continues, with a new process.
    fixture.write_agent("writer", &warm("tools: [Read]\n"));
    eventually("the changed file is read", async || {
        let task = setup.run_prompt("Another.").await;
        drop(task);
        let tools = setup.api.requests().last().unwrap()["tools"].to_string();
        tools.contains("Read").then_some(())
    })
    .await;
    let ahead = setup.ahead().await;
    assert_eq!(ahead.last(), Some(&false), "{ahead:?}");
    fixture.settled().await;
    worker.stop().await;
}

#[tokio::test]
async fn warm_processes_are_limited_in_number_and_age() {
    let settings = [("claude.ahead_max", "1"), ("claude.ahead_idle_secs", "2")];
    let Some(setup) = Setup::new(&settings).await else { return };
    let fixture = &setup.fixture;
    fixture.write_agent("writer", &warm(""));
    let worker = fixture.start_worker().await;
    for instance in ["one", "two", "three"] {
        let task = fixture.add_for("writer", instance, "Write.").await;
        fixture.done(&task).await;
    }
    // The guard and the CLI under it.
    eventually("one process waits", async || (setup.processes() <= 2).then_some(())).await;
    eventually("no process waits for long", async || (setup.processes() == 0).then_some(())).await;
    fixture.settled().await;
    worker.stop().await;
}
