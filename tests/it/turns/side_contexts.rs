//! Contexts of calls beside turns, for summaries and facts: shown byte for byte by their rows of the ledger, and removed with their sources.

use chrono::TimeDelta;
use dalsegno::{
    domain::{erasures, facts},
    operations::ContextState,
};
use serde_json::json;
use uuid::Uuid;

use super::{Fixture, contexts::verify};
use crate::{
    app::{eventually, noon},
    facts::{
        setup::{request, set_user, wait_for_extractions},
        state,
    },
    providers::fake_ollama::{FakeOllama, Play},
};

const ON_OLLAMA: &str = "---\nname: writer\ndescription: Writes\nprovider: ollama\nmodel: qwen3:8b\nlearns_facts: true\n---\nYou write.\n";
const PART: &str = "The harbour has a mole, a light <&> and two cranes. ";
const NO_FACTS: &str = r#"{"facts":[]}"#;
const CONTEXTS: &str = "select count(*) from dalsegno.usage_contexts";
const TEXTS: &str =
    "select count(*) from dalsegno.context_texts where kind in ('instructions', 'prompt', 'fact')";

async fn on_ollama(fake: &FakeOllama, window: &str) -> Fixture {
    let url = format!("http://{}", fake.addr);
    let settings =
        [("facts.extract", "true"), ("ollama.base_url", &*url), ("ollama.num_ctx", window)];
    let fixture = Fixture::new(&settings).await;
    fixture.write_agent("writer", ON_OLLAMA);
    fixture
}

async fn chat(fixture: &Fixture, n_turns: usize) {
    for number in 1..=n_turns {
        let prompt = format!("Write part {number}. {}", PART.repeat(28));
        fixture.done(&fixture.add(&prompt).await).await;
    }
    fixture.settled().await;
}

/// Returns the numbers of the rows of the ledger.
async fn ledger_ids(fixture: &Fixture, purpose: &str) -> Vec<i64> {
    let sql = "select id from dalsegno.usage where purpose = $1 order by id";
    sqlx::query_scalar(sql).bind(purpose).fetch_all(&fixture.pool).await.unwrap()
}

