//! Conversations that grow beyond their window.

use dalsegno::domain::{compactions, tasks::State, turns};

use super::Fixture;
use crate::app::eventually;

const SMALL_WINDOW: [(&str, &str); 1] = [("sim.window_tokens", "2500")];
const FILLER: &str = "The harbour has a mole, a light, two cranes and a customs house that was rebuilt after the flood.";

fn writer() -> String {
    super::fixture::WRITER
        .replace("description: Writes", "description: Writes\nreserve_tokens: 300")
}

#[tokio::test]
async fn a_conversation_that_outgrows_its_window_is_compacted_and_continues() {
    let fixture = Fixture::new(&SMALL_WINDOW).await;
    fixture.write_agent("writer", &writer());
    let worker = fixture.start_worker().await;
    let mut last = None;
    for number in 1..=25 {
        let prompt =
            format!("Write part {number} of HARBOUR-{number:04}. {FILLER} [[sim: words 60]]");
        last = Some(fixture.done(&fixture.add(&prompt).await).await);
    }
    fixture.settled().await;
    let session = fixture.session(&last.unwrap()).await;
    assert!(session.generation > 0, "{session:?}");
    assert!(session.predecessor_id.is_none(), "{session:?}");
    // Nothing is lost: the transcript has every prompt and every answer.
    assert_eq!(fixture.transcript(session.id).await.len(), 50);
    let made = compactions::list(&fixture.pool, session.id).await.unwrap();
    let applied = made.iter().filter(|made| made.outcome == compactions::Outcome::Applied).count();
    assert!((1..25).contains(&applied), "{made:?}");
    let ahead =
        fixture.count("select count(*) from dalsegno.runs where kind = 'compact_session'").await;
    assert!(ahead > 0, "no summary was prepared");
    let failed = fixture.count("select count(*) from dalsegno.turns where state <> 'done'").await;
    assert_eq!(failed, 0);
    worker.stop().await;
}

#[tokio::test]
async fn a_provider_overflow_is_retried_with_less_context() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    for number in 1..=10 {
        let prompt = format!("Write part {number}. {FILLER} [[sim: words 120]]");
        fixture.done(&fixture.add(&prompt).await).await;
    }
    let task = fixture.done(&fixture.add("Write more. [[sim: overflow once]]").await).await;
    fixture.settled().await;
    let session = fixture.session(&task).await;
    assert_eq!(session.generation, 1, "{session:?}");
    let turns = fixture.turns(&task).await;
    assert_eq!(turns.len(), 2);
    assert!(turns.iter().all(|turn| turn.attempt == 1), "the same attempt continued: {turns:?}");
    let made = compactions::list(&fixture.pool, session.id).await.unwrap();
    assert_eq!(made[0].cause, compactions::Cause::Overflow);
    worker.stop().await;
    // The summary that the turn waited for is charged to the task, in the ledger and in its spent tokens.
    let summaries = fixture
        .count(
            "select count(*) from dalsegno.usage where purpose = 'summary' and task_id is not null",
        )
        .await;
    assert!(summaries > 0);
    let unpaid = fixture
        .count(
            "select count(*) from dalsegno.tasks as t
              where spent_tokens <> (select sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0))
                                       from dalsegno.usage as u where u.task_id = t.id)",
        )
        .await;
    assert_eq!(unpaid, 0);
}

/// A turn that exceeds its threshold and gets no summary continues. Its search for one must not use up the compaction
/// steps that follow an overflow.
#[tokio::test]
async fn a_search_for_a_summary_under_soft_pressure_keeps_the_ladder_of_an_overflow() {
    let fixture = Fixture::new(&[]).await;
    let agent = |more: &str| {
        let more = format!("description: Writes\nwindow_tokens: 8000\n{more}");
        super::fixture::WRITER.replace("description: Writes\n", &more)
    };
    fixture.write_agent("writer", &agent(""));
    let worker = fixture.start_worker().await;
    for number in 1..=9 {
        let prompt = format!("Write part {number}. {FILLER} [[sim: words 120]]");
        fixture.done(&fixture.add(&prompt).await).await;
    }
    worker.stop().await;
    // More than 15 % of the window, and far from all of it: the estimate asks for room, but does not need it.
    fixture.write_agent("writer", &agent("prepare_percent: 10\napply_percent: 15\n"));
    let sessions = "update dalsegno.sessions set compaction_breaker = '{\"attempts\":[10,10,10]}' returning context_tokens";
    let context_tokens: i64 = sqlx::query_scalar(sessions).fetch_one(&fixture.pool).await.unwrap();
    assert!((1200..4000).contains(&context_tokens), "{context_tokens}");
    let worker = fixture.start_worker().await;
    let task = fixture.done(&fixture.add("Write more. [[sim: overflow once]]").await).await;
    worker.stop().await;
    let turns = fixture.turns(&task).await;
    let states: Vec<_> = turns.iter().map(|turn| turn.state).collect();
    assert_eq!(states, [turns::State::Failed, turns::State::Done], "{turns:?}");
    assert!(turns.iter().all(|turn| turn.attempt == 1), "the same attempt continued: {turns:?}");
    let made = compactions::list(&fixture.pool, task.session_id.unwrap()).await.unwrap();
    let made: Vec<_> = made.iter().map(|made| (made.cause, made.rung.as_deref())).collect();
    assert_eq!(made, [(compactions::Cause::Overflow, Some("extract"))]);
}

