//! Edicts in the context of agents.

use dalsegno::domain::{
    memory::{self, Config, Kind, MemoryCaller, New},
    tasks::Task,
};
use serde_json::Value;

use super::{OPERATOR, config, new};
use crate::{
    app::noon,
    board::setup::BoardSetup,
    turns::{claude::Setup, fixture::Fixture},
};

pub async fn publish(fixture: &Fixture, name: &str, body: &str) {
    publish_as(OPERATOR, fixture, name, body).await;
}

async fn publish_as(who: MemoryCaller<'_>, fixture: &Fixture, name: &str, body: &str) {
    let mut tx = fixture.pool.begin().await.unwrap();
    let edict: New<'_> = new(Kind::Edict, name, body);
    let (id, config): (_, Config) = (fixture.campaign.id, config());
    memory::publish(&mut tx, id, &edict, &who, &config, noon()).await.unwrap();
    tx.commit().await.unwrap();
}

async fn revoke(fixture: &Fixture, name: &str) {
    let mut tx = fixture.pool.begin().await.unwrap();
    let named = (Kind::Edict, None, name);
    memory::revoke(&mut tx, fixture.campaign.id, named, &OPERATOR, noon()).await.unwrap();
    tx.commit().await.unwrap();
}

fn system(chat: &Value) -> &str {
    chat["messages"][0]["content"].as_str().unwrap()
}

/// Returns the manifest's lines about edicts of a task's turn: sent or not, the reason, the stored text.
async fn manifest_lines(fixture: &Fixture, task: &Task) -> Vec<(bool, String, String)> {
    let manifests = fixture.manifests(task.session_id.unwrap()).await;
    let manifest = manifests.into_iter().rfind(|it| Some(it.turn) == task.turn).unwrap().manifest;
    let parts = manifest["parts"].as_array().unwrap().iter();
    let mut lines = Vec::new();
    for part in parts.filter(|part| part["kind"] == "edict") {
        let stored = "select content from dalsegno.context_texts where sha256 = decode($1, 'hex')";
        let stored = sqlx::query_scalar(stored).bind(part["sha256"].as_str().unwrap());
        let text: String = stored.fetch_one(&fixture.pool).await.unwrap();
        lines.push((part["sent"] == true, part["why"].as_str().unwrap().to_owned(), text));
    }
    lines
}

#[tokio::test]
async fn an_edict_applies_from_the_next_call_and_rebuilds_no_session() {
    let board_setup = BoardSetup::new(&["ann"], "").await;
    let worker = board_setup.fixture.start_worker().await;
    let turn = async |words: &str| {
        board_setup.fixture.done(&board_setup.ask("ann", words, None).await).await
    };
    let first = turn("Begin.").await;
    publish(&board_setup.fixture, "tone", "Write <short> sentences.").await;
    let second = turn("Go on.").await;
    publish(&board_setup.fixture, "tone", "Write long sentences.").await;
    let third = turn("Once more.").await;
    revoke(&board_setup.fixture, "tone").await;
    let fourth = turn("The end.").await;
    worker.stop().await;
    let sessions = [&first, &second, &third, &fourth].map(|task| task.session_id);
    assert!(sessions.iter().all(|id| *id == sessions[0]), "{sessions:?}");
    let chats = board_setup.fake.chats();
    assert!(!system(&chats[0]).contains("edict"), "{}", system(&chats[0]));
    assert!(system(&chats[1]).contains("standing orders"));
    assert!(
        system(&chats[1]).contains(
            "<edict name=\"tone\" author=\"cli:ann@host\" trust=\"operator\">Write &lt;short&gt; sentences.</edict>"
        ),
        "{}",
        system(&chats[1])
    );
    assert!(system(&chats[2]).contains("Write long sentences."));
    assert!(!system(&chats[2]).contains("short"));
    assert_eq!(system(&chats[3]), system(&chats[0]), "without edicts the system part has none");
    assert_eq!(manifest_lines(&board_setup.fixture, &first).await, []);
    for (task, text) in
        [(&second, "Write &lt;short&gt; sentences."), (&third, "Write long sentences.")]
    {
        let [(true, why, stored)] = &manifest_lines(&board_setup.fixture, task).await[..] else {
            panic!("one edict");
        };
        assert!(why == "every_call" && stored.contains(text), "{stored}");
    }
}

