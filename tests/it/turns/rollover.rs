//! A conversation that reaches its limit continues in a new session, which begins with a summary.

use dalsegno::domain::{compactions, sessions::Reason};

use super::Fixture;
use crate::providers::fake_ollama::{FakeOllama, count_prompt};

const LIMIT: u64 = 6000;
const PART: &str = "The harbour has a mole and a light. ";

async fn chat(fixture: &Fixture, n_turns: usize) {
    for number in 1..=n_turns {
        let prompt = format!("PIN: BERTH-{number:04} stays. {}", PART.repeat(70));
        fixture.done(&fixture.add(&prompt).await).await;
    }
    fixture.settled().await;
}

#[tokio::test]
async fn a_conversation_at_its_limit_continues_below_half_of_it_and_is_not_rebuilt_each_turn() {
    let fake = FakeOllama::start().await;
    let url = format!("http://{}", fake.addr);
    let fixture = Fixture::new(&[("ollama.base_url", &url), ("ollama.num_ctx", "32768")]).await;
    let limit = format!("provider: ollama\nmodel: qwen3:8b\nrotate_at_tokens: {LIMIT}\n");
    let head = "---\nname: writer\ndescription: Writes\n";
    fixture.write_agent("writer", &format!("{head}{limit}---\nYou write.\n"));
    let worker = fixture.start_worker().await;
    chat(&fixture, 16).await;
    worker.stop().await;
    let sessions = fixture.sessions().await;
    assert!((2..=4).contains(&sessions.len()), "{} sessions", sessions.len());
    for session in &sessions[1..] {
        assert_eq!(session.opened_because, Reason::ContextFull);
        let shown = compactions::list(&fixture.pool, session.id).await.unwrap();
        assert_eq!(shown[0].cause, compactions::Cause::Inherited, "{shown:?}");
        // The first call of the successor contains its prompt, too.
        let first = fixture.manifests(session.id).await.remove(0);
        let estimated = u64::try_from(first.estimated_tokens).unwrap();
        assert!(estimated < LIMIT / 2 + 900, "{estimated}");
    }
    let turns = fake.chats();
    let mut turns =
        turns.iter().filter(|chat| chat["messages"][0].to_string().contains("You write."));
    let largest = turns.clone().map(count_prompt).max().unwrap();
    assert!(largest < LIMIT + 900, "{largest}");
    let last = turns.next_back().unwrap().to_string();
    assert!(last.contains("Earlier conversation, summarised") && last.contains("BERTH-0001"));
}

#[tokio::test]
async fn the_limit_applies_to_every_agent_whose_file_does_not_disable_it() {
    let fixture = Fixture::new(&[("sessions.rotate_at_tokens", "4000")]).await;
    let worker = fixture.start_worker().await;
    chat(&fixture, 10).await;
    assert!(fixture.sessions().await.len() > 1);

    let free = super::fixture::WRITER.replace("---\nYou", "rotate_at_tokens: 0\n---\nYou");
    fixture.write_agent("free", &free.replace("name: writer", "name: free"));
    for number in 1..=10 {
        let prompt = format!("Part {number}. {}", PART.repeat(70));
        fixture.done(&fixture.add_for("free", "main", &prompt).await).await;
    }
    let sessions = fixture.sessions().await;
    assert_eq!(sessions.iter().filter(|session| session.agent == "free").count(), 1);
    worker.stop().await;
}
