//! Turns that do not end well, and the parts of them that later turns see.

use dalsegno::domain::tasks::State;
use rustix::process::Signal;

use super::{SECRET, Setup, WRITER};
use crate::{
    app::eventually,
    providers::claude::{api::Play, host::processes_of},
};

#[tokio::test]
async fn a_worker_killed_in_a_turn_leaves_no_process_and_a_usable_conversation() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    let mut first = fixture.process(&[]);
    setup.run_prompt("One.").await;
    setup.api.plays([Play::Hangs]);
    let task = fixture.add("Two.").await;
    eventually("the model is called", async || (setup.api.requests().len() == 2).then_some(()))
        .await;
    first.signal(Signal::KILL);
    first.ended().await;
    let folder = fixture.folder().display().to_string();
    eventually("no process is left", async || processes_of(&folder).is_empty().then_some(())).await;
    let mut second = fixture.process(&[]);
    let task = fixture.ended_after_pause(&task).await;
    assert_eq!(task.state, State::Done, "{task:?}");
    fixture.settled().await;
    second.signal(Signal::TERM);
    second.ended().await;
    let said = setup.api.last_messages();
    assert_eq!(said.len(), 3, "messages of the killed turn are still sent: {said:?}");
    assert!(said[2].contains("was interrupted") && said[2].contains("Two."), "{said:?}");
    let began = setup.session_starts().await;
    assert!(began[1] == "restored" || began[1] == "resumed", "{began:?}");
}

#[tokio::test]
async fn the_turn_after_a_cancelled_one_gets_its_partial_output() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    let worker = fixture.start_worker().await;
    setup.run_prompt("One.").await;
    setup.api.plays([Play::Hangs]);
    let task = fixture.add("Two.").await;
    eventually("partial output arrives", async || {
        let feed = fixture.feed().await;
        // A first turn that takes long reports progress, too.
        let mut progress = feed.iter().filter(|event| event.kind == "turn.progress");
        progress.find(|event| event.data["text"] == "Only a part").map(drop)
    })
    .await;
    fixture.cancel(&task).await;
    assert_eq!(fixture.ended(&task).await.state, State::Cancelled);
    setup.run_prompt("Three.").await;
    fixture.settled().await;
    worker.stop().await;
    let said = setup.api.last_messages();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[2].contains("Only a part") && said[2].contains("Three."), "{said:?}");
}

#[tokio::test]
async fn no_secret_is_in_the_feed_the_transcript_or_an_error() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    let worker = fixture.start_worker().await;
    let words = "invalid x-api-key sk-ant-dummy-0123456789";
    setup.api.plays([Play::Fails(401, "", "authentication_error", words)]);
    let task = fixture.add("One.").await;
    let task = fixture.ended(&task).await;
    assert_eq!(task.state, State::Failed);
    assert!(task.error.as_deref().unwrap().contains("rejects the credential main"), "{task:?}");
    setup.run_prompt("Two.").await;
    fixture.settled().await;
    worker.stop().await;
    for table in
        ["feed", "messages", "tasks", "turns", "sessions", "transcript_chunks", "manifests"]
    {
        let sql =
            format!("select count(*) from dalsegno.{table} as t where t::text like '%{SECRET}%'");
        let found: i64 =
            sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch_one(&fixture.pool).await.unwrap();
        assert_eq!(found, 0, "{table}");
    }
    let bytes = "select count(*) from dalsegno.transcript_chunks where position('sk-ant-dummy'::bytea in bytes) > 0";
    assert_eq!(fixture.count(bytes).await, 0);
}

#[tokio::test]
async fn no_preview_of_a_turn_shows_a_secret_in_the_feed() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    let worker = fixture.start_worker().await;
    setup.api.plays([Play::SaysAndHangs(format!("It is {SECRET}, as you know."))]);
    let task = fixture.add("Which key is it?").await;
    let shown = eventually("partial output is in the feed", async || {
        let feed = fixture.feed().await.into_iter();
        let mut texts = feed.filter(|event| event.kind == "turn.progress").map(|event| event.data);
        texts.find(|data| data["text"] != "").map(|data| data["text"].clone())
    });
    assert_eq!(shown.await, "It is [secret], as you know.");
    fixture.cancel(&task).await;
    fixture.ended(&task).await;
    fixture.settled().await;
    worker.stop().await;
    let sql = format!("select count(*) from dalsegno.messages where text like '%{SECRET}%'");
    let found: i64 =
        sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch_one(&fixture.pool).await.unwrap();
    assert_eq!(found, 0, "the partial output is kept without the secret");
}

