//! Conversations that are handed over: to another provider, from lost workers, after a timeout.

use std::os::unix::process::ExitStatusExt as _;

use dalsegno::domain::{
    contexts,
    sessions::{Reason, State as SessionState},
    tasks::{State, Task},
    turns,
};
use rustix::process::Signal;

use super::{Fixture, fixture::WRITER};
use crate::providers::fake_ollama::{FakeOllama, Play};

fn states(turns: &[turns::Turn]) -> Vec<turns::State> {
    turns.iter().map(|turn| turn.state).collect()
}

#[tokio::test]
async fn a_conversation_moves_from_one_provider_to_another() {
    let fake = FakeOllama::playing([Play::Says(&["Two."]), Play::Says(&["Three."])]).await;
    let url = format!("http://{}", fake.addr);
    let fixture = Fixture::new(&[("ollama.base_url", &url), ("ollama.num_ctx", "4096")]).await;
    let worker = fixture.start_worker().await;
    let first = fixture.done(&fixture.add("Part one. [[sim: say One.]]").await).await;
    let elsewhere =
        WRITER.replace("description:", "provider: ollama\nmodel: qwen3:8b\ndescription:");
    fixture.write_agent("writer", &elsewhere);
    let second = fixture.done(&fixture.add("Part two.").await).await;
    let third = fixture.done(&fixture.add("Part three.").await).await;
    worker.stop().await;
    assert_eq!([second.result.as_deref(), third.result.as_deref()], [Some("Two."), Some("Three.")]);

    let (before, after) = (fixture.session(&first).await, fixture.session(&second).await);
    assert_eq!((before.provider.as_str(), after.provider.as_str()), ("sim", "ollama"));
    assert_eq!(before.closed_because, Some(Reason::ProviderChanged));
    assert_eq!(
        (after.opened_because, after.predecessor_id),
        (Reason::ProviderChanged, Some(before.id))
    );
    assert_eq!(third.session_id, second.session_id);
    // The other provider gets the earlier messages and one notice of the takeover. It does not get the first one's
    // token counts.
    let chats: Vec<String> = fake.chats().iter().map(|chat| chat["messages"].to_string()).collect();
    assert!(
        chats.iter().all(|chat| chat.contains("Part one.") && chat.contains("One.")),
        "{chats:?}"
    );
    let told: Vec<_> =
        chats.iter().map(|chat| chat.contains("another model has taken over")).collect();
    assert_eq!(told, [true, false]);
    let ledger =
        fixture.json("select to_jsonb(array_agg(provider order by id)) from dalsegno.usage").await;
    assert_eq!(ledger, serde_json::json!(["sim", "ollama", "ollama"]));
    assert_eq!(after.token_count, second.spent_tokens + third.spent_tokens);
}

#[tokio::test]
async fn a_task_that_kills_three_workers_fails_and_leaves_its_session_usable() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let first = fixture.done(&fixture.add("One. [[sim: say first]]").await).await;
    worker.stop().await;
    let poison = fixture.add("Two.").await;
    for _ in 0..3 {
        let mut armed = fixture.process(&[("worker.crash_turns_at", "after_call")]);
        let died = armed.ended_after_pause().await;
        assert_eq!(died.signal(), Some(Signal::ABORT.as_raw()), "{}", armed.log());
    }
    let next = fixture.add("Three. [[sim: say third]]").await;
    let heir = fixture.process(&[]);
    let poison = fixture.ended_after_pause(&poison).await;
    assert_eq!(poison.state, State::Failed);
    let error = poison.error.clone().unwrap();
    assert!(error.contains("worker"), "{error}");
    assert_eq!(states(&fixture.turns(&poison).await), [turns::State::Interrupted; 3]);
    assert_eq!(fixture.kinds(&poison).await.last().unwrap(), "task.failed");

    let next = fixture.ended_after_pause(&next).await;
    assert_eq!((next.state, next.session_id), (State::Done, first.session_id));
    fixture.settled().await;
    let session = fixture.session(&next).await;
    assert_eq!(session.state, SessionState::Idle);
    let transcript = fixture.transcript(session.id).await;
    let said: Vec<_> = transcript.iter().filter(|line| !line.starts_with("Notice")).collect();
    let expected = [
        "User: One. [[sim: say first]]",
        "Assistant: first",
        "User: Two.",
        "User: Three. [[sim: say third]]",
        "Assistant: third",
    ];
    assert_eq!(said, expected);
    let budget = fixture.json("select to_jsonb(b) from dalsegno.campaign_budgets as b").await;
    assert_eq!(budget["reserved_tokens"], 0);
    drop(heir);
}

