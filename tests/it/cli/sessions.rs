//! `dalsegno session`.

use dalsegno::{
    domain::compactions::{self, AcceptedSummary, Cause},
    domain::sessions,
    transcript::{Message, Role, ToolCall},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Fixture, text};
use crate::{
    app::noon,
    conversations::world::{TurnSettings, call, done, measured},
};

/// Sets up one session with two turns.
async fn session_with_turns() -> (Fixture, String) {
    let fixture = Fixture::new().await;
    fixture.world.turn("Part one.", TurnSettings::default()).await;
    let resolved = fixture.world.turn("Part two.", TurnSettings::default()).await;
    (fixture, resolved.session.id.to_string())
}

/// Stores a summary of the first two messages, and applies it.
pub async fn compact(pool: &sqlx::PgPool, session_id: Uuid) {
    let mut tx = pool.begin().await.unwrap();
    let generation = sessions::next_generation(&mut *tx, session_id).await.unwrap();
    let pins = json!([]);
    let new = compactions::New {
        session_id,
        generation,
        parent: 0,
        from_seq: 1,
        to_seq: 2,
        cause: Cause::Manual,
        turn: 2,
        model: Some("sim-1"),
        tokens_before: 100,
        refusals: &json!([]),
        node: None,
        accepted: Some(AcceptedSummary {
            summary: "The first part is written.",
            pins: &pins,
            rung: "first",
            tokens_after: 10,
            flow: None,
            prompts: None,
        }),
    };
    compactions::insert(&mut *tx, &new, noon()).await.unwrap();
    compactions::apply(&mut tx, session_id, generation, noon()).await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn an_explanation_names_the_state_the_reason_and_the_next_step() {
    let (fixture, id) = session_with_turns().await;
    let explain = async || fixture.json(&["session", "explain", &id]).await;
    let told = explain().await;
    assert_eq!(told["state"], "idle");
    assert!(text(&told["because"]).ends_with("when its turn 2 ended."), "{told}");
    assert!(
        text(&told["next"]).contains("The next task of copywriter/main continues it."),
        "{told}"
    );
    let task = fixture.world.add("Part three.").await;
    let because = text(&explain().await["because"]).to_owned();
    assert!(because.contains(&format!("Task {} waits for it: ", task.id)), "{because}");
    let pause = ["campaign", "pause", &fixture.campaign(), "--reason", "client call"];
    assert_eq!(fixture.run(&pause).await.code, 0);
    let told = explain().await;
    assert!(text(&told["because"]).contains("is paused: client call."), "{told}");
    assert!(text(&told["next"]).starts_with("Resume the campaign: "), "{told}");
    let output = fixture.run(&["session", "explain", &id]).await;
    assert!(output.stdout.starts_with(&format!("Session {id} is idle.\n")), "{output:?}");
    fixture.world.begin(&task, fixture.world.lease(), TurnSettings::default()).await;
    let told = explain().await;
    assert_eq!(told["state"], "running");
    let running = format!("It is in turn 3, for task {}.", task.id);
    assert!(text(&told["because"]).starts_with(&running), "{told}");
}

#[tokio::test]
async fn a_session_is_listed_and_shown_with_its_transcript() {
    let (fixture, id) = session_with_turns().await;
    let listed =
        fixture.json(&["session", "ls", "--open", "--campaign", &fixture.campaign()]).await;
    assert_eq!((listed.as_array().unwrap().len(), text(&listed[0]["id"])), (1, id.as_str()));
    assert_eq!(fixture.json(&["session", "ls", "--agent", "planner"]).await, json!([]));
    let shown = fixture.json(&["session", "show", &id]).await;
    assert_eq!((&shown["turns"], &shown["token_count"]), (&json!(2), &json!(80)));
    assert_eq!((&shown["last_turns"][0]["number"], &shown["compactions"]), (&json!(2), &json!([])));

    let transcript = fixture.json(&["session", "transcript", &id]).await;
    let output: Vec<_> =
        transcript.as_array().unwrap().iter().map(|m| (&m["role"], &m["text"])).collect();
    assert_eq!(output[2], (&json!("user"), &json!("Part two.")));
    assert_eq!(output[3], (&json!("assistant"), &json!("Answer to: Part two.")));
    let rest = fixture.json(&["session", "transcript", &id, "--after", "3"]).await;
    assert_eq!(rest.as_array().unwrap().len(), 1);
    let words = fixture.run(&["session", "transcript", &id]).await;
    assert!(words.has("#1  turn 1  2026-11-20 12:00:00  user\nPart one."), "{words:?}");
}

#[tokio::test]
async fn tool_calls_and_interrupted_answers_are_shown() {
    let fixture = Fixture::new().await;
    let task = fixture.world.add("Look it up.").await;
    let (_, begun) =
        fixture.world.begin(&task, fixture.world.lease(), TurnSettings::default()).await;
    let call_of = ToolCall {
        id: "c1".into(),
        name: "search".into(),
        arguments: json!({ "q": "pier" }),
        thinking: None,
    };
    let message = |role, text: &str, calls: Vec<ToolCall>| Message {
        role,
        text: text.to_owned(),
        tool_call_id: (role == Role::Tool).then(|| "c1".to_owned()),
        tool_name: (role == Role::Tool).then(|| "search".to_owned()),
        media: Vec::new(),
        tool_calls: calls,
    };
    let mut last = measured(Uuid::new_v4(), message(Role::Assistant, "The pier is", Vec::new()));
    last.partial = true;
    let messages = [
        measured(Uuid::new_v4(), message(Role::Assistant, "", vec![call_of])),
        measured(Uuid::new_v4(), message(Role::Tool, "Built in 1880.", Vec::new())),
        last,
    ];
    let calls = [call(&begun, None)];
    let ending = dalsegno::domain::turn_phases::TurnEnd {
        turn: &begun,
        calls: &calls,
        messages: &messages,
        record: Default::default(),
        now: noon(),
    };
    let mut tx = fixture.world.pool.begin().await.unwrap();
    dalsegno::domain::turn_phases::commit(&mut tx, &ending, &done("x", TurnSettings::default()))
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let output = fixture.run(&["session", "transcript", &begun.session_id.to_string()]).await;
    assert!(output.has(r#"calls search {"q":"pier"}"#), "{output:?}");
    assert!(output.has("tool search\nBuilt in 1880."), "{output:?}");
    assert!(output.has("assistant, broke off\nThe pier is"), "{output:?}");
}

#[tokio::test]
async fn the_view_is_the_summary_and_the_later_messages() {
    let (fixture, id) = session_with_turns().await;
    compact(&fixture.world.pool, id.parse().unwrap()).await;
    let roles = async || {
        let view = fixture.json(&["session", "transcript", &id, "--view"]).await;
        let role = |message: &Value| text(&message["role"]).to_owned();
        view.as_array().unwrap().iter().map(role).collect::<Vec<_>>()
    };
    assert_eq!(roles().await, ["system", "user", "assistant"]);
    let words = fixture.run(&["session", "transcript", &id, "--view"]).await;
    assert!(words.has("system\nThe first part is written."), "{words:?}");
    let shown = fixture.run(&["session", "show", &id]).await;
    assert!(shown.has("1*") && shown.has("1 to 2"), "{shown:?}");

    let archives = fixture.json(&["session", "archives", &id]).await;
    assert_eq!((&archives[0]["number"], &archives[0]["trigger"]), (&json!(1), &json!("manual")));
    let archive = fixture.json(&["session", "archives", &id, "1"]).await;
    assert_eq!(archive["messages"].as_array().unwrap().len(), 2);
    let words = fixture.run(&["session", "archives", &id, "1"]).await;
    assert!(words.has("Part one.") && words.has("The first part is written."), "{words:?}");
    let none = fixture.run(&["session", "archives", &id, "2"]).await;
    assert!(none.code != 0 && none.has("has no archive 2"), "{none:?}");

    let compared = fixture.run(&["session", "compaction", &id]).await;
    for part in
        ["the session uses it", &format!("dalsegno session uncompact {id}"), "#1", "summary"]
    {
        assert!(compared.has(part), "{part}: {compared:?}");
    }
    assert!(compared.stdout.lines().all(|line| line.chars().count() <= 80), "{compared:?}");
    assert_eq!(fixture.json(&["session", "uncompact", &id]).await["generation"], 0);
    let compared = fixture.run(&["session", "compaction", &id, "1"]).await;
    assert!(compared.has("undone 2026-") && !compared.has("uncompact"), "{compared:?}");
    assert_eq!(roles().await, ["user", "assistant", "user", "assistant"]);
    let again = fixture.run(&["session", "uncompact", &id]).await;
    assert_eq!((again.code, again.has("no compaction to undo")), (5, true), "{again:?}");
}

#[tokio::test]
async fn a_reset_session_has_a_successor_after_the_next_task() {
    let (fixture, id) = session_with_turns().await;
    assert_eq!(fixture.json(&["session", "reset", &id]).await["rebuild_because"], "reset");
    let task = fixture.world.add("Part three.").await;
    let explained = fixture.json(&["task", "explain", &task.id.to_string()]).await;
    assert!(text(&explained["because"]).contains(" (reset)."), "{explained}");
    let next = fixture.json(&["session", "reset", &id, "--fresh"]).await;
    assert_eq!(next["rebuild_because"], "fresh");
    let (resolved, _) =
        fixture.world.begin(&task, fixture.world.lease(), TurnSettings::default()).await;
    assert_ne!(resolved.session.id.to_string(), id);
    let output = fixture.run(&["session", "reset", &id]).await;
    assert_eq!((output.code, output.has("is closed")), (5, true), "{output:?}");
    let output = fixture.run(&["session", "uncompact", &id]).await;
    assert_eq!((output.code, output.has("is closed")), (5, true), "{output:?}");
}

#[tokio::test]
async fn the_turns_of_a_successor_are_listed_with_the_session_before() {
    let (fixture, id) = session_with_turns().await;
    fixture.json(&["session", "reset", &id]).await;
    let successor = fixture.world.turn("Part three.", TurnSettings::default()).await.session.id;
    let successor = successor.to_string();
    let turns = fixture.run(&["turn", "ls", &successor]).await;
    assert!(turns.stderr.contains(&format!("`dalsegno turn ls {id}`")), "{turns:?}");
    let turns = fixture.run(&["turn", "ls", &successor, "--json"]).await;
    assert!(turns.code == 0 && !turns.has("the session before"), "{turns:?}");
    let turns = fixture.run(&["turn", "ls", &id]).await;
    assert!(turns.code == 0 && !turns.has("the session before"), "{turns:?}");
    fixture.json(&["session", "reset", &successor, "--fresh"]).await;
    let fresh = fixture.world.turn("Part four.", TurnSettings::default()).await.session.id;
    let turns = fixture.run(&["turn", "ls", &fresh.to_string()]).await;
    assert!(turns.code == 0 && !turns.has("the session before"), "{turns:?}");
}

#[tokio::test]
async fn interrupting_cancels_the_running_task() {
    let (fixture, id) = session_with_turns().await;
    let idle = fixture.run(&["session", "interrupt", &id]).await;
    assert_eq!((idle.code, idle.has("has no running turn")), (5, true), "{idle:?}");
    let task = fixture.world.add("Part three.").await;
    fixture.world.begin(&task, fixture.world.lease(), TurnSettings::default()).await;
    let stopped = fixture.json(&["session", "interrupt", &id, "--reason", "wrong direction"]).await;
    assert_eq!(text(&stopped["task_id"]), task.id.to_string());
    // No worker runs the job, so the task is cancelled at once.
    assert_eq!(stopped["cancel"], "at_once");
    assert_eq!(fixture.json(&["task", "show", &task.id.to_string()]).await["state"], "cancelled");
}

#[tokio::test]
async fn a_fork_is_named_in_lists_and_by_its_session() {
    let (fixture, id) = session_with_turns().await;
    fixture.world.keep_sessions().await;
    let once = ["session", "fork", &id, "--at", "1", "--idempotency-key", "once"];
    let fork = fixture.json(&once).await;
    assert_eq!(fixture.json(&once).await["id"], fork["id"]);
    assert_eq!((&fork["instance"], &fork["turns"]), (&json!("main-fork-1"), &json!(1)));
    assert_eq!((text(&fork["forked_from_session"]), &fork["forked_at_turn"]), (&*id, &json!(1)));
    let named = fixture.run(&["session", "fork", &id, "--as", "end"]).await;
    assert!(named.has("begins after turn 2") && named.has("--instance end PROMPT"), "{named:?}");
    let listed = fixture.json(&["session", "ls"]).await;
    let forks: Vec<_> =
        listed.as_array().unwrap().iter().filter(|it| it["forked_from_session"] == *id).collect();
    let mut turns: Vec<_> = forks.iter().map(|it| it["forked_at_turn"].as_i64()).collect();
    turns.sort_unstable();
    assert_eq!(turns, [Some(1), Some(2)], "{listed}");
    let shown = fixture.run(&["session", "show", text(&fork["id"])]).await;
    assert!(shown.has(&format!("{id} at turn 1")), "{shown:?}");
    let refused = fixture.run(&["session", "fork", &id, "--as", "end"]).await;
    assert_eq!((refused.code, refused.has("already has an instance `end`")), (5, true));
    let unknown = fixture.run(&["session", "fork", &id, "--at", "7"]).await;
    assert_eq!((unknown.code, unknown.has("has a turn 7")), (3, true), "{unknown:?}");
}

#[tokio::test]
async fn a_transcript_is_a_document_whose_texts_are_quotations() {
    let (fixture, id) = session_with_turns().await;
    let output = fixture.run(&["session", "transcript", &id, "--markdown"]).await;
    let title = format!("# Transcript of session {id}\n\n## 1. user, turn 1, ");
    assert!(output.stdout.starts_with(&title), "{output:?}");
    assert!(
        output.stdout.contains(" UTC\n\n> Part one.\n\n## 2. assistant, turn 1, "),
        "{output:?}"
    );
    let heads = output.stdout.lines().filter(|line| line.starts_with("## "));
    assert_eq!(heads.count(), 4, "{output:?}");
    let as_json = fixture.json(&["session", "transcript", &id, "--markdown"]).await;
    assert_eq!(as_json, fixture.json(&["session", "transcript", &id]).await);
}
