//! Contexts of calls as they were sent: assembled again byte for byte, and erased with their sources.

use dalsegno::{
    domain::{
        contexts::{self, StoredContext, StoredSideCall},
        facts, posts,
        sessions::Session,
    },
    operations::{ContextState, SentContext, VerifiedCall},
};
use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

use super::Fixture;
use crate::{
    app::noon,
    facts::{setup::set_user, state},
    memory::edicts_in_context::publish,
    providers::fake_ollama::{FakeOllama, Play},
};

const WRITER: &str = "---\nname: writer\ndescription: Writes\nprovider: ollama\nmodel: qwen3:8b\n\
                      tools: mcp__dalsegno__status, mcp__dalsegno__board_post\n---\nYou write.\n";

async fn fixture(fake: &FakeOllama, settings: &[(&str, &str)]) -> Fixture {
    let url = format!("http://{}", fake.addr);
    let usual = [("ollama.base_url", url.as_str()), ("ollama.num_ctx", "16384")];
    let settings: Vec<_> = usual.into_iter().chain(settings.iter().copied()).collect();
    let fixture = Fixture::new(&settings).await;
    fixture.write_agent("writer", WRITER);
    fixture
}

/// Assembles all stored calls of a session again, those beside its turns last.
pub async fn verify(pool: &PgPool, session_id: Uuid) -> Vec<VerifiedCall> {
    let mut conn = pool.acquire().await.unwrap();
    let mut verified = Vec::new();
    let mut visit = |stored: StoredContext| {
        verified.push(VerifiedCall::of(&stored)?);
        Ok(())
    };
    contexts::visit(&mut conn, session_id, 0, 100_000, &mut visit).await.unwrap();
    let mut visit = |stored: StoredSideCall| {
        verified.push(VerifiedCall::of_side_call(&stored)?);
        Ok(())
    };
    contexts::visit_side_calls(&mut conn, session_id, (0, None), &mut visit).await.unwrap();
    verified
}

/// Checks that every stored call is what was sent.
pub async fn assert_exact(pool: &PgPool) {
    let ids = "select session_id from dalsegno.manifests union select session_id from dalsegno.usage_contexts";
    let ids = sqlx::query_scalar(ids);
    for session_id in ids.fetch_all(pool).await.unwrap() {
        let verified = verify(pool, session_id).await;
        let is_exact = |call: &&VerifiedCall| {
            matches!(call.state, ContextState::Exact | ContextState::NoRequest)
        };
        let bad: Vec<_> = verified.iter().filter(|call| !is_exact(call)).collect();
        assert!(bad.is_empty(), "session {session_id}: {bad:?}");
    }
}

pub async fn show(fixture: &Fixture, session: &Session, turn: i32, call: i32) -> SentContext {
    let mut conn = fixture.pool.acquire().await.unwrap();
    let found = contexts::find(&mut conn, session.id, Some(turn), call).await.unwrap();
    SentContext::of(found).unwrap()
}

async fn states(fixture: &Fixture, session: &Session) -> Vec<ContextState> {
    verify(&fixture.pool, session.id).await.iter().map(|call| call.state).collect()
}

