//! A model that fails, and the next one of the chain, which takes over its conversations.

use chrono::TimeDelta;
use dalsegno::domain::{
    explanations,
    tasks::{State, Task},
};

use super::Fixture;
use crate::{
    app::eventually,
    providers::fake_ollama::{FakeOllama, Play},
};

const WRITER: &str =
    "---\nname: writer\ndescription: Writes\nmodel: [ollama/qwen3:8b, sim]\n---\nYou write.\n";
const SERVER_ERROR: Play = Play::Status(500, "", r#"{"error":"boom"}"#);

impl Fixture {
    /// Like [`ended`](Self::ended), without the waits between its attempts.
    pub async fn ended_without_pauses(&self, task: &Task) -> Task {
        eventually("the task has ended", async || {
            let due = "update dalsegno.jobs set run_at = now() where state = 'scheduled'";
            sqlx::query(due).execute(&self.pool).await.unwrap();
            let task = self.task(task).await;
            task.ended_at.is_some().then_some(task)
        })
        .await
    }

    /// Returns the models to which conversations have moved, in order.
    pub async fn moves(&self) -> Vec<String> {
        let feed = self.feed().await.into_iter();
        let moves = feed.filter(|event| event.kind == "conversation.moved");
        moves.map(|event| event.data["to"].as_str().unwrap().to_owned()).collect()
    }
}

async fn fixture(fake: &FakeOllama, after: &str) -> Fixture {
    let url = format!("http://{}", fake.addr);
    let settings = [
        ("ollama.base_url", url.as_str()),
        ("ollama.num_ctx", "4096"),
        ("ollama.breaker_failures", "100"),
        ("agents.fallback_after", after),
    ];
    let fixture = Fixture::new(&settings).await;
    fixture.write_agent("writer", WRITER);
    fixture
}

#[tokio::test]
async fn failures_are_counted_across_tasks_and_workers_and_an_answer_resets_the_count() {
    let plays = [
        SERVER_ERROR,
        SERVER_ERROR,
        Play::Says(&["One."]),
        SERVER_ERROR,
        SERVER_ERROR,
        SERVER_ERROR,
    ];
    let fake = FakeOllama::playing(plays).await;
    let fixture = fixture(&fake, "3").await;
    let worker = fixture.start_worker().await;
    let first = fixture.ended_without_pauses(&fixture.add("Part one.").await).await;
    assert_eq!(first.result.as_deref(), Some("One."));
    assert_eq!(fixture.count("select count(*) from dalsegno.failovers").await, 0);
    worker.stop().await;

    // Two of the failures on one worker, the third on another.
    let worker = fixture.start_worker().await;
    let second = fixture.add("Part two. [[sim: say Two.]]").await;
    let twice =
        "select coalesce(max((entries -> 0 ->> 'failures')::bigint), 0) from dalsegno.failovers";
    eventually("it has failed", async || (fixture.count(twice).await >= 1).then_some(())).await;
    worker.stop().await;
    let worker = fixture.start_worker().await;
    let second = fixture.ended_without_pauses(&second).await;
    assert_eq!((second.state, second.result.as_deref()), (State::Done, Some("Two.")));
    assert_eq!(fixture.moves().await, ["sim/sim-1"]);
    let mut conn = fixture.pool.acquire().await.unwrap();
    let told = explanations::explain(&mut conn, second.id).await.unwrap();
    drop(conn);
    let chosen = "Its model was `sim/sim-1`, because `ollama/qwen3:8b` is skipped until 2026-";
    assert!(told.because.contains(chosen) && told.because.contains("boom"), "{}", told.because);
    let session = fixture.session(&second).await;
    assert_eq!(session.provider, "sim");
    let last = fixture.turns(&second).await.pop().unwrap();
    let (id, number) = (session.id.to_string(), last.number.to_string());
    let shown = fixture.run_command(&["turn", "show", &id, &number]).await.stdout;
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.contains("chain") && shown.contains("`ollama/qwen3:8b` is skipped"), "{shown}");
    let transcript = fixture.transcript(session.id).await;
    assert!(transcript.iter().any(|line| line == "Assistant: One."), "{transcript:?}");

    // Other conversations of the same agent have not failed.
    let other = fixture.add_for("writer", "second", "Hello.").await;
    assert_eq!(
        fixture.ended_without_pauses(&other).await.result.as_deref(),
        Some("A good answer.")
    );
    // This one returns when the pause is over, without another failure.
    fixture.advance(TimeDelta::seconds(901));
    let third = fixture.ended_without_pauses(&fixture.add("Part three.").await).await;
    assert_eq!(fixture.session(&third).await.provider, "ollama");
    assert_eq!(fixture.moves().await, ["sim/sim-1", "ollama/qwen3:8b"]);
    assert_eq!(fixture.count("select count(*) from dalsegno.failovers").await, 0);
    fixture.settled().await;
    worker.stop().await;
}

#[tokio::test]
async fn two_failing_providers_end_the_task_and_do_not_alternate_forever() {
    let fake = FakeOllama::playing((0..50).map(|_| SERVER_ERROR)).await;
    let fixture = fixture(&fake, "1").await;
    let worker = fixture.start_worker().await;
    let task = fixture.ended_without_pauses(&fixture.add("Part. [[sim: error 500]]").await).await;
    assert_eq!(task.state, State::Failed);
    let turns = fixture.turns(&task).await;
    assert!(turns.len() <= 6, "{turns:?}");
    assert_eq!(fixture.moves().await, ["sim/sim-1", "ollama/qwen3:8b"]);
    fixture.settled().await;
    worker.stop().await;
}

#[tokio::test]
async fn an_error_that_needs_a_person_does_not_move_the_conversation() {
    let missing = Play::Status(404, "", r#"{"error":"model 'qwen3:8b' not found"}"#);
    let fake = FakeOllama::playing([missing]).await;
    let fixture = fixture(&fake, "1").await;
    let worker = fixture.start_worker().await;
    let task = fixture.ended(&fixture.add("Part one.").await).await;
    assert_eq!(task.state, State::Failed);
    assert_eq!(fixture.moves().await, Vec::<String>::new());
    fixture.settled().await;
    worker.stop().await;
}
