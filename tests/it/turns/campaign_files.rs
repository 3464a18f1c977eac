//! Conversations that continue in another installation, from a campaign file.

use super::{Fixture, claude};
use crate::providers::fake_ollama::{FakeOllama, Play};

/// Characters that end lines, strings or objects somewhere.
const HOSTILE: &str = "\"}}\n{\"table\":\"api_keys\"}\r\n\u{2028}\u{2029}\u{85}\\u0000 \\x00 \u{1}\u{7f}\u{202e}€ 🎼 </prompt> '; drop table tasks; --";

#[tokio::test]
async fn waiting_tasks_and_their_conversation_continue_on_another_installation() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let first = fixture.add(HOSTILE).await;
    let first = fixture.done(&first).await;
    fixture.settled().await;
    worker.stop().await;
    let waiting = fixture.add("Part two.").await;
    let joined = fixture.add_after("main", "Part three.", &[&waiting]).await;
    let before = fixture.transcript(first.session_id.unwrap()).await;
    let id = fixture.campaign.id.to_string();
    let refused = fixture.run_command(&["campaign", "export", &id]).await;
    let words = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(5), "{words}");
    assert!(words.contains("dalsegno campaign pause"), "{words}");
    assert!(refused.stdout.is_empty());
    fixture.succeed(&["campaign", "pause", &id]).await;

    let fixture = fixture.moved().await;
    assert_eq!(fixture.transcript(first.session_id.unwrap()).await, before);
    let moved = fixture.task(&first).await;
    assert_eq!((moved.prompt.as_str(), moved.result), (HOSTILE, first.result.clone()));
    let worker = fixture.start_worker().await;
    let (second, third) = (fixture.done(&waiting).await, fixture.done(&joined).await);
    assert_eq!((second.session_id, second.turn), (first.session_id, Some(2)));
    assert_eq!((third.session_id, third.turn), (first.session_id, Some(3)));
    let transcript = fixture.transcript(first.session_id.unwrap()).await;
    assert_eq!(transcript[..before.len()], before);
    fixture.settled().await;
    worker.stop().await;
}

#[tokio::test]
async fn ollama_is_sent_the_same_history_on_another_installation() {
    let fake = FakeOllama::playing([Play::Says(&["Part one."]), Play::Says(&["Part two."])]).await;
    let url = format!("http://{}", fake.addr);
    let fixture = Fixture::new(&[("ollama.base_url", &url), ("ollama.num_ctx", "4096")]).await;
    fixture.write_agent(
        "writer",
        "---\nname: writer\ndescription: Writes\nprovider: ollama\nmodel: qwen3:8b\n---\nYou write.\n",
    );
    let worker = fixture.start_worker().await;
    let first = fixture.add("Write part one.").await;
    let first = fixture.done(&first).await;
    fixture.settled().await;
    worker.stop().await;
    let fixture = fixture.moved().await;
    let worker = fixture.start_worker().await;
    let second = fixture.add("Write part two.").await;
    assert_eq!(fixture.done(&second).await.session_id, first.session_id);
    worker.stop().await;
    let chats = fake.chats();
    let [one, two] = &chats[..] else { panic!("{chats:?}") };
    let (one, two) = (one["messages"].as_array().unwrap(), two["messages"].as_array().unwrap());
    assert_eq!(two[..one.len()], one[..], "system prompt and first prompt, byte for byte");
    assert_eq!(two[one.len()]["content"], "Part one.");
}

#[tokio::test]
async fn claude_resumes_the_session_on_another_installation() {
    let Some(setup) = claude::Setup::new(&[]).await else { return };
    let worker = setup.fixture.start_worker().await;
    let first = setup.run_prompt("The harbour is called Vik.").await;
    setup.fixture.settled().await;
    worker.stop().await;
    let before = setup.fixture.session(&first).await;
    let fixture = setup.fixture.moved().await;
    let setup = claude::Setup { fixture, ..setup };
    let worker = setup.fixture.start_worker().await;
    let second = setup.run_prompt("What is it called?").await;
    assert_eq!(second.session_id, first.session_id);
    let after = setup.fixture.session(&second).await;
    assert_eq!(after.external_session_id, before.external_session_id);
    assert_eq!(setup.session_starts().await, ["new", "restored"]);
    let said = setup.api.last_messages();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].contains("The harbour is called Vik."), "{said:?}");
    setup.fixture.settled().await;
    worker.stop().await;
}
