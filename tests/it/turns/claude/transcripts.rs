//! The CLI's own transcript, read from the stored files and compared with the stored messages.

use dalsegno::domain::tasks::State;
use serde_json::{Value, json};

use super::{Setup, WRITER};
use crate::{
    app::eventually,
    providers::claude::api::Play,
    turns::{
        Fixture,
        forks::{fork, run},
    },
};

/// Runs `context show --transcript`. Returns its exit code and its output.
async fn show(fixture: &Fixture, session: &str, turn: Option<&str>) -> (i32, Value) {
    let command = ["context", "show", session, "--transcript", "--json"];
    let turn = turn.map(|turn| ["--turn", turn]);
    let arguments = [&command[..], turn.as_ref().map_or(&[], |turn| &turn[..])].concat();
    let output = fixture.run_command(&arguments).await;
    let text = if output.stdout.is_empty() { &output.stderr } else { &output.stdout };
    let shown = serde_json::from_slice(text).unwrap_or_else(|_| panic!("{output:?}"));
    (output.status.code().unwrap(), shown)
}

/// Returns `role: text` of each entry.
fn entries(shown: &Value) -> Vec<String> {
    let entries = shown["entries"].as_array().unwrap_or_else(|| panic!("{shown}"));
    let entry =
        |it: &Value| format!("{}: {}", it["role"].as_str().unwrap(), it["text"].as_str().unwrap());
    entries.iter().map(entry).collect()
}

/// Replaces the stored transcript by its lines after a change.
async fn change_lines(fixture: &Fixture, change: impl Fn(&mut Vec<String>)) {
    let stored = "select bytes from dalsegno.transcript_chunks order by from_byte";
    let chunks: Vec<Vec<u8>> = sqlx::query_scalar(stored).fetch_all(&fixture.pool).await.unwrap();
    let file = String::from_utf8(chunks.concat()).unwrap();
    let mut lines: Vec<String> = file.lines().map(str::to_owned).collect();
    change(&mut lines);
    sqlx::query("delete from dalsegno.transcript_chunks where from_byte > 0")
        .execute(&fixture.pool)
        .await
        .unwrap();
    sqlx::query("update dalsegno.transcript_chunks set bytes = $1")
        .bind(format!("{}\n", lines.join("\n")).into_bytes())
        .execute(&fixture.pool)
        .await
        .unwrap();
}

#[tokio::test]
async fn the_transcript_of_the_cli_is_shown_up_to_a_turn_and_compared() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    fixture.write_agent("writer", &WRITER.replace("model:", "tools: Bash\nmodel:"));
    let worker = fixture.start_worker().await;
    setup.api.plays([Play::Calls("Bash", json!({ "command": "echo the light" }))]);
    setup.run_prompt("One.").await;
    setup.api.plays([Play::Hangs]);
    let n_before = setup.api.requests().len();
    let second = fixture.add("Two.").await;
    eventually("the model is called", async || {
        (setup.api.requests().len() > n_before).then_some(())
    })
    .await;
    fixture.cancel(&second).await;
    assert_eq!(fixture.ended(&second).await.state, State::Cancelled);
    let third = setup.run_prompt("/Three.").await;
    let sent = setup.api.last_messages();
    let session_id = third.session_id.unwrap();
    let id = session_id.to_string();
    let (code, shown) = show(fixture, &id, None).await;
    assert_eq!((code, &shown["state"], &shown["turn"]), (0, &json!("equal"), &json!(3)), "{shown}");
    let all = entries(&shown);
    // The chain is what the model was sent, and the answer.
    assert_eq!((all.len(), sent.len()), (6, 5), "{all:?} {sent:?}");
    assert!(all[0].starts_with("user: ") && all[0].contains("One."), "{all:?}");
    assert_eq!(shown["entries"][1]["tool_calls"][0]["name"], json!("Bash"));
    assert!(all[2].starts_with("tool: the light"), "{all:?}");
    assert!(all[4].contains("Two.") && all[4].contains("/Three."), "{all:?}");
    assert_eq!(all[0], sent[0]);
    assert_eq!(all[4], sent[4]);
    assert_eq!(all[5], format!("assistant: {}", third.result.unwrap()));
    let (code, first) = show(fixture, &id, Some("1")).await;
    assert_eq!((code, &first["state"]), (0, &json!("equal")), "{first}");
    assert_eq!(entries(&first), all[..4]);
    let (code, refused) = show(fixture, &id, Some("2")).await;
    assert_eq!((code, refused.to_string().contains("has no answer")), (3, true), "{refused}");
    let fork = fork(fixture, session_id, 3).await;
    run(fixture, &fork.instance, "Four.").await;
    let (code, forked) = show(fixture, &fork.id.to_string(), None).await;
    assert_eq!((code, &forked["state"]), (0, &json!("equal")), "{forked}");
    assert!(entries(&forked).len() > all.len(), "{forked}");
    fixture.settled().await;
    worker.stop().await;
}

#[tokio::test]
async fn a_changed_or_removed_line_of_the_transcript_is_reported() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    let worker = fixture.start_worker().await;
    let first = setup.run_prompt("The tide is high.").await;
    setup.run_prompt("And now?").await;
    fixture.settled().await;
    worker.stop().await;
    let id = first.session_id.unwrap().to_string();
    let text = fixture.run_command(&["context", "show", &id, "--transcript"]).await;
    let text = String::from_utf8(text.stdout).unwrap();
    for part in ["equal to the stored messages", "──── 1: user ────", "──── 4: assistant ────"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let of_reply = |line: &String| line.contains("\"type\":\"assistant\"");
    change_lines(fixture, |lines| {
        let line = lines.iter_mut().find(|line| of_reply(line)).unwrap();
        *line = line.replace("You said: ", "You wrote: ");
    })
    .await;
    for turn in ["1", "2"] {
        let (code, shown) = show(fixture, &id, Some(turn)).await;
        assert_eq!((code, &shown["state"]), (8, &json!("differs")), "{shown}");
        let problem = shown["problem"].as_str().unwrap();
        assert!(problem.starts_with("entry 2 is not the answer of turn 1: "), "{problem}");
        assert!(problem.contains("wrote: "), "{problem}");
    }
    change_lines(fixture, |lines| {
        let at = lines.iter().position(of_reply).unwrap();
        lines.remove(at);
    })
    .await;
    let (code, shown) = show(fixture, &id, None).await;
    assert_eq!((code, &shown["state"]), (8, &json!("differs")), "{shown}");
    assert!(shown["problem"].as_str().unwrap().contains("is missing"), "{shown}");
    let (code, refused) = show(fixture, &id, Some("1")).await;
    let says = refused.to_string().contains("does not have the answer of turn 1");
    assert_eq!((code, says), (3, true), "{refused}");
}
