//! Turns with a fault: of the provider, of the worker, or a person who cancels.

use chrono::TimeDelta;
use dalsegno::{
    clock::Clock as _,
    domain::{
        sessions,
        tasks::{State, Task},
        turns,
    },
};
use sqlx::PgPool;

use super::Fixture;
use crate::app::eventually;

async fn arrives(fixture: &Fixture, task: &Task) {
    eventually("the call is running", async || {
        let turns = fixture.turns(task).await;
        turns.iter().any(|turn| turn.state == turns::State::Running).then_some(())
    })
    .await;
}

fn states(turns: &[turns::Turn]) -> Vec<turns::State> {
    turns.iter().map(|turn| turn.state).collect()
}

#[tokio::test]
async fn a_failed_call_is_retried_and_the_prompt_is_sent_once() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add("Write. [[sim: error 500 once]]").await;
    let task = fixture.done(&task).await;
    worker.stop().await;
    let turns = fixture.turns(&task).await;
    assert_eq!(states(&turns), [turns::State::Failed, turns::State::Done]);
    assert_eq!([turns[0].attempt, turns[1].attempt], [1, 2]);
    let transcript = fixture.transcript(task.session_id.unwrap()).await;
    assert_eq!(transcript.len(), 2, "{transcript:?}");
    let kinds = fixture.kinds(&task).await;
    let expected = ["session.opened", "turn.started", "turn.failed", "turn.started", "turn.done"];
    assert_eq!(kinds, expected);
    assert_eq!(fixture.count("select count(*) from dalsegno.usage").await, 2);
}

#[tokio::test]
async fn a_call_that_always_fails_fails_its_task_with_the_reason() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add("Write. [[sim: error 404]]").await;
    let task = fixture.ended(&task).await;
    assert_eq!(task.state, State::Failed);
    assert!(task.error.as_ref().unwrap().contains("no model"), "{task:?}");
    assert_eq!(states(&fixture.turns(&task).await), [turns::State::Failed]);
    // The conversation continues.
    let next = fixture.add("Write something else.").await;
    fixture.done(&next).await;
    worker.stop().await;
    assert_eq!(fixture.session(&next).await.id, task.session_id.unwrap());
    let dead =
        fixture.count("select count(*) from dalsegno.dead_jobs where reason = 'failed'").await;
    assert_eq!(dead, 1);
}

#[tokio::test]
async fn a_late_answer_is_placed_after_its_prompt() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add("Name the light. [[sim: error 404 once]]").await;
    assert_eq!(fixture.ended(&task).await.state, State::Failed);
    fixture.done(&fixture.add("Name the mole. [[sim: say Stone.]]").await).await;
    let retry = async || {
        let mut tx = fixture.pool.begin().await.unwrap();
        dalsegno::domain::tasks::retry(&mut tx, task.id, fixture.clock.now()).await.unwrap();
        tx.commit().await.unwrap();
        fixture.ended(&task).await
    };
    let again = retry().await;
    assert_eq!(again.state, State::Done, "{again:?}");
    let said = fixture.transcript(again.session_id.unwrap()).await;
    let roles: Vec<_> = said.iter().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(roles, ["User", "User", "Assistant", "Notice", "Assistant"], "{said:?}");
    assert!(said[3].contains("tried again") && said[3].contains("Name the light."), "{said:?}");
    // An answer directly after its question needs no notice.
    let next = fixture.add("Name the crane. [[sim: error 500 once]]").await;
    fixture.done(&next).await;
    let said = fixture.transcript(again.session_id.unwrap()).await;
    assert_eq!(said.len(), 7, "{said:?}");
    worker.stop().await;
}

/// Makes the database refuse the first `n_times` writes of a call into the ledger with this code.
pub async fn refuse_ledger(pool: &PgPool, n_times: u32, code: &str) {
    refuse_writes(pool, "insert on dalsegno.usage for each row", n_times, code).await;
}

