//! The real Claude CLI calls the tools over its worker's endpoint.

use std::collections::BTreeSet;

use dalsegno::{
    domain::{
        agents::Library,
        blackboard,
        posts::{self, ListDirection, Viewer},
        tasks::State,
        turns::Turn,
    },
    tools,
};
use serde_json::{Value, json};

use super::PAIR;
use crate::{facts::setup::set_user, providers::claude::api::Play, turns::claude::Setup};

const LEAD: &str = "---\nname: writer\ndescription: Writes\nlead: true\nprovider: claude\nmodel: claude-sonnet-5\ntools: mcp__dalsegno\nwrites_facts: true\nblackboard: { read: [/], write: [/] }\n---\nYou write.\n";
const HELPER: &str = "---\nname: helper\ndescription: Helps\nprovider: sim\n---\nYou help.\n";

/// Returns the result of a call, as the model received it.
fn last_result(setup: &Setup) -> String {
    setup.api.last_messages().pop().unwrap()
}

/// Returns calls in the CLI's own spelling, each with words that its result must contain. Together they use every tool
/// of a lead, with one turn for each noun.
fn calls() -> Vec<Vec<(&'static str, Value, &'static str)>> {
    let item = |name: &str, text: &str| json!({ "name": name, "title": "Tides", "text": text });
    let named = |name: &str| json!({ "name": name });
    vec![
        vec![
            ("mcp__dalsegno__edicts_publish", item("tone", "Write short."), r#""version":1"#),
            ("mcp__dalsegno__edicts_list", json!({}), r#""name":"tone""#),
            ("mcp__dalsegno__edicts_read", named("tone"), "Write short."),
            ("mcp__dalsegno__edicts_revoke", named("tone"), r#""holds":false"#),
            ("mcp__dalsegno__records_publish", item("tides", "High at six."), r#""version":1"#),
            ("mcp__dalsegno__records_list", json!({}), r#""name":"tides""#),
            ("mcp__dalsegno__records_read", named("tides"), "High at six."),
            ("mcp__dalsegno__journals_write", item("note", "Six is early."), r#""version":1"#),
            ("mcp__dalsegno__journals_list", json!({}), r#""name":"note""#),
            ("mcp__dalsegno__journals_read", named("note"), "Six is early."),
            ("mcp__dalsegno__recall", json!({ "words": "six" }), "**six**"),
            (
                "mcp__dalsegno__facts_write",
                json!({ "attribute": "Diet", "text": "Eats no meat." }),
                r#""changed":true"#,
            ),
        ],
        vec![
            (
                "mcp__dalsegno__board_post",
                json!({ "text": "Ahoy, all.", "to": ["all"] }),
                "post_id",
            ),
            ("mcp__dalsegno__board_history", json!({}), "Ahoy, all."),
            ("mcp__dalsegno__blackboard_write", json!({ "patch": { "parts": 10 } }), "version"),
            ("mcp__dalsegno__blackboard_read", json!({}), r#""parts":10"#),
            ("mcp__dalsegno__search_transcript", json!({ "words": "call the" }), "Call the tools."),
            ("mcp__dalsegno__status", json!({}), "working"),
        ],
        vec![
            (
                "mcp__dalsegno__dispatch",
                json!({ "tasks": [{ "agent": "helper", "text": "Part one." }] }),
                "task_id",
            ),
            ("mcp__dalsegno__tasks_list", json!({ "agent": "helper" }), "Part one."),
            ("mcp__dalsegno__wait_for_results", json!({ "task_ids": ["../x"] }), "no task"),
            ("mcp__dalsegno__flow_templates_list", json!({}), r#""template":"pair""#),
            (
                "mcp__dalsegno__flows_start",
                json!({ "template": "pair", "inputs": { "topic": "tides" } }),
                "flow_id",
            ),
        ],
    ]
}

#[tokio::test]
async fn the_real_cli_calls_each_tool_and_the_changes_record_the_right_author() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    setup.api.counts();
    fixture.write_agent("writer", LEAD);
    fixture.write_agent("helper", HELPER);
    fixture.write_template("pair", PAIR);
    set_user(fixture, "ann").await;
    check_all_called(&setup);
    let worker = fixture.start_worker().await;
    let mut turns = Vec::new();
    for calls in calls() {
        let plays = calls.iter().map(|(name, arguments, _)| Play::Calls(name, arguments.clone()));
        setup.api.plays(plays.collect::<Vec<_>>());
        let task = setup.run_prompt("Call the tools.").await;
        let messages = setup.api.last_messages();
        let results = &messages[messages.len() - 2 * calls.len() + 1..];
        for ((name, _, words), result) in calls.iter().zip(results.iter().step_by(2)) {
            assert!(result.contains(words), "{name}: {result}");
        }
        let turn = fixture.turns(&task).await.pop().unwrap();
        assert_eq!(turn.flags, Vec::<String>::new());
        turns.push(turn);
    }
    check_effects(&setup, &turns).await;
    check_token_is_not_stored(&setup).await;
    fixture.settled().await;
    worker.stop().await;
}

/// Checks that every offered tool is called, including new ones.
fn check_all_called(setup: &Setup) {
    let library = Library::open(&setup.fixture.config().agents).unwrap();
    let writer = library.current().agent("writer").unwrap().clone();
    let offered = tools::list_offered_to_agent(&writer, "main");
    let offered = offered.iter().map(|spec| format!("mcp__dalsegno__{}", spec.name));
    let called = calls().concat().into_iter().map(|(name, ..)| name.to_owned());
    assert_eq!(called.collect::<BTreeSet<_>>(), offered.collect());
}

async fn check_effects(setup: &Setup, turns: &[Turn]) {
    let (fixture, campaign_id) = (&setup.fixture, setup.fixture.campaign.id);
    let along = ListDirection::After(0);
    let posts = posts::list_page(&fixture.pool, campaign_id, Viewer::All, along, 9).await.unwrap();
    assert_eq!(
        (posts[0].sender.as_str(), posts[0].session_id),
        ("writer", Some(turns[1].session_id))
    );
    let written = blackboard::get(&fixture.pool, campaign_id).await.unwrap();
    assert_eq!(written.document, json!({ "parts": 10 }));
    let strings = async |sql: &'static str| -> Vec<String> {
        sqlx::query_scalar(sql).fetch_all(&fixture.pool).await.unwrap()
    };
    let items =
        "select concat_ws(' ', kind, name, owner, author, origin, task_id, turn, revoked_by)
                   from dalsegno.memory_items order by kind";
    let by = format!("writer agent {} {}", turns[0].task_id, turns[0].number);
    let expected = [
        format!("edict tone  {by} writer"),
        format!("journal note writer {by}"),
        format!("record tides  {by}"),
    ];
    assert_eq!(strings(items).await, expected);
    let audit = "select actor from dalsegno.audit where action = 'tool.call'";
    assert_eq!(strings(audit).await, ["writer"; 9]);
    let handed = "select agent || ' by ' || added_by from dalsegno.tasks where parent_id is not null and flow_id is null";
    assert_eq!(strings(handed).await, ["helper by writer"]);
}

/// Checks that no table and no file of the session contains the token.
async fn check_token_is_not_stored(setup: &Setup) {
    let tables = "select string_agg(t::text, '') from (select text || coalesce(tool_calls::text, '') from dalsegno.messages
                  union all select data::text from dalsegno.feed union all select data::text from dalsegno.audit) as t";
    let all: Option<String> =
        sqlx::query_scalar(tables).fetch_one(&setup.fixture.pool).await.unwrap();
    assert!(!all.unwrap().contains("dalt_"));
    let found = std::process::Command::new("grep")
        .args(["-rl", "dalt_"])
        .arg(setup.fixture.folder())
        .output();
    let found = String::from_utf8(found.unwrap().stdout).unwrap();
    assert_eq!(found, "", "the tool server ends with the call");
}

#[tokio::test]
async fn a_tool_error_is_reported_to_the_model_and_the_turn_continues() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    setup.api.counts();
    let trials = ["hang", "fail", "panic", "long"].map(|it| format!("mcp__dalsegno__trial_{it}"));
    let lead = LEAD.replace("tools: mcp__dalsegno", &format!("tools: {}", trials.join(", ")));
    fixture.write_agent("writer", &lead);
    let worker = fixture.start_worker().await;
    for (name, expected) in [
        ("mcp__dalsegno__trial_hang", "no answer within 1 s"),
        ("mcp__dalsegno__trial_fail", "could not do this now"),
        ("mcp__dalsegno__trial_panic", "the tool failed because of a bug"),
        ("mcp__dalsegno__trial_long", "call trial_long again"),
    ] {
        setup.api.plays([Play::Calls(name, json!({}))]);
        let task = setup.run_prompt("Call the tool.").await;
        assert_eq!(fixture.task(&task).await.state, State::Done);
        assert!(last_result(&setup).contains(expected), "{name}: {:.300}", last_result(&setup));
    }
    fixture.settled().await;
    worker.stop().await;
}

/// Measures the time that the tools add to the first turn of a conversation, on an idle machine.
#[cfg(feature = "chaos")]
#[tokio::test]
async fn chaos_a_cold_turn_is_hardly_slower_with_tools() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    let without = LEAD.replace("tools: mcp__dalsegno\n", "").replace("lead: true\n", "");
    fixture.write_agent("writer", LEAD);
    fixture.write_agent("bare", &without.replace("name: writer", "name: bare"));
    let worker = fixture.start_worker().await;
    let mut took_ms = [Vec::new(), Vec::new()];
    for number in 0..7 {
        for (place, agent) in ["bare", "writer"].into_iter().enumerate() {
            let task = fixture.add_for(agent, &format!("n{number}"), "Hello.").await;
            let started = std::time::Instant::now();
            fixture.done(&task).await;
            took_ms[place].push(started.elapsed().as_millis());
        }
    }
    took_ms.iter_mut().for_each(|all| all.sort_unstable());
    let [bare, with] = took_ms.map(|all| all[all.len() / 2]);
    println!("a cold turn: {bare} ms without tools, {with} ms with them (medians of 7)");
    assert!(with < bare + 150, "{bare} {with}");
    fixture.settled().await;
    worker.stop().await;
}
