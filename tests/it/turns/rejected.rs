//! Prompts that the provider rejects: the task fails, and its conversation continues without them.

use dalsegno::domain::{
    agents::SessionMode as Mode,
    compactions::{self, Cause},
    messages::Span,
    sessions::{self, Reason},
    tasks::{self, State, Task},
};
use serde_json::Value;

use super::{Ground, fixture::WRITER};
use crate::{
    app::eventually,
    providers::fake_ollama::{FakeOllama, Play},
};

const REJECTS: Play = Play::Status(400, "", r#"{"error":"unprocessable: xylograph"}"#);
const BAD: &str = "Write about the xylograph.";

fn on_ollama() -> String {
    WRITER.replace("description:", "provider: ollama\nmodel: qwen3:8b\ndescription:")
}

async fn ground(fake: &FakeOllama) -> Ground {
    let url = format!("http://{}", fake.addr);
    let ground = Ground::new(&[("ollama.base_url", &url), ("ollama.num_ctx", "8192")]).await;
    ground.write_agent("writer", &on_ollama());
    ground
}

async fn says(ground: &Ground, prompt: &str) -> Task {
    ground.done(&ground.add(prompt).await).await
}

/// Runs a task and checks that its prompt is rejected, after a single call.
async fn is_rejected(ground: &Ground, prompt: &str) -> Task {
    let task = ground.ended(&ground.add(prompt).await).await;
    assert_eq!(task.state, State::Failed, "{task:?}");
    let turns = ground.turns(&task).await;
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

async fn marked(ground: &Ground, task: &Task) -> Vec<String> {
    let mut conn = ground.pool.acquire().await.unwrap();
    let id = ground.task(task).await.session_id.unwrap();
    let stored = sessions::transcript(&mut conn, id, Span::all()).await.unwrap();
    stored.into_iter().filter(|stored| stored.rejected).map(|stored| stored.message.text).collect()
}

async fn retry(ground: &Ground, task: &Task) -> Task {
    let mut tx = ground.pool.begin().await.unwrap();
    tasks::retry(&mut tx, task.id, dalsegno::clock::Clock::now(&ground.clock)).await.unwrap();
    tx.commit().await.unwrap();
    ground.ended(task).await
}

#[tokio::test]
async fn a_rejected_prompt_fails_its_task_and_the_conversation_continues_without_it() {
    let good = || Play::Says(&["A good answer."]);
    let fake = FakeOllama::playing([good(), good(), good(), REJECTS]).await;
    let ground = ground(&fake).await;
    let worker = ground.work().await;
    let first = says(&ground, "Part one.").await;
    says(&ground, "Part two.").await;
    says(&ground, "Part three.").await;
    let bad = is_rejected(&ground, BAD).await;
    assert!(bad.error.as_deref().unwrap().contains("unprocessable: xylograph"), "{bad:?}");
    assert_eq!(fake.chats().len(), 4, "the prompt is not sent again");
    let next = says(&ground, "Part four.").await;
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
    assert_eq!(marked(&ground, &bad).await, [BAD]);
    let transcript = ground.transcript(first.session_id.unwrap()).await;
    assert_eq!(transcript.len(), 9, "{transcript:?}");
    let view = sessions::history(&ground.pool, first.session_id.unwrap()).await.unwrap();
    assert!(!view.to_string().contains("xylograph"), "{view}");

    // A person retries it, and now it is accepted: it becomes part of the conversation.
    let again = retry(&ground, &bad).await;
    assert_eq!(again.state, State::Done, "{again:?}");
    assert_eq!(marked(&ground, &bad).await, [""; 0]);
    says(&ground, "Part five.").await;
    assert!(last_call(&fake).contains(BAD));
    worker.stop().await;
}

#[tokio::test]
async fn the_simulation_handles_rejected_prompts_too() {
    let ground = Ground::new(&[]).await;
    let worker = ground.work().await;
    let first = says(&ground, "Write part one.").await;
    let bad = is_rejected(&ground, "Write. [[sim: error 400]]").await;
    assert_eq!(bad.session_id, first.session_id);
    let next = says(&ground, "Write part two.").await;
    assert_eq!(next.session_id, first.session_id);
    assert_eq!(ground.sessions().await.len(), 1);
    let manifest = ground.manifests(first.session_id.unwrap()).await.pop().unwrap().manifest;
    let parts = manifest["parts"].as_array().unwrap();
    let history = parts.iter().find(|part| part["why"] == "recent_history").unwrap();
    assert_eq!(history["span"]["count"], 2, "the first task and its answer: {manifest}");
    worker.stop().await;
}

#[tokio::test]
async fn a_rejected_first_prompt_leaves_only_itself() {
    let fake = FakeOllama::playing([REJECTS, REJECTS]).await;
    let ground = ground(&fake).await;
    let worker = ground.work().await;
    is_rejected(&ground, BAD).await;
    is_rejected(&ground, BAD).await;
    says(&ground, "Part one.").await;
    let said = last_call(&fake);
    assert!(!said.contains("xylograph") && said.contains("Part one."), "{said}");
    worker.stop().await;
}

#[tokio::test]
async fn no_successor_and_no_other_provider_gets_a_rejected_prompt() {
    let fake = FakeOllama::playing([]).await;
    let ground = ground(&fake).await;
    ground.write_agent("writer", WRITER);
    let worker = ground.work().await;
    says(&ground, "Part one.").await;
    let bad = is_rejected(&ground, &format!("{BAD} [[sim: error 400]]")).await;
    ground.write_agent("writer", &on_ollama());
    let next = says(&ground, "Part two.").await;
    worker.stop().await;
    let session = ground.session(&next).await;
    assert_eq!(session.opened_because, Reason::ProviderChanged);
    assert_eq!(session.predecessor_id, bad.session_id);
    let said = last_call(&fake);
    assert!(!said.contains("xylograph") && said.contains("Part one."), "{said}");
    assert!(said.contains("Everything that you were shown of it came along."), "{said}");
    let transcript = ground.transcript(session.id).await;
    assert!(!transcript.iter().any(|line| line.contains("xylograph")), "{transcript:?}");
}

/// There was no answer in between, so the prompt of an earlier failed task may be the reason as well.
#[tokio::test]
async fn a_rejection_also_removes_failed_prompts_since_the_last_answer() {
    let missing = Play::Status(404, "", r#"{"error":"model 'qwen3:8b' not found"}"#);
    let fake = FakeOllama::playing([Play::Says(&["Yes."]), missing, REJECTS]).await;
    let ground = ground(&fake).await;
    let worker = ground.work().await;
    says(&ground, "Part one.").await;
    let failed = ground.ended(&ground.add("Of the palimpsest.").await).await;
    assert_eq!(failed.state, State::Failed);
    assert!(ground.turns(&failed).await[0].flags.is_empty(), "no provider has rejected it");
    let bad = is_rejected(&ground, BAD).await;
    assert_eq!(marked(&ground, &bad).await, ["Of the palimpsest.", BAD]);
    says(&ground, "Part two.").await;
    let said = last_call(&fake);
    assert!(said.contains("Part one."), "{said}");
    assert!(!said.contains("palimpsest") && !said.contains("xylograph"), "{said}");
    worker.stop().await;
}

/// A history that one provider has accepted may not suit another. It is rebuilt once, as text, and never deleted.
#[tokio::test]
async fn a_history_rejected_by_a_new_provider_is_sent_once_more_without_tools_and_kept() {
    let fake = FakeOllama::playing([REJECTS]).await;
    let ground = ground(&fake).await;
    ground.write_agent("writer", WRITER);
    let worker = ground.work().await;
    says(&ground, "Part one.").await;
    ground.write_agent("writer", &on_ollama());
    let second = says(&ground, "Part two.").await;
    assert_eq!(ground.session(&second).await.opened_because, Reason::Poisoned);
    assert_eq!(fake.chats().len(), 2);
    let said = last_call(&fake);
    assert!(said.contains("Part one."), "{said}");
    assert!(said.contains("Calls of tools and their results, where there were any,"), "{said}");

    ground.write_agent("writer", WRITER);
    says(&ground, "Part three.").await;
    ground.write_agent("writer", &on_ollama());
    fake.state.plays.lock().unwrap().extend([REJECTS, REJECTS]);
    let bad = ground.ended(&ground.add(BAD).await).await;
    assert_eq!(bad.state, State::Failed);
    assert!(bad.error.as_deref().unwrap().contains("`fresh`"), "{bad:?}");
    assert_eq!(fake.chats().len(), 4, "there is only one retry");
    says(&ground, "Part four.").await;
    let said = last_call(&fake);
    for part in ["Part one.", "Part two.", "Part three.", "Part four."] {
        assert!(said.contains(part), "{part} is missing: {said}");
    }
    assert!(!said.contains("xylograph"), "{said}");
    worker.stop().await;
}

#[tokio::test]
async fn no_summary_is_made_of_a_rejected_prompt() {
    let fake = FakeOllama::playing([]).await;
    let ground = ground(&fake).await;
    let worker = ground.work().await;
    let long = "The light is tall. ".repeat(150);
    let first = says(&ground, &format!("Part one. {long}")).await;
    fake.state.plays.lock().unwrap().push_back(REJECTS);
    is_rejected(&ground, BAD).await;
    for number in 2..6 {
        says(&ground, &format!("Part {number}. {}", "The mole is long. ".repeat(150))).await;
    }
    ground.settled().await;
    let (id, n_chats) = (first.session_id.unwrap(), fake.chats().len());
    let mut conn = ground.pool.acquire().await.unwrap();
    compactions::request(&mut conn, id, Cause::Manual).await.unwrap();
    eventually("a summary exists", async || {
        let made = compactions::list(&ground.pool, id).await.unwrap();
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
    let fake = FakeOllama::playing([REJECTS]).await;
    let ground = ground(&fake).await;
    let node = "---\nname: draft\ndescription: d\n---\nThe contract of the draft.\n";
    ground.write_node("draft", node);
    let worker = ground.work().await;
    let mode = Some(Mode::Continue);
    let limit = dalsegno::domain::amount::Limit::default();
    let role = ("writer", "main");
    let bad = ground.add_at_node(role, Some("draft"), BAD, mode, limit).await;
    assert_eq!(ground.ended(&bad).await.state, State::Failed);
    says(&ground, "Go on.").await;
    let said = last_call(&fake);
    assert!(said.contains("The contract of the draft.") && !said.contains("xylograph"), "{said}");
    says(&ground, "And on.").await;
    assert_eq!(last_call(&fake).matches("The contract of the draft.").count(), 1);
    worker.stop().await;
}

/// The effects of an interrupted turn stay known, also when the next prompt is rejected.
#[tokio::test]
async fn an_interruption_is_still_reported_after_a_rejected_prompt() {
    let fake = FakeOllama::playing([Play::NeverBegins, REJECTS]).await;
    let ground = ground(&fake).await;
    let worker = ground.work().await;
    let cancelled = ground.add("Part one.").await;
    fake.asked(1).await;
    ground.cancel(&cancelled).await;
    ground.ended(&cancelled).await;
    is_rejected(&ground, BAD).await;
    says(&ground, "Part two.").await;
    let said = last_call(&fake);
    assert!(said.contains("A turn before this one was interrupted."), "{said}");
    assert!(said.contains("verify before you repeat it") && !said.contains("xylograph"), "{said}");
    worker.stop().await;
}
