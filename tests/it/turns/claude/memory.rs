//! Whether the model sees what was said, and how a conversation goes on that has grown too long.

use super::{Stage, WRITER};
use crate::providers::claude::api::Play;

const LONG: usize = 6000;

#[tokio::test]
async fn an_answer_without_memory_is_not_taken_and_the_transcript_is_written_anew() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let ground = &stage.ground;
    stage.api.counts();
    let worker = ground.work().await;
    let long = "The harbour is called Vik. ".repeat(LONG / 27);
    stage.says(&long).await;
    stage.says("Two.").await;
    stage.api.plays([Play::Forgets]);
    let third = stage.says("Three.").await;
    ground.settled().await;
    worker.stop().await;
    assert_eq!(stage.began().await, ["new", "resumed", "rewritten"]);
    let turns = ground.turns(&third).await;
    assert_eq!(turns.len(), 2);
    assert!(turns[0].error.as_deref().unwrap().contains("did not see its history"));
    assert!(turns[0].input_tokens > 0, "what it cost is in the ledger");
    assert_eq!(turns[1].flags, Vec::<String>::new());
    let said = stage.api.last_messages();
    assert_eq!(said.len(), 5, "{said:?}");
    assert!(said[0].contains("Vik"));
}

#[tokio::test]
async fn a_model_that_never_sees_its_history_is_flagged_and_not_asked_for_ever() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let ground = &stage.ground;
    stage.api.counts();
    let worker = ground.work().await;
    stage.says(&"The harbour is called Vik. ".repeat(LONG / 27)).await;
    stage.api.plays([Play::Forgets, Play::Forgets]);
    let second = stage.says("Two.").await;
    ground.settled().await;
    worker.stop().await;
    let turns = ground.turns(&second).await;
    assert_eq!(turns.len(), 2);
    assert_eq!(turns[1].flags, ["history_not_seen"]);
}

#[tokio::test]
async fn a_full_conversation_goes_on_in_a_new_session_with_a_summary() {
    let Some(stage) =
        Stage::new(&[("claude.window_tokens", "16000"), ("claude.rollover_percent", "60")]).await
    else {
        return;
    };
    let ground = &stage.ground;
    stage.api.counts();
    let narrow = WRITER.replace("model:", "window_tokens: 16000\nmodel:");
    ground.write_agent("writer", &narrow);
    let worker = ground.work().await;
    let mut n_turns = 0;
    while ground.sessions().await.len() < 2 {
        n_turns += 1;
        assert!(n_turns < 30, "it never goes on in a new session");
        let words = format!("Remember HARBOUR-{n_turns:04}. {}", "The tide comes in. ".repeat(120));
        stage.says(&words).await;
    }
    ground.settled().await;
    worker.stop().await;
    let sessions = ground.sessions().await;
    let (old, new) = (&sessions[0], &sessions[1]);
    assert_eq!(new.predecessor_id, Some(old.id));
    assert_ne!(new.external_session_id, old.external_session_id);
    assert!(
        new.context_tokens < old.context_tokens,
        "{} {}",
        new.context_tokens,
        old.context_tokens
    );
    let said = stage.api.last_messages();
    assert!(said[0].contains("<summary"), "{said:?}");
    assert!(said[0].contains("HARBOUR-0001"), "{}", said[0]);
}
