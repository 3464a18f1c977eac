//! A turn with tools that is told to stop at a place where nothing is lost.

use std::path::Path;

use dalsegno::domain::tasks::{self, CancelOutcome, InterruptMode, State};
use serde_json::json;

use super::{Stage, WRITER};
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
async fn softly_a_tool_that_runs_ends_and_the_model_is_not_asked_for_more() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let ground = &stage.ground;
    ground.write_agent("writer", &WRITER.replace("model:", "tools: Bash\nmodel:"));
    let worker = ground.work().await;
    stage.says("One.").await;
    let n_before = stage.api.requests().len();
    let gate = ground.folder().join("gate");
    let wait = format!("while [ ! -e '{}' ]; do sleep 0.1; done", gate.display());
    let command = json!({ "command": format!("touch begun && {wait} && touch whole") });
    stage.api.plays([Play::Calls("Bash", command)]);
    let task = ground.add("Two.").await;
    eventually("the tool runs", async || is_below(ground.folder(), "begun").then_some(())).await;
    let session_id = ground.task(&task).await.session_id.unwrap();
    let mut tx = ground.pool.begin().await.unwrap();
    let interrupted =
        tasks::interrupt(&mut tx, session_id, InterruptMode::Soft, "not wanted", noon())
            .await
            .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(interrupted.cancel, CancelOutcome::AtSafePoint);
    std::fs::write(&gate, "").unwrap();
    let task = ground.ended(&task).await;
    assert_eq!(task.state, State::Cancelled, "{task:?}");
    assert!(is_below(ground.folder(), "whole"), "the tool was cut off");
    // The CLI may be about to call at the moment of the signal; that answer is not used.
    let n_asked = stage.api.requests().len() - n_before;
    assert!((1..=2).contains(&n_asked), "{n_asked} calls");
    stage.says("Three.").await;
    ground.settled().await;
    worker.stop().await;
    let said = stage.api.last_messages();
    assert!(said.last().unwrap().contains("was interrupted"), "{said:?}");
}
