//! Facts extracted by other models than the simulation: a fake Ollama, and the real Claude CLI.

use dalsegno::domain::facts::Outcome;
use serde_json::{Value, json};

use super::{
    USER, all,
    setup::{
        extractions, make_jobs_due, run_in_own_session, set_user, wait_for_extractions,
        wait_for_retry,
    },
    texts,
};
use crate::{
    providers::{
        claude::api,
        fake_ollama::{FakeOllama, Play},
    },
    turns::{claude, fixture::Fixture},
};

const ON_OLLAMA: &str = "---\nname: writer\ndescription: Writes\nprovider: ollama\nmodel: qwen3:8b\nlearns_facts: true\n---\nYou write.\n";
const ON_CLAUDE: &str = "---\nname: writer\ndescription: Writes\nprovider: claude\nmodel: claude-sonnet-5\nlearns_facts: true\n---\nYou write.\n";
const PROMPT: &str = "I do not eat meat. Write part one.";
const VALID_ANSWER: &str = r#"{"facts":[{"request":1,"attribute":"Diet","fact":"Eats no meat.","quote":"I do not eat meat"}]}"#;
const INVALID_ANSWER: &str = r#"{"facts":[{"request":9,"attribute":"Diet","fact":"Eats no meat.","quote":"I do not eat meat"}]}"#;
const CALLS: &str = "select count(*) from dalsegno.usage where purpose = 'facts'";

async fn on_ollama(fake: &FakeOllama) -> Fixture {
    let url = format!("http://{}", fake.addr);
    let settings =
        [("facts.extract", "true"), ("ollama.base_url", &*url), ("ollama.num_ctx", "16384")];
    let fixture = Fixture::new(&settings).await;
    fixture.write_agent("writer", ON_OLLAMA);
    set_user(&fixture, USER).await;
    fixture
}

