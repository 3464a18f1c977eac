//! One summary for each stretch of a conversation, in the background or in a turn.

use dalsegno::domain::compactions::{self, Cause};
use rustix::process::Signal;

use super::{
    Fixture,
    claude::{Setup, WRITER},
};
use crate::{app::eventually, providers::fake_ollama::FakeOllama};

const PART: &str = "The harbour has a mole, a light and two cranes. ";

/// Adds tasks that follow each other at once: a background compaction is constantly requested, and needed.
async fn chat(fixture: &Fixture, n_turns: usize, n_parts: usize) {
    let mut added = Vec::new();
    for number in 1..=n_turns {
        let prompt = format!("Write part {number}. {}", PART.repeat(n_parts));
        added.push(fixture.add(&prompt).await);
    }
    for task in &added {
        fixture.ended_after_pause(task).await;
    }
    fixture.settled().await;
}

/// Counts the summaries in the ledger, each with one call for each batch of its messages, and the accepted summaries.
/// Checks that each summary was used.
async fn summary_counts(fixture: &Fixture) -> (i64, i64) {
    let paid =
        "select count(distinct (session_id, turn)) from dalsegno.usage where purpose = 'summary'";
    let paid = fixture.count(paid).await;
    let twice = "select count(*) - count(distinct (session_id, turn, input_tokens)) from dalsegno.usage where purpose = 'summary'";
    assert_eq!(fixture.count(twice).await, 0, "a batch was summarised twice");
    let made =
        "select count(*) from dalsegno.compactions where cause <> 'inherited' and rung = 'first'";
    let shown = fixture.count(made).await;
    let stale =
        fixture.count("select count(*) from dalsegno.compactions where outcome = 'stale'").await;
    assert_eq!(stale, 0, "an unused summary was made");
    (paid, shown)
}

/// Returns the summaries for the message of a failure.
async fn summaries(fixture: &Fixture) -> String {
    let sql = "select jsonb_pretty(jsonb_build_object(
                 'paid', (select jsonb_agg(jsonb_build_array(session_id, turn, input_tokens, output_tokens)) from dalsegno.usage where purpose = 'summary'),
                 'made', (select jsonb_agg(jsonb_build_array(session_id, turn, cause, outcome, rung, to_seq, refusals)) from dalsegno.compactions)))";
    sqlx::query_scalar(sql).fetch_one(&fixture.pool).await.unwrap()
}

#[tokio::test]
async fn on_the_simulation_a_stretch_is_summarised_once_when_tasks_follow_at_once() {
    let settings = [("sim.window_tokens", "8192"), ("sim.latency_ms", "150")];
    let fixture = Fixture::new(&settings).await;
    let worker = fixture.start_worker().await;
    chat(&fixture, 24, 28).await;
    let (_, made) = summary_counts(&fixture).await;
    assert!(made > 0, "{}", summaries(&fixture).await);
    worker.stop().await;
}

#[tokio::test]
async fn on_ollama_a_stretch_is_summarised_once_when_tasks_follow_at_once() {
    let fake = FakeOllama::start().await;
    fake.summarises();
    let url = format!("http://{}", fake.addr);
    let fixture = Fixture::new(&[("ollama.base_url", &url), ("ollama.num_ctx", "8192")]).await;
    let head = "---\nname: writer\ndescription: Writes\nprovider: ollama\nmodel: qwen3:8b\n---\n";
    fixture.write_agent("writer", &format!("{head}You write.\n"));
    let worker = fixture.start_worker().await;
    chat(&fixture, 16, 28).await;
    let (paid, made) = summary_counts(&fixture).await;
    assert!(made > 0);
    assert_eq!(paid, made, "{}", summaries(&fixture).await);
    worker.stop().await;
}

#[tokio::test]
async fn on_claude_a_stretch_is_summarised_once_when_tasks_follow_at_once() {
    let Some(setup) = Setup::new(&[("claude.window_tokens", "16000")]).await else { return };
    setup.api.counts();
    setup.api.summarises();
    let narrow = WRITER.replace("model:", "window_tokens: 16000\nmodel:");
    setup.fixture.write_agent("writer", &narrow);
    let worker = setup.fixture.start_worker().await;
    chat(&setup.fixture, 24, 50).await;
    let (paid, made) = summary_counts(&setup.fixture).await;
    assert!(made > 0);
    assert_eq!(paid, made, "{}", summaries(&setup.fixture).await);
    worker.stop().await;
}

/// The turn takes over from a worker that was killed while it prepared the summary.
#[tokio::test]
async fn a_killed_preparation_blocks_no_turn_and_the_stretch_is_summarised_once() {
    let fixture = Fixture::new(&[("sim.window_tokens", "8192")]).await;
    let worker = fixture.start_worker().await;
    let mut last = None;
    for number in 1..=5 {
        let prompt = format!("Write part {number}. {}", PART.repeat(36));
        last = Some(fixture.done(&fixture.add(&prompt).await).await);
    }
    fixture.settled().await;
    worker.stop().await;
    // No summary has been prepared yet, so there is one to prepare.
    assert_eq!(fixture.count("select count(*) from dalsegno.compactions").await, 0);
    let id = last.unwrap().session_id.unwrap();
    let mut tx = fixture.pool.begin().await.unwrap();
    compactions::request(&mut tx, id, Cause::Auto).await.unwrap();
    tx.commit().await.unwrap();
    let mut slow = fixture.process(&[("sim.latency_ms", "600000")]);
    let claimed = "select count(*) from dalsegno.sessions where compaction_breaker -> 'claimed_by' is not null";
    eventually("the summary is being written", async || {
        (fixture.count(claimed).await == 1).then_some(())
    })
    .await;
    slow.signal(Signal::KILL);
    slow.ended().await;
    let worker = fixture.start_worker().await;
    let prompt = format!("Write part six. {}", PART.repeat(180));
    let task = fixture.ended_after_pause(&fixture.add(&prompt).await).await;
    assert!(task.result.is_some(), "{task:?}");
    fixture.settled().await;
    let (_, made) = summary_counts(&fixture).await;
    let n_stretches = fixture
        .count("select count(distinct to_seq) from dalsegno.compactions where cause <> 'inherited'")
        .await;
    assert!(made > 0, "{}", summaries(&fixture).await);
    assert_eq!(made, n_stretches);
    worker.stop().await;
}