/// Makes the database refuse the first `n_times` of these writes with this code.
pub async fn refuse_writes(pool: &PgPool, writes: &str, n_times: u32, code: &str) {
    let statements = format!(
        "create sequence public.refused;
         create function public.refuse() returns trigger language plpgsql as $body$
         begin
           if nextval('public.refused') <= {n_times} then
             raise exception using errcode = '{code}', message = 'told to refuse';
           end if;
           return new;
         end $body$;
         create trigger refuse before {writes} execute function public.refuse();"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(statements)).execute(pool).await.unwrap();
}

#[tokio::test]
async fn a_paid_answer_waits_for_the_database() {
    let fixture = Fixture::new(&[]).await;
    // Like a server that is shut down, for more than three seconds of tries.
    refuse_ledger(&fixture.pool, 5, "57P01").await;
    let worker = fixture.start_worker().await;
    let task = fixture.done(&fixture.add("Write.").await).await;
    worker.stop().await;
    assert_eq!(states(&fixture.turns(&task).await), [turns::State::Done]);
    assert_eq!(fixture.count("select count(*) from dalsegno.usage").await, 1);
    assert_eq!(fixture.count("select last_value from public.refused").await, 6);
}

#[tokio::test]
async fn an_unstorable_answer_is_not_retried_forever() {
    let fixture = Fixture::new(&[]).await;
    refuse_ledger(&fixture.pool, 3, "P0001").await;
    let worker = fixture.start_worker().await;
    let task = fixture.done(&fixture.add("Write.").await).await;
    worker.stop().await;
    let turns = fixture.turns(&task).await;
    assert_eq!(states(&turns), [turns::State::Interrupted, turns::State::Done]);
}

#[tokio::test]
async fn a_busy_provider_uses_up_no_attempt() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add("Write. [[sim: error 503 2 times]]").await;
    let task = fixture.ended_after_waits(&task).await;
    assert_eq!(task.state, State::Done);
    worker.stop().await;
    let turns = fixture.turns(&task).await;
    assert_eq!(states(&turns), [turns::State::Failed, turns::State::Failed, turns::State::Done]);
    assert!(turns.iter().all(|turn| turn.attempt == 1), "{turns:?}");
    assert!(fixture.kinds(&task).await.contains(&"turn.snoozed".to_owned()));
    // The call was not made, so the ledger has no line for it.
    assert_eq!(fixture.count("select count(*) from dalsegno.usage").await, 1);
}

