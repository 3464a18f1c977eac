//! The model sees earlier messages, and a conversation continues after it has grown too long.

use chrono::TimeDelta;
use dalsegno::domain::{amount::Limit, turns::HistoryCheck};

use super::{Setup, WRITER};
use crate::providers::claude::api::Play;

const N_WORDS: usize = 6000;

#[tokio::test]
async fn an_answer_without_memory_is_discarded_and_the_transcript_rebuilt() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    setup.api.counts();
    let worker = fixture.start_worker().await;
    let long = "The harbour is called Vik. ".repeat(N_WORDS / 27);
    setup.run_prompt(&long).await;
    setup.run_prompt("Two.").await;
    setup.api.plays([Play::Forgets]);
    let third = setup.run_prompt("Three.").await;
    fixture.settled().await;
    worker.stop().await;
    assert_eq!(setup.session_starts().await, ["new", "resumed", "rewritten"]);
    let turns = fixture.turns(&third).await;
    assert_eq!(turns.len(), 2);
    assert!(turns[0].error.as_deref().unwrap().contains("did not see its history"));
    assert!(turns[0].input_tokens > 0, "the cost is in the ledger");
    let checks: Vec<_> = turns.iter().map(|turn| turn.history_check).collect();
    assert_eq!(checks, [Some(HistoryCheck::NotSeen), Some(HistoryCheck::Seen)]);
    assert_eq!(turns[1].flags, Vec::<String>::new());
    let said = setup.api.last_messages();
    assert_eq!(said.len(), 5, "{said:?}");
    assert!(said[0].contains("Vik"));
}

#[tokio::test]
async fn a_model_that_never_sees_its_history_is_flagged_and_not_retried_forever() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    setup.api.counts();
    let worker = fixture.start_worker().await;
    setup.run_prompt(&"The harbour is called Vik. ".repeat(N_WORDS / 27)).await;
    setup.api.plays([Play::Forgets, Play::Forgets]);
    let second = setup.run_prompt("Two.").await;
    fixture.settled().await;
    worker.stop().await;
    let turns = fixture.turns(&second).await;
    assert_eq!(turns.len(), 2);
    assert_eq!(turns[1].flags, ["history_not_seen"]);
    assert!(turns.iter().all(|turn| turn.history_check == Some(HistoryCheck::NotSeen)));
}

#[tokio::test]
async fn a_full_conversation_continues_in_a_new_session_with_a_summary() {
    let Some(setup) =
        Setup::new(&[("claude.window_tokens", "16000"), ("claude.rollover_percent", "60")]).await
    else {
        return;
    };
    let fixture = &setup.fixture;
    setup.api.counts();
    let narrow = WRITER.replace("model:", "window_tokens: 16000\nmodel:");
    fixture.write_agent("writer", &narrow);
    let worker = fixture.start_worker().await;
    let mut n_turns = 0;
    while fixture.sessions().await.len() < 2 {
        n_turns += 1;
        assert!(n_turns < 30, "the conversation never continues in a new session");
        let words = format!("Remember HARBOUR-{n_turns:04}. {}", "The tide comes in. ".repeat(120));
        setup.run_prompt(&words).await;
    }
    fixture.settled().await;
    worker.stop().await;
    let sessions = fixture.sessions().await;
    let (old, new) = (&sessions[0], &sessions[1]);
    assert_eq!(new.predecessor_id, Some(old.id));
    assert_ne!(new.external_session_id, old.external_session_id);
    assert!(
        new.context_tokens < old.context_tokens,
        "{} {}",
        new.context_tokens,
        old.context_tokens
    );
    let requests = setup.api.requests();
    let opens_with = |request: &&serde_json::Value| {
        let first = request["messages"][0].to_string();
        first.contains("Earlier conversation, summarised") && first.contains("HARBOUR-0001")
    };
    assert!(requests.iter().any(|request| opens_with(&request)), "no summary is sent");
    let paid = "select count(*) from dalsegno.usage where purpose = 'summary' and cost_micros > 0";
    assert!(fixture.count(paid).await > 0, "a summary costs what the provider reports");
}

