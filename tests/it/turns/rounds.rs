//! Turns whose model calls tools of the service, on the simulation.

use std::{os::unix::process::ExitStatusExt as _, path::PathBuf};

use dalsegno::{
    domain::{
        amount::Limit,
        budgets::{self, Change, OwnerKind},
        campaigns::LimitChange,
        messages::StoredMessage,
        tasks::{self, InterruptMode, State, Task},
        turns,
    },
    transcript::Role,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Fixture, faults::refuse_writes};
use crate::app::{eventually, noon};

/// Listed by name, so that a new tool takes no room of the small windows here; and the tools with faults.
const TOOLS: &str = "tools: mcp__dalsegno__board_history, mcp__dalsegno__board_post, mcp__dalsegno__tasks_list, \
                     mcp__dalsegno__flow_templates_list, mcp__dalsegno__search_transcript, mcp__dalsegno__status, \
                     mcp__dalsegno__trial_hang, mcp__dalsegno__trial_fail, mcp__dalsegno__trial_panic, mcp__dalsegno__trial_long\n";

pub fn writer(more: &str) -> String {
    format!("---\nname: writer\ndescription: Writes\n{TOOLS}{more}---\nYou write.\n")
}

async fn fixture(settings: &[(&str, &str)], more: &str) -> Fixture {
    let fixture = Fixture::new(settings).await;
    fixture.write_agent("writer", &writer(more));
    fixture
}

/// Returns the messages of a turn, as `Assistant: status, board_post`, `Tool: text` and so on.
fn message_lines(messages: &[StoredMessage]) -> Vec<String> {
    let line = |stored: &StoredMessage| {
        let message = &stored.message;
        let calls: Vec<_> = message.tool_calls.iter().map(|call| call.name.as_str()).collect();
        let text = if calls.is_empty() { message.text.clone() } else { calls.join(", ") };
        format!("{:?}: {text}", message.role)
    };
    messages.iter().map(line).collect()
}

/// Returns the tool results of a conversation, in order.
fn results(messages: &[StoredMessage]) -> Vec<&str> {
    let results = messages.iter().filter(|stored| stored.message.role == Role::Tool);
    results.map(|stored| stored.message.text.as_str()).collect()
}

/// Checks that each result follows the message with its call, and that each call has one result.
fn check_groups(messages: &[StoredMessage]) {
    let mut open: Vec<&str> = Vec::new();
    for stored in messages {
        match &stored.message.tool_call_id {
            Some(id) => {
                assert_eq!(open.first(), Some(&id.as_str()), "{:?}", message_lines(messages));
                open.remove(0);
            }
            None => assert!(open.is_empty(), "{:?}", message_lines(messages)),
        }
        open.extend(stored.message.tool_calls.iter().map(|call| call.id.as_str()));
    }
    assert!(open.is_empty(), "{:?}", message_lines(messages));
}

async fn posts(fixture: &Fixture) -> Vec<String> {
    let sql = "select coalesce(json_agg(text order by seq), '[]') from dalsegno.posts";
    serde_json::from_value(fixture.json(sql).await).unwrap()
}

async fn flags(fixture: &Fixture, task: &Task) -> Vec<String> {
    fixture.turns(task).await.pop().unwrap().flags
}