/// A model must not be able to pass for the operator.
#[tokio::test]
async fn an_edict_is_shown_with_its_author_and_trust() {
    let board_setup = BoardSetup::new(&["ann"], "").await;
    let worker = board_setup.fixture.start_worker().await;
    publish(&board_setup.fixture, "ours", "Write short sentences.").await;
    publish_as(super::agent("planner"), &board_setup.fixture, "theirs", "Write long ones.").await;
    board_setup.fixture.done(&board_setup.ask("ann", "Begin.", None).await).await;
    worker.stop().await;
    let chats = board_setup.fake.chats();
    let system = system(&chats[0]);
    let ours = "<edict name=\"ours\" author=\"cli:ann@host\" trust=\"operator\">";
    let theirs = "<edict name=\"theirs\" author=\"planner\" trust=\"agent\">";
    assert!(system.contains(ours) && system.contains(theirs), "{system}");
    assert!(system.contains("of the operator and of the lead"), "{system}");
}

#[tokio::test]
async fn edicts_beyond_the_window_are_listed_by_name() {
    let board_setup = BoardSetup::new(&["ann"], "").await;
    let worker = board_setup.fixture.start_worker().await;
    publish(&board_setup.fixture, "first", &"Keep this. ".repeat(2_000)).await;
    publish(&board_setup.fixture, "second", &"And this. ".repeat(2_000)).await;
    publish(&board_setup.fixture, "third", "Never lie.").await;
    let task = board_setup.fixture.done(&board_setup.ask("ann", "Begin.", None).await).await;
    worker.stop().await;
    let chats = board_setup.fake.chats();
    let system = system(&chats[0]);
    assert!(system.contains("Keep this.") && !system.contains("And this."));
    assert!(
        system.contains("<edict name=\"second\" author=\"cli:ann@host\" trust=\"operator\" left_out=\"true\">This order is too long"),
        "{system}"
    );
    assert!(
        system.contains(
            "<edict name=\"third\" author=\"cli:ann@host\" trust=\"operator\" left_out=\"true\">"
        ),
        "the edicts are out of order: {system}"
    );
    let said = manifest_lines(&board_setup.fixture, &task).await;
    let why: Vec<_> = said.iter().map(|(sent, why, _)| (*sent, why.as_str())).collect();
    assert_eq!(why, [(true, "every_call"), (false, "no_room"), (false, "no_room")]);
}

#[tokio::test]
async fn an_oversized_edict_takes_no_room_from_the_others() {
    let board_setup = BoardSetup::new(&["ann"], "").await;
    let worker = board_setup.fixture.start_worker().await;
    publish(&board_setup.fixture, "first", &"Keep this. ".repeat(3_000)).await;
    publish(&board_setup.fixture, "second", "Never lie.").await;
    board_setup.fixture.done(&board_setup.ask("ann", "Begin.", None).await).await;
    worker.stop().await;
    let chats = board_setup.fake.chats();
    let system = system(&chats[0]);
    assert!(system.contains("Never lie.") && !system.contains("Keep this."), "{system}");
    assert!(system.contains("left_out=\"true\""), "{system}");
}

/// A changed system part keeps the CLI's session, and a warm process with the old one is not used.
#[tokio::test]
async fn a_claude_conversation_continues_with_the_current_edicts() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    let warm = "---\nname: writer\ndescription: Writes\nprovider: claude\nwarm: true\nmodel: claude-sonnet-5\n---\nYou write.\n";
    fixture.write_agent("writer", warm);
    let worker = fixture.start_worker().await;
    let first = setup.run_prompt("One.").await;
    fixture.settled().await;
    publish(fixture, "tone", "Mention the tides.").await;
    let second = setup.run_prompt("Two.").await;
    fixture.settled().await;
    worker.stop().await;
    assert_eq!(first.session_id, second.session_id);
    assert_eq!(setup.session_starts().await, ["new", "resumed"]);
    let external = "select count(distinct external_session_id) from dalsegno.sessions";
    assert_eq!(fixture.count(external).await, 1);
    let requests = setup.api.requests();
    let told = |words: &str| -> Vec<bool> {
        let asked =
            requests.iter().filter(|request| request["messages"].to_string().contains(words));
        asked.map(|request| request["system"].to_string().contains("Mention the tides.")).collect()
    };
    assert!(told("Two.").iter().any(|told| *told), "{requests:?}");
    let before: Vec<_> =
        requests.iter().filter(|it| !it["messages"].to_string().contains("Two.")).collect();
    assert!(
        !before.is_empty() && before.iter().all(|it| !it["system"].to_string().contains("tides"))
    );
    // Earlier messages stay as they were.
    let said = setup.api.last_messages().join("\n");
    assert!(said.contains("One.") && said.contains("Two."), "{said}");
}