async fn show(fixture: &Fixture, id: i64, flags: &[&str]) -> Vec<u8> {
    let id = id.to_string();
    let arguments = [&["context", "show", "--ledger", &id], flags].concat();
    let output = fixture.run_command(&arguments).await;
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

async fn states(fixture: &Fixture, session_id: Uuid) -> Vec<ContextState> {
    let verified = verify(&fixture.pool, session_id).await;
    verified.into_iter().filter(|call| call.ledger_id.is_some()).map(|call| call.state).collect()
}

async fn erase(fixture: &Fixture) {
    let mut tx = fixture.pool.begin().await.unwrap();
    erasures::request(&mut tx, fixture.campaign.id, "by request", noon()).await.unwrap();
    tx.commit().await.unwrap();
    let upkeep = fixture.upkeep().await;
    eventually("the campaign is erased", async || {
        let mut conn = fixture.pool.acquire().await.unwrap();
        erasures::get(&mut conn, fixture.campaign.id).await.unwrap().ended_at
    })
    .await;
    upkeep.stop().await;
}

#[tokio::test]
async fn a_call_for_a_summary_is_shown_by_its_row_of_the_ledger() {
    let fake = FakeOllama::start().await;
    fake.summarises();
    let fixture = on_ollama(&fake, "8192").await;
    let worker = fixture.start_worker().await;
    chat(&fixture, 16).await;
    worker.stop().await;
    let ids = ledger_ids(&fixture, "summary").await;
    assert!(!ids.is_empty());
    let bodies = fake.bodies();
    for id in &ids {
        let raw = show(&fixture, *id, &["--raw"]).await;
        assert!(bodies.contains(&raw), "{}", String::from_utf8_lossy(&raw));
    }
    let shown = String::from_utf8(show(&fixture, ids[0], &[]).await).unwrap();
    let session = fixture.sessions().await.remove(0);
    let id = session.id.to_string();
    let has = [
        &*format!("{} of the ledger, for a summary, charged to turn", ids[0]),
        "exactly as sent, byte for byte",
        "──── system ────\nYou write the record of a conversation",
        "two cranes.",
        &*format!("session  {id}"),
    ];
    for part in has {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let curl = String::from_utf8(show(&fixture, ids[0], &["--curl"]).await).unwrap();
    assert!(curl.contains(&format!("curl -sS 'http://{}/api/chat'", fake.addr)), "{curl}");
    let json: serde_json::Value =
        serde_json::from_slice(&show(&fixture, ids[0], &["--json"]).await).unwrap();
    assert_eq!((&json["purpose"], &json["ledger_id"]), (&json!("summary"), &json!(ids[0])));
    // Where people look for the number.
    let turn = json["turn"].to_string();
    let listed = fixture.run_command(&["turn", "show", &id, &turn]).await;
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains(&format!("`dalsegno context show --ledger {}`", ids[0])), "{listed}");
    let verified = fixture.run_command(&["context", "verify", &id]).await;
    let n_calls = ledger_ids(&fixture, "turn").await.len() + ids.len();
    let expected = format!("{n_calls} calls: {n_calls} exactly as sent\n");
    assert_eq!(String::from_utf8(verified.stdout).unwrap(), expected);
    // The messages of the stretch are not stored again. Older prompts of people that leave the context are.
    let copied = "select (select count(*) from dalsegno.context_texts
                           where kind = 'prompt' and content like '%two cranes%two cranes%' and content not like '%<leaving %')
                       + (select count(*) from dalsegno.usage_contexts where manifest::text like '%two cranes%')";
    assert_eq!(fixture.count(copied).await, 0);
    let bytes = "select json_build_object('calls', (select count(*) from dalsegno.usage_contexts),
                   'records', (select sum(pg_column_size(manifest)) from dalsegno.usage_contexts),
                   'texts', (select sum(pg_column_size(content)) from dalsegno.context_texts where kind in ('instructions', 'prompt')),
                   'leaving', (select sum(pg_column_size(content)) from dalsegno.context_texts where content like '%<leaving %'),
                   'messages', (select sum(pg_column_size(text)) from dalsegno.messages))";
    let sent: usize = bodies.iter().filter(|body| !body.is_empty()).map(Vec::len).sum();
    println!("stored bytes: {}; {sent} bytes sent in all", fixture.json(bytes).await);
}

#[tokio::test]
async fn rows_of_turns_and_unknown_rows_name_the_next_step() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.done(&fixture.add("Write part one.").await).await;
    worker.stop().await;
    let of_turn = ledger_ids(&fixture, "turn").await[0].to_string();
    let next = format!("`dalsegno context show {} --turn 1`", task.session_id.unwrap());
    for (id, next) in [(of_turn.as_str(), next.as_str()), ("999", "`dalsegno turn show")] {
        let output = fixture.run_command(&["context", "show", "--ledger", id]).await;
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(next), "{output:?}");
    }
    let output = fixture.run_command(&["context", "show"]).await;
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[tokio::test]
async fn on_the_simulation_the_texts_of_a_summary_are_complete() {
    let fixture = Fixture::new(&[("sim.window_tokens", "8192")]).await;
    let worker = fixture.start_worker().await;
    chat(&fixture, 16).await;
    worker.stop().await;
    let session = fixture.sessions().await.remove(0);
    let states = states(&fixture, session.id).await;
    assert!(!states.is_empty());
    assert!(states.iter().all(|state| *state == ContextState::NoRequest), "{states:?}");
    let id = ledger_ids(&fixture, "summary").await[0];
    let shown = String::from_utf8(show(&fixture, id, &[]).await).unwrap();
    assert!(shown.contains("complete; no request was sent"), "{shown}");
}