#[tokio::test]
async fn tools_are_executed_and_the_turn_is_stored_whole() {
    let fixture = fixture(&[], "").await;
    let worker = fixture.start_worker().await;
    let prompt = "Write. [[sim: call status]] [[sim: also board_post {\"text\": \"The tide.\"}]] \
                  [[sim: call board_post {\"text\": \"The mole.\"}]] [[sim: say Done.]]";
    let task = fixture.done(&fixture.add(prompt).await).await;
    fixture.settled().await;
    assert_eq!(task.result.as_deref(), Some("Done."));
    let session = fixture.session(&task).await;
    let messages = fixture.messages(session.id).await;
    let shape: Vec<_> = message_lines(&messages)
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
    assert_eq!(posts(&fixture).await, ["The tide.", "The mole."]);
    let seqs: Vec<_> = messages.iter().map(|stored| stored.seq).collect();
    assert!(seqs.is_sorted_by(|a, b| a + 1 == *b), "{seqs:?}");
    // Each call of the model has a line in the ledger, and their sums are correct.
    let turn = fixture.turns(&task).await.pop().unwrap();
    assert_eq!((turn.calls, turn.flags.as_slice()), (3, &[][..]));
    let sums = "select json_build_object('lines', count(*), 'input', sum(input_tokens), 'output', sum(output_tokens)) from dalsegno.usage";
    let sums = fixture.json(sums).await;
    let expected = json!({ "lines": 3, "input": turn.input_tokens, "output": turn.output_tokens });
    assert_eq!(sums, expected);
    assert_eq!(
        (session.token_count, task.spent_tokens),
        (turn.input_tokens + turn.output_tokens, session.token_count)
    );
    // Each call has a manifest, and the messages since the last one are in it.
    let manifests = fixture.manifests(session.id).await;
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
    assert_eq!(context_tokens, fixture.count(last_line).await);
    // The feed shows it.
    let feed = fixture.feed().await;
    let done = feed.iter().find(|event| event.kind == "turn.done").unwrap();
    assert_eq!((&done.data["calls"], &done.data["tools"]), (&json!(3), &json!(3)));
    assert_eq!(done.data["input_tokens"], turn.input_tokens);
    // The next turn has all of it in front of its task.
    let next = fixture.done(&fixture.add("And on.").await).await;
    assert!(next.result.unwrap().contains("Context: 8 messages"));
    worker.stop().await;
}

#[tokio::test]
async fn an_agent_without_the_rule_has_no_tools_and_pays_for_none() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let task =
        fixture.done(&fixture.add("Write. [[sim: call status]] [[sim: say Done.]]").await).await;
    worker.stop().await;
    assert_eq!(task.result.as_deref(), Some("Done."));
    let manifests = fixture.manifests(task.session_id.unwrap()).await;
    assert_eq!(manifests.len(), 1);
    assert!(!manifests[0].manifest.to_string().contains("\"tools\""));
}

#[tokio::test]
async fn a_looping_model_is_warned_and_then_has_to_answer() {
    let fixture = fixture(&[], "").await;
    let worker = fixture.start_worker().await;
    let task = fixture.done(&fixture.add("Write. [[sim: call status {} 12 times]]").await).await;
    worker.stop().await;
    let messages = fixture.messages(task.session_id.unwrap()).await;
    let results = results(&messages);
    assert_eq!(results.len(), 5, "{results:?}");
    assert!(results[..3].iter().all(|text| text.contains("\"campaign\"")), "{results:?}");
    assert!(
        results[3..].iter().all(|text| text.contains("you have made this call")),
        "{results:?}"
    );
    assert_eq!(fixture.turns(&task).await[0].calls, 6);
    assert_eq!(flags(&fixture, &task).await, ["same_calls_over_and_over"]);
    check_groups(&messages);
}

#[tokio::test]
async fn the_last_call_of_a_model_has_to_be_an_answer() {
    let fixture = fixture(&[], "maxTurns: 3\n").await;
    let worker = fixture.start_worker().await;
    let calls: String =
        (1..=5).map(|n| format!("[[sim: call board_post {{\"text\": \"Part {n}.\"}}]] ")).collect();
    let task = fixture.done(&fixture.add(&format!("Write. {calls}")).await).await;
    assert_eq!(posts(&fixture).await, ["Part 1.", "Part 2."]);
    assert_eq!(fixture.turns(&task).await[0].calls, 3);
    assert_eq!(flags(&fixture, &task).await, ["rounds_used_up"]);
    let manifests = fixture.manifests(task.session_id.unwrap()).await;
    let last = manifests[2].manifest.to_string();
    assert!(last.contains("last_call") && !last.contains("\"tools\""), "{last}");
    // With one call, a tool cannot be used.
    fixture.write_agent("writer", &writer("maxTurns: 1\n"));
    let alone = fixture.done(&fixture.add(&format!("More. {calls}")).await).await;
    assert_eq!(fixture.turns(&alone).await[0].calls, 1);
    worker.stop().await;
}

