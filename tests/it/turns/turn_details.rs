//! Turns as people see them, after the calls of a worker.

use dalsegno::{
    context::manifest::Trust,
    domain::{
        manifests::Part,
        tasks::Task,
        turns::{self, Detail},
    },
};
use serde_json::json;

use super::fixture::Fixture;
use crate::{board::setup::BoardSetup, providers::fake_ollama::Play};

async fn detail(fixture: &Fixture, task: &Task) -> Detail {
    let mut conn = fixture.pool.acquire().await.unwrap();
    turns::detail(&mut conn, task.session_id.unwrap(), task.turn.unwrap(), None).await.unwrap()
}

fn part<'a>(parts: &'a [Part], kind: &str) -> &'a Part {
    parts.iter().find(|part| part.kind == kind).unwrap_or_else(|| panic!("{kind}: {parts:?}"))
}

#[tokio::test]
async fn each_call_of_a_turn_has_a_ledger_row_and_a_context() {
    let board_setup = BoardSetup::new(&["ann"], "tools: mcp__dalsegno__status\n").await;
    let fixture = &board_setup.fixture;
    board_setup.fake.state.plays.lock().unwrap().extend([
        Play::Says(&["Part one."]),
        Play::Calls(vec![("status", json!({}))]),
        Play::Says(&["Part ", "two."]),
    ]);
    let worker = fixture.start_worker().await;
    fixture.done(&board_setup.ask("ann", "Write part one.", None).await).await;
    let task = fixture.done(&board_setup.ask("ann", "Write part two.", None).await).await;
    worker.stop().await;
    let Detail { turn, prompt_seq, ledger, contexts, .. } = detail(fixture, &task).await;
    assert_eq!((turn.turn.number, turn.turn.calls), (2, 2));
    assert_eq!((turn.agent.as_str(), turn.model.as_str()), ("ann", "qwen3:8b"));
    let prompt = fixture.messages(turn.turn.session_id).await;
    let prompt = prompt.iter().find(|message| message.id == task.id).unwrap();
    assert_eq!(prompt_seq, Some(prompt.seq));
    // The provider counts the prompt of each call, which the ledger has, too.
    assert_eq!(ledger.len(), 2);
    let counted: Vec<_> = contexts.iter().map(|context| context.counted_tokens).collect();
    assert_eq!(counted, ledger.iter().map(|call| call.input_tokens).collect::<Vec<_>>());
    assert_eq!(contexts.iter().map(|context| context.call).collect::<Vec<_>>(), [1, 2]);
    assert!(contexts.iter().all(|context| context.estimated_tokens > 0));

    let parts = &contexts[0].parts;
    assert!(parts.iter().all(|part| part.sent && part.sha256.is_some()), "{parts:?}");
    let sent = |kind: &str| {
        let part = part(parts, kind);
        (part.trust, part.reason.as_str(), part.id.clone())
    };
    assert_eq!(sent("agent_prompt"), (Trust::Trusted, "sent with every call", None));
    let (trust, reason, id) = sent("task");
    let expected = (Trust::Untrusted, "belongs to this turn", Some(task.id.to_string()));
    assert_eq!((trust, reason, id), expected);
    assert_eq!(sent("transcript").1, "recent history, not summarised yet");
    assert!(!parts.iter().any(|part| part.kind == "rounds"));
    let rounds = part(&contexts[1].parts, "rounds");
    assert_eq!((rounds.sent, rounds.id.as_deref()), (true, Some("2 messages")));
}

#[tokio::test]
async fn posts_that_were_left_out_have_their_places_and_a_reason() {
    let board_setup = BoardSetup::new(&["ann"], "history_window: 3\n").await;
    for number in 1..=8 {
        board_setup.post(&["all"], &format!("Post {number}.")).await;
    }
    let worker = board_setup.fixture.start_worker().await;
    let task = board_setup.ask("ann", "What is new?", None).await;
    let task = board_setup.fixture.done(&task).await;
    worker.stop().await;
    let detail = detail(&board_setup.fixture, &task).await;
    let posts = detail.contexts[0].parts.iter().filter(|part| part.kind == "posts");
    let posts: Vec<_> = posts
        .map(|part| {
            let span = part.span.unwrap();
            (part.sent, span.from_seq, span.to_seq, part.reason.as_str())
        })
        .collect();
    let left_out = (false, 1, 5, "older than the window of the agent's file");
    assert_eq!(posts, [left_out, (true, 6, 8, "new since the last turn")]);
}

#[tokio::test]
async fn posts_to_others_since_the_last_turn_are_named_with_the_turn() {
    let board_setup = BoardSetup::new(&["ann", "ben"], "").await;
    let fixture = &board_setup.fixture;
    let worker = fixture.start_worker().await;
    board_setup.post(&["ben"], "Before the first turn.").await;
    let first = fixture.done(&board_setup.ask("ann", "What is new?", None).await).await;
    board_setup.post(&["ben"], "For ben alone.").await;
    board_setup.post(&["all"], "For all.").await;
    let second = fixture.done(&board_setup.ask("ann", "And now?", None).await).await;
    worker.stop().await;
    let of_ben = |detail: Detail| {
        let to_ben = detail.hidden_posts.into_iter().filter(|post| post.audience == ["ben"]);
        to_ben.map(|post| post.seq).collect::<Vec<_>>()
    };
    assert_eq!(of_ben(detail(fixture, &first).await), [1]);
    // Answers of ann are posts, too, which the agent sees.
    let hidden = of_ben(detail(fixture, &second).await);
    assert!(hidden.len() == 1 && hidden[0] > 1, "{hidden:?}");
}