/// Returns the last message of a call.
fn prompt(chat: &Value) -> &str {
    chat["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap()
}

#[tokio::test]
async fn ollama_gets_a_schema_and_the_fault_of_its_answer() {
    let plays = [
        Play::Says(&["Part ", "one."]),
        Play::Says(&[INVALID_ANSWER]),
        Play::Says(&[VALID_ANSWER]),
    ];
    let fake = FakeOllama::playing(plays).await;
    let fixture = on_ollama(&fake).await;
    let worker = fixture.start_worker().await;
    run_in_own_session(&fixture, PROMPT).await;
    wait_for_extractions(&fixture).await;
    worker.stop().await;
    let chats = fake.chats();
    assert_eq!(chats.len(), 3);
    for chat in &chats[1..] {
        let line = &chat["format"]["properties"]["facts"]["items"];
        assert_eq!(line["required"], json!(["request", "attribute", "fact", "quote"]), "{chat}");
        assert_eq!(line["properties"]["request"]["maximum"], 1);
        assert_eq!(chat["options"]["temperature"], 0.0);
        assert!(chat.get("tools").is_none(), "{chat}");
        assert!(prompt(chat).contains(PROMPT) && !prompt(chat).contains("Part one."), "{chat}");
    }
    assert!(!prompt(&chats[1]).contains("refused"), "{}", chats[1]);
    let told = "Your last answer was refused: its fact 1 names request 9, there are 1";
    assert!(prompt(&chats[2]).contains(told), "{}", chats[2]);
    assert_eq!(texts(&fixture.pool, USER).await, ["Eats no meat."]);
    let read = extractions(&fixture).await;
    assert_eq!((read.len(), read[0].outcome, read[0].new), (1, Outcome::Done, 1));
    // Both calls are in the ledger.
    assert_eq!(fixture.count(CALLS).await, 2);
}

#[tokio::test]
async fn a_declining_ollama_model_is_retried_later() {
    let sorry = || Play::Says(&["I cannot help with that."]);
    let fake = FakeOllama::playing([Play::Says(&["Part one."]), sorry(), sorry()]).await;
    let fixture = on_ollama(&fake).await;
    let worker = fixture.start_worker().await;
    run_in_own_session(&fixture, PROMPT).await;
    wait_for_retry(&fixture).await;
    let read = extractions(&fixture).await;
    assert_eq!((read.len(), read[0].outcome, read[0].new), (1, Outcome::Refused, 0));
    let reason = read[0].reason.as_deref().unwrap();
    assert!(reason.contains("not written as JSON") && !reason.contains("help"), "{reason}");
    fake.state.plays.lock().unwrap().push_back(Play::Says(&[VALID_ANSWER]));
    make_jobs_due(&fixture).await;
    wait_for_extractions(&fixture).await;
    worker.stop().await;
    assert_eq!(texts(&fixture.pool, USER).await, ["Eats no meat."]);
    assert_eq!(extractions(&fixture).await[0].outcome, Outcome::Done);
}

async fn on_claude() -> Option<claude::Setup> {
    let setup = claude::Setup::new(&[("facts.extract", "true")]).await?;
    setup.fixture.write_agent("writer", ON_CLAUDE);
    set_user(&setup.fixture, USER).await;
    Some(setup)
}

/// Plays the model's answer: the CLI turns the schema into a tool, which the model calls.
fn answer_play(fact: &str) -> api::Play {
    let line =
        json!({ "request": 1, "attribute": "Diet", "fact": fact, "quote": "I do not eat meat" });
    api::Play::Calls("StructuredOutput", json!({ "facts": [line] }))
}

fn text_play(words: &str, stop: &'static str) -> api::Play {
    api::Play::Says(vec![words.to_owned()], stop)
}

#[tokio::test]
async fn claude_gets_a_schema_and_the_fault_of_its_answer() {
    let Some(setup) = on_claude().await else { return };
    let fixture = &setup.fixture;
    // The schema allows several lines; the service does not.
    let plays = [
        text_play("Part one.", "end_turn"),
        answer_play("Eats no meat.\nNor fish."),
        answer_play("Eats no meat."),
    ];
    setup.api.plays(plays);
    let worker = fixture.start_worker().await;
    run_in_own_session(fixture, PROMPT).await;
    wait_for_extractions(fixture).await;
    worker.stop().await;
    let requests = setup.api.requests();
    let shaped: Vec<String> = requests
        .iter()
        .filter(|request| request["tools"].to_string().contains("StructuredOutput"))
        .map(Value::to_string)
        .collect();
    assert_eq!(shaped.len(), 2, "{requests:#?}");
    assert!(
        shaped.iter().all(|request| request.contains(PROMPT) && !request.contains("Part one."))
    );
    let told =
        "Your last answer was refused: its fact 1 has a field `fact` that is more than one line";
    assert!(!shaped[0].contains("was refused") && shaped[1].contains(told), "{}", shaped[1]);
    let [fact] = &all(&fixture.pool, USER, true).await[..] else { panic!("one fact") };
    assert_eq!((fact.text.as_str(), fact.author.as_str()), ("Eats no meat.", "writer"));
    let read = extractions(fixture).await;
    assert_eq!((read.len(), read[0].outcome, read[0].new), (1, Outcome::Done, 1));
    assert_eq!(fixture.count(CALLS).await, 2);
}

#[tokio::test]
async fn a_declining_claude_is_retried_later_and_its_message_reaches_no_model() {
    let Some(setup) = on_claude().await else { return };
    let fixture = &setup.fixture;
    let declines = || text_play("I would rather not.", "refusal");
    setup.api.plays([text_play("Part one.", "end_turn"), declines(), declines()]);
    let worker = fixture.start_worker().await;
    run_in_own_session(fixture, PROMPT).await;
    wait_for_retry(fixture).await;
    let read = extractions(fixture).await;
    assert_eq!((read.len(), read[0].outcome, read[0].new), (1, Outcome::Refused, 0));
    setup.api.plays([answer_play("Eats no meat.")]);
    make_jobs_due(fixture).await;
    wait_for_extractions(fixture).await;
    worker.stop().await;
    let told = setup
        .api
        .requests()
        .iter()
        .any(|request| request.to_string().contains("answer was refused"));
    assert!(!told, "{:#?}", setup.api.requests());
    assert_eq!(texts(&fixture.pool, USER).await, ["Eats no meat."]);
}