#[tokio::test]
async fn a_tool_error_is_reported_to_the_model_and_the_turn_continues() {
    let fixture = fixture(&[], "").await;
    let worker = fixture.start_worker().await;
    let calls_made = [
        "drop_tables {}",
        "status 7",
        "board_post {\"words\": 1}",
        "trial_fail",
        "trial_panic",
        "trial_hang",
        "trial_long",
    ];
    let calls: String = calls_made.iter().map(|call| format!("[[sim: call {call}]] ")).collect();
    let task =
        fixture.done(&fixture.add(&format!("Write. {calls} [[sim: say Done.]]")).await).await;
    worker.stop().await;
    assert_eq!(task.result.as_deref(), Some("Done."));
    let messages = fixture.messages(task.session_id.unwrap()).await;
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
    // The feed shows the tools that have ended, also those that ended while a row was being written.
    let feed = fixture.feed().await;
    let ended: Vec<&Value> = feed
        .iter()
        .filter(|event| event.kind == "turn.progress")
        .flat_map(|event| event.data["ended_tools"].as_array().unwrap())
        .collect();
    let names: Vec<_> = ended.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let expected: Vec<_> = calls_made.iter().map(|call| call.split(' ').next().unwrap()).collect();
    assert_eq!(names, expected);
    assert!(ended[0]["is_error"] == true, "{ended:?}");
    let denied = "select count(*) from dalsegno.audit where action = 'tool.deny'";
    assert_eq!(fixture.count(denied).await, 1);
}

#[tokio::test]
async fn a_database_that_is_away_between_two_calls_uses_up_no_attempt() {
    let limit = Limit { micros: None, tokens: Some(100_000_000) };
    let fixture = Fixture::with_limit(&[], limit).await;
    fixture.write_agent("writer", &writer(""));
    let reservations = "update of reserved_tokens on dalsegno.turns for each row when (new.reserved_tokens > old.reserved_tokens)";
    refuse_writes(&fixture.pool, reservations, 1, "57P01").await;
    let worker = fixture.start_worker().await;
    let task = fixture.add("Write. [[sim: call status]] [[sim: say Done.]]").await;
    let task = fixture.ended_after_waits(&task).await;
    fixture.settled().await;
    worker.stop().await;
    assert_eq!(task.state, State::Done, "{task:?}");
    let turns = fixture.turns(&task).await;
    assert_eq!(turns.len(), 2);
    assert!(turns[0].is_put_off() && turns[0].calls == 1, "{turns:?}");
    assert!(turns.iter().all(|turn| turn.attempt == 1), "{turns:?}");
    // The call before it was paid for, and its tool has run.
    let messages = fixture.messages(task.session_id.unwrap()).await;
    assert!(messages.iter().any(|it| it.turn == 1 && it.message.role == Role::Tool));
    check_groups(&messages);
    let charged = "select sum(input_tokens + output_tokens)::bigint from dalsegno.usage";
    let budget = fixture.budget().await;
    assert_eq!(budget.spent.tokens, fixture.count(charged).await);
    assert!(budget.reserved.is_zero());
}

#[tokio::test]
async fn a_hanging_tool_is_stopped() {
    // The limit of a tool is a second. The limit of the turn counts only where it comes earlier.
    let fixture = fixture(&[("agents.tool_timeout_secs", "1")], "").await;
    let worker = fixture.start_worker().await;
    let task = fixture
        .add("Write. [[sim: call wait_for_results {\"task_ids\": []}]] [[sim: call trial_hang]]");
    let task = fixture.done(&task.await).await;
    worker.stop().await;
    let messages = fixture.messages(task.session_id.unwrap()).await;
    let results = results(&messages);
    assert!(results[1].contains("within 1 s"), "{results:?}");
}