#[tokio::test]
async fn tool_effects_of_a_failed_attempt_are_reported_to_the_next() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    fixture.write_agent("writer", &WRITER.replace("model:", "tools: [Bash]\nmodel:"));
    let worker = fixture.start_worker().await;
    setup.run_prompt("One.").await;
    let command = serde_json::json!({ "command": "true", "description": "Does nothing" });
    setup.api.plays([Play::Calls("Bash", command), Play::Fails(500, "", "api_error", "boom")]);
    let task = setup.run_prompt("Two.").await;
    fixture.settled().await;
    worker.stop().await;
    assert_eq!(fixture.turns(&task).await.len(), 2);
    let said = setup.api.last_messages();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[2].contains("was interrupted") && said[2].contains("Two."), "{said:?}");
}

#[tokio::test]
async fn a_refusal_unrelated_to_the_history_keeps_the_conversation() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    let worker = fixture.start_worker().await;
    let first = setup.run_prompt("One.").await;
    let words = "This header is not supported.";
    setup.api.plays([Play::Fails(400, "", "invalid_request_error", words)]);
    let refused = fixture.ended(&fixture.add("Two.").await).await;
    assert_eq!(refused.state, State::Failed, "{refused:?}");
    let third = setup.run_prompt("Three.").await;
    fixture.settled().await;
    worker.stop().await;
    assert_eq!(third.session_id, first.session_id);
    let said = setup.api.last_messages();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].contains("One.") && said[2].contains("Three."), "{said:?}");
}

/// The CLI has written the prompt into its own transcript. The conversation continues after the last answer that
/// counts.
#[tokio::test]
async fn a_rejected_prompt_is_not_resumed() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    let worker = fixture.start_worker().await;
    let first = setup.run_prompt("One.").await;
    setup.run_prompt("Two.").await;
    setup.run_prompt("Three.").await;
    let words = "Output blocked by content filtering policy";
    setup.api.plays([Play::Fails(400, "", "invalid_request_error", words)]);
    let rejected = fixture.ended(&fixture.add("Xylograph.").await).await;
    assert_eq!(rejected.state, State::Failed, "{rejected:?}");
    assert!(rejected.error.as_deref().unwrap().contains(words), "{rejected:?}");
    let turns = fixture.turns(&rejected).await;
    assert_eq!(turns.len(), 1, "{turns:?}");
    assert_eq!(turns[0].flags, ["prompt_rejected"]);
    let next = setup.run_prompt("Four.").await;
    assert_eq!(next.session_id, first.session_id);
    let said = setup.api.last_messages();
    assert_eq!(said.len(), 7, "{said:?}");
    for (place, words) in [(0, "One."), (2, "Two."), (4, "Three."), (6, "Four.")] {
        assert!(said[place].contains(words), "{said:?}");
    }
    let is_sent = |said: &[String]| said.iter().any(|said| said.contains("Xylograph"));
    assert!(!is_sent(&said), "{said:?}");
    // It is also missing from a transcript that is written anew for another host.
    sqlx::query(
        "update dalsegno.sessions set head = null, head_seq = null, head_generation = null",
    )
    .execute(&fixture.pool)
    .await
    .unwrap();
    setup.run_prompt("Five.").await;
    fixture.settled().await;
    worker.stop().await;
    let said = setup.api.last_messages();
    assert!(said.len() >= 9 && said[0].contains("One."), "{said:?}");
    assert!(!is_sent(&said), "{said:?}");
}

#[tokio::test]
async fn partial_output_of_a_killed_worker_is_shown_to_the_next_attempt() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    let mut first = fixture.process(&[]);
    setup.run_prompt("One.").await;
    setup.api.plays([Play::Hangs]);
    let task = fixture.add("Two.").await;
    eventually("partial output is stored", async || {
        let stored = "select count(*) from dalsegno.partial_outputs where text = 'Only a part'";
        (fixture.count(stored).await == 1).then_some(())
    })
    .await;
    first.signal(Signal::KILL);
    first.ended().await;
    let mut second = fixture.process(&[]);
    let task = fixture.ended_after_pause(&task).await;
    assert_eq!(task.state, State::Done, "{task:?}");
    fixture.settled().await;
    second.signal(Signal::TERM);
    second.ended().await;
    let said = setup.api.last_messages();
    assert_eq!(said.len(), 3, "{said:?}");
    for words in ["<interrupted_answer ", "Only a part", "it is not complete", "Two."] {
        assert!(said[2].contains(words), "{words}: {said:?}");
    }
    assert_eq!(fixture.count("select count(*) from dalsegno.partial_outputs").await, 0);
}
