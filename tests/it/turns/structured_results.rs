//! Results that have to match a JSON Schema: matching at once, after corrections, or never.

use std::os::unix::process::ExitStatusExt as _;

use dalsegno::domain::{
    agents::Library,
    amount::Limit,
    tasks::{self, State, Task},
    turns,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Fixture, fixture::WRITER};
use crate::providers::fake_ollama::{FakeOllama, Play};

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": { "title": { "type": "string" } },
        "required": ["title"],
        "additionalProperties": false,
    })
}

/// Adds a task of the writer.
async fn add(fixture: &Fixture, prompt: &str, schema: Option<&Value>, budget: Limit) -> Task {
    let config = fixture.config();
    let catalogue = Library::open(&config.agents).unwrap().current();
    let new = tasks::New {
        budget,
        result_schema: schema,
        ..tasks::New::for_agent(fixture.campaign.id, catalogue.agent("writer").unwrap(), prompt)
    };
    let mut tx = fixture.pool.begin().await.unwrap();
    let added = tasks::add(&mut tx, &config.tasks, &new, fixture.clock_now()).await.unwrap();
    tx.commit().await.unwrap();
    added.task
}

pub async fn ask(fixture: &Fixture, prompt: &str) -> Task {
    add(fixture, prompt, Some(&schema()), Limit::default()).await
}