/// Returns a task whose turn is in its tool, which waits for a file.
async fn task_in_tool(fixture: &Fixture) -> Task {
    fixture.write_agent("writer", &writer("").replace("trial_hang", "trial_wait"));
    let wait = format!("[[sim: also trial_wait {}]]", json!({ "file": gate(fixture) }));
    let [before, after] = ["Before.", "After."]
        .map(|text| format!("[[sim: call board_post {}]]", json!({ "text": text })));
    let task = fixture.add(&format!("Write. {before} {wait} {after}")).await;
    eventually("the tools are called", async || {
        (posts(fixture).await == ["Before."]).then_some(())
    })
    .await;
    task
}

/// A limit longer than any wait of a test.
const LONG_TOOL_TIMEOUT: (&str, &str) = ("agents.tool_timeout_secs", "600");

/// Returns the path of the file that the tool waits for.
fn gate(fixture: &Fixture) -> PathBuf {
    fixture.folder().join("gate")
}

async fn interrupt(fixture: &Fixture, task: &Task, how: InterruptMode) {
    let session_id = fixture.task(task).await.session_id.unwrap();
    let mut tx = fixture.pool.begin().await.unwrap();
    tasks::interrupt(&mut tx, session_id, how, "not wanted", noon()).await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn a_soft_interrupt_stops_a_turn_between_two_calls_and_keeps_its_results() {
    let fixture = fixture(&[LONG_TOOL_TIMEOUT], "").await;
    let worker = fixture.start_worker().await;
    let task = task_in_tool(&fixture).await;
    interrupt(&fixture, &task, InterruptMode::Soft).await;
    std::fs::write(gate(&fixture), "").unwrap();
    let task = fixture.ended(&task).await;
    assert_eq!(task.state, State::Cancelled, "{task:?}");
    fixture.settled().await;
    let messages = fixture.messages(task.session_id.unwrap()).await;
    // The running tool has ended, and the model was not called again.
    assert!(results(&messages)[1].contains("The file is there."));
    check_groups(&messages);
    assert_eq!(posts(&fixture).await, ["Before."]);
    assert_eq!(fixture.count("select count(*) from dalsegno.usage").await, 1);
    assert_eq!(
        task.spent_tokens,
        fixture.count("select input_tokens + output_tokens from dalsegno.usage").await
    );
    let next = fixture.done(&fixture.add("And on. [[sim: say Going on.]]").await).await;
    worker.stop().await;
    let told = message_lines(&fixture.messages(next.session_id.unwrap()).await);
    assert!(told.iter().any(|line| line.starts_with("Notice: The turn before")), "{told:?}");
}

#[tokio::test]
async fn a_hard_interrupt_stops_a_turn_inside_its_tool() {
    let fixture = fixture(&[LONG_TOOL_TIMEOUT], "").await;
    let worker = fixture.start_worker().await;
    let task = task_in_tool(&fixture).await;
    interrupt(&fixture, &task, InterruptMode::Hard).await;
    let task = fixture.ended(&task).await;
    assert_eq!(task.state, State::Cancelled, "{task:?}");
    fixture.settled().await;
    // The interrupted call has no result; the next prompt says so.
    let messages = fixture.messages(task.session_id.unwrap()).await;
    assert_eq!(results(&messages).len(), 1);
    let next = fixture.done(&fixture.add("And on.").await).await;
    worker.stop().await;
    let manifests = fixture.manifests(next.session_id.unwrap()).await;
    assert!(manifests.last().unwrap().manifest.to_string().contains("synthetic_results"));
}

#[tokio::test]
async fn a_turn_stopped_by_a_drain_continues_on_another_worker_with_its_results() {
    let fixture = fixture(&[], "").await;
    let prompt = "Write. [[sim: call board_post {\"text\": \"Once.\"}]] [[sim: stall every 2]]";
    let worker = fixture.start_worker().await;
    let task = fixture.add(prompt).await;
    eventually("the turn is in its second call", async || {
        (!posts(&fixture).await.is_empty()).then_some(())
    })
    .await;
    worker.stop().await;
    let heir = fixture.start_worker_with(&[("sim.directives", "false")]).await;
    let task = fixture.done(&task).await;
    heir.stop().await;
    assert_eq!(posts(&fixture).await, ["Once."]);
    let states: Vec<_> =
        fixture.turns(&task).await.iter().map(|turn| (turn.state, turn.attempt)).collect();
    assert_eq!(states, [(turns::State::Interrupted, 1), (turns::State::Done, 1)]);
    let messages = fixture.messages(task.session_id.unwrap()).await;
    let roles: Vec<_> = messages.iter().map(|stored| stored.message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Notice, Role::Assistant]);
    // The interrupted call is in the ledger, too.
    assert_eq!(fixture.turns(&task).await[0].calls, 2);
}

