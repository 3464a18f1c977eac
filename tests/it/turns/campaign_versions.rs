//! Edited briefs and client contexts in the contexts of calls.

use dalsegno::{
    domain::{
        campaigns::{self, Edit},
        tasks::Task,
    },
    operations::ContextDiff,
};
use serde_json::Value;

use super::{Fixture, claude::Setup, contexts};
use crate::{app::noon, board::setup::BoardSetup};

async fn edit(fixture: &Fixture, change: Edit<'_>) {
    let mut tx = fixture.pool.begin().await.unwrap();
    let id = fixture.campaign.id;
    campaigns::edit(&mut tx, id, &change, "cli:ann@host", noon()).await.unwrap();
    tx.commit().await.unwrap();
}

/// Returns the names of the versions in the manifest of a task's turn: of the brief, and of the client context.
async fn recorded_versions(fixture: &Fixture, task: &Task) -> [String; 2] {
    let manifests = fixture.manifests(task.session_id.unwrap()).await;
    let manifest = manifests.into_iter().rfind(|it| Some(it.turn) == task.turn).unwrap().manifest;
    let parts = manifest["parts"].as_array().unwrap().clone();
    ["campaign_brief", "client_context"].map(|kind| {
        let part = parts.iter().find(|part| part["kind"] == kind).unwrap();
        part["id"].as_str().unwrap().to_owned()
    })
}

#[tokio::test]
async fn an_edited_brief_applies_from_the_next_call_and_rebuilds_no_session() {
    let board_setup = BoardSetup::new(&["ann"], "").await;
    let fixture = &board_setup.fixture;
    let worker = fixture.start_worker().await;
    let turn = async |words: &str| fixture.done(&board_setup.ask("ann", words, None).await).await;
    let first = turn("Begin.").await;
    edit(fixture, Edit { brief: Some("Nine parts <now>."), ..Edit::default() }).await;
    let second = turn("Go on.").await;
    edit(fixture, Edit { client_context: Some(Some("Long words.")), ..Edit::default() }).await;
    let third = turn("The end.").await;
    worker.stop().await;
    assert_eq!([second.session_id, third.session_id], [first.session_id; 2]);
    let chats = board_setup.fake.chats();
    let system = |chat: &Value| chat["messages"][0]["content"].as_str().unwrap().to_owned();
    assert!(system(&chats[0]).contains("<brief>Ten parts about a harbour.</brief>"));
    assert!(system(&chats[1]).contains("<brief>Nine parts &lt;now&gt;.</brief>"));
    assert!(system(&chats[1]).contains("<client_context>Short sentences.</client_context>"));
    assert!(system(&chats[2]).contains("<client_context>Long words.</client_context>"));
    for (task, version) in [(&first, "version 1"), (&second, "version 2"), (&third, "version 3")] {
        assert_eq!(recorded_versions(fixture, task).await, [version; 2]);
    }
    contexts::assert_exact(&fixture.pool).await;
    let diff = diff(fixture, &first, &second).await;
    let changed: Vec<_> = diff.parts.iter().filter(|part| part.kind == "campaign_brief").collect();
    let [changed] = &changed[..] else { panic!("{diff:?}") };
    assert!(changed.words.iter().any(|word| word.text.contains("Nine")), "{changed:?}");
    assert!(diff.parts.iter().all(|part| part.kind != "client_context"), "{diff:?}");
}

async fn diff(fixture: &Fixture, from: &Task, to: &Task) -> ContextDiff {
    let (id, numbers) =
        (from.session_id.unwrap().to_string(), [from, to].map(|it| it.turn.unwrap()));
    let [from, to] = numbers.map(|number| number.to_string());
    let output = fixture.run_command(&["context", "diff", &id, &from, &to, "--json"]).await;
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn a_claude_conversation_continues_with_the_edited_client_context() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    let worker = fixture.start_worker().await;
    let first = setup.run_prompt("One.").await;
    edit(fixture, Edit { client_context: Some(Some("Loves tides.")), ..Edit::default() }).await;
    let second = setup.run_prompt("Two.").await;
    worker.stop().await;
    assert_eq!(first.session_id, second.session_id);
    assert_eq!(setup.session_starts().await, ["new", "resumed"]);
    let requests = setup.api.requests();
    let system_of = |words: &str| {
        let asked = requests.iter().rfind(|it| it["messages"].to_string().contains(words));
        asked.unwrap()["system"].to_string()
    };
    assert!(system_of("Two.").contains("Loves tides."));
    assert!(!system_of("Two.").contains("Short sentences."));
    assert_eq!(recorded_versions(fixture, &second).await, ["version 2"; 2]);
}