#[tokio::test]
async fn a_full_conversation_of_heavy_turns_continues_with_their_summary() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    setup.api.counts();
    fixture.write_agent("writer", &WRITER.replace("model:", "window_tokens: 24000\nmodel:"));
    let worker = fixture.start_worker().await;
    // Two of them exceed the limit of the conversation.
    let heavy = "The tide comes in. ".repeat(1300);
    for part in ["One", "Two", "Three"] {
        setup.run_prompt(&format!("{part}: {heavy}")).await;
    }
    fixture.settled().await;
    worker.stop().await;
    let sessions = fixture.sessions().await;
    assert!(sessions.len() > 1, "{sessions:?}");
    let last = sessions.last().unwrap();
    let transcript = fixture.transcript(last.id).await;
    assert!(!transcript[0].starts_with("Notice: Here turns"), "{:.80}", transcript[0]);
    assert!(last.generation > 0, "{last:?}");
}

#[tokio::test]
async fn the_cli_may_spend_what_the_summary_left_of_the_budget_of_its_task() {
    const BUDGET: i64 = 50_000_000;
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    setup.api.counts();
    // No summary is made ahead of a turn, at the expense of no task.
    let narrow = "window_tokens: 24000\nprepare_percent: 93\napply_percent: 94\nmodel:";
    fixture.write_agent("writer", &WRITER.replace("model:", narrow));
    let worker = fixture.start_worker().await;
    let heavy = "The tide comes in. ".repeat(1300);
    for part in ["One", "Two", "Three"] {
        let limit = Limit { micros: Some(BUDGET), tokens: None };
        let prompt = format!("{part}: {heavy}");
        let task = fixture.add_as("writer", "main", &prompt, None, limit).await;
        fixture.done(&task).await;
    }
    fixture.settled().await;
    worker.stop().await;
    let paid = "select sum(cost_micros)::bigint from dalsegno.usage
                 where purpose = 'summary' and task_id is not null group by task_id";
    let paid: Vec<i64> = sqlx::query_scalar(paid).fetch_all(&fixture.pool).await.unwrap();
    assert!(!paid.is_empty() && paid.iter().all(|micros| *micros > 0), "{paid:?}");
    let limits = "select substring(content from '--max-budget-usd=([0-9.]+)')
                    from dalsegno.context_texts where kind = 'envelope'";
    let limits: Vec<Option<String>> =
        sqlx::query_scalar(limits).fetch_all(&fixture.pool).await.unwrap();
    for micros in &paid {
        let left = BUDGET - micros;
        let left = format!("{}.{:06}", left / 1_000_000, left % 1_000_000);
        assert!(limits.contains(&Some(left)), "{paid:?} {limits:?}");
    }
}

#[tokio::test]
async fn the_successor_of_an_expired_session_gets_its_summary_and_none_of_its_files() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    let worker = fixture.start_worker().await;
    setup.run_prompt("Must: mention the red lamp. Write part one.").await;
    for round in 0..2 {
        fixture.advance(TimeDelta::days(31));
        if round == 1 {
            // The first one was closed a month ago.
            assert_eq!(fixture.clean_up().await, 2);
            let files = "select count(*) from dalsegno.transcript_files";
            assert_eq!(fixture.count(files).await, 0);
        }
        setup.run_prompt("Write part two.").await;
        let said = setup.api.last_messages().join("\n");
        for part in
            ["Must: mention the red lamp.", "A summary of it came along; its messages did not."]
        {
            assert!(said.contains(part), "round {round}: {said}");
        }
    }
    fixture.settled().await;
    worker.stop().await;
    let sessions = fixture.sessions().await;
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0].opened_because, dalsegno::domain::sessions::Reason::Expired);
    assert_eq!(setup.session_starts().await, ["new", "new", "new"]);
}