#[tokio::test]
async fn a_worker_that_dies_between_two_calls_leaves_a_notice_and_its_tool_results() {
    let fixture = fixture(&[], "").await;
    let prompt = "Write. [[sim: call board_post {\"text\": \"Once.\"}]] [[sim: say Done.]]";
    let task = fixture.add(prompt).await;
    let mut armed = fixture.process(&[("worker.crash_turns_at", "between_rounds")]);
    let died = armed.ended_after_pause().await;
    assert_eq!(died.signal(), Some(Signal::ABORT.as_raw()), "{}", armed.log());
    assert_eq!(posts(&fixture).await, ["Once."]);
    let heir = fixture.process(&[]);
    let task = fixture.ended_after_pause(&task).await;
    assert_eq!((task.state, task.result.as_deref()), (State::Done, Some("Done.")), "{task:?}");
    fixture.settled().await;
    drop(heir);
    // The second attempt makes the same call, and it takes effect only once.
    assert_eq!(posts(&fixture).await, ["Once."]);
    let messages = fixture.messages(task.session_id.unwrap()).await;
    let roles: Vec<_> = messages.iter().map(|stored| stored.message.role).collect();
    assert_eq!(roles, [Role::User, Role::Notice, Role::Assistant, Role::Tool, Role::Assistant]);
    check_groups(&messages);
    let turns = fixture.turns(&task).await;
    assert_eq!(turns.iter().map(|turn| turn.calls).collect::<Vec<_>>(), [0, 2]);
}

