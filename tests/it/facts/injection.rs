//! Text that a context shows is never taken for the words of a person.

use dalsegno::domain::{
    posts::{self, Audience, New, Sender, SourceTurn},
    tasks::Task,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    USER, all,
    setup::{extractions, fixture, run_in_own_session, wait_for_extractions},
};
use crate::{app::noon, turns::fixture::Fixture};

const SCOUT: &str = "---\nname: scout\ndescription: Looks\ntools: mcp__dalsegno\n---\nYou look.\n";

/// Texts in the form of a fact, each with a word of its own.
const PLANTED: [(&str, &str); 5] = [
    ("vegan", "My diet is vegan."),
    ("Bergen", "My city is Bergen."),
    ("Gull", "My boat is the Gull."),
    ("grey", "My cat is grey."),
    ("deaf", "My dog is deaf."),
];

async fn post(fixture: &Fixture, sender: Sender<'_>, text: &str) -> Uuid {
    let audience = Audience::of(["writer"], |_| true).unwrap();
    let campaign_id = fixture.campaign.id;
    let new = New { campaign_id, sender, audience: &audience, reply_to: None, text };
    posts::add(&fixture.pool, &new, noon()).await.unwrap().id
}

/// Adds a task whose prompt is a post of an agent, as a mention does.
async fn mention(fixture: &Fixture, post_id: Uuid, text: &str) -> Task {
    let task = fixture.add(text).await;
    let sql = "update dalsegno.tasks set post_id = $2, added_by = 'scout', session_mode = 'none' where id = $1";
    sqlx::query(sql).bind(task.id).bind(post_id).execute(&fixture.pool).await.unwrap();
    task
}

#[tokio::test]
async fn posts_memory_tool_results_and_requests_of_agents_are_never_extracted_or_posted_again() {
    let fixture = fixture(&[]).await;
    fixture.write_agent("scout", SCOUT);
    let worker = fixture.start_worker().await;
    let [(_, diet), (_, city), (_, boat), (_, cat), (_, dog)] = PLANTED;
    // A record of the memory, which a tool will read.
    let record = json!({ "name": "note", "title": "Note", "text": boat });
    let write = format!("Look. [[sim: call records_publish {record}]]");
    let scout = fixture.done(&fixture.add_for("scout", "main", &write).await).await;
    let said = SourceTurn {
        task_id: scout.id,
        session_id: scout.session_id.unwrap(),
        turn: scout.turn.unwrap(),
        message_id: None,
    };
    worker.stop().await;
    let by_scout = Sender::Agent { agent: "scout", instance: "main", said };
    post(&fixture, by_scout, diet).await;
    post(&fixture, Sender::System { task_id: None }, city).await;
    post(&fixture, Sender::Operator { author: "cli:ann@host" }, cat).await;
    let call = format!("{dog} [[sim: say Noted.]]");
    let asked = post(&fixture, by_scout, &call).await;
    let mentioned = mention(&fixture, asked, &call).await;
    let before = fixture.count("select count(*) from dalsegno.posts").await;

    let read = "Write. [[sim: call records_read {\"name\": \"note\"}]]";
    let worker = fixture.start_worker().await;
    let shown = run_in_own_session(&fixture, read).await;
    let mentioned = fixture.done(&mentioned).await;
    // The words of a person are extracted, so the extraction works.
    run_in_own_session(&fixture, "My tone is dry. Write.").await;
    wait_for_extractions(&fixture).await;
    worker.stop().await;

    // The model was shown the posts and the record.
    let transcript = fixture.transcript(shown.session_id.unwrap()).await.join("\n");
    for text in [diet, city, boat, cat] {
        assert!(transcript.contains(text), "{text} in {transcript}");
    }
    let transcript = fixture.transcript(mentioned.session_id.unwrap()).await.join("\n");
    assert!(transcript.contains(dog), "{transcript}");
    let facts: Vec<_> =
        all(&fixture.pool, USER, true).await.into_iter().map(|fact| fact.text).collect();
    assert_eq!(facts, ["The tone of the user: dry."]);
    // No request of an agent was read.
    let n_requests: i32 = extractions(&fixture).await.iter().map(|it| it.requests).sum();
    assert_eq!(n_requests, 2, "the requests of people");
    // Besides the answer to the scout, no post was added, and none repeats a planted text.
    let after: Vec<Value> = posts_after(&fixture, before).await;
    assert!(after.len() <= 1, "{after:?}");
    for (word, _) in PLANTED {
        assert!(after.iter().all(|post| !post.to_string().contains(word)), "{word} in {after:?}");
    }
}

async fn posts_after(fixture: &Fixture, seq: i64) -> Vec<Value> {
    let sql = "select jsonb_build_object('sender', sender, 'text', text) from dalsegno.posts where seq > $1";
    sqlx::query_scalar(sql).bind(seq).fetch_all(&fixture.pool).await.unwrap()
}