/// Returns the faults that the feed names for a task.
async fn faults(fixture: &Fixture, task: &Task) -> Vec<String> {
    let events = fixture.feed().await.into_iter();
    let failed = events.filter(|it| it.task_id == Some(task.id) && it.kind == "turn.failed");
    failed.map(|event| event.data["error"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn an_answer_that_matches_is_the_result_as_text_and_as_json() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let task = ask(&fixture, "Write. [[sim: json {\"title\": \"One\"}]]").await;
    let task = fixture.done(&task).await;
    let plain = fixture.done(&fixture.add("Go on.").await).await;
    worker.stop().await;
    assert_eq!(task.result.as_deref(), Some("{\"title\":\"One\"}"));
    assert_eq!(task.result_json, Some(json!({ "title": "One" })));
    assert_eq!(plain.result_json, None);
    assert_eq!(fixture.turns(&task).await.len(), 1);
    let events = fixture.feed().await;
    let data = |task: &Task| {
        let done = events.iter().find(|it| it.task_id == Some(task.id) && it.kind == "turn.done");
        done.unwrap().data.clone()
    };
    assert_eq!(data(&task)["result_json"], json!({ "title": "One" }));
    assert_eq!(data(&plain).get("result_json"), None);
    let manifests = fixture.manifests(task.session_id.unwrap()).await;
    let parts = |at: usize| {
        let parts = manifests[at].manifest["parts"].as_array().unwrap().clone();
        parts.into_iter().find(|part| part["kind"] == "result_schema")
    };
    let part = parts(0).unwrap();
    assert_eq!((&part["sent"], &part["why"]), (&json!(true), &json!("this_turn")));
    assert_eq!(parts(1), None, "the schema belongs to its task");
    let body = "select dalsegno.webhook_body(t)::jsonb -> 'data' from dalsegno.tasks as t where result_json is not null";
    let body = fixture.json(body).await;
    assert_eq!(body["result_json"], json!({ "title": "One" }));
    assert_eq!(body["truncated"], false);
}

#[tokio::test]
async fn an_answer_is_corrected_in_further_turns_which_quote_the_fault_and_are_charged() {
    for n_wrong in [1, 2] {
        let fixture = Fixture::new(&[]).await;
        let worker = fixture.start_worker().await;
        let prompt = format!("Write. [[sim: json {{\"title\": 7}} {n_wrong} times]]");
        let task = fixture.done(&ask(&fixture, &prompt).await).await;
        worker.stop().await;
        // The simulation makes an answer up that matches.
        assert_eq!(task.result_json, Some(json!({ "title": "simulated" })));
        let turns = fixture.turns(&task).await;
        assert_eq!(turns.len(), n_wrong + 1);
        assert!(turns.iter().all(|turn| turn.state == turns::State::Done && turn.attempt == 1));
        let flagged = turns.iter().filter(|turn| turn.flags == ["result_mismatch"]).count();
        assert_eq!(flagged, n_wrong);
        let faults = faults(&fixture, &task).await;
        assert_eq!(faults.len(), n_wrong);
        assert!(faults[0].contains("at `/title`: want string, but got number"), "{faults:?}");
        let transcript = fixture.transcript(task.session_id.unwrap()).await;
        assert_eq!(transcript.len(), 2 + 2 * n_wrong, "{transcript:?}");
        for correction in transcript[2..].iter().step_by(2) {
            assert!(correction.starts_with("Notice: Your last answer cannot be used: "));
            assert!(correction.contains(&faults[0]), "{correction}");
        }
        let calls = "select count(*) from dalsegno.usage where purpose = 'turn'";
        assert_eq!(fixture.count(calls).await, i64::try_from(n_wrong).unwrap() + 1);
        let tokens = "select sum(input_tokens + output_tokens)::bigint from dalsegno.usage";
        assert_eq!(fixture.count(tokens).await, task.spent_tokens);
        let open = "select count(*) from dalsegno.tasks where result_fault is not null";
        assert_eq!(fixture.count(open).await, 0);
    }
}

#[tokio::test]
async fn a_task_fails_with_its_last_answer_and_the_fault_after_the_last_correction() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let task = ask(&fixture, "Write. [[sim: say No JSON.]]").await;
    let failed = fixture.ended(&task).await;
    assert_eq!((failed.state, failed.result.as_deref()), (State::Failed, Some("No JSON.")));
    assert_eq!(failed.result_json, None);
    let error = failed.error.unwrap();
    assert!(
        error.starts_with("the answer is not JSON: ") && error.contains("2 corrections"),
        "{error}"
    );
    assert_eq!(fixture.turns(&task).await.len(), 3);

    // A retry begins anew.
    let mut tx = fixture.pool.begin().await.unwrap();
    let again = tasks::retry(&mut tx, task.id, fixture.clock_now()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!((again.result, again.error), (None, None));
    fixture.ended(&task).await;
    worker.stop().await;
    assert_eq!(fixture.turns(&task).await.len(), 6);

    let strict = fixture.start_worker_with(&[("tasks.max_corrections", "0")]).await;
    let task = ask(&fixture, "Again. [[sim: say No JSON.]]").await;
    let failed = fixture.ended(&task).await;
    strict.stop().await;
    assert_eq!(fixture.turns(&task).await.len(), 1);
    assert!(failed.error.unwrap().contains("no correction was asked for"));
}

#[tokio::test]
async fn the_schema_of_a_task_wins_over_that_of_its_agent() {
    let fixture = Fixture::new(&[]).await;
    let of_agent = "result_schema: { type: array, items: { type: integer }, minItems: 2 }\n---\n";
    fixture.write_agent("writer", &WRITER.replacen("---\nYou", &format!("{of_agent}You"), 1));
    let worker = fixture.start_worker().await;
    let of_agent = fixture.done(&add(&fixture, "Count.", None, Limit::default()).await).await;
    let of_task = fixture.done(&ask(&fixture, "Write.").await).await;
    worker.stop().await;
    assert_eq!(of_agent.result_json, Some(json!([1, 1])));
    assert_eq!(of_task.result_json, Some(json!({ "title": "simulated" })));
}

#[tokio::test]
async fn a_correction_waits_for_its_budget_and_can_be_cancelled() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let first = fixture.done(&fixture.add("Begin. [[sim: say Fine.]]").await).await;
    // Enough for one turn with its reserve, and not for two.
    let budget = Limit { tokens: Some(first.spent_tokens + 8192 + 500), micros: None };
    let task = add(&fixture, "Write. [[sim: say No JSON.]]", Some(&schema()), budget).await;
    fixture.waiting_for_budget(1).await;
    let turns = fixture.turns(&task).await.len();
    assert!((1..3).contains(&turns), "{turns}");
    let fault =
        "select count(*) from dalsegno.tasks where result_fault is not null and state = 'queued'";
    assert_eq!(fixture.count(fault).await, 1);
    fixture.cancel(&task).await;
    assert_eq!(fixture.ended(&task).await.state, State::Cancelled);
    worker.stop().await;
    assert_eq!(
        fixture.count("select count(*) from dalsegno.tasks where result_fault is not null").await,
        0
    );
}

/// The first worker dies after the answer was committed, the second one in the call of the correction.
#[tokio::test]
async fn a_worker_that_dies_between_or_in_corrections_loses_and_repeats_nothing() {
    let fixture = Fixture::new(&[]).await;
    let task =
        ask(&fixture, "Write. [[sim: json 7 once]] [[sim: json {\"title\": \"One\"}]]").await;
    let mut between = fixture.process(&[("queue.crash_at", "after_commit")]);
    let died = between.ended_after_pause().await;
    assert_eq!(died.signal(), Some(Signal::ABORT.as_raw()), "{}", between.log());
    assert_eq!(fixture.turns(&task).await.len(), 1);
    let mut within = fixture.process(&[("worker.crash_turns_at", "after_call")]);
    let died = within.ended_after_pause().await;
    assert_eq!(died.signal(), Some(Signal::ABORT.as_raw()), "{}", within.log());
    let heir = fixture.process(&[]);
    let task = fixture.ended_after_pause(&task).await;
    fixture.settled().await;
    drop(heir);
    // The simulation counts in its process: the directive gave each of them the wrong answer first.
    assert_eq!(task.state, State::Done, "{task:?}");
    assert_eq!(task.result_json, Some(json!({ "title": "One" })));
    let transcript = fixture.transcript(task.session_id.unwrap()).await;
    let corrections = transcript.iter().filter(|line| line.contains("cannot be used")).count();
    let turns = fixture.turns(&task).await;
    let cut_off = turns.iter().filter(|turn| turn.state == turns::State::Interrupted).count();
    let mismatched = turns.iter().filter(|turn| turn.flags == ["result_mismatch"]).count();
    assert_eq!((cut_off, mismatched, corrections), (1, mismatched, mismatched), "{transcript:?}");
    let calls = i64::try_from(turns.len() - cut_off).unwrap();
    assert_eq!(fixture.count("select count(*) from dalsegno.usage").await, calls);
}

#[tokio::test]
async fn ollama_gets_the_schema_as_format_unless_tools_are_offered() {
    const TOOLED: &str = "---\nname: writer\ndescription: Writes\nprovider: ollama\nmodel: qwen3:8b\n\
                          tools: mcp__dalsegno__status\n---\nYou write.\n";
    let fake = FakeOllama::playing([
        Play::Calls(vec![("status", json!({}))]),
        Play::Says(&["Here it is: ", "{\"title\": \"One\"}"]),
        Play::Says(&["```json\n{\"title\": \"One\"}\n```"]),
    ])
    .await;
    let url = format!("http://{}", fake.addr);
    let settings = [("ollama.base_url", url.as_str()), ("ollama.num_ctx", "16384")];
    let fixture = Fixture::new(&settings).await;
    fixture.write_agent("writer", TOOLED);
    let worker = fixture.start_worker().await;
    let task = fixture.done(&ask(&fixture, "Write.").await).await;
    worker.stop().await;
    assert_eq!(task.result_json, Some(json!({ "title": "One" })));
    let chats = fake.chats();
    assert_eq!(chats.len(), 3);
    for chat in &chats[..2] {
        assert_eq!((chat.get("format"), chat["tools"].is_array()), (None, true), "{chat}");
    }
    assert_eq!((&chats[2]["format"], chats[2].get("tools")), (&schema(), None));
    let messages = chats[2]["messages"].as_array().unwrap();
    let last = messages.last().unwrap()["content"].as_str().unwrap();
    assert!(last.contains("<result_schema ") && last.contains("<notice "), "{last}");
    assert!(last.contains("the answer is not JSON: "), "{last}");
    assert!(!last.contains("<task "), "{last}");
}

#[tokio::test]
async fn the_command_reads_a_schema_from_a_file_or_as_json_and_prints_the_result() {
    let fixture = Fixture::new(&[]).await;
    let campaign = fixture.campaign.id.to_string();
    let file = fixture.folder().join("title.schema.json");
    std::fs::write(&file, schema().to_string()).unwrap();
    let worker = fixture.start_worker().await;
    for given in [file.to_str().unwrap(), &schema().to_string()] {
        let prompt = "Write. [[sim: json {\"title\": \"One\"}]]";
        let arguments = ["--campaign", &campaign, "--agent", "writer", "--result-schema", given];
        let add = [&["task", "add"], &arguments[..], &["--wait", prompt]].concat();
        let added = fixture.run_configured(&add).await;
        let printed = String::from_utf8_lossy(&added.stdout);
        assert!(added.status.success() && printed.contains("{\"title\":\"One\"}"), "{added:?}");
    }
    worker.stop().await;
    let wrong = ["--campaign", &campaign, "--agent", "writer", "--result-schema", "{\"type\": 7}"];
    let refused =
        fixture.run_configured(&[&["task", "add"], &wrong[..], &["Write."]].concat()).await;
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && error.contains("/type"), "{refused:?}");
    assert_eq!(fixture.count("select count(*) from dalsegno.tasks").await, 2);
}

#[tokio::test]
async fn an_agent_file_with_an_invalid_schema_is_refused_at_its_line() {
    let fixture = Fixture::new(&[]).await;
    let file =
        "---\nname: writer\ndescription: Writes\nresult_schema: { type: 7 }\n---\nYou write.\n";
    fixture.write_agent("writer", file);
    let checked = fixture.run_configured(&["agent", "check"]).await;
    let error = [checked.stdout.as_slice(), &checked.stderr].concat();
    let error = String::from_utf8_lossy(&error);
    assert!(!checked.status.success(), "{checked:?}");
    assert!(error.contains("writer.md:4") && error.contains("result_schema"), "{error}");
}
