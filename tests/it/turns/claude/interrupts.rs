//! A turn with tools that is told to stop at a place where nothing is lost.

use std::path::Path;

use dalsegno::domain::tasks::{self, CancelOutcome, InterruptMode, State};
use serde_json::json;

use super::{Setup, WRITER};
use crate::{
    app::{eventually, noon},
    providers::claude::api::Play,
};

fn is_below(folder: &Path, name: &str) -> bool {
    std::fs::read_dir(folder).is_ok_and(|entries| {
        entries.flatten().any(|entry| entry.file_name() == name || is_below(&entry.path(), name))
    })
}

#[tokio::test]
async fn a_soft_interrupt_lets_the_running_tool_end_and_makes_no_further_call() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    fixture.write_agent("writer", &WRITER.replace("model:", "tools: Bash\nmodel:"));
    let worker = fixture.start_worker().await;
    setup.run_prompt("One.").await;
    let n_before = setup.api.requests().len();
    let gate = fixture.folder().join("gate");
    let wait = format!("while [ ! -e '{}' ]; do sleep 0.1; done", gate.display());
    let command = json!({ "command": format!("touch begun && {wait} && touch whole") });
    setup.api.plays([Play::Calls("Bash", command)]);
    let task = fixture.add("Two.").await;
    eventually("the tool runs", async || is_below(fixture.folder(), "begun").then_some(())).await;
    let session_id = fixture.task(&task).await.session_id.unwrap();
    let mut tx = fixture.pool.begin().await.unwrap();
    let interrupted =
        tasks::interrupt(&mut tx, session_id, InterruptMode::Soft, "not wanted", noon())
            .await
            .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(interrupted.cancel, CancelOutcome::AtSafePoint);
    std::fs::write(&gate, "").unwrap();
    let task = fixture.ended(&task).await;
    assert_eq!(task.state, State::Cancelled, "{task:?}");
    assert!(is_below(fixture.folder(), "whole"), "the tool was interrupted");
    // The CLI may be about to call at the moment of the signal; that answer is not used.
    let n_asked = setup.api.requests().len() - n_before;
    assert!((1..=2).contains(&n_asked), "{n_asked} calls");
    setup.run_prompt("Three.").await;
    fixture.settled().await;
    worker.stop().await;
    let said = setup.api.last_messages();
    assert!(said.last().unwrap().contains("was interrupted"), "{said:?}");
}