/// Adds a task whose job may run for a second, this many times.
async fn add_short_task(fixture: &Fixture, prompt: &str, max_attempts: i16) -> Task {
    let task = fixture.add(prompt).await;
    for sql in [
        "update dalsegno.job_payloads set timeout_secs = 1 where job_id = $1 and $2 > 0",
        "update dalsegno.jobs set max_attempts = $2 where id = $1",
    ] {
        let query = sqlx::query(sql).bind(task.job_id).bind(max_attempts);
        query.execute(&fixture.pool).await.unwrap();
    }
    task
}

#[tokio::test]
async fn a_turn_past_its_deadline_is_interrupted_and_retried_or_failed() {
    let fixture = Fixture::new(&[("sim.chunk_chars", "4")]).await;
    let slow =
        add_short_task(&fixture, "One. [[sim: slow 600000 once]] [[sim: say first]]", 2).await;
    let worker = fixture.start_worker().await;
    let slow = fixture.done(&slow).await;
    let turns = fixture.turns(&slow).await;
    assert_eq!(states(&turns), [turns::State::Interrupted, turns::State::Done]);
    assert_eq!([turns[0].attempt, turns[1].attempt], [1, 2]);
    assert!(turns[0].error.as_ref().unwrap().contains("deadline"), "{turns:?}");
    let transcript = fixture.transcript(slow.session_id.unwrap()).await;
    let kinds: Vec<_> = transcript.iter().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(kinds, ["User", "Notice", "Assistant"], "{transcript:?}");
    worker.stop().await;

    let hopeless = add_short_task(&fixture, "Two. [[sim: slow 600000]]", 1).await;
    let worker = fixture.start_worker().await;
    let hopeless = fixture.ended(&hopeless).await;
    assert_eq!(hopeless.state, State::Failed);
    assert!(hopeless.error.as_ref().unwrap().contains("deadline"), "{hopeless:?}");
    let next = fixture.done(&fixture.add("Three. [[sim: say third]]").await).await;
    assert_eq!(next.session_id, slow.session_id);
    worker.stop().await;
}

/// The notice of a successor names exactly the part of the conversation that came along.
#[tokio::test]
async fn the_notice_of_a_rebuilt_session_names_the_inherited_messages() {
    let fake = FakeOllama::playing([]).await;
    let url = format!("http://{}", fake.addr);
    let fixture = Fixture::new(&[("ollama.base_url", &url), ("ollama.num_ctx", "4096")]).await;
    let elsewhere =
        WRITER.replace("description:", "provider: ollama\nmodel: qwen3:8b\ndescription:");
    let worker = fixture.start_worker().await;
    let last_call = || fake.chats().pop().unwrap()["messages"].to_string();
    fixture.done(&fixture.add("Part one. [[sim: say One.]]").await).await;
    fixture.write_agent("writer", &elsewhere);
    fixture.done(&fixture.add("Part two.").await).await;
    let said = last_call();
    assert!(said.contains("Everything that you were shown of it came along."), "{said}");
    assert!(!said.contains("may be missing") && !said.contains("Do not invent"), "{said}");

    fixture.write_agent("writer", WRITER);
    for number in 3..16 {
        let prompt = format!("Part {number}. [[sim: say {}]]", "The mole is long. ".repeat(150));
        fixture.done(&fixture.add(&prompt).await).await;
    }
    fixture.write_agent("writer", &elsewhere);
    let task = fixture.done(&fixture.add("Part sixteen.").await).await;
    let said = last_call();
    assert!(!said.contains("Part one."), "{said}");
    let (notice, kept) = (said.find("that were too long to keep"), said.find("Part 15."));
    assert!(notice.is_some() && notice < kept, "{said}");
    let words =
        "Its most recent messages came along; a notice in front of them says which are missing.";
    assert!(said.contains(words) && said.contains("Do not invent"), "{said}");
    // The context of the turn lists the missing messages with the reason.
    let mut conn = fixture.pool.acquire().await.unwrap();
    let context = contexts::find(&mut conn, task.session_id.unwrap(), task.turn, 1).await.unwrap();
    let missing = context.parts.iter().find(|part| part.why == "not_inherited").unwrap();
    let span = missing.span.unwrap();
    assert!(!missing.sent && span.from_seq == 1 && span.to_seq > 10, "{missing:?}");
    assert!(context.replayed.is_ok(), "{:?}", context.replayed);
    worker.stop().await;
}