#[tokio::test]
async fn a_task_cancelled_during_a_compaction_ends_with_its_job() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    for number in 1..=10 {
        let prompt = format!("Write part {number}. {FILLER} [[sim: words 120]]");
        fixture.done(&fixture.add(&prompt).await).await;
    }
    worker.stop().await;
    // The call is refused at once, and the summary takes ten minutes.
    let mut slow = fixture.process(&[("sim.latency_ms", "600000")]);
    let task = fixture.add("Write more. [[sim: overflow once]]").await;
    eventually("the summary is being written", async || {
        let turns = fixture.turns(&task).await;
        turns.iter().any(|turn| turn.state == turns::State::Failed).then_some(())
    })
    .await;
    fixture.cancel(&task).await;
    let ended = "select count(*) from dalsegno.runs where outcome = 'cancelled'";
    eventually("the job has ended", async || (fixture.count(ended).await == 1).then_some(())).await;
    // At once, in the same commit, and not with the next sweep.
    let task = fixture.task(&task).await;
    assert_eq!(task.state, State::Cancelled, "{task:?}");
    assert_eq!(fixture.kinds(&task).await.last().unwrap(), "task.cancelled");
    slow.signal(rustix::process::Signal::TERM);
    assert!(slow.ended().await.success(), "{}", slow.log());
}

#[tokio::test]
async fn a_successor_is_notified_of_a_turn_too_long_to_inherit() {
    let fixture = Fixture::new(&[("sim.window_tokens", "10000")]).await;
    fixture.write_agent("writer", &writer());
    let worker = fixture.start_worker().await;
    fixture.done(&fixture.add("Write part one.").await).await;
    // More than two of the windows that follow.
    let long = format!("Write part two. {} [[sim: say Two.]]", FILLER.repeat(230));
    let long = fixture.done(&fixture.add(&long).await).await;
    let id = long.session_id.unwrap();
    let small = writer().replace("reserve_tokens", "window_tokens: 2500\nreserve_tokens");
    fixture.write_agent("writer", &small);
    let mut conn = fixture.pool.acquire().await.unwrap();
    let reset = dalsegno::domain::sessions::Reason::Reset;
    dalsegno::domain::sessions::ask_rebuild(&mut conn, id, reset).await.unwrap();
    drop(conn);
    let next = fixture.done(&fixture.add("Write part three.").await).await;
    worker.stop().await;
    assert_ne!(next.session_id, Some(id));
    let transcript = fixture.transcript(next.session_id.unwrap()).await;
    assert_eq!(transcript.len(), 3, "{transcript:?}");
    assert!(transcript[0].starts_with("Notice: Here turns 1 to 2"), "{transcript:?}");
    assert!(transcript[1].starts_with("User: Write part three."), "{transcript:?}");
    let feed = fixture.feed().await;
    let rebuilt = feed.iter().find(|event| event.kind == "session.rebuilt").unwrap();
    assert_eq!(rebuilt.data["inherited_messages"], 0);
    let left_out = serde_json::json!({ "messages": 4, "first_turn": 1, "last_turn": 2 });
    assert_eq!(rebuilt.data["left_out"], left_out);
}

#[tokio::test]
async fn a_turn_too_large_for_the_window_fails_with_a_reason_and_is_not_retried_forever() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add("Write. [[sim: overflow]]").await;
    let task = fixture.ended(&task).await;
    assert_eq!(task.state, State::Failed);
    assert!(fixture.turns(&task).await.len() <= 2);
    assert!(task.error.as_ref().unwrap().contains("the directive `overflow` refuses"), "{task:?}");
    worker.stop().await;

    let tiny = Fixture::new(&[("sim.window_tokens", "600")]).await;
    let worker = tiny.start_worker().await;
    let task = tiny.add("Write.").await;
    let task = tiny.ended(&task).await;
    let error = task.error.unwrap();
    assert!(error.contains("the system part takes"), "{error}");
    worker.stop().await;
}
