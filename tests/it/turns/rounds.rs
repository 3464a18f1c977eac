//! Turns whose model calls tools of the service, on the simulation.

use std::{os::unix::process::ExitStatusExt as _, path::PathBuf};

use dalsegno::{
    domain::{
        amount::Limit,
        campaigns,
        messages::Stored,
        tasks::{self, How, State, Task},
        turns,
    },
    transcript::Role,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::Ground;
use crate::app::{eventually, noon};

/// Listed by name, so that a new tool takes no room of the small windows here; and the tools with faults.
const TOOLS: &str = "tools: mcp__dalsegno__board_history, mcp__dalsegno__board_post, mcp__dalsegno__tasks_list, \
                     mcp__dalsegno__workflows_list, mcp__dalsegno__search_transcript, mcp__dalsegno__status, \
                     mcp__dalsegno__trial_hang, mcp__dalsegno__trial_fail, mcp__dalsegno__trial_panic, mcp__dalsegno__trial_long\n";

pub fn writer(more: &str) -> String {
    format!("---\nname: writer\ndescription: Writes\n{TOOLS}{more}---\nYou write.\n")
}

async fn ground(settings: &[(&str, &str)], more: &str) -> Ground {
    let ground = Ground::new(settings).await;
    ground.write_agent("writer", &writer(more));
    ground
}

/// Returns the messages of a turn, as `Assistant: status, board_post`, `Tool: text` and so on.
fn said(messages: &[Stored]) -> Vec<String> {
    let line = |stored: &Stored| {
        let message = &stored.message;
        let calls: Vec<_> = message.tool_calls.iter().map(|call| call.name.as_str()).collect();
        let text = if calls.is_empty() { message.text.clone() } else { calls.join(", ") };
        format!("{:?}: {text}", message.role)
    };
    messages.iter().map(line).collect()
}

/// Returns the tool results of a conversation, in order.
fn results(messages: &[Stored]) -> Vec<&str> {
    let results = messages.iter().filter(|stored| stored.message.role == Role::Tool);
    results.map(|stored| stored.message.text.as_str()).collect()
}

/// Checks that each result follows the message with its call, and that each call has one result.
fn check_groups(messages: &[Stored]) {
    let mut open: Vec<&str> = Vec::new();
    for stored in messages {
        match &stored.message.tool_call_id {
            Some(id) => {
                assert_eq!(open.first(), Some(&id.as_str()), "{:?}", said(messages));
                open.remove(0);
            }
            None => assert!(open.is_empty(), "{:?}", said(messages)),
        }
        open.extend(stored.message.tool_calls.iter().map(|call| call.id.as_str()));
    }
    assert!(open.is_empty(), "{:?}", said(messages));
}

async fn posts(ground: &Ground) -> Vec<String> {
    let sql = "select coalesce(json_agg(text order by seq), '[]') from dalsegno.posts";
    serde_json::from_value(ground.json(sql).await).unwrap()
}

async fn flags(ground: &Ground, task: &Task) -> Vec<String> {
    ground.turns(task).await.pop().unwrap().flags
}

#[tokio::test]
async fn tools_are_carried_out_and_the_turn_is_stored_whole() {
    let ground = ground(&[], "").await;
    let worker = ground.work().await;
    let prompt = "Write. [[sim: call status]] [[sim: also board_post {\"text\": \"The tide.\"}]] \
                  [[sim: call board_post {\"text\": \"The mole.\"}]] [[sim: say Done.]]";
    let task = ground.done(&ground.add(prompt).await).await;
    ground.settled().await;
    assert_eq!(task.result.as_deref(), Some("Done."));
    let session = ground.session(&task).await;
    let messages = ground.messages(session.id).await;
    let shape: Vec<_> = said(&messages)
        .iter()
        .map(|line| {
            line.split_once(": ").map_or(String::new(), |(role, text)| match role {
                "Tool" => role.to_owned(),
                _ => format!("{role}: {text}"),
            })
        })
        .skip(1)
        .collect();
    let expected = [
        "Assistant: status, board_post",
        "Tool",
        "Tool",
        "Assistant: board_post",
        "Tool",
        "Assistant: Done.",
    ];
    assert_eq!(shape, expected);
    check_groups(&messages);
    assert!(results(&messages)[0].contains("\"agent\":\"writer\""), "{:?}", results(&messages));
    assert_eq!(posts(&ground).await, ["The tide.", "The mole."]);
    let seqs: Vec<_> = messages.iter().map(|stored| stored.seq).collect();
    assert!(seqs.is_sorted_by(|a, b| a + 1 == *b), "{seqs:?}");
    // Each call of the model has a line in the ledger, and their sums are correct.
    let turn = ground.turns(&task).await.pop().unwrap();
    assert_eq!((turn.calls, turn.flags.as_slice()), (3, &[][..]));
    let sums = "select json_build_object('lines', count(*), 'input', sum(input_tokens), 'output', sum(output_tokens)) from dalsegno.usage";
    let sums = ground.json(sums).await;
    let expected = json!({ "lines": 3, "input": turn.input_tokens, "output": turn.output_tokens });
    assert_eq!(sums, expected);
    assert_eq!(
        (session.token_count, task.spent_tokens),
        (turn.input_tokens + turn.output_tokens, session.token_count)
    );
    // Each call has a manifest, and the messages since the last one are in it.
    let manifests = ground.manifests(session.id).await;
    let calls: Vec<_> = manifests.iter().map(|it| it.call).collect();
    assert_eq!(calls, [0, 1, 2]);
    let part = |at: usize, kind: &str| {
        let parts = manifests[at].manifest["parts"].as_array().unwrap();
        parts.iter().find(|part| part["kind"] == kind).map(|part| part["id"].clone())
    };
    assert_eq!(
        [part(0, "rounds"), part(1, "rounds"), part(2, "rounds")],
        [None, Some(json!("3 messages")), Some(json!("5 messages"))]
    );
    assert!(part(0, "tools").is_some() && part(2, "tools") == part(0, "tools"));
    assert!(manifests.iter().all(|it| it.real_tokens.is_some_and(|real| real > 0)));
    let context_tokens = session.context_tokens;
    let last_line =
        "select input_tokens + output_tokens from dalsegno.usage order by id desc limit 1";
    assert_eq!(context_tokens, ground.count(last_line).await);
    // The feed shows it.
    let feed = ground.feed().await;
    let done = feed.iter().find(|event| event.kind == "turn.done").unwrap();
    assert_eq!((&done.data["calls"], &done.data["tools"]), (&json!(3), &json!(3)));
    assert_eq!(done.data["input_tokens"], turn.input_tokens);
    // The next turn has all of it in front of its task.
    let next = ground.done(&ground.add("And on.").await).await;
    assert!(next.result.unwrap().contains("Context: 8 messages"));
    worker.stop().await;
}

#[tokio::test]
async fn an_agent_without_the_rule_has_no_tools_and_pays_for_none() {
    let ground = Ground::new(&[]).await;
    let worker = ground.work().await;
    let task =
        ground.done(&ground.add("Write. [[sim: call status]] [[sim: say Done.]]").await).await;
    worker.stop().await;
    assert_eq!(task.result.as_deref(), Some("Done."));
    let manifests = ground.manifests(task.session_id.unwrap()).await;
    assert_eq!(manifests.len(), 1);
    assert!(!manifests[0].manifest.to_string().contains("\"tools\""));
}

#[tokio::test]
async fn a_model_that_goes_round_in_circles_is_told_and_then_has_to_answer() {
    let ground = ground(&[], "").await;
    let worker = ground.work().await;
    let task = ground.done(&ground.add("Write. [[sim: call status {} 12 times]]").await).await;
    worker.stop().await;
    let messages = ground.messages(task.session_id.unwrap()).await;
    let results = results(&messages);
    assert_eq!(results.len(), 5, "{results:?}");
    assert!(results[..3].iter().all(|text| text.contains("\"campaign\"")), "{results:?}");
    assert!(
        results[3..].iter().all(|text| text.contains("you have made this call")),
        "{results:?}"
    );
    assert_eq!(ground.turns(&task).await[0].calls, 6);
    assert_eq!(flags(&ground, &task).await, ["same_calls_over_and_over"]);
    check_groups(&messages);
}

#[tokio::test]
async fn the_last_of_its_calls_has_to_be_an_answer() {
    let ground = ground(&[], "maxTurns: 3\n").await;
    let worker = ground.work().await;
    let calls: String =
        (1..=5).map(|n| format!("[[sim: call board_post {{\"text\": \"Part {n}.\"}}]] ")).collect();
    let task = ground.done(&ground.add(&format!("Write. {calls}")).await).await;
    assert_eq!(posts(&ground).await, ["Part 1.", "Part 2."]);
    assert_eq!(ground.turns(&task).await[0].calls, 3);
    assert_eq!(flags(&ground, &task).await, ["rounds_used_up"]);
    let manifests = ground.manifests(task.session_id.unwrap()).await;
    let last = manifests[2].manifest.to_string();
    assert!(last.contains("last_call") && !last.contains("\"tools\""), "{last}");
    // With one call, a tool cannot be used.
    ground.write_agent("writer", &writer("maxTurns: 1\n"));
    let alone = ground.done(&ground.add(&format!("More. {calls}")).await).await;
    assert_eq!(ground.turns(&alone).await[0].calls, 1);
    worker.stop().await;
}

#[tokio::test]
async fn what_goes_wrong_with_a_tool_is_said_and_the_turn_goes_on() {
    let ground = ground(&[], "").await;
    let worker = ground.work().await;
    let calls = [
        "drop_tables {}",
        "status 7",
        "board_post {\"words\": 1}",
        "trial_fail",
        "trial_panic",
        "trial_hang",
        "trial_long",
    ];
    let calls: String = calls.iter().map(|call| format!("[[sim: call {call}]] ")).collect();
    let task = ground.done(&ground.add(&format!("Write. {calls} [[sim: say Done.]]")).await).await;
    worker.stop().await;
    assert_eq!(task.result.as_deref(), Some("Done."));
    let messages = ground.messages(task.session_id.unwrap()).await;
    check_groups(&messages);
    let results = results(&messages);
    let words = [
        "Error: you have no tool `drop_tables`",
        "not a JSON object",
        "Error: ",
        "Error: the service could not do this now",
        "Error: the tool failed because of a bug",
        "Error: no answer within 1 s",
        "There is more: call trial_long again",
    ];
    for (result, words) in results.iter().zip(words) {
        assert!(result.contains(words), "{words}: {result:.300}");
    }
    // One page of a result of 10 MB.
    let chars = results[6].chars().count();
    assert!((24_000..24_400).contains(&chars), "{chars}");
    // The feed shows the tools that have ended, as far as there was time to report them.
    let feed = ground.feed().await;
    let ended: Vec<&Value> = feed
        .iter()
        .filter(|event| event.kind == "turn.progress")
        .flat_map(|event| event.data["ended_tools"].as_array().unwrap())
        .collect();
    assert!(
        ended.iter().any(|tool| tool["name"] == "drop_tables" && tool["is_error"] == true),
        "{ended:?}"
    );
    let denied = "select count(*) from dalsegno.audit where action = 'tool.deny'";
    assert_eq!(ground.count(denied).await, 1);
}

#[tokio::test]
async fn a_tool_that_does_not_end_by_itself_is_given_up() {
    // The limit of a tool is a second. The limit of the turn counts only where it comes earlier.
    let ground = ground(&[("agents.tool_timeout_secs", "1")], "").await;
    let worker = ground.work().await;
    let task = ground
        .add("Write. [[sim: call wait_for_results {\"task_ids\": []}]] [[sim: call trial_hang]]");
    let task = ground.done(&task.await).await;
    worker.stop().await;
    let messages = ground.messages(task.session_id.unwrap()).await;
    let results = results(&messages);
    assert!(results[1].contains("within 1 s"), "{results:?}");
}

/// Returns a task whose turn is in its tool, which waits for a file.
async fn in_its_tool(ground: &Ground) -> Task {
    ground.write_agent("writer", &writer("").replace("trial_hang", "trial_wait"));
    let wait = format!("[[sim: also trial_wait {}]]", json!({ "file": gate(ground) }));
    let [before, after] = ["Before.", "After."]
        .map(|text| format!("[[sim: call board_post {}]]", json!({ "text": text })));
    let task = ground.add(&format!("Write. {before} {wait} {after}")).await;
    eventually("the tools are called", async || (posts(ground).await == ["Before."]).then_some(()))
        .await;
    task
}

/// A limit longer than any wait of a test.
const PATIENCE: (&str, &str) = ("agents.tool_timeout_secs", "600");

/// Returns the path of the file that the tool waits for.
fn gate(ground: &Ground) -> PathBuf {
    ground.folder().join("gate")
}

async fn interrupt(ground: &Ground, task: &Task, how: How) {
    let session_id = ground.task(task).await.session_id.unwrap();
    let mut tx = ground.pool.begin().await.unwrap();
    tasks::interrupt(&mut tx, session_id, how, "not wanted", noon()).await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn softly_a_turn_stops_between_two_calls_and_keeps_what_it_has_done() {
    let ground = ground(&[PATIENCE], "").await;
    let worker = ground.work().await;
    let task = in_its_tool(&ground).await;
    interrupt(&ground, &task, How::Soft).await;
    std::fs::write(gate(&ground), "").unwrap();
    let task = ground.ended(&task).await;
    assert_eq!(task.state, State::Cancelled, "{task:?}");
    ground.settled().await;
    let messages = ground.messages(task.session_id.unwrap()).await;
    // The running tool has ended, and the model was not called again.
    assert!(results(&messages)[1].contains("The file is there."));
    check_groups(&messages);
    assert_eq!(posts(&ground).await, ["Before."]);
    assert_eq!(ground.count("select count(*) from dalsegno.usage").await, 1);
    assert_eq!(
        task.spent_tokens,
        ground.count("select input_tokens + output_tokens from dalsegno.usage").await
    );
    let next = ground.done(&ground.add("And on. [[sim: say Going on.]]").await).await;
    worker.stop().await;
    let told = said(&ground.messages(next.session_id.unwrap()).await);
    assert!(told.iter().any(|line| line.starts_with("Notice: The turn before")), "{told:?}");
}

#[tokio::test]
async fn at_once_a_turn_stops_in_its_tool() {
    let ground = ground(&[PATIENCE], "").await;
    let worker = ground.work().await;
    let task = in_its_tool(&ground).await;
    interrupt(&ground, &task, How::Hard).await;
    let task = ground.ended(&task).await;
    assert_eq!(task.state, State::Cancelled, "{task:?}");
    ground.settled().await;
    // The interrupted call has no result; the next prompt says so.
    let messages = ground.messages(task.session_id.unwrap()).await;
    assert_eq!(results(&messages).len(), 1);
    let next = ground.done(&ground.add("And on.").await).await;
    worker.stop().await;
    let manifests = ground.manifests(next.session_id.unwrap()).await;
    assert!(manifests.last().unwrap().manifest.to_string().contains("synthetic_results"));
}

#[tokio::test]
async fn a_turn_that_a_drain_stops_goes_on_elsewhere_with_what_it_has_done() {
    let ground = ground(&[], "").await;
    let prompt = "Write. [[sim: call board_post {\"text\": \"Once.\"}]] [[sim: stall every 2]]";
    let worker = ground.work().await;
    let task = ground.add(prompt).await;
    eventually("it is in its second call", async || {
        (!posts(&ground).await.is_empty()).then_some(())
    })
    .await;
    worker.stop().await;
    let heir = ground.work_with(&[("sim.directives", "false")]).await;
    let task = ground.done(&task).await;
    heir.stop().await;
    assert_eq!(posts(&ground).await, ["Once."]);
    let states: Vec<_> =
        ground.turns(&task).await.iter().map(|turn| (turn.state, turn.attempt)).collect();
    assert_eq!(states, [(turns::State::Interrupted, 1), (turns::State::Done, 1)]);
    let messages = ground.messages(task.session_id.unwrap()).await;
    let roles: Vec<_> = messages.iter().map(|stored| stored.message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Notice, Role::Assistant]);
    // The interrupted call is in the ledger, too.
    assert_eq!(ground.turns(&task).await[0].calls, 2);
}

#[tokio::test]
async fn a_worker_that_dies_between_two_calls_leaves_a_notice_and_what_its_tools_did() {
    let ground = ground(&[], "").await;
    let prompt = "Write. [[sim: call board_post {\"text\": \"Once.\"}]] [[sim: say Done.]]";
    let task = ground.add(prompt).await;
    let mut armed = ground.process(&[("worker.crash_turns_at", "between_rounds")]);
    let died = armed.patiently_ended().await;
    assert_eq!(died.signal(), Some(Signal::ABORT.as_raw()), "{}", armed.log());
    assert_eq!(posts(&ground).await, ["Once."]);
    let heir = ground.process(&[]);
    let task = ground.patiently_ended(&task).await;
    assert_eq!((task.state, task.result.as_deref()), (State::Done, Some("Done.")), "{task:?}");
    ground.settled().await;
    drop(heir);
    // The second attempt makes the same call, and it takes effect only once.
    assert_eq!(posts(&ground).await, ["Once."]);
    let messages = ground.messages(task.session_id.unwrap()).await;
    let roles: Vec<_> = messages.iter().map(|stored| stored.message.role).collect();
    assert_eq!(roles, [Role::User, Role::Notice, Role::Assistant, Role::Tool, Role::Assistant]);
    check_groups(&messages);
    let turns = ground.turns(&task).await;
    assert_eq!(turns.iter().map(|turn| turn.calls).collect::<Vec<_>>(), [0, 2]);
}

#[tokio::test]
async fn a_turn_that_would_pass_a_budget_ends_between_two_calls() {
    let page = "[[sim: call trial_long]] [[sim: call trial_long {\"cursor\": \"1000\"}]]";
    for of_campaign in [true, false] {
        let limit = Limit { tokens: Some(9000), micros: None };
        let (shared, own) =
            if of_campaign { (limit, Limit::default()) } else { (Limit::default(), limit) };
        let ground = Ground::with_limit(&[], shared).await;
        ground.write_agent("writer", &writer("reserve_tokens: 300\n"));
        let worker = ground.work().await;
        let task = ground.add_as("writer", "main", &format!("Write. {page}"), None, own).await;
        let task = ground.ended(&task).await;
        ground.settled().await;
        worker.stop().await;
        assert_eq!(task.state, State::Failed, "{task:?}");
        let why = task.error.clone().unwrap();
        assert!(why.contains(if of_campaign { "campaign" } else { "task" }), "{why}");
        // No other amount is reserved: waiting would not help.
        let sums = format!("{} tokens of 9000 tokens are spent, and up to", task.spent_tokens);
        assert!(why.contains(&sums) && !why.contains("again") && !why.contains("wait"), "{why}");
        let turns = ground.turns(&task).await;
        let [turn] = turns.as_slice() else { panic!("{turns:?}") };
        assert!(turn.calls >= 1 && task.spent_tokens < 9000, "{turn:?}");
        assert_eq!(task.spent_tokens, turn.input_tokens + turn.output_tokens);
        let mut conn = ground.pool.acquire().await.unwrap();
        let budget = campaigns::budget(&mut *conn, task.campaign_id).await.unwrap().unwrap();
        assert_eq!((budget.spent.tokens, budget.reserved.tokens), (task.spent_tokens, 0));
        check_groups(&ground.messages(task.session_id.unwrap()).await);
    }
}

#[tokio::test]
async fn two_turns_at_once_that_share_a_budget_never_pass_it() {
    let limit = Limit { tokens: Some(14_000), micros: None };
    let ground = Ground::with_limit(&[], limit).await;
    ground.write_agent("writer", &writer("reserve_tokens: 300\n"));
    let worker = ground.work().await;
    let posts: String =
        (1..=9).map(|n| format!("[[sim: call board_post {{\"text\": \"Part {n}.\"}}]] ")).collect();
    let prompt = format!("Write. {posts}");
    let tasks = [
        ground.add_for("writer", "one", &prompt).await,
        ground.add_for("writer", "two", &prompt).await,
    ];
    let [one, two] =
        [ground.patiently_ended(&tasks[0]).await, ground.patiently_ended(&tasks[1]).await];
    ground.settled().await;
    worker.stop().await;
    for task in [&one, &two] {
        assert_eq!(task.state, State::Failed, "{task:?}");
        let why = task.error.as_deref().unwrap();
        assert!(why.contains("the budget of the campaign does not allow the call"), "{why}");
        check_groups(&ground.messages(task.session_id.unwrap()).await);
    }
    let budget = campaigns::budget(&ground.pool, ground.campaign.id).await.unwrap().unwrap();
    assert_eq!(budget.reserved.tokens, 0);
    assert!(budget.spent.tokens <= 14_000, "{budget:?}");
    let ledger = "select sum(input_tokens + output_tokens)::bigint from dalsegno.usage";
    assert_eq!(
        [one.spent_tokens + two.spent_tokens, ground.count(ledger).await],
        [budget.spent.tokens; 2]
    );
}

/// Calls for different pages of a long result, one after the other.
fn pages(n: u32) -> String {
    (0..n).map(|page| format!("[[sim: call trial_long {{\"cursor\": \"{page}\"}}]] ")).collect()
}

#[tokio::test]
async fn a_turn_that_outgrows_its_window_shows_older_results_shortened() {
    let ground = ground(&[("sim.window_tokens", "6000")], "reserve_tokens: 300\n").await;
    let worker = ground.work().await;
    let task = ground.done(&ground.add(&format!("Write. {}", pages(9))).await).await;
    worker.stop().await;
    let messages = ground.messages(task.session_id.unwrap()).await;
    check_groups(&messages);
    // The transcript keeps the messages of the last call: only the latest result complete.
    let chars: Vec<_> = results(&messages).iter().map(|text| text.chars().count()).collect();
    let (last, older) = chars.split_last().unwrap();
    assert!(*last > 1000 && older.iter().all(|chars| *chars < 600), "{chars:?}");
    let manifests = ground.manifests(task.session_id.unwrap()).await;
    assert_eq!(manifests.len(), 10);
    assert!(!manifests[1].manifest.to_string().contains("shortened"));
    assert!(manifests[9].manifest.to_string().contains("shortened"));
    assert_eq!(ground.turns(&task).await.len(), 1);
}

#[tokio::test]
async fn older_history_is_folded_in_the_middle_of_a_turn() {
    const FILLER: &str = "The harbour has a mole, a light, two cranes and a customs house.";
    let ground = ground(&[("sim.window_tokens", "7000")], "reserve_tokens: 300\n").await;
    let worker = ground.work().await;
    for number in 1..=9 {
        let prompt =
            format!("Write part {number} of HARBOUR-{number:04}. {FILLER} [[sim: words 200]]");
        ground.done(&ground.add(&prompt).await).await;
    }
    let task = ground.add(&format!("Write. {} [[sim: say Done.]]", pages(6))).await;
    let before = ground.sessions().await[0].generation;
    let task = ground.done(&task).await;
    ground.settled().await;
    worker.stop().await;
    assert_eq!(task.result.as_deref(), Some("Done."));
    let session = ground.session(&task).await;
    assert!(session.generation > before, "{session:?}");
    let kinds = ground.kinds(&task).await;
    assert_eq!(kinds, ["turn.started", "turn.done"]);
    let feed = ground.feed().await;
    let place = |kind: &str| feed.iter().rposition(|event| event.kind == kind).unwrap();
    assert!(place("turn.started") < place("session.compacted"), "it was folded before");
    assert!(place("session.compacted") < place("turn.done"), "it was folded afterwards");
    // One turn, with calls before and after the compaction.
    let manifests = ground.manifests(session.id).await;
    let of_turn: Vec<_> = manifests.iter().filter(|it| it.turn == 10).collect();
    let has_summary = |it: &&dalsegno::domain::manifests::Manifest| {
        it.manifest.to_string().contains("\"summary\"")
    };
    assert!(!has_summary(&of_turn[0]) && has_summary(of_turn.last().unwrap()));
    check_groups(&ground.messages(session.id).await);
    // The messages fit into the turns that follow.
    let worker = ground.work().await;
    ground.done(&ground.add("And on.").await).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_turn_that_cannot_be_made_to_fit_ends_in_words() {
    let ground = ground(&[("sim.window_tokens", "2600")], "reserve_tokens: 200\n").await;
    let worker = ground.work().await;
    let many: String = (0..12)
        .map(|page| format!("[[sim: also trial_long {{\"cursor\": \"{page}\"}}]] "))
        .collect();
    let task =
        ground.ended(&ground.add(&format!("Write. [[sim: call status]] {many}")).await).await;
    ground.settled().await;
    assert_eq!(task.state, State::Failed, "{task:?}");
    let why = task.error.clone().unwrap();
    assert!(why.contains("no longer fit") && why.contains("larger window"), "{why}");
    assert_eq!(ground.turns(&task).await.len(), 1);
    // It leaves nothing that hinders the next turn, which gets a notice of the interruption.
    assert_eq!(results(&ground.messages(task.session_id.unwrap()).await).len(), 0);
    let next = ground.done(&ground.add("Write less.").await).await;
    worker.stop().await;
    let told = said(&ground.messages(next.session_id.unwrap()).await);
    assert!(told.iter().any(|line| line.starts_with("Notice: The turn before")), "{told:?}");
}
