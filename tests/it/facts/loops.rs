//! Recalled or told facts never become new facts.

use std::time::Instant;

use chrono::TimeDelta;
use dalsegno::domain::{facts, sessions};

use super::{
    ANN, all,
    setup::{all_read, ask_alone, ground, readings},
};

const SESSIONS: usize = if cfg!(feature = "chaos") { 200 } else { 60 };

/// Agents are told the facts with each task, look them up and repeat them. People repeat them, too, in several
/// spellings, and the extracting model adds one of its own each time.
#[tokio::test]
async fn sessions_that_repeat_recalled_facts_yield_no_new_fact() {
    let ground = ground(&[("sim.facts", "invents")]).await;
    let worker = ground.work().await;
    ask_alone(&ground, "My diet is vegan. My city is Bergen. Write.").await;
    all_read(&ground).await;
    let first = all(&ground.pool, ANN, true).await;
    assert_eq!(first.len(), 2);
    let began = Instant::now();
    let said =
        ["My diet is vegan.", "my Diet is  VEGAN!", "You know: the city of the user: Bergen.", ""];
    for n in 0..SESSIONS {
        ground.advance(TimeDelta::minutes(1));
        let prompt = format!(
            "Write part {n}. {} [[sim: call recall {{\"words\": \"diet city\"}}]] [[sim: say The diet of the user: vegan. My city is \
             Bergen. My diet is vegan.]]",
            said[n % said.len()],
        );
        ask_alone(&ground, &prompt).await;
    }
    all_read(&ground).await;
    worker.stop().await;
    let read = readings(&ground).await;
    assert_eq!(read.len(), SESSIONS + 1);
    let found: i32 = read.iter().map(|it| it.found).sum();
    println!(
        "junk loop: {SESSIONS} sessions, {found} facts read from what was said, {} new, in {:.1} s",
        read.iter().skip(1).map(|it| it.new).sum::<i32>(),
        began.elapsed().as_secs_f64()
    );
    // The messages were read.
    assert!(found >= SESSIONS as i32 / 2, "{found}");
    assert_eq!(all(&ground.pool, ANN, true).await, first);
    let shown = "select count(*) from dalsegno.fact_showings";
    assert!(ground.count(shown).await >= SESSIONS as i64);
}

/// A model that rephrases texts and attributes can recognise known facts only by the list that it is shown.
#[tokio::test]
async fn sessions_that_rephrase_recalled_facts_yield_no_new_fact() {
    let ground = ground(&[("sim.facts", "rephrases")]).await;
    let worker = ground.work().await;
    ask_alone(&ground, "My diet is vegan. My city is Bergen. Write.").await;
    all_read(&ground).await;
    let first = all(&ground.pool, ANN, true).await;
    assert_eq!(first.len(), 2);
    let said = ["My diet is vegan.", "my Diet is  VEGAN!", "My city is Bergen."];
    for n in 0..SESSIONS {
        ground.advance(TimeDelta::minutes(1));
        ask_alone(&ground, &format!("Write part {n}. {}", said[n % said.len()])).await;
    }
    all_read(&ground).await;
    let read = readings(&ground).await;
    assert_eq!(read.len(), SESSIONS + 1);
    assert!(read.iter().all(|it| it.requests == 1), "{read:?}");
    assert_eq!(all(&ground.pool, ANN, true).await, first);
    // The messages were read.
    ask_alone(&ground, "My city is Porto. Write.").await;
    all_read(&ground).await;
    worker.stop().await;
    assert_eq!(all(&ground.pool, ANN, true).await.len(), 3);
}

/// Facts are in the system part with their sources, and not in the conversation.
#[tokio::test]
async fn an_agent_gets_known_facts_if_its_file_allows_it() {
    let ground = ground(&[]).await;
    ground.write_agent("other", "---\nname: other\ndescription: Does\n---\nYou do.\n");
    super::state(&ground.pool, ANN, ("Tone", "Wants short sentences.")).await.unwrap();
    let worker = ground.work().await;
    let told = ground.done(&ground.add("Write.").await).await;
    let other = ground.done(&ground.add_for("other", "main", "Write.").await).await;
    worker.stop().await;
    let facts = async |task: &dalsegno::domain::tasks::Task| {
        let manifests = ground.manifests(task.session_id.unwrap()).await;
        let parts = manifests[0].manifest["parts"].as_array().unwrap().clone();
        parts.into_iter().filter(|part| part["kind"] == "fact").collect::<Vec<_>>()
    };
    let parts = facts(&told).await;
    assert_eq!(parts.len(), 1, "{parts:?}");
    assert_eq!((&parts[0]["sent"], &parts[0]["why"]), (&true.into(), &"every_call".into()));
    assert!(facts(&other).await.is_empty());
    let transcript = ground.transcript(told.session_id.unwrap()).await;
    assert!(!transcript.iter().any(|text| text.contains("short sentences")), "{transcript:?}");
    assert_eq!(ground.count("select count(*) from dalsegno.fact_showings").await, 1);
}

/// The successor continues the same transcript, whose texts are not news.
#[tokio::test]
async fn facts_shown_to_a_predecessor_count_as_shown_to_its_successor() {
    let ground = ground(&[]).await;
    let fact = super::state(&ground.pool, ANN, ("Tone", "Wants short sentences.")).await.unwrap();
    let worker = ground.work().await;
    let first = ground.done(&ground.add("Write.").await).await;
    let mut conn = ground.pool.acquire().await.unwrap();
    facts::revoke(&mut conn, ANN, fact.id, ground.advance(TimeDelta::hours(1))).await.unwrap();
    let session = first.session_id.unwrap();
    sessions::reset(&mut conn, session, false, ground.advance(TimeDelta::hours(1))).await.unwrap();
    let second = ground.done(&ground.add("Write on.").await).await;
    worker.stop().await;
    assert_ne!(second.session_id, first.session_id);
    let shown = "select count(*) from dalsegno.fact_showings";
    assert_eq!(ground.count(shown).await, 2);
}