#[tokio::test]
async fn forgotten_facts_leave_the_calls_that_were_shown_them() {
    let says = |text| Play::Says(text);
    let fake = FakeOllama::playing([
        says(&["One."]),
        says(&[NO_FACTS]),
        says(&["Two."]),
        says(&[NO_FACTS]),
    ])
    .await;
    let fixture = on_ollama(&fake, "16384").await;
    set_user(&fixture, "ann").await;
    let worker = fixture.start_worker().await;
    let task = fixture.done(&fixture.add("Write part one. <&>").await).await;
    let session_id = task.session_id.unwrap();
    request(&fixture, session_id).await;
    wait_for_extractions(&fixture).await;
    state(&fixture.pool, "ann", ("city", "Lives in Lübeck.")).await.unwrap();
    fixture.done(&fixture.add("Write part two.").await).await;
    request(&fixture, session_id).await;
    wait_for_extractions(&fixture).await;
    worker.stop().await;
    let ids = ledger_ids(&fixture, "facts").await;
    let bodies = fake.bodies();
    assert_eq!(ids.len(), 2);
    assert_eq!(show(&fixture, ids[0], &["--raw"]).await, bodies[1]);
    assert_eq!(show(&fixture, ids[1], &["--raw"]).await, bodies[3]);
    assert!(String::from_utf8_lossy(&bodies[3]).contains("Lübeck"));
    // The requests are read from the transcript, and are not stored again.
    let has_fact = "select count(*) from dalsegno.context_texts where content like '%Lübeck%'";
    let has_request = "select count(*) from dalsegno.context_texts where kind <> 'rounds' and content like '%Write part%'";
    assert_eq!((fixture.count(has_fact).await, fixture.count(has_request).await), (1, 0));
    let mut tx = fixture.pool.begin().await.unwrap();
    facts::forget(&mut tx, "ann", noon()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(fixture.count(has_fact).await, 0);
    assert_eq!(states(&fixture, session_id).await, [ContextState::Exact, ContextState::Erased]);
    let shown = String::from_utf8(show(&fixture, ids[1], &[]).await).unwrap();
    assert!(shown.contains("`fact` is not stored: it was erased"), "{shown}");
}

#[tokio::test]
async fn a_cleanup_removes_contexts_with_their_session() {
    let fake = FakeOllama::playing([Play::Says(&["One."]), Play::Says(&[NO_FACTS])]).await;
    let fixture = on_ollama(&fake, "16384").await;
    set_user(&fixture, "ann").await;
    let worker = fixture.start_worker().await;
    let task = fixture.done(&fixture.add("Write part one.").await).await;
    request(&fixture, task.session_id.unwrap()).await;
    wait_for_extractions(&fixture).await;
    worker.stop().await;
    assert_eq!((fixture.count(CONTEXTS).await, fixture.count(TEXTS).await), (1, 1));
    fixture.advance(TimeDelta::days(400));
    assert_eq!(fixture.clean_up().await, 1);
    assert_eq!((fixture.count(CONTEXTS).await, fixture.count(TEXTS).await), (0, 0));
    let id = ledger_ids(&fixture, "facts").await[0].to_string();
    let output = fixture.run_command(&["context", "show", "--ledger", &id]).await;
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let why = "its session was removed by a cleanup or an erasure";
    assert!(String::from_utf8_lossy(&output.stderr).contains(why), "{output:?}");
}

#[tokio::test]
async fn an_erasure_removes_contexts_of_its_campaign() {
    let fixture = Fixture::new(&[("sim.window_tokens", "8192")]).await;
    let worker = fixture.start_worker().await;
    chat(&fixture, 16).await;
    worker.stop().await;
    assert!(fixture.count(CONTEXTS).await > 0);
    erase(&fixture).await;
    assert_eq!((fixture.count(CONTEXTS).await, fixture.count(TEXTS).await), (0, 0));
    assert!(!ledger_ids(&fixture, "summary").await.is_empty(), "the ledger stays");
}