#[tokio::test]
async fn requests_are_shown_byte_for_byte_after_everything_has_changed() {
    let posting = Play::Calls(vec![("board_post", json!({ "text": "Tide <&> \u{202e} 😀" }))]);
    let status = Play::Calls(vec![("status", json!({}))]);
    let fake = FakeOllama::playing([posting, status, Play::Says(&["Part ", "one."])]).await;
    let fixture = fixture(&fake, &[]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.done(&fixture.add("Write part one.\n\"Quoted\" \\ </task>").await).await;
    worker.stop_only().await;
    let changed = WRITER.replace("You write.", "You write verse.").replace("qwen3:8b", "qwen3:4b");
    fixture.write_agent("writer", &changed);
    let settings = [("ollama.num_ctx", "8192"), ("ollama.keep_alive_secs", "1")];
    let worker = fixture.start_worker_with(&settings).await;
    fixture.done(&fixture.add("Write part two.").await).await;
    worker.stop().await;
    let session = fixture.session(&task).await;
    let bodies = fake.bodies();
    assert_eq!(bodies.len(), 4);
    for (at, body) in bodies[..3].iter().enumerate() {
        let shown = show(&fixture, &session, 1, at as i32 + 1).await;
        let request = shown.request.unwrap();
        assert_eq!(request.body.as_bytes(), body, "call {}", at + 1);
        assert_eq!(request.url, Some(format!("http://{}/api/chat", fake.addr)));
        assert_eq!((shown.state, shown.calls), (ContextState::Exact, Some(3)));
    }
    let successor = fixture.sessions().await.into_iter().find(|it| it.id != session.id).unwrap();
    let shown = show(&fixture, &successor, 2, 1).await;
    assert_eq!(shown.request.unwrap().body.as_bytes(), bodies[3]);
    assert!(shown.system.unwrap().starts_with("You write verse."));
}

#[tokio::test]
async fn the_command_prints_the_bytes_and_verifies_them() {
    let status = Play::Calls(vec![("status", json!({}))]);
    let fake = FakeOllama::playing([status, Play::Says(&["Part ", "one\u{1b}[31m."])]).await;
    let fixture = fixture(&fake, &[]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.done(&fixture.add("Write 'part' one.").await).await;
    worker.stop().await;
    let id = task.session_id.unwrap().to_string();
    let run = async |arguments: &[&str]| {
        let output = fixture.run_command(arguments).await;
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let raw = run(&["context", "show", &id, "--turn", "1", "--call", "2", "--raw"]).await;
    assert_eq!(raw, fake.bodies()[1]);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let shown = text(run(&["context", "show", &id]).await);
    let has = [
        "turn     1, call 1 of 2",
        "exactly as sent, byte for byte",
        "──── system ────\nYou write.",
        "Write 'part' one.",
        "──── tools ────",
    ];
    for part in has {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let further = text(run(&["context", "show", &id, "--call", "2"]).await);
    assert!(further.contains("[calls status with {}]"), "{further}");
    assert!(further.contains("──── result of status ────"), "{further}");
    let curl = text(run(&["context", "show", &id, "--curl"]).await);
    let sends = format!("curl -sS 'http://{}/api/chat' -H 'content-type:", fake.addr);
    assert!(curl.contains(&sends), "{curl}");
    // The shell gives the command the same bytes.
    let script = format!("curl() {{ cat; }}\n{curl}");
    let given = tokio::process::Command::new("sh").arg("-c").arg(&script).output().await.unwrap();
    assert_eq!(given.stdout, fake.bodies()[0]);
    let verified = text(run(&["context", "verify", &id]).await);
    assert_eq!(verified, "2 calls: 2 exactly as sent\n");
    let output = fixture.run_command(&["context", "show", &id, "--transcript"]).await;
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let words = text(output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("no transcript of ollama is stored"), "{words}");
    for (call, code) in [("3", 3), ("0", 2)] {
        let output = fixture.run_command(&["context", "show", &id, "--call", call]).await;
        assert_eq!(output.status.code(), Some(code), "{output:?}");
    }
}

#[tokio::test]
async fn a_changed_message_and_a_removed_text_are_reported() {
    let fake = FakeOllama::playing([Play::Says(&["One."]), Play::Says(&["Two."])]).await;
    let fixture = fixture(&fake, &[]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.done(&fixture.add("Write part one.").await).await;
    fixture.done(&fixture.add("Write part two.").await).await;
    worker.stop().await;
    let session = fixture.session(&task).await;
    let change = "begin;
                  set local dalsegno.erasing = 'on';
                  alter table dalsegno.messages disable trigger user;
                  update dalsegno.messages set text = 'Uno.', digest = sha256('Uno.') where text = 'One.';
                  alter table dalsegno.messages enable trigger user;
                  commit";
    sqlx::raw_sql(change).execute(&fixture.pool).await.unwrap();
    assert_eq!(states(&fixture, &session).await, [ContextState::Exact, ContextState::Differs]);
    let remove = "delete from dalsegno.context_text_uses where sha256 in
                  (select sha256 from dalsegno.context_texts where kind = 'agent_prompt')";
    sqlx::query(remove).execute(&fixture.pool).await.unwrap();
    let removed =
        fixture.count("select count(*) from dalsegno.context_texts where kind = 'agent_prompt'");
    assert_eq!(removed.await, 0, "the last use is gone, so the text is");
    let verified = verify(&fixture.pool, session.id).await;
    assert_eq!(verified[0].state, ContextState::Erased);
    assert!(verified[0].problem.as_ref().unwrap().contains("agent_prompt"), "{verified:?}");
}

#[tokio::test]
async fn a_turn_that_the_provider_refuses_as_too_long_is_shown_beside_its_repetition() {
    let too_long =
        r#"{"error":"the prompt is longer than the context length currently available"}"#;
    let refused = Play::Status(400, "", too_long);
    let fake = FakeOllama::playing([Play::Says(&["One."]), Play::Says(&["Two."]), refused]).await;
    fake.summarises();
    let fixture = fixture(&fake, &[]).await;
    let worker = fixture.start_worker().await;
    for number in 1..=3 {
        fixture.done(&fixture.add(&format!("Write part {number}.")).await).await;
    }
    worker.stop().await;
    let session = fixture.sessions().await.remove(0);
    let ledger = "select json_agg(json_build_array(turn, outcome) order by id) from dalsegno.usage where purpose = 'turn'";
    let expected = json!([[1, "done"], [2, "done"], [3, "failed"], [4, "done"]]);
    assert_eq!(fixture.json(ledger).await, expected);
    let shown = show(&fixture, &session, 3, 1).await;
    assert_eq!(shown.request.unwrap().body.as_bytes(), fake.bodies()[2]);
}

#[tokio::test]
async fn forgotten_facts_leave_the_stored_contexts() {
    let fake = FakeOllama::playing([Play::Says(&["One."]), Play::Says(&["Two."])]).await;
    let fixture = fixture(&fake, &[]).await;
    fixture.write_agent("writer", &WRITER.replace("model:", "told_facts: true\nmodel:"));
    set_user(&fixture, "ann").await;
    let worker = fixture.start_worker().await;
    let task = fixture.done(&fixture.add("Write part one.").await).await;
    state(&fixture.pool, "ann", ("city", "Lives in Lübeck.")).await.unwrap();
    fixture.done(&fixture.add("Write part two.").await).await;
    worker.stop().await;
    let session = fixture.session(&task).await;
    let has_fact = "select count(*) from dalsegno.context_texts where content like '%Lübeck%'";
    assert_eq!(fixture.count(has_fact).await, 1);
    let mut tx = fixture.pool.begin().await.unwrap();
    facts::forget(&mut tx, "ann", noon()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(fixture.count(has_fact).await, 0);
    assert_eq!(states(&fixture, &session).await, [ContextState::Exact, ContextState::Erased]);
}

#[tokio::test]
async fn a_diff_shows_the_agent_file_the_edict_and_the_post_between_two_turns() {
    let fake = FakeOllama::playing([Play::Says(&["One."]), Play::Says(&["Two."])]).await;
    let fixture = fixture(&fake, &[]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.done(&fixture.add("Write part one.").await).await;
    fixture.write_agent("writer", &WRITER.replace("You write.", "You write verse."));
    publish(&fixture, "tone", "No exclamation marks.").await;
    let audience = crate::board::to(&["all"]);
    let post = crate::board::by_operator(fixture.campaign.id, &audience, "The tide is low.");
    posts::add(&fixture.pool, &post, noon()).await.unwrap();
    let second = fixture.done(&fixture.add("Write part two.").await).await;
    worker.stop().await;
    let (from, to) = (fixture.session(&task).await.id, fixture.session(&second).await.id);
    let (from, to) = (from.to_string(), to.to_string());
    let output = fixture.run_command(&["context", "diff", &from, "1", "2", "--with", &to]).await;
    let text = String::from_utf8(output.stdout).unwrap();
    println!("{text}");
    let has = [
        "agent prompt: changed",
        "You [-write.-]{+write verse.+}",
        "edict ",
        "No exclamation marks.",
        "posts: added",
        "The tide is low.",
        "{+two.+}",
        "a cache can serve",
    ];
    for part in has {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test]
async fn a_diff_says_that_other_tools_and_other_models_cannot_use_the_cache() {
    let fake = FakeOllama::start().await;
    let fixture = fixture(&fake, &[]).await;
    let worker = fixture.start_worker().await;
    let first = fixture.done(&fixture.add("Write part one.").await).await;
    let fewer = WRITER.replace(", mcp__dalsegno__board_post", "");
    fixture.write_agent("writer", &fewer);
    let second = fixture.done(&fixture.add("Write part two.").await).await;
    fixture.write_agent("writer", &fewer.replace("qwen3:8b", "qwen3:4b"));
    let third = fixture.done(&fixture.add("Write part three.").await).await;
    worker.stop().await;
    let (own, other) = (fixture.session(&first).await, fixture.session(&third).await);
    assert_eq!((own.id, own.id != other.id), (fixture.session(&second).await.id, true));
    let id = own.id.to_string();
    let output = fixture.run_command(&["context", "diff", &id, "1", "2", "--json"]).await;
    let diff: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let shared = usize::try_from(diff["shared_bytes"].as_i64().unwrap()).unwrap();
    // The first tool is another one, and both begin with the name of the field.
    let system = show(&fixture, &own, 2, 1).await.system.unwrap();
    assert_eq!(shared, system.len() + r#"?{"name":""#.len(), "{diff}");
    let other = other.id.to_string();
    let arguments = ["context", "diff", &id, "2", "3", "--with", &other];
    let output = fixture.run_command(&arguments).await;
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("cache   none: each model has a cache of its own"), "{text}");
}

#[tokio::test]
async fn texts_are_stored_once_and_go_with_their_last_session() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    for (instance, n_turns) in [("main", 3), ("second", 2)] {
        for turn in 0..n_turns {
            let prompt = format!("Write part {turn}.");
            fixture.done(&fixture.add_for("writer", instance, &prompt).await).await;
        }
    }
    worker.stop().await;
    let stored = "select json_object_agg(kind, n) from
                  (select kind, count(*) as n from dalsegno.context_texts group by kind) as k";
    let expected =
        json!({ "agent_prompt": 1, "fence_rules": 1, "campaign_brief": 1, "client_context": 1 });
    assert_eq!(fixture.json(stored).await, expected);
    // The fences of two sessions differ, and are not stored.
    let uses = "select count(*) from dalsegno.context_text_uses";
    assert_eq!(fixture.count(uses).await, 8);
    let [first, second] = &fixture.sessions().await[..] else { panic!("two sessions") };
    for (gone, n_left) in [(first, 4), (second, 0)] {
        let mut conn = fixture.pool.acquire().await.unwrap();
        dalsegno::domain::context_texts::remove_all(&mut *conn, &[gone.id]).await.unwrap();
        assert_eq!(fixture.count("select count(*) from dalsegno.context_texts").await, n_left);
    }
}
