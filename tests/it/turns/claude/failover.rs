//! From Claude to Ollama and back, each time from the ledger.

use chrono::TimeDelta;
use dalsegno::domain::tasks::State;

use super::{Stage, WRITER};
use crate::{
    app::noon,
    providers::{
        claude::api::Play,
        fake_ollama::{FakeOllama, Play as Reply},
    },
};

const OVERLOADED: Play = Play::Fails(500, "", "api_error", "Overloaded");

async fn stage(fake: &FakeOllama) -> Option<Stage> {
    let url = format!("http://{}", fake.addr);
    let stage = Stage::new(&[("ollama.base_url", &url), ("ollama.num_ctx", "16384")]).await?;
    let fallback = "fallback_provider: ollama\nfallback_model: qwen3:8b\nmodel:";
    stage.ground.write_agent("writer", &WRITER.replace("model:", fallback));
    Some(stage)
}

#[tokio::test]
async fn a_conversation_moves_to_ollama_and_back_with_its_whole_history() {
    let fake = FakeOllama::playing([Reply::Says(&["Seals."]), Reply::Says(&["Gulls."])]).await;
    let Some(stage) = stage(&fake).await else { return };
    let ground = &stage.ground;
    let worker = ground.work().await;
    stage.says("The harbour is called Vik.").await;
    stage.api.plays([OVERLOADED, OVERLOADED, OVERLOADED]);
    let second = ground.hurriedly_ended(&ground.add("What lives there?").await).await;
    assert_eq!((second.state, second.result.as_deref()), (State::Done, Some("Seals.")));
    assert_eq!(ground.turns(&second).await.len(), 4);
    let asked = fake.chats()[0]["messages"].to_string();
    for words in ["The harbour is called Vik.", "another model has taken over", "What lives there?"]
    {
        assert!(asked.contains(words), "{words}: {asked}");
    }
    // It stays there during the pause of the first provider.
    let third = ground.hurriedly_ended(&ground.add("What else?").await).await;
    assert_eq!((third.result.as_deref(), third.session_id), (Some("Gulls."), second.session_id));
    assert_eq!(ground.moves().await, ["fallback"]);

    // Tried too early, the first provider fails, and the turn continues at once on the second. Later it returns.
    ground.advance(TimeDelta::seconds(901));
    stage.api.plays([OVERLOADED]);
    let fourth = ground.hurriedly_ended(&ground.add("Is it cold?").await).await;
    assert_eq!(fourth.result.as_deref(), Some("A good answer."));
    ground.advance(TimeDelta::seconds(901));
    let fifth = ground.hurriedly_ended(&ground.add("And the ferry?").await).await;
    assert_eq!(ground.session(&fifth).await.provider, "claude");
    assert_eq!(ground.moves().await, ["fallback", "fallback", "first"]);
    let said = stage.api.last_messages().join("\n");
    for words in
        ["called Vik.", "Seals.", "Gulls.", "A good answer.", "taken over", "And the ferry?"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    // It continues there as usual.
    stage.says("Thanks.").await;
    assert_eq!(stage.began().await.last().unwrap(), "resumed");
    ground.settled().await;
    worker.stop().await;
}

#[tokio::test]
async fn a_turn_does_not_wait_for_a_credential_with_a_long_pause() {
    let fake = FakeOllama::start().await;
    let Some(stage) = stage(&fake).await else { return };
    let ground = &stage.ground;
    let worker = ground.work().await;
    stage.says("One.").await;
    let sql =
        "insert into dalsegno.resting_logins values ('claude', $1, $2, 'its limit is used up')";
    for login in ["main", "spare"] {
        let until = noon() + TimeDelta::hours(5);
        sqlx::query(sql).bind(login).bind(until).execute(&ground.pool).await.unwrap();
    }
    let task = ground.done(&ground.add("Two.").await).await;
    assert_eq!(ground.session(&task).await.provider, "ollama");
    assert_eq!(ground.moves().await, ["fallback"]);
    assert_eq!(stage.api.requests().len(), 1);
    ground.settled().await;
    worker.stop().await;
}
