//! The worker dies, or a step fails, at each named place of a turn. Afterwards everything is as without the fault,
//! except for the interrupted turn and its notice.

use std::os::unix::process::ExitStatusExt as _;

use dalsegno::{
    domain::{
        campaigns,
        tasks::{State, Task},
        turns,
    },
    queue::admin,
};
use futures_util::future::join_all;
use rustix::process::Signal;

use super::Fixture;
use crate::app::eventually;

/// Places before the turn is committed, and after it. Only the second kind leaves an interrupted turn.
const BEFORE_TURN: [(&str, &str); 5] = [
    ("queue.crash_at", "after_claim"),
    ("queue.crash_at", "before_run"),
    ("worker.crash_turns_at", "before_resolve"),
    ("worker.crash_turns_at", "after_resolve"),
    ("worker.crash_turns_at", "before_begin_commit"),
];
const IN_TURN: [(&str, &str); 5] = [
    ("worker.crash_turns_at", "after_begin"),
    ("worker.crash_turns_at", "after_call"),
    ("worker.crash_turns_at", "before_job_end"),
    ("queue.crash_at", "before_end"),
    ("queue.crash_at", "after_end_write_before_commit"),
];
const AFTER_TURN: [(&str, &str); 1] = [("queue.crash_at", "after_commit")];

/// Starts a conversation, and adds two more tasks.
async fn conversation() -> (Fixture, [Task; 3]) {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let first = fixture.add("One. [[sim: say first answer]]").await;
    fixture.ended_after_pause(&first).await;
    worker.stop().await;
    let second = fixture.add("Two. [[sim: say second answer]]").await;
    let third = fixture.add("Three. [[sim: say third answer]]").await;
    (fixture, [first, second, third])
}

/// Checks the state that must be reached after every kind of fault.
async fn check(what: &str, fixture: &Fixture, tasks: &[Task; 3], n_cut_off: usize) {
    fixture.settled().await;
    let session = fixture.session(&tasks[0]).await;
    let transcript = fixture.transcript(session.id).await;
    let said: Vec<_> = transcript.iter().filter(|line| !line.starts_with("Notice")).collect();
    let expected = [
        "User: One. [[sim: say first answer]]",
        "Assistant: first answer",
        "User: Two. [[sim: say second answer]]",
        "Assistant: second answer",
        "User: Three. [[sim: say third answer]]",
        "Assistant: third answer",
    ];
    assert_eq!(said, expected, "{what}");
    assert_eq!(transcript.len() - said.len(), n_cut_off, "{what}: notices in {transcript:?}");
    let (mut n_interrupted, mut tokens) = (0, 0);
    for (task, answer) in tasks.iter().zip(["first answer", "second answer", "third answer"]) {
        let task = fixture.task(task).await;
        assert_eq!(task.result.as_deref(), Some(answer), "{what}");
        assert_eq!(task.session_id, Some(session.id), "{what}");
        let turns = fixture.turns(&task).await;
        let done = turns.iter().filter(|turn| turn.state == turns::State::Done).count();
        let cut_off = turns.iter().filter(|turn| turn.state == turns::State::Interrupted).count();
        assert_eq!((done, done + cut_off), (1, turns.len()), "{what}: {turns:?}");
        let kinds = fixture.kinds(&task).await;
        let ends = kinds.iter().filter(|kind| *kind == "turn.done").count();
        let begins = kinds.iter().filter(|kind| *kind == "turn.started").count();
        assert_eq!((ends, begins), (1, 1 + cut_off), "{what}: {kinds:?}");
        n_interrupted += cut_off;
        tokens += task.spent_tokens;
    }
    assert_eq!(n_interrupted, n_cut_off, "{what}");
    assert_eq!(session.turns, 3 + i32::try_from(n_cut_off).unwrap(), "{what}");
    assert_eq!(session.token_count, tokens, "{what}");
    assert_eq!(fixture.count("select count(*) from dalsegno.usage").await, 3, "{what}");
    assert_eq!(fixture.count("select count(*) from dalsegno.manifests").await, 3, "{what}");
    let mut conn = fixture.pool.acquire().await.unwrap();
    let budget = campaigns::budget(&mut *conn, tasks[0].campaign_id).await.unwrap().unwrap();
    assert_eq!((budget.spent.tokens, budget.reserved.tokens), (tokens, 0), "{what}");
}