#[tokio::test]
async fn a_turn_that_would_exceed_a_budget_waits_between_two_calls_and_continues_after_a_raise() {
    let page = "[[sim: call trial_long]] [[sim: call trial_long {\"cursor\": \"1000\"}]]";
    for of_campaign in [true, false] {
        let limit = Limit { tokens: Some(9000), micros: None };
        let (shared, own) =
            if of_campaign { (limit, Limit::default()) } else { (Limit::default(), limit) };
        let fixture = Fixture::with_limit(&[], shared).await;
        fixture.write_agent("writer", &writer("reserve_tokens: 300\n"));
        let worker = fixture.start_worker().await;
        let task = fixture.add_as("writer", "main", &format!("Write. {page}"), None, own).await;
        fixture.waiting_for_budget(1).await;
        let waiting = fixture.task(&task).await;
        assert_eq!(waiting.state, State::Queued, "{waiting:?}");
        let turns = fixture.turns(&task).await;
        let [turn] = turns.as_slice() else { panic!("{turns:?}") };
        let why = turn.error.clone().unwrap();
        let owner = if of_campaign { "campaign" } else { "task" };
        assert!(why.starts_with("waiting: budget: this call may use up to "), "{why}");
        // No other amount is reserved: only a raise helps.
        let limit = format!("the whole limit of the budget of the {owner} is 9000 tokens");
        let sums = format!("{limit}, of which {} tokens are spent; ", waiting.spent_tokens);
        assert!(why.contains(&sums) && why.contains("it continues when `dalsegno "), "{why}");
        assert!(turn.calls >= 1 && waiting.spent_tokens < 9000, "{turn:?}");
        assert_eq!(waiting.spent_tokens, turn.input_tokens + turn.output_tokens);
        let budget = fixture.budget().await;
        assert_eq!((budget.spent.tokens, budget.reserved.tokens), (waiting.spent_tokens, 0));
        check_groups(&fixture.messages(task.session_id.or(waiting.session_id).unwrap()).await);
        let tokens = Some(Some(1_000_000));
        match of_campaign {
            true => fixture.change_limit(LimitChange { tokens, ..Default::default() }).await,
            false => {
                let mut conn = fixture.pool.acquire().await.unwrap();
                let change = tasks::BudgetChange { tokens, ..Default::default() };
                tasks::change_budget(&mut conn, task.id, change).await.unwrap();
            }
        }
        let done = fixture.done(&task).await;
        fixture.settled().await;
        worker.stop().await;
        assert_eq!(fixture.budget().await.spent.tokens, done.spent_tokens);
        // The prompt is stored once, and a notice stands before what the second turn adds.
        let messages = fixture.messages(done.session_id.unwrap()).await;
        let n_with = |role| messages.iter().filter(|stored| stored.message.role == role).count();
        assert_eq!((n_with(Role::User), n_with(Role::Notice)), (1, 1));
        check_groups(&messages);
        let states: Vec<_> =
            fixture.turns(&task).await.iter().map(|it| (it.state, it.attempt)).collect();
        assert_eq!(states, [(turns::State::Failed, 1), (turns::State::Done, 1)]);
    }
}

#[tokio::test]
async fn each_failure_at_a_budget_is_an_event_during_a_turn_and_before_it() {
    let limit = Limit { tokens: Some(9000), micros: None };
    let fixture = Fixture::with_limit(&[], limit).await;
    fixture.fail_at_limit().await;
    fixture.write_agent("writer", &writer("reserve_tokens: 300\n"));
    let worker = fixture.start_worker().await;
    let page = "[[sim: call trial_long]] [[sim: call trial_long {\"cursor\": \"1000\"}]]";
    let task = fixture.ended(&fixture.add(&format!("Write. {page}")).await).await;
    assert_eq!(task.state, State::Failed, "{task:?}");
    assert!(task.spent_tokens > 0, "the turn had begun: {task:?}");
    let in_turn = ["session.opened", "turn.started", "turn.failed", "budget.refused"];
    assert_eq!(fixture.kinds(&task).await, in_turn);
    let event = fixture.feed().await.pop().unwrap();
    assert_eq!((event.kind.as_str(), event.session_id), ("budget.refused", task.session_id));
    assert_eq!(event.data, json!({ "error": task.error }));
    // Nothing is left, so the retry is refused before its turn begins.
    let spent = LimitChange { tokens: Some(Some(task.spent_tokens)), ..Default::default() };
    fixture.change_limit(spent).await;
    let mut conn = fixture.pool.acquire().await.unwrap();
    tasks::retry(&mut conn, task.id, fixture.clock_now()).await.unwrap();
    let task = fixture.ended(&task).await;
    fixture.settled().await;
    worker.stop().await;
    assert_eq!(task.state, State::Failed, "{task:?}");
    let kinds = fixture.kinds(&task).await;
    assert_eq!(kinds[in_turn.len()..], ["task.queued", "budget.refused"], "{kinds:?}");
    let event = fixture.feed().await.pop().unwrap();
    assert_eq!((event.session_id, &event.data["error"]), (None, &json!(task.error)));
}

