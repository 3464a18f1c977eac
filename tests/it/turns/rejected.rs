//! Prompts that the provider rejects: the task fails, and its conversation continues without them.

use dalsegno::domain::{
    agents::SessionMode as Mode,
    compactions::{self, Cause},
    messages::Span,
    sessions::{self, Reason},
    tasks::{self, State, Task},
};
use serde_json::Value;

use super::{Fixture, fixture::WRITER, forks::fork};
use crate::{
    app::eventually,
    providers::fake_ollama::{FakeOllama, Play},
};

const REJECTION: Play = Play::Status(400, "", r#"{"error":"unprocessable: xylograph"}"#);
const REJECTED_PROMPT: &str = "Write about the xylograph.";

fn on_ollama() -> String {
    WRITER.replace("description:", "provider: ollama\nmodel: qwen3:8b\ndescription:")
}

async fn fixture(fake: &FakeOllama) -> Fixture {
    let url = format!("http://{}", fake.addr);
    let fixture = Fixture::new(&[("ollama.base_url", &url), ("ollama.num_ctx", "8192")]).await;
    fixture.write_agent("writer", &on_ollama());
    fixture
}

async fn run_prompt(fixture: &Fixture, prompt: &str) -> Task {
    fixture.done(&fixture.add(prompt).await).await
}

/// Runs a task and checks that its prompt is rejected, after a single call.
async fn is_rejected(fixture: &Fixture, prompt: &str) -> Task {
    let task = fixture.ended(&fixture.add(prompt).await).await;
    assert_eq!(task.state, State::Failed, "{task:?}");
    let turns = fixture.turns(&task).await;
    let flags: Vec<_> = turns.iter().map(|turn| turn.flags.as_slice()).collect();
    assert_eq!(flags, [["prompt_rejected"]], "{turns:?}");
    task
}

/// Returns the messages of the last call, with those of people and of the model.
fn last_call(fake: &FakeOllama) -> String {
    fake.chats().pop().unwrap()["messages"].to_string()
}

fn roles(chat: &Value) -> Vec<&str> {
    chat["messages"].as_array().unwrap().iter().map(|it| it["role"].as_str().unwrap()).collect()
}

async fn marked(fixture: &Fixture, task: &Task) -> Vec<String> {
    let mut conn = fixture.pool.acquire().await.unwrap();
    let id = fixture.task(task).await.session_id.unwrap();
    let stored = sessions::transcript(&mut conn, id, Span::all()).await.unwrap();
    stored.into_iter().filter(|stored| stored.rejected).map(|stored| stored.message.text).collect()
}

async fn retry(fixture: &Fixture, task: &Task) -> Task {
    let mut tx = fixture.pool.begin().await.unwrap();
    tasks::retry(&mut tx, task.id, dalsegno::clock::Clock::now(&fixture.clock)).await.unwrap();
    tx.commit().await.unwrap();
    fixture.ended(task).await
}

#[tokio::test]
async fn a_rejected_prompt_fails_its_task_and_the_conversation_continues_without_it() {
    let good = || Play::Says(&["A good answer."]);
    let fake = FakeOllama::playing([good(), good(), good(), REJECTION]).await;
    let fixture = fixture(&fake).await;
    let worker = fixture.start_worker().await;
    let first = run_prompt(&fixture, "Part one.").await;
    run_prompt(&fixture, "Part two.").await;
    run_prompt(&fixture, "Part three.").await;
    let bad = is_rejected(&fixture, REJECTED_PROMPT).await;
    assert!(bad.error.as_deref().unwrap().contains("unprocessable: xylograph"), "{bad:?}");
    assert_eq!(fake.chats().len(), 4, "the prompt is not sent again");
    let next = run_prompt(&fixture, "Part four.").await;
    assert_eq!([next.session_id, bad.session_id], [first.session_id; 2]);

    let chat = fake.chats().pop().unwrap();
    let said = chat["messages"].to_string();
    for part in ["Part one.", "Part two.", "Part three.", "Part four."] {
        assert!(said.contains(part), "{part} is missing: {said}");
    }
    assert!(!said.contains("xylograph") && !said.contains("<notice fence="), "{said}");
    let (user, assistant) = ("user", "assistant");
    let expected = ["system", user, assistant, user, assistant, user, assistant, user];
    assert_eq!(roles(&chat), expected);
    // People see the prompt, and a mark that it is not sent.
    assert_eq!(marked(&fixture, &bad).await, [REJECTED_PROMPT]);
    let transcript = fixture.transcript(first.session_id.unwrap()).await;
    assert_eq!(transcript.len(), 9, "{transcript:?}");
    let view = sessions::history(&fixture.pool, first.session_id.unwrap()).await.unwrap();
    assert!(!view.to_string().contains("xylograph"), "{view}");

    // A person retries it, and now it is accepted: it becomes part of the conversation.
    let again = retry(&fixture, &bad).await;
    assert_eq!(again.state, State::Done, "{again:?}");
    assert_eq!(marked(&fixture, &bad).await, [""; 0]);
    run_prompt(&fixture, "Part five.").await;
    assert!(last_call(&fake).contains(REJECTED_PROMPT));
    worker.stop().await;
}

#[tokio::test]
async fn the_simulation_handles_rejected_prompts_too() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let first = run_prompt(&fixture, "Write part one.").await;
    let bad = is_rejected(&fixture, "Write. [[sim: error 400]]").await;
    assert_eq!(bad.session_id, first.session_id);
    let next = run_prompt(&fixture, "Write part two.").await;
    assert_eq!(next.session_id, first.session_id);
    assert_eq!(fixture.sessions().await.len(), 1);
    let manifest = fixture.manifests(first.session_id.unwrap()).await.pop().unwrap().manifest;
    let parts = manifest["parts"].as_array().unwrap();
    let history = parts.iter().find(|part| part["why"] == "recent_history").unwrap();
    assert_eq!(history["span"]["count"], 2, "the first task and its answer: {manifest}");
    worker.stop().await;
}

