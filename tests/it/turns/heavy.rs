//! Turns that fill the window: after every kind of content, a small task succeeds.

use dalsegno::{
    context::Weight,
    domain::{
        compactions,
        tasks::{State, Task},
        turns,
    },
    providers::sim::count_tokens,
};
use futures_util::future::join_all;

use super::{Fixture, claude::Setup};
use crate::providers::{
    claude::cli::Cli,
    fake_ollama::{FakeOllama, Play},
};

const RESERVE: u64 = 512;
/// Tokens of instructions, brief and task elements.
const FRAME_TOKENS: u64 = 300;

/// Kinds of text whose tokens are hard to estimate, each with its unit.
pub const SCRIPTS: [(&str, &str); 6] = [
    ("english", "The captain describes the harbour in plain words. "),
    ("hex", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
    ("json", "{\"berth\":[17,204],\"open\":true,\"ship\":null}, "),
    ("base64", "TG9yZW0gaXBzdW0gZG9sb3Igc2l0IGFtZXQsIGNvbnNlY3RldHVyIGFkaXBpc2Npbmcg"),
    ("chinese", "港の歴史についての短い記事を書く。"),
    ("emoji", "🚢⚓🌊🐟🗼"),
];
/// Turns, each of this many per cent of the window.
const PATTERNS: [&[u64]; 4] = [&[90], &[60, 60], &[30, 30, 30, 30], &[30, 90, 60]];

/// Repeats the unit until the text has this size by the given measure.
pub fn text(unit: &str, size: u64, measure: impl Fn(&str) -> u64) -> String {
    let times = size * 100 / measure(&unit.repeat(100)).max(1);
    unit.repeat(usize::try_from(times).unwrap().max(1))
}

/// Returns the estimate without a factor that a session learns.
pub fn weigh(text: &str) -> u64 {
    Weight::of_text(text).millitokens() / 1000
}

/// Runs every kind of text in every pattern, each in its own conversation. Returns those whose small task failed.
async fn failures(fixture: &Fixture, window: u64, measure: fn(&str) -> u64) -> Vec<String> {
    let room = window - RESERVE - FRAME_TOKENS;
    let kinds = SCRIPTS.iter().flat_map(|script| PATTERNS.map(|pattern| (script, pattern)));
    let talks = kinds.enumerate().map(async |(n, ((name, unit), pattern))| {
        let instance = format!("i{n}");
        for percent in pattern {
            let prompt = text(unit, room * percent / 100, measure);
            fixture.ended_after_pause(&fixture.add_for("writer", &instance, &prompt).await).await;
        }
        let small = fixture.add_for("writer", &instance, "Now write one line.").await;
        let small = fixture.ended_after_pause(&small).await;
        (small.state != State::Done).then(|| format!("{name} {pattern:?}: {:?}", small.error))
    });
    join_all(talks).await.into_iter().flatten().collect()
}

fn writer(more: &str) -> String {
    format!(
        "---\nname: writer\ndescription: Writes\nreserve_tokens: {RESERVE}\n{more}---\nYou write.\n"
    )
}

#[tokio::test]
async fn on_the_simulation_a_small_task_succeeds_after_heavy_turns() {
    let fixture = Fixture::new(&[("sim.window_tokens", "4096")]).await;
    fixture.write_agent("writer", &writer(""));
    let worker = fixture.start_worker().await;
    let failed = failures(&fixture, 4096, |text| u64::from(count_tokens(text))).await;
    assert_eq!(failed, Vec::<String>::new());
    // A prompt that fits by the model's own count is answered, regardless of its estimate.
    let unanswered: Vec<Option<String>> =
        sqlx::query_scalar("select error from dalsegno.tasks where state <> 'done'")
            .fetch_all(&fixture.pool)
            .await
            .unwrap();
    assert_eq!(unanswered, Vec::<Option<String>>::new());
    worker.stop().await;
}

#[tokio::test]
async fn on_ollama_a_small_task_succeeds_after_heavy_turns() {
    let fake = FakeOllama::start().await;
    let url = format!("http://{}", fake.addr);
    let fixture = Fixture::new(&[("ollama.base_url", &url), ("ollama.num_ctx", "4096")]).await;
    fixture.write_agent("writer", &writer("provider: ollama\nmodel: qwen3:8b\n"));
    let worker = fixture.start_worker().await;
    let failed = failures(&fixture, 4096, weigh).await;
    assert_eq!(failed, Vec::<String>::new());
    worker.stop().await;
}

#[tokio::test]
async fn on_claude_a_small_task_succeeds_after_heavy_turns() {
    let Some(setup) = Setup::on(&Cli::Fake, &[]).await else { return };
    setup.api.counts();
    let agent = writer("provider: claude\nmodel: claude-sonnet-5\nwindow_tokens: 24000\n");
    setup.fixture.write_agent("writer", &agent);
    let worker = setup.fixture.start_worker().await;
    let failed = failures(&setup.fixture, 24_000, weigh).await;
    assert_eq!(failed, Vec::<String>::new());
    worker.stop().await;
}

/// The turns after which the shipped copywriter could not continue.
#[tokio::test]
async fn the_built_in_copywriter_copes_with_pasted_texts_on_the_default_model() {
    const COPYWRITER: &str = include_str!("../../../config/agents/copywriter.md");
    const STYLE: &str = include_str!("../../../config/skills/editorial-style/SKILL.md");
    let fixture = Fixture::new(&[("sim.window_tokens", "8192")]).await;
    fixture.write_agent("copywriter", COPYWRITER);
    fixture.write_skill("editorial-style", STYLE);
    let worker = fixture.start_worker().await;
    for (instance, paste) in [("main", "x".repeat(2500)), ("other", "港".repeat(1200))] {
        for _ in 0..3 {
            fixture.done(&fixture.add_for("copywriter", instance, &paste).await).await;
        }
        fixture.done(&fixture.add_for("copywriter", instance, "Write one line.").await).await;
    }
    worker.stop().await;
}

/// An answer that nearly fills the window is folded like a prompt.
#[tokio::test]
async fn a_small_task_succeeds_after_an_answer_that_fills_the_window() {
    let fake =
        FakeOllama::playing([Play::Says(&["word "; 4000]), Play::Says(&["word "; 4000])]).await;
    let url = format!("http://{}", fake.addr);
    let fixture = Fixture::new(&[("ollama.base_url", &url), ("ollama.num_ctx", "4096")]).await;
    fixture.write_agent("writer", &writer("provider: ollama\nmodel: qwen3:8b\n"));
    let worker = fixture.start_worker().await;
    for prompt in ["Write all you can.", "Write more.", "Now write one line."] {
        fixture.done(&fixture.add(prompt).await).await;
    }
    worker.stop().await;
}

/// A provider whose window is smaller than it reports is sent less, step by step, and the turn ends.
#[tokio::test]
async fn a_conversation_refused_again_is_sent_with_less_each_time() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    for number in 1..=6 {
        let prompt = format!("Write part {number}. [[sim: words 120]]");
        fixture.done(&fixture.add(&prompt).await).await;
    }
    let refused = fixture.ended(&fixture.add("Write more. [[sim: overflow]]").await).await;
    assert_eq!(refused.state, State::Failed, "{refused:?}");
    let turns = fixture.turns(&refused).await;
    assert_eq!(turns.len(), 4, "{turns:?}");
    assert!(turns.iter().all(|turn| turn.state == turns::State::Failed && turn.attempt == 1));
    let id = refused.session_id.unwrap();
    let made = compactions::list(&fixture.pool, id).await.unwrap();
    assert_eq!(made.len(), 3, "{made:?}");
    assert!(made[2].summary.as_deref().unwrap().contains("in this conversation's archive"));
    worker.stop().await;
}

