//! The model sees earlier messages, and a conversation continues after it has grown too long.

use chrono::TimeDelta;

use super::{Stage, WRITER};
use crate::providers::claude::api::Play;

const LONG: usize = 6000;

#[tokio::test]
async fn an_answer_without_memory_is_discarded_and_the_transcript_rebuilt() {
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
    assert!(turns[0].input_tokens > 0, "the cost is in the ledger");
    assert_eq!(turns[1].flags, Vec::<String>::new());
    let said = stage.api.last_messages();
    assert_eq!(said.len(), 5, "{said:?}");
    assert!(said[0].contains("Vik"));
}

#[tokio::test]
async fn a_model_that_never_sees_its_history_is_flagged_and_not_retried_forever() {
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
async fn a_full_conversation_continues_in_a_new_session_with_a_summary() {
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
        assert!(n_turns < 30, "the conversation never continues in a new session");
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
    let requests = stage.api.requests();
    let opens_with = |request: &&serde_json::Value| {
        let first = request["messages"][0].to_string();
        first.contains("Earlier conversation, summarised") && first.contains("HARBOUR-0001")
    };
    assert!(requests.iter().any(|request| opens_with(&request)), "no summary is sent");
    let paid = "select count(*) from dalsegno.usage where purpose = 'summary' and cost_micros > 0";
    assert!(ground.count(paid).await > 0, "a summary costs what the provider reports");
}

#[tokio::test]
async fn a_full_conversation_of_heavy_turns_continues_with_their_summary() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let ground = &stage.ground;
    stage.api.counts();
    ground.write_agent("writer", &WRITER.replace("model:", "window_tokens: 24000\nmodel:"));
    let worker = ground.work().await;
    // Two of them exceed the limit of the conversation.
    let heavy = "The tide comes in. ".repeat(1300);
    for part in ["One", "Two", "Three"] {
        stage.says(&format!("{part}: {heavy}")).await;
    }
    ground.settled().await;
    worker.stop().await;
    let sessions = ground.sessions().await;
    assert!(sessions.len() > 1, "{sessions:?}");
    let last = sessions.last().unwrap();
    let transcript = ground.transcript(last.id).await;
    assert!(!transcript[0].starts_with("Notice: Here turns"), "{:.80}", transcript[0]);
    assert!(last.generation > 0, "{last:?}");
}

#[tokio::test]
async fn the_successor_of_an_expired_session_gets_its_summary_and_none_of_its_files() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let ground = &stage.ground;
    let worker = ground.work().await;
    stage.says("Must: mention the red lamp. Write part one.").await;
    for round in 0..2 {
        ground.advance(TimeDelta::days(31));
        if round == 1 {
            // The first one was closed a month ago.
            assert_eq!(ground.clean_up().await, 2);
            let files = "select count(*) from dalsegno.transcript_files";
            assert_eq!(ground.count(files).await, 0);
        }
        stage.says("Write part two.").await;
        let said = stage.api.last_messages().join("\n");
        for part in
            ["Must: mention the red lamp.", "A summary of it came along; its messages did not."]
        {
            assert!(said.contains(part), "round {round}: {said}");
        }
    }
    ground.settled().await;
    worker.stop().await;
    let sessions = ground.sessions().await;
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0].opened_because, dalsegno::domain::sessions::Reason::Expired);
    assert_eq!(stage.began().await, ["new", "new", "new"]);
}