#[tokio::test]
async fn a_rejected_first_prompt_leaves_only_itself() {
    let fake = FakeOllama::playing([REJECTION, REJECTION]).await;
    let fixture = fixture(&fake).await;
    let worker = fixture.start_worker().await;
    is_rejected(&fixture, REJECTED_PROMPT).await;
    is_rejected(&fixture, REJECTED_PROMPT).await;
    run_prompt(&fixture, "Part one.").await;
    let said = last_call(&fake);
    assert!(!said.contains("xylograph") && said.contains("Part one."), "{said}");
    worker.stop().await;
}

#[tokio::test]
async fn no_successor_and_no_other_provider_gets_a_rejected_prompt() {
    let fake = FakeOllama::playing([]).await;
    let fixture = fixture(&fake).await;
    fixture.write_agent("writer", WRITER);
    let worker = fixture.start_worker().await;
    run_prompt(&fixture, "Part one.").await;
    let bad = is_rejected(&fixture, &format!("{REJECTED_PROMPT} [[sim: error 400]]")).await;
    fixture.write_agent("writer", &on_ollama());
    let next = run_prompt(&fixture, "Part two.").await;
    worker.stop().await;
    let session = fixture.session(&next).await;
    assert_eq!(session.opened_because, Reason::ProviderChanged);
    assert_eq!(session.predecessor_id, bad.session_id);
    let said = last_call(&fake);
    assert!(!said.contains("xylograph") && said.contains("Part one."), "{said}");
    assert!(said.contains("Everything that you were shown of it came along."), "{said}");
    let transcript = fixture.transcript(session.id).await;
    assert!(!transcript.iter().any(|line| line.contains("xylograph")), "{transcript:?}");
}