#[tokio::test]
async fn two_concurrent_turns_never_exceed_their_shared_budget() {
    let limit = Limit { tokens: Some(14_000), micros: None };
    let fixture = Fixture::with_limit(&[], limit).await;
    fixture.fail_at_limit().await;
    fixture.write_agent("writer", &writer("reserve_tokens: 300\n"));
    let worker = fixture.start_worker().await;
    let posts: String =
        (1..=9).map(|n| format!("[[sim: call board_post {{\"text\": \"Part {n}.\"}}]] ")).collect();
    let prompt = format!("Write. {posts}");
    let tasks = [
        fixture.add_for("writer", "one", &prompt).await,
        fixture.add_for("writer", "two", &prompt).await,
    ];
    let [one, two] =
        [fixture.ended_after_pause(&tasks[0]).await, fixture.ended_after_pause(&tasks[1]).await];
    fixture.settled().await;
    worker.stop().await;
    for task in [&one, &two] {
        assert_eq!(task.state, State::Failed, "{task:?}");
        let why = task.error.as_deref().unwrap();
        assert!(why.contains("the budget of the campaign does not allow the call"), "{why}");
        check_groups(&fixture.messages(task.session_id.unwrap()).await);
    }
    let stored =
        "select count(*) from dalsegno.tasks where budget_refusal ->> 'owner' = 'campaign'";
    assert_eq!(fixture.count(stored).await, 2);
    let budget = fixture.budget().await;
    assert_eq!(budget.reserved.tokens, 0);
    assert!(budget.spent.tokens <= 14_000, "{budget:?}");
    let ledger = "select sum(input_tokens + output_tokens)::bigint from dalsegno.usage";
    assert_eq!(
        [one.spent_tokens + two.spent_tokens, fixture.count(ledger).await],
        [budget.spent.tokens; 2]
    );
}

/// Each turn settles what it has spent and begins to wait in one transaction.
#[tokio::test]
async fn turns_that_stop_at_the_limit_of_a_day_at_once_do_not_deadlock() {
    let fixture = fixture(&[], "reserve_tokens: 300\n").await;
    let limit_to = async |tokens: i64| {
        let mut conn = fixture.pool.acquire().await.unwrap();
        let change = Change { tokens: Some(Some(tokens)), ..Default::default() };
        budgets::change(&mut conn, (OwnerKind::Day, ""), change, "UTC", noon()).await.unwrap();
    };
    limit_to(40_000).await;
    let worker = fixture.start_worker().await;
    let posts: String =
        (1..=9).map(|n| format!("[[sim: call board_post {{\"text\": \"Part {n}.\"}}]] ")).collect();
    let mut tasks = Vec::new();
    for n in 0..8 {
        tasks.push(fixture.add_for("writer", &format!("w_{n}"), &format!("Write. {posts}")).await);
    }
    fixture.waiting_for_budget(8).await;
    limit_to(100_000_000).await;
    for task in &tasks {
        fixture.done(task).await;
    }
    fixture.settled().await;
    worker.stop().await;
    let deadlocks = "select deadlocks from pg_stat_database where datname = current_database()";
    assert_eq!(fixture.count(deadlocks).await, 0);
    let day =
        budgets::find(&fixture.pool, OwnerKind::Day, "", Some(noon())).await.unwrap().unwrap();
    let ledger = "select sum(input_tokens + output_tokens)::bigint from dalsegno.usage";
    assert_eq!((day.spent.tokens, day.reserved.tokens), (fixture.count(ledger).await, 0));
}

/// Calls for different pages of a long result, one after the other.
fn pages(n: u32) -> String {
    (0..n).map(|page| format!("[[sim: call trial_long {{\"cursor\": \"{page}\"}}]] ")).collect()
}

