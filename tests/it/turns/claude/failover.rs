//! From Claude to Ollama and back, each time from the ledger.

use chrono::TimeDelta;
use dalsegno::domain::tasks::State;

use super::{Setup, WRITER};
use crate::{
    app::noon,
    providers::{
        claude::api::Play,
        fake_ollama::{FakeOllama, Play as Reply},
    },
};

const OVERLOADED: Play = Play::Fails(500, "", "api_error", "Overloaded");

async fn setup(fake: &FakeOllama) -> Option<Setup> {
    let url = format!("http://{}", fake.addr);
    let setup = Setup::new(&[("ollama.base_url", &url), ("ollama.num_ctx", "16384")]).await?;
    let chain = "model: [claude/claude-sonnet-5, ollama/qwen3:8b]\n";
    let one = "provider: claude\nmodel: claude-sonnet-5\n";
    setup.fixture.write_agent("writer", &WRITER.replace(one, chain));
    Some(setup)
}

#[tokio::test]
async fn a_conversation_moves_to_ollama_and_back_with_its_whole_history() {
    let fake = FakeOllama::playing([Reply::Says(&["Seals."]), Reply::Says(&["Gulls."])]).await;
    let Some(setup) = setup(&fake).await else { return };
    let fixture = &setup.fixture;
    let worker = fixture.start_worker().await;
    setup.run_prompt("The harbour is called Vik.").await;
    setup.api.plays([OVERLOADED, OVERLOADED, OVERLOADED]);
    let second = fixture.ended_without_pauses(&fixture.add("What lives there?").await).await;
    assert_eq!((second.state, second.result.as_deref()), (State::Done, Some("Seals.")));
    assert_eq!(fixture.turns(&second).await.len(), 4);
    let asked = fake.chats()[0]["messages"].to_string();
    for words in ["The harbour is called Vik.", "another model has taken over", "What lives there?"]
    {
        assert!(asked.contains(words), "{words}: {asked}");
    }
    // It stays there during the pause of the first provider.
    let third = fixture.ended_without_pauses(&fixture.add("What else?").await).await;
    assert_eq!((third.result.as_deref(), third.session_id), (Some("Gulls."), second.session_id));
    assert_eq!(fixture.moves().await, ["ollama/qwen3:8b"]);

    // Tried too early, the first provider fails, and the turn continues at once on the second. Later it returns.
    fixture.advance(TimeDelta::seconds(901));
    setup.api.plays([OVERLOADED]);
    let fourth = fixture.ended_without_pauses(&fixture.add("Is it cold?").await).await;
    assert_eq!(fourth.result.as_deref(), Some("A good answer."));
    fixture.advance(TimeDelta::seconds(901));
    let fifth = fixture.ended_without_pauses(&fixture.add("And the ferry?").await).await;
    assert_eq!(fixture.session(&fifth).await.provider, "claude");
    let (claude, ollama) = ("claude/claude-sonnet-5", "ollama/qwen3:8b");
    assert_eq!(fixture.moves().await, [ollama, claude, ollama, claude]);
    let said = setup.api.last_messages().join("\n");
    for words in
        ["called Vik.", "Seals.", "Gulls.", "A good answer.", "taken over", "And the ferry?"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    // It continues there as usual.
    setup.run_prompt("Thanks.").await;
    assert_eq!(setup.session_starts().await.last().unwrap(), "resumed");
    fixture.settled().await;
    worker.stop().await;
}

#[tokio::test]
async fn a_turn_does_not_wait_for_a_credential_with_a_long_pause() {
    let fake = FakeOllama::start().await;
    let Some(setup) = setup(&fake).await else { return };
    let fixture = &setup.fixture;
    let worker = fixture.start_worker().await;
    setup.run_prompt("One.").await;
    let sql =
        "insert into dalsegno.paused_credentials values ('claude', $1, $2, 'its limit is used up')";
    for credential in ["main", "spare"] {
        let until = noon() + TimeDelta::hours(5);
        sqlx::query(sql).bind(credential).bind(until).execute(&fixture.pool).await.unwrap();
    }
    let task = fixture.done(&fixture.add("Two.").await).await;
    assert_eq!(fixture.session(&task).await.provider, "ollama");
    assert_eq!(fixture.moves().await, ["ollama/qwen3:8b"]);
    let skipped = fixture.turns(&task).await[0].chain.clone().unwrap().0.describe();
    assert!(skipped.contains("is paused until 2026-"), "{skipped}");
    assert_eq!(setup.api.requests().len(), 1);
    fixture.settled().await;
    worker.stop().await;
}