/// There was no answer in between, so the prompt of an earlier failed task may be the reason as well.
#[tokio::test]
async fn a_rejection_also_removes_failed_prompts_since_the_last_answer() {
    let missing = Play::Status(404, "", r#"{"error":"model 'qwen3:8b' not found"}"#);
    let fake = FakeOllama::playing([Play::Says(&["Yes."]), missing, REJECTION]).await;
    let fixture = fixture(&fake).await;
    let worker = fixture.start_worker().await;
    run_prompt(&fixture, "Part one.").await;
    let failed = fixture.ended(&fixture.add("Of the palimpsest.").await).await;
    assert_eq!(failed.state, State::Failed);
    assert!(fixture.turns(&failed).await[0].flags.is_empty(), "no provider has rejected it");
    let bad = is_rejected(&fixture, REJECTED_PROMPT).await;
    assert_eq!(marked(&fixture, &bad).await, ["Of the palimpsest.", REJECTED_PROMPT]);
    run_prompt(&fixture, "Part two.").await;
    let said = last_call(&fake);
    assert!(said.contains("Part one."), "{said}");
    assert!(!said.contains("palimpsest") && !said.contains("xylograph"), "{said}");
    worker.stop().await;
}

/// A history that one provider has accepted may not suit another. It is rebuilt once, as text, and never deleted.
#[tokio::test]
async fn a_history_rejected_by_a_new_provider_is_sent_once_more_without_tools_and_kept() {
    let fake = FakeOllama::playing([REJECTION]).await;
    let fixture = fixture(&fake).await;
    fixture.write_agent("writer", WRITER);
    let worker = fixture.start_worker().await;
    run_prompt(&fixture, "Part one.").await;
    fixture.write_agent("writer", &on_ollama());
    let second = run_prompt(&fixture, "Part two.").await;
    assert_eq!(fixture.session(&second).await.opened_because, Reason::Poisoned);
    assert_eq!(fake.chats().len(), 2);
    let said = last_call(&fake);
    assert!(said.contains("Part one."), "{said}");
    assert!(said.contains("Calls of tools and their results, where there were any,"), "{said}");

    fixture.write_agent("writer", WRITER);
    run_prompt(&fixture, "Part three.").await;
    fixture.write_agent("writer", &on_ollama());
    fake.state.plays.lock().unwrap().extend([REJECTION, REJECTION]);
    let bad = fixture.ended(&fixture.add(REJECTED_PROMPT).await).await;
    assert_eq!(bad.state, State::Failed);
    assert!(bad.error.as_deref().unwrap().contains("`fresh`"), "{bad:?}");
    assert_eq!(fake.chats().len(), 4, "there is only one retry");
    run_prompt(&fixture, "Part four.").await;
    let said = last_call(&fake);
    for part in ["Part one.", "Part two.", "Part three.", "Part four."] {
        assert!(said.contains(part), "{part} is missing: {said}");
    }
    assert!(!said.contains("xylograph"), "{said}");
    worker.stop().await;
}

/// The fourth turn answers the prompt of the second. The third was sent without it.
#[tokio::test]
async fn a_fork_has_a_rejected_prompt_only_after_the_turn_that_answered_it() {
    let yes = || Play::Says(&["Yes."]);
    let fake = FakeOllama::playing([yes(), REJECTION, yes(), yes()]).await;
    let fixture = fixture(&fake).await;
    let worker = fixture.start_worker().await;
    let first = run_prompt(&fixture, "Part one.").await;
    let bad = is_rejected(&fixture, REJECTED_PROMPT).await;
    run_prompt(&fixture, "Part two.").await;
    assert_eq!(retry(&fixture, &bad).await.state, State::Done);
    worker.stop().await;
    let prompt = format!("User: {REJECTED_PROMPT}");
    for (turn, n_prompts) in [(1, 0), (3, 0), (4, 1)] {
        let fork = fork(&fixture, first.session_id.unwrap(), turn).await;
        let said = fixture.transcript(fork.id).await;
        let prompts = said.iter().filter(|line| **line == prompt);
        assert_eq!(prompts.count(), n_prompts, "turn {turn}: {said:?}");
    }
}

#[tokio::test]
async fn no_summary_is_made_of_a_rejected_prompt() {
    let fake = FakeOllama::playing([]).await;
    let fixture = fixture(&fake).await;
    let worker = fixture.start_worker().await;
    let long = "The light is tall. ".repeat(150);
    let first = run_prompt(&fixture, &format!("Part one. {long}")).await;
    fake.state.plays.lock().unwrap().push_back(REJECTION);
    is_rejected(&fixture, REJECTED_PROMPT).await;
    for number in 2..6 {
        run_prompt(&fixture, &format!("Part {number}. {}", "The mole is long. ".repeat(150))).await;
    }
    fixture.settled().await;
    let (id, n_chats) = (first.session_id.unwrap(), fake.chats().len());
    let mut conn = fixture.pool.acquire().await.unwrap();
    compactions::request(&mut conn, id, Cause::Manual).await.unwrap();
    eventually("a summary exists", async || {
        let made = compactions::list(&fixture.pool, id).await.unwrap();
        made.iter().any(|made| made.outcome == compactions::Outcome::Applied).then_some(())
    })
    .await;
    worker.stop().await;
    let asked: Vec<String> = fake.chats().iter().skip(n_chats).map(Value::to_string).collect();
    assert!(asked.iter().any(|asked| asked.contains("Part one.")), "{asked:?}");
    assert!(!asked.iter().any(|asked| asked.contains("xylograph")), "{asked:?}");
    let view = sessions::history(&mut *conn, id).await.unwrap().to_string();
    assert!(!view.contains("xylograph"), "{view}");
}

#[tokio::test]
async fn requirements_of_a_node_are_repeated_if_their_prompt_was_rejected() {
    let fake = FakeOllama::playing([REJECTION]).await;
    let fixture = fixture(&fake).await;
    let node = "---\nname: draft\ndescription: d\n---\nThe contract of the draft.\n";
    fixture.write_node("draft", node);
    let worker = fixture.start_worker().await;
    let mode = Some(Mode::Continue);
    let limit = dalsegno::domain::amount::Limit::default();
    let role = ("writer", "main");
    let bad = fixture.add_at_node(role, Some("draft"), REJECTED_PROMPT, mode, limit).await;
    assert_eq!(fixture.ended(&bad).await.state, State::Failed);
    run_prompt(&fixture, "Go on.").await;
    let said = last_call(&fake);
    assert!(said.contains("The contract of the draft.") && !said.contains("xylograph"), "{said}");
    run_prompt(&fixture, "And on.").await;
    assert_eq!(last_call(&fake).matches("The contract of the draft.").count(), 1);
    worker.stop().await;
}

/// The effects of an interrupted turn stay known, also when the next prompt is rejected.
#[tokio::test]
async fn an_interruption_is_still_reported_after_a_rejected_prompt() {
    let fake = FakeOllama::playing([Play::NeverBegins, REJECTION]).await;
    let fixture = fixture(&fake).await;
    let worker = fixture.start_worker().await;
    let cancelled = fixture.add("Part one.").await;
    fake.wait_for_chats(1).await;
    fixture.cancel(&cancelled).await;
    fixture.ended(&cancelled).await;
    is_rejected(&fixture, REJECTED_PROMPT).await;
    run_prompt(&fixture, "Part two.").await;
    let said = last_call(&fake);
    assert!(said.contains("A turn before this one was interrupted."), "{said}");
    assert!(said.contains("verify before you repeat it") && !said.contains("xylograph"), "{said}");
    worker.stop().await;
}