#[tokio::test]
async fn a_turn_that_outgrows_its_window_shows_older_results_shortened() {
    let fixture = fixture(&[("sim.window_tokens", "6000")], "reserve_tokens: 300\n").await;
    let worker = fixture.start_worker().await;
    let task = fixture.done(&fixture.add(&format!("Write. {}", pages(9))).await).await;
    worker.stop().await;
    let messages = fixture.messages(task.session_id.unwrap()).await;
    check_groups(&messages);
    // The transcript keeps the messages of the last call: only the latest result complete.
    let chars: Vec<_> = results(&messages).iter().map(|text| text.chars().count()).collect();
    let (last, older) = chars.split_last().unwrap();
    assert!(*last > 1000 && older.iter().all(|chars| *chars < 600), "{chars:?}");
    let manifests = fixture.manifests(task.session_id.unwrap()).await;
    assert_eq!(manifests.len(), 10);
    assert!(!manifests[1].manifest.to_string().contains("shortened"));
    assert!(manifests[9].manifest.to_string().contains("shortened"));
    assert_eq!(fixture.turns(&task).await.len(), 1);
}

#[tokio::test]
async fn older_history_is_compacted_in_the_middle_of_a_turn() {
    const FILLER: &str = "The harbour has a mole, a light, two cranes and a customs house.";
    let fixture = fixture(&[("sim.window_tokens", "7000")], "reserve_tokens: 300\n").await;
    let worker = fixture.start_worker().await;
    for number in 1..=9 {
        let prompt =
            format!("Write part {number} of HARBOUR-{number:04}. {FILLER} [[sim: words 200]]");
        fixture.done(&fixture.add(&prompt).await).await;
    }
    let task = fixture.add(&format!("Write. {} [[sim: say Done.]]", pages(6))).await;
    let before = fixture.sessions().await[0].generation;
    let task = fixture.done(&task).await;
    fixture.settled().await;
    worker.stop().await;
    assert_eq!(task.result.as_deref(), Some("Done."));
    let session = fixture.session(&task).await;
    assert!(session.generation > before, "{session:?}");
    let kinds = fixture.kinds(&task).await;
    assert_eq!(kinds, ["turn.started", "turn.done"]);
    let feed = fixture.feed().await;
    let place = |kind: &str| feed.iter().rposition(|event| event.kind == kind).unwrap();
    assert!(
        place("turn.started") < place("session.compacted"),
        "history was compacted before the turn"
    );
    assert!(
        place("session.compacted") < place("turn.done"),
        "history was compacted after the turn"
    );
    // One turn, with calls before and after the compaction.
    let manifests = fixture.manifests(session.id).await;
    let of_turn: Vec<_> = manifests.iter().filter(|it| it.turn == 10).collect();
    let has_summary = |it: &&dalsegno::domain::manifests::Manifest| {
        it.manifest.to_string().contains("\"summary\"")
    };
    assert!(!has_summary(&of_turn[0]) && has_summary(of_turn.last().unwrap()));
    check_groups(&fixture.messages(session.id).await);
    // The messages fit into the turns that follow.
    let worker = fixture.start_worker().await;
    fixture.done(&fixture.add("And on.").await).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_turn_too_large_for_the_window_ends_with_a_reason() {
    let fixture = fixture(&[("sim.window_tokens", "2600")], "reserve_tokens: 200\n").await;
    let worker = fixture.start_worker().await;
    let many: String = (0..12)
        .map(|page| format!("[[sim: also trial_long {{\"cursor\": \"{page}\"}}]] "))
        .collect();
    let task =
        fixture.ended(&fixture.add(&format!("Write. [[sim: call status]] {many}")).await).await;
    fixture.settled().await;
    assert_eq!(task.state, State::Failed, "{task:?}");
    let why = task.error.clone().unwrap();
    assert!(why.contains("no longer fit") && why.contains("larger window"), "{why}");
    assert_eq!(fixture.turns(&task).await.len(), 1);
    // It leaves nothing that hinders the next turn, which gets a notice of the interruption.
    assert_eq!(results(&fixture.messages(task.session_id.unwrap()).await).len(), 0);
    let next = fixture.done(&fixture.add("Write less.").await).await;
    worker.stop().await;
    let told = message_lines(&fixture.messages(next.session_id.unwrap()).await);
    assert!(told.iter().any(|line| line.starts_with("Notice: The turn before")), "{told:?}");
}