#[tokio::test]
async fn a_task_cancelled_during_its_answer_ends_and_keeps_the_partial_output() {
    let fixture = Fixture::new(&[("sim.chunk_delay_ms", "20"), ("sim.chunk_chars", "4")]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add("Write. [[sim: words 2000]]").await;
    eventually("a part of the answer has arrived", async || {
        let feed = fixture.feed().await;
        let mut progress = feed.iter().filter(|event| event.kind == "turn.progress");
        progress.find(|event| event.data["bytes"].as_i64() > Some(0)).map(drop)
    })
    .await;
    // The answer would take another minute.
    fixture.cancel(&task).await;
    let task = fixture.ended(&task).await;
    assert_eq!(task.state, State::Cancelled);
    let messages = fixture.messages(task.session_id.unwrap()).await;
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(messages[1].partial && !messages[1].message.text.is_empty());
    let interrupted =
        fixture.count("select count(*) from dalsegno.usage where outcome = 'interrupted'").await;
    assert_eq!(interrupted, 1);
    fixture.settled().await;
    let outcome =
        fixture.count("select count(*) from dalsegno.runs where outcome = 'cancelled'").await;
    assert_eq!(outcome, 1);
    // The next task gets a notice.
    let next = fixture.add("Write. [[sim: say done]]").await;
    let next = fixture.done(&next).await;
    let transcript = fixture.transcript(next.session_id.unwrap()).await;
    assert!(
        transcript[2].starts_with("Notice: The turn before this one was interrupted"),
        "{transcript:?}"
    );
    worker.stop().await;
}

#[tokio::test]
async fn a_drain_gives_the_turn_back_without_using_up_an_attempt() {
    let fixture = Fixture::new(&[("sim.latency_ms", "60000")]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add("Write.").await;
    arrives(&fixture, &task).await;
    worker.stop().await;
    let drained = fixture.task(&task).await;
    assert_eq!(drained.state, State::Queued);
    let turns = fixture.turns(&task).await;
    assert_eq!(states(&turns), [turns::State::Interrupted]);
    let session = fixture.session(&task).await;
    assert_eq!(session.state, sessions::State::Interrupted);
    let given_back = "select count(*) from dalsegno.runs where outcome = 'given_back'";
    assert_eq!(fixture.count(given_back).await, 1);
    // A faster worker finishes it, as the first attempt.
    let mut quick = fixture.process(&[("sim.latency_ms", "0")]);
    let task = fixture.done(&task).await;
    let turns = fixture.turns(&task).await;
    assert_eq!(states(&turns), [turns::State::Interrupted, turns::State::Done]);
    assert_eq!(turns[1].attempt, 1);
    let transcript = fixture.transcript(task.session_id.unwrap()).await;
    assert_eq!(transcript.len(), 3, "{transcript:?}");
    assert!(transcript[0].starts_with("User: Write."));
    assert!(transcript[1].starts_with("Notice: "));
    quick.signal(rustix::process::Signal::TERM);
    assert!(quick.ended().await.success());
}

#[tokio::test]
async fn a_removed_agent_fails_the_task_with_a_reason() {
    let fixture = Fixture::new(&[]).await;
    fixture.write_agent("editor", &super::fixture::WRITER.replace("writer", "editor"));
    let task = fixture.add_for("editor", "main", "Edit.").await;
    let stray =
        "---\nname: stray\ndescription: d\nprovider: claude\nmodel: opus\n---\nYou stray.\n";
    fixture.write_agent("stray", stray);
    let other = fixture.add_for("stray", "main", "Edit.").await;
    fixture.remove_agent("editor");
    let worker = fixture.start_worker().await;
    let task = fixture.ended(&task).await;
    assert!(task.error.as_ref().unwrap().contains("there is no agent `editor`"), "{task:?}");
    assert_eq!(fixture.kinds(&task).await, ["task.failed"]);
    let other = fixture.ended(&other).await;
    assert!(
        other.error.as_ref().unwrap().contains("no credential is configured for Claude"),
        "{other:?}"
    );
    worker.stop().await;
}

#[tokio::test]
async fn broken_agent_files_are_reported_and_workers_start() {
    let fixture = Fixture::new(&[]).await;
    fixture.write_agent("broken", "---\nname: other\nwindow_tokens: 3\ncolour: blue\n---\n");
    let mut worker = fixture.process(&[]);
    let is_named = |word: &&str| worker.log().contains(*word);
    eventually("the worker reports the problem", async || {
        let words = ["broken.md", "window_tokens", "colour", "description"];
        words.iter().all(is_named).then_some(())
    })
    .await;
    let task = fixture.done(&fixture.add("Write.").await).await;
    assert!(task.result.is_some(), "{task:?}");
    worker.signal(rustix::process::Signal::TERM);
    assert_eq!(worker.ended().await.code(), Some(0), "{}", worker.log());
}

#[tokio::test]
async fn a_budget_is_reserved_settled_and_refused_with_a_reason() {
    let limit = dalsegno::domain::amount::Limit { micros: None, tokens: Some(3_000) };
    let settings = [("sim.window_tokens", "4000")];
    let fixture = Fixture::with_limit(&settings, limit).await;
    fixture.fail_at_limit().await;
    fixture.write_agent(
        "writer",
        "---\nname: writer\ndescription: Writes\nreserve_tokens: 200\n---\nYou write.\n",
    );
    let worker = fixture.start_worker().await;
    let mut refused = None;
    for number in 0..40 {
        let task = fixture.add(&format!("Write part {number}.")).await;
        let task = fixture.ended(&task).await;
        if task.state == State::Failed {
            refused = Some(task);
            break;
        }
    }
    let refused = refused.expect("the budget ends before the tasks do");
    let error = refused.error.clone().unwrap();
    assert!(error.contains("the budget of the campaign does not allow the call"), "{error}");
    assert!(error.contains("dalsegno campaign budget"), "{error}");
    assert_eq!(fixture.kinds(&refused).await, ["budget.refused"]);
    let budget =
        fixture.json("select to_jsonb(b) from dalsegno.campaign_budgets as b limit 1").await;
    assert_eq!(budget["reserved_tokens"], 0);
    assert!(budget["spent_tokens"].as_i64().unwrap() <= 3_000, "{budget}");
    let ledger = fixture
        .count("select sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0))::bigint from dalsegno.usage")
        .await;
    assert_eq!(budget["spent_tokens"].as_i64().unwrap(), ledger);
    worker.stop().await;
}

#[tokio::test]
async fn a_task_stays_within_its_own_budget_and_prices_are_frozen() {
    let prices = r#"[{ provider = "sim", model = "sim-1", input = 1000000, output = 2000000 }]"#;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("[prices]\nmodels = {prices}\n")).unwrap();
    let fixture = Fixture::new(&[]).await.with_file(file.path());
    let worker = fixture.start_worker().await;
    let small = dalsegno::domain::amount::Limit { micros: Some(10), tokens: None };
    let poor = fixture.add_as("writer", "main", "Write.", None, small).await;
    let poor = fixture.ended(&poor).await;
    let error = poor.error.unwrap();
    assert!(error.contains("; the whole limit of the budget of the task is 0.00001; "), "{error}");
    let rich = fixture.add("Write.").await;
    let rich = fixture.done(&rich).await;
    let turn = &fixture.turns(&rich).await[0];
    assert_eq!(turn.cost_micros, turn.input_tokens + 2 * turn.output_tokens);
    assert_eq!(rich.spent_micros, turn.cost_micros);
    let price = fixture.json("select price from dalsegno.usage limit 1").await;
    assert_eq!(price["input"], 1_000_000);
    worker.stop().await;
}

#[tokio::test]
async fn changed_agent_files_and_settings_rebuild_the_session() {
    let fixture = Fixture::new(&[("sessions.ttl_days.sim", "7")]).await;
    let worker = fixture.start_worker().await;
    let turn = async |prompt: &str, mode| {
        let task = fixture.add_as("writer", "main", prompt, mode, Default::default()).await;
        let task = fixture.done(&task).await;
        fixture.session(&task).await
    };
    let first = turn("One.", None).await;
    fixture.write_agent("writer", "---\nname: writer\ndescription: Writes\n---\nYou write well.\n");
    let second = turn("Two.", None).await;
    assert_eq!(second.opened_because, sessions::Reason::PromptChanged);
    assert_eq!(second.predecessor_id, Some(first.id));
    assert_eq!(fixture.transcript(second.id).await.len(), 4);
    let prompt = "---\nname: writer\ndescription: Writes\nmodel: sim-2\n---\nYou write well.\n";
    fixture.write_agent("writer", prompt);
    let third = turn("Three.", None).await;
    assert_eq!(third.opened_because, sessions::Reason::ModelChanged);
    fixture.advance(TimeDelta::days(8));
    let fourth = turn("Four.", None).await;
    assert_eq!(fourth.opened_because, sessions::Reason::Expired);
    assert!(fourth.expires_at > fixture.clock.now());
    let mut conn = fixture.pool.acquire().await.unwrap();
    sessions::ask_rebuild(&mut conn, fourth.id, sessions::Reason::Reset).await.unwrap();
    drop(conn);
    let fifth = turn("Five.", None).await;
    assert_eq!(fifth.opened_because, sessions::Reason::Reset);
    // Messages from before the expiry are in the summary.
    assert_eq!(fixture.transcript(fifth.id).await.len(), 4);
    let alone = turn("Alone.", Some(dalsegno::domain::agents::SessionMode::None)).await;
    assert!(alone.ephemeral && alone.state == sessions::State::Closed);
    assert_eq!(fixture.transcript(alone.id).await.len(), 2);
    let fresh = turn("Fresh.", Some(dalsegno::domain::agents::SessionMode::Fresh)).await;
    assert_eq!(fresh.opened_because, sessions::Reason::Fresh);
    assert_eq!(fixture.transcript(fresh.id).await.len(), 2);
    let last = turn("Last.", None).await;
    assert_eq!(last.id, fresh.id);
    // A restored conversation is told so, on its first call only.
    let notices = |manifest: &dalsegno::domain::manifests::Manifest| {
        manifest.manifest["parts"].as_array().unwrap().iter().any(|part| part["kind"] == "notice")
    };
    let manifests = fixture.manifests(second.id).await;
    assert!(notices(&manifests[0]), "{:?}", manifests[0].manifest);
    assert!(!notices(&fixture.manifests(first.id).await[0]));
    worker.stop().await;
}
