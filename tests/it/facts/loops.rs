//! Recalled or told facts never become new facts.

use std::time::Instant;

use chrono::TimeDelta;
use dalsegno::domain::{facts, sessions};

use super::{
    USER, all,
    setup::{extractions, fixture, run_in_own_session, wait_for_extractions},
};

const SESSIONS: usize = if cfg!(feature = "chaos") { 200 } else { 60 };

/// Agents are told the facts with each task, look them up and repeat them. People repeat them, too, in several
/// spellings, and the extracting model adds one of its own each time.
#[tokio::test]
async fn sessions_that_repeat_recalled_facts_yield_no_new_fact() {
    let fixture = fixture(&[("sim.facts", "invents")]).await;
    let worker = fixture.start_worker().await;
    run_in_own_session(&fixture, "My diet is vegan. My city is Bergen. Write.").await;
    wait_for_extractions(&fixture).await;
    let first = all(&fixture.pool, USER, true).await;
    assert_eq!(first.len(), 2);
    let began = Instant::now();
    let said =
        ["My diet is vegan.", "my Diet is  VEGAN!", "You know: the city of the user: Bergen.", ""];
    for n in 0..SESSIONS {
        fixture.advance(TimeDelta::minutes(1));
        let prompt = format!(
            "Write part {n}. {} [[sim: call recall {{\"words\": \"diet city\"}}]] [[sim: say The diet of the user: vegan. My city is \
             Bergen. My diet is vegan.]]",
            said[n % said.len()],
        );
        run_in_own_session(&fixture, &prompt).await;
    }
    wait_for_extractions(&fixture).await;
    worker.stop().await;
    let read = extractions(&fixture).await;
    assert_eq!(read.len(), SESSIONS + 1);
    let found: i32 = read.iter().map(|it| it.found).sum();
    println!(
        "junk loop: {SESSIONS} sessions, {found} facts read from what was said, {} new, in {:.1} s",
        read.iter().skip(1).map(|it| it.new).sum::<i32>(),
        began.elapsed().as_secs_f64()
    );
    // The messages were read.
    assert!(found >= SESSIONS as i32 / 2, "{found}");
    assert_eq!(all(&fixture.pool, USER, true).await, first);
    let shown = "select count(*) from dalsegno.fact_showings";
    assert!(fixture.count(shown).await >= SESSIONS as i64);
}

/// A model that rephrases texts and attributes can recognise known facts only by the list that it is shown.
#[tokio::test]
async fn sessions_that_rephrase_recalled_facts_yield_no_new_fact() {
    let fixture = fixture(&[("sim.facts", "rephrases")]).await;
    let worker = fixture.start_worker().await;
    run_in_own_session(&fixture, "My diet is vegan. My city is Bergen. Write.").await;
    wait_for_extractions(&fixture).await;
    let first = all(&fixture.pool, USER, true).await;
    assert_eq!(first.len(), 2);
    let said = ["My diet is vegan.", "my Diet is  VEGAN!", "My city is Bergen."];
    for n in 0..SESSIONS {
        fixture.advance(TimeDelta::minutes(1));
        run_in_own_session(&fixture, &format!("Write part {n}. {}", said[n % said.len()])).await;
    }
    wait_for_extractions(&fixture).await;
    let read = extractions(&fixture).await;
    assert_eq!(read.len(), SESSIONS + 1);
    assert!(read.iter().all(|it| it.requests == 1), "{read:?}");
    assert_eq!(all(&fixture.pool, USER, true).await, first);
    // The messages were read.
    run_in_own_session(&fixture, "My city is Porto. Write.").await;
    wait_for_extractions(&fixture).await;
    worker.stop().await;
    assert_eq!(all(&fixture.pool, USER, true).await.len(), 3);
}

/// Facts are in the system part with their sources, and not in the conversation.
#[tokio::test]
async fn an_agent_gets_known_facts_if_its_file_allows_it() {
    let fixture = fixture(&[]).await;
    fixture.write_agent("other", "---\nname: other\ndescription: Does\n---\nYou do.\n");
    super::state(&fixture.pool, USER, ("Tone", "Wants short sentences.")).await.unwrap();
    let worker = fixture.start_worker().await;
    let told = fixture.done(&fixture.add("Write.").await).await;
    let other = fixture.done(&fixture.add_for("other", "main", "Write.").await).await;
    worker.stop().await;
    let facts = async |task: &dalsegno::domain::tasks::Task| {
        let manifests = fixture.manifests(task.session_id.unwrap()).await;
        let parts = manifests[0].manifest["parts"].as_array().unwrap().clone();
        parts.into_iter().filter(|part| part["kind"] == "fact").collect::<Vec<_>>()
    };
    let parts = facts(&told).await;
    assert_eq!(parts.len(), 1, "{parts:?}");
    assert_eq!((&parts[0]["sent"], &parts[0]["why"]), (&true.into(), &"every_call".into()));
    assert!(facts(&other).await.is_empty());
    let transcript = fixture.transcript(told.session_id.unwrap()).await;
    assert!(!transcript.iter().any(|text| text.contains("short sentences")), "{transcript:?}");
    assert_eq!(fixture.count("select count(*) from dalsegno.fact_showings").await, 1);
}

/// The successor continues the same transcript, whose texts are not news.
#[tokio::test]
async fn facts_shown_to_a_predecessor_count_as_shown_to_its_successor() {
    let fixture = fixture(&[]).await;
    let fact = super::state(&fixture.pool, USER, ("Tone", "Wants short sentences.")).await.unwrap();
    let worker = fixture.start_worker().await;
    let first = fixture.done(&fixture.add("Write.").await).await;
    let mut conn = fixture.pool.acquire().await.unwrap();
    facts::revoke(&mut conn, USER, fact.id, fixture.advance(TimeDelta::hours(1))).await.unwrap();
    let session = first.session_id.unwrap();
    sessions::reset(&mut conn, session, false, fixture.advance(TimeDelta::hours(1))).await.unwrap();
    let second = fixture.done(&fixture.add("Write on.").await).await;
    worker.stop().await;
    assert_ne!(second.session_id, first.session_id);
    let shown = "select count(*) from dalsegno.fact_showings";
    assert_eq!(fixture.count(shown).await, 2);
}