/// A prompt that leaves no room for a summary drops the conversation before it. It returns with the next small task.
#[tokio::test]
async fn history_dropped_for_a_huge_prompt_is_summarised_afterwards() {
    let fixture = Fixture::new(&[("sim.window_tokens", "4096")]).await;
    fixture.write_agent("writer", &writer(""));
    let worker = fixture.start_worker().await;
    let said: Task = fixture
        .done(&fixture.add("PIN: never name the client. The light is called ROSA-0417.").await)
        .await;
    let unit = SCRIPTS[0].1;
    let room = 4096 - RESERVE - FRAME_TOKENS;
    let huge = text(unit, room * 97 / 100, |text| u64::from(count_tokens(text)));
    fixture.done(&fixture.add(&huge).await).await;
    let next = fixture.done(&fixture.add("Now write one line.").await).await;
    assert_eq!(next.session_id, said.session_id);
    let made = compactions::list(&fixture.pool, next.session_id.unwrap()).await.unwrap();
    let shown = made.iter().rev().find(|made| made.applied_at.is_some()).unwrap();
    let prompts = shown.prompts.as_ref().unwrap().to_string();
    assert!(
        prompts.contains("never name the client") && prompts.contains("ROSA-0417"),
        "{prompts}"
    );
    worker.stop().await;
}

/// The same where a compacted conversation continues in a new session, which would not have the messages.
#[tokio::test]
async fn a_huge_prompt_starts_no_new_session_and_its_successor_has_a_summary() {
    // A compaction is due at 85 % of what the reserve leaves of the planned window, which has 4,095 tokens like this.
    let settings = [("sim.window_tokens", "8192"), ("sessions.rotate_at_tokens", "3046")];
    let fixture = Fixture::new(&settings).await;
    fixture.write_agent("writer", &writer(""));
    let worker = fixture.start_worker().await;
    let count = |text: &str| u64::from(count_tokens(text));
    let unit = SCRIPTS[0].1;
    let said = fixture.done(&fixture.add(&text(unit, 700, count)).await).await;
    let room = 4096 - RESERVE - FRAME_TOKENS;
    let huge = fixture.add(&text(unit, room * 97 / 100, count)).await;
    let huge = fixture.done(&huge).await;
    assert_eq!(huge.session_id, said.session_id);
    let id = said.session_id.unwrap();
    let applied = async || {
        let made = compactions::list(&fixture.pool, id).await.unwrap();
        made.into_iter().filter(|made| made.applied_at.is_some()).collect::<Vec<_>>()
    };
    let references = applied().await;
    assert!(references.iter().any(|made| made.is_reference()), "{references:?}");
    fixture.done(&fixture.add("Now write one line.").await).await;
    let made = applied().await.pop().unwrap();
    assert!(!made.is_reference() && made.from_seq == 1, "{made:?}");
    worker.stop().await;
}