async fn crash_at((key, point): (&'static str, &'static str), n_cut_off: usize) -> Fixture {
    let (fixture, tasks) = conversation().await;
    let mut armed = fixture.process(&[(key, point)]);
    let died = armed.ended_after_pause().await;
    assert_eq!(died.signal(), Some(Signal::ABORT.as_raw()), "at {point}: {}", armed.log());
    let heir = fixture.process(&[]);
    fixture.ended_after_pause(&tasks[2]).await;
    check(point, &fixture, &tasks, n_cut_off).await;
    drop(heir);
    // Dropped by the caller when all are ready: its drop blocks.
    fixture
}

#[tokio::test]
async fn a_worker_that_dies_before_or_after_its_turn_leaves_no_trace() {
    let points = BEFORE_TURN.into_iter().chain(AFTER_TURN);
    join_all(points.map(|point| crash_at(point, 0))).await;
}

#[tokio::test]
async fn a_worker_that_dies_in_its_turn_leaves_only_a_notice() {
    join_all(IN_TURN.into_iter().map(|point| crash_at(point, 1))).await;
}

#[tokio::test]
async fn a_worker_killed_during_the_model_call_is_replaced_by_another() {
    let (fixture, tasks) = conversation().await;
    let victim = fixture.process(&[("sim.latency_ms", "600000")]);
    eventually("the call is running", async || {
        let turns = fixture.turns(&tasks[1]).await;
        turns.iter().any(|turn| turn.state == turns::State::Running).then_some(())
    })
    .await;
    victim.signal(Signal::KILL);
    let heir = fixture.process(&[]);
    fixture.ended_after_pause(&tasks[2]).await;
    check("killed in the call", &fixture, &tasks, 1).await;
    drop(heir);
}

async fn fail_at(point: &'static str, n_cut_off: usize) -> Fixture {
    let (fixture, tasks) = conversation().await;
    let worker = fixture.process(&[("worker.fail_turns_at", point)]);
    fixture.ended_after_pause(&tasks[2]).await;
    check(point, &fixture, &tasks, n_cut_off).await;
    drop(worker);
    fixture
}

#[tokio::test]
async fn a_failed_step_is_repeated() {
    // An answer that could not be written is offered again at once, because the call has been paid for.
    let points = [
        ("before_resolve", 0),
        ("after_resolve", 0),
        ("before_begin_commit", 0),
        ("after_begin", 1),
        ("after_call", 1),
        ("before_job_end", 0),
    ];
    join_all(points.map(|(point, n_cut_off)| fail_at(point, n_cut_off))).await;
}

#[tokio::test]
async fn a_task_whose_job_ended_alone_ends_too() {
    let fixture = Fixture::new(&[]).await;
    let unreadable = fixture.add("One.").await;
    let forgotten = fixture.add_for("writer", "other", "Two.").await;
    sqlx::query("update dalsegno.job_payloads set payload = '[]' where job_id = $1")
        .bind(unreadable.job_id)
        .execute(&fixture.pool)
        .await
        .unwrap();
    admin::cancel_job(&fixture.pool, forgotten.job_id, "not wanted").await.unwrap();
    let worker = fixture.start_worker().await;
    let unreadable = fixture.ended(&unreadable).await;
    assert_eq!(unreadable.state, State::Failed);
    assert!(unreadable.error.unwrap().contains("the payload is not valid for a `run_turn` job"));
    assert_eq!(fixture.ended(&forgotten).await.state, State::Cancelled);
    assert_eq!(fixture.kinds(&forgotten).await, ["task.cancelled"]);
    worker.stop().await;
}
