//! The real Claude CLI calls the tools over its worker's endpoint.

use std::time::Instant;

use dalsegno::domain::{
    blackboard,
    posts::{self, Along, Viewer},
    tasks::State,
};
use serde_json::{Value, json};

use super::PAIR;
use crate::{providers::claude::api::Play, turns::claude::Stage};

const LEAD: &str = "---\nname: writer\ndescription: Writes\nlead: true\nprovider: claude\nmodel: claude-sonnet-5\ntools: mcp__dalsegno\nblackboard: { read: [/], write: [/] }\n---\nYou write.\n";
const HELPER: &str = "---\nname: helper\ndescription: Helps\nprovider: sim\n---\nYou help.\n";

/// What came of a call, as the model was told.
fn told(stage: &Stage) -> String {
    stage.api.last_messages().pop().unwrap()
}

#[tokio::test]
async fn the_real_cli_calls_each_tool_and_the_effects_have_the_right_author() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let ground = &stage.ground;
    stage.api.counts();
    ground.write_agent("writer", LEAD);
    ground.write_agent("helper", HELPER);
    ground.write_template("pair", PAIR);
    let worker = ground.work().await;
    let calls: [(&'static str, Value, &str); 11] = [
        ("mcp__dalsegno__board_post", json!({ "text": "Ahoy, all.", "to": ["all"] }), "post_id"),
        ("mcp__dalsegno__board_history", json!({}), "Ahoy, all."),
        (
            "mcp__dalsegno__dispatch",
            json!({ "tasks": [{ "agent": "helper", "text": "Part one." }] }),
            "task_id",
        ),
        ("mcp__dalsegno__tasks_list", json!({ "agent": "helper" }), "Part one."),
        ("mcp__dalsegno__workflows_list", json!({}), "pair"),
        (
            "mcp__dalsegno__workflows_start",
            json!({ "workflow": "pair", "inputs": { "topic": "tides" } }),
            "flow_id",
        ),
        ("mcp__dalsegno__blackboard_write", json!({ "patch": { "parts": 10 } }), "version"),
        ("mcp__dalsegno__blackboard_read", json!({}), "parts"),
        ("mcp__dalsegno__search_transcript", json!({ "words": "call the tool" }), "Call the tool"),
        ("mcp__dalsegno__status", json!({}), "working"),
        ("mcp__dalsegno__wait_for_results", json!({ "task_ids": ["../x"] }), "no task"),
    ];
    let mut sessions = Vec::new();
    for (name, arguments, expected) in calls {
        stage.api.plays([Play::Calls(name, arguments)]);
        let task = stage.says("Call the tool.").await;
        assert!(told(&stage).contains(expected), "{name}: {}", told(&stage));
        let turn = ground.turns(&task).await.pop().unwrap();
        assert_eq!(turn.flags, Vec::<String>::new(), "{name}");
        sessions.push(turn.session_id);
    }
    let campaign_id = ground.campaign.id;
    let along = Along::After(0);
    let posts = posts::along(&ground.pool, campaign_id, Viewer::All, along, 9).await.unwrap();
    assert_eq!((posts[0].sender.as_str(), posts[0].session_id), ("writer", Some(sessions[0])));
    let written = blackboard::get(&ground.pool, campaign_id).await.unwrap();
    assert_eq!(written.document, json!({ "parts": 10 }));
    let actors: Vec<String> =
        sqlx::query_scalar("select actor from dalsegno.audit where action = 'tool.call'")
            .fetch_all(&ground.pool)
            .await
            .unwrap();
    assert_eq!(actors, ["writer"; 4]);
    let handed: Vec<(String, String)> =
        sqlx::query_as("select agent, added_by from dalsegno.tasks where parent_id is not null and flow_id is null")
            .fetch_all(&ground.pool)
            .await
            .unwrap();
    assert_eq!(handed, [("helper".to_owned(), "writer".to_owned())]);
    nothing_has_the_token(&stage).await;
    ground.settled().await;
    worker.stop().await;
}

/// In no table, and in no file that the session keeps.
async fn nothing_has_the_token(stage: &Stage) {
    let tables = "select string_agg(t::text, '') from (select text || coalesce(tool_calls::text, '') from dalsegno.messages
                  union all select data::text from dalsegno.feed union all select data::text from dalsegno.audit) as t";
    let all: Option<String> =
        sqlx::query_scalar(tables).fetch_one(&stage.ground.pool).await.unwrap();
    assert!(!all.unwrap().contains("dalt_"));
    let found = std::process::Command::new("grep")
        .args(["-rl", "dalt_"])
        .arg(stage.ground.folder())
        .output();
    let found = String::from_utf8(found.unwrap().stdout).unwrap();
    assert_eq!(found, "", "it goes with the call");
}

#[tokio::test]
async fn a_tool_that_goes_wrong_is_told_and_the_turn_goes_on() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let ground = &stage.ground;
    stage.api.counts();
    ground.write_agent("writer", LEAD);
    let worker = ground.work().await;
    for (name, expected) in [
        ("mcp__dalsegno__trial_hang", "no answer within 1 s"),
        ("mcp__dalsegno__trial_fail", "could not do this now"),
        ("mcp__dalsegno__trial_panic", "the tool broke"),
        ("mcp__dalsegno__trial_long", "call trial_long again"),
    ] {
        stage.api.plays([Play::Calls(name, json!({}))]);
        let task = stage.says("Call the tool.").await;
        assert_eq!(ground.task(&task).await.state, State::Done);
        assert!(told(&stage).contains(expected), "{name}: {:.300}", told(&stage));
    }
    ground.settled().await;
    worker.stop().await;
}

/// What the tools add to the first turn of a conversation.
#[tokio::test]
async fn a_cold_turn_is_hardly_slower_with_tools() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let ground = &stage.ground;
    let without = LEAD.replace("tools: mcp__dalsegno\n", "").replace("lead: true\n", "");
    ground.write_agent("writer", LEAD);
    ground.write_agent("bare", &without.replace("name: writer", "name: bare"));
    let worker = ground.work().await;
    let mut took_ms = [Vec::new(), Vec::new()];
    for number in 0..7 {
        for (place, agent) in ["bare", "writer"].into_iter().enumerate() {
            let task = ground.add_for(agent, &format!("n{number}"), "Hello.").await;
            let started = Instant::now();
            ground.done(&task).await;
            took_ms[place].push(started.elapsed().as_millis());
        }
    }
    took_ms.iter_mut().for_each(|all| all.sort_unstable());
    let [bare, with] = took_ms.map(|all| all[all.len() / 2]);
    println!("a cold turn: {bare} ms without tools, {with} ms with them (medians of 7)");
    // The bar is 150 ms on a quiet machine.
    assert!(with < bare + 2_000, "{bare} {with}");
    ground.settled().await;
    worker.stop().await;
}
