//! `dalsegno turn`.

use dalsegno::domain::manifests;
use serde_json::json;
use uuid::Uuid;

use super::{CommandOutput, Fixture};
use crate::{app::noon, conversations::world::TurnSettings};

/// Lines that are longer than a terminal of 80 columns.
fn long_lines(output: &CommandOutput) -> Vec<&str> {
    output.stdout.lines().filter(|line| line.chars().count() > 80).collect()
}

#[tokio::test]
async fn turns_are_listed_in_80_columns() {
    let fixture = Fixture::new().await;
    fixture.world.turn("Part one.", TurnSettings::default()).await;
    let id = fixture.world.turn("Part two.", TurnSettings::default()).await.session.id;
    let wide = "update dalsegno.turns set number = 9876, state = 'interrupted', error = 'lost', calls = 12345, input_tokens = 999999999,
                       output_tokens = 123456, cost_micros = 999123456, ended_at = started_at + interval '2 hours 5 minutes'
                 where number = 1";
    sqlx::query(wide).execute(&fixture.world.pool).await.unwrap();
    let id = id.to_string();
    let output = fixture.run(&["turn", "ls", &id]).await;
    assert_eq!((output.code, long_lines(&output)), (0, vec![]), "{output:?}");
    assert!(output.has(&format!("session  {id}")), "{output:?}");
    assert!(output.has("agent    copywriter") && output.has("model    sim-1 on sim"), "{output:?}");
    let lines: Vec<_> = output.stdout.lines().collect();
    assert!(lines[4].starts_with("TURN  STATE") && lines[4].contains("BEGUN (UTC)"), "{output:?}");
    let cells: Vec<_> = lines[5].split_whitespace().collect();
    assert_eq!(cells[..2], ["9876", "interrupted"]);
    assert_eq!(cells[3..], ["12345", "999M", "123k", "999.12", "11-20", "12:00", "2h05m"]);
    let listed = fixture.json(&["turn", "ls", &id, "--limit", "1"]).await;
    assert_eq!((&listed[0]["number"], &listed[1]), (&json!(9876), &json!(null)));
    let listed = fixture.json(&["turn", "ls", &id, "--after", "9876"]).await;
    assert_eq!((&listed[0]["number"], &listed[1]), (&json!(2), &json!(null)));
}

#[tokio::test]
async fn a_turn_shows_each_part_of_its_contexts_with_the_reason() {
    let fixture = Fixture::new().await;
    let model = "a-model-with-a-long-name-2026-11-20-preview-for-long-contexts";
    let now = TurnSettings { model, ..TurnSettings::default() };
    let id = fixture.world.turn("Part one.", now).await.session.id;
    let part = |kind: &str, name: Option<&str>, sent: bool, why: &str| {
        let tokens = if sent { 1234 } else { 0 };
        json!({ "kind": kind, "id": name, "tokens": tokens, "sent": sent, "why": why })
    };
    let edict = Uuid::from_u128(0xabc).to_string();
    let mut first = vec![
        part("agent_prompt", None, true, "every_call"),
        part("skill", Some("a-skill-with-an-unusually-long-name"), true, "every_call"),
        part("edict", Some(&edict), false, "no_room"),
        part("synthetic_results", Some("2 results"), true, "completes_interrupted_call"),
        part("transcript", Some("generation 12"), false, "folded"),
        part("posts", None, false, "beyond_window"),
        part("tools", Some("9 tools"), true, "every_call"),
    ];
    first[4]["span"] = json!({ "from_seq": 1, "to_seq": 12345 });
    first[5]["span"] = json!({ "from_seq": 1, "to_seq": 5, "count": 5 });
    let mut second = first.clone();
    second.pop();
    second.push(part("rounds", Some("2 messages"), true, "this_turn"));
    for (call, parts) in [first, second].into_iter().enumerate() {
        let new = manifests::New {
            session_id: id,
            turn: 1,
            call: call as i16,
            manifest: &json!({ "parts": parts }),
            sha256: [1; 32],
            estimated_tokens: 4200,
            real_tokens: (call == 0).then_some(4100),
        };
        manifests::insert(&fixture.world.pool, &new, noon()).await.unwrap();
    }
    let wide = "update dalsegno.turns set state = 'failed', error = $1, flags = $2, ended_at = started_at + interval '65 seconds'";
    let words = "the provider has rejected the prompt because one of its messages is malformed";
    let query = sqlx::query(wide).bind(words.repeat(2)).bind(vec![words.to_owned()]);
    query.execute(&fixture.world.pool).await.unwrap();
    let output = fixture.run(&["turn", "show", &id.to_string(), "1"]).await;
    assert_eq!((output.code, long_lines(&output)), (0, vec![]), "{output:?}");
    for words in [
        &format!("turn     1 of session {id}"),
        "prompt   message 1 of the session",
        "ended    2026-11-20 12:01:05, after 1m05s",
        "tokens   30 in, 10 out",
        "turn, done; 2026-11-20 12:00:00, took 2ms",
        "sim-1 on sim; tokens: 30 in, 10 out; cost: 0.0005",
        "Context of call 1: 4200 tokens estimated, 4100 counted by the provider",
        "Context of call 2: 4200 tokens estimated, not counted by the provider",
        "Sent besides the parts of call 1:",
        "No longer sent:",
        "000000000abc",
        "generation 12, 1 to 12345",
    ] {
        assert!(output.has(words), "{words}: {output:?}");
    }
    let lines: Vec<_> = output.stdout.lines().collect();
    let at = lines.iter().position(|line| line.starts_with("posts")).unwrap();
    let cells: Vec<_> = lines[at].split_whitespace().collect();
    assert_eq!(cells[..7], ["posts", "1", "to", "5", "(5)", "-", "untrusted"]);
    let left_out = lines.iter().position(|line| *line == "Left out:").unwrap();
    assert!(left_out < at, "{output:?}");
    let reason = cells[7..].iter().copied();
    let reason: Vec<_> = reason.chain(lines[at + 1].split_whitespace()).collect();
    assert!(reason.join(" ").starts_with("older than the window"), "{output:?}");
    assert_eq!(lines.iter().filter(|line| line.starts_with("agent prompt")).count(), 1);
    // The ledger is append-only.
    let unpriced = "alter table dalsegno.usage disable trigger user; update dalsegno.usage set cost_micros = 0;
                    update dalsegno.turns set cost_micros = 0";
    sqlx::raw_sql(unpriced).execute(&fixture.world.pool).await.unwrap();
    let output = fixture.run(&["turn", "show", &id.to_string(), "1"]).await;
    assert!(output.has("cost     no price") && !output.has("cost: "), "{output:?}");
}

#[tokio::test]
async fn an_unknown_turn_is_reported_with_the_command_that_lists_turns() {
    let fixture = Fixture::new().await;
    let id = fixture.world.turn("Part one.", TurnSettings::default()).await.session.id.to_string();
    let output = fixture.run(&["turn", "show", &id, "7"]).await;
    let next = format!("`dalsegno turn ls {id}`");
    assert!(output.code == 3 && output.has(&next), "{output:?}");
    let task = fixture.world.add("Part two.").await;
    fixture.world.begin(&task, fixture.world.lease(), TurnSettings::default()).await;
    let output = fixture.run(&["turn", "show", &id, "2"]).await;
    assert!(output.has("The context is stored with the end of the turn."), "{output:?}");
    assert!(output.has("state    running") && output.has("ended    -"), "{output:?}");
    assert!(output.has("version  aaaaaaaaaaaa of the agent's prompt"), "{output:?}");
}
