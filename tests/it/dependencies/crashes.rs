//! A fan-out of six tasks, of which one fails and one times out, with workers that die at each step of a turn.

use std::os::unix::process::ExitStatusExt as _;

use dalsegno::{
    context::results::Results,
    domain::{
        tasks::{FannedOut, State, Task},
        turns,
    },
};
use futures_util::future::join_all;
use rustix::process::Signal;

use super::cascade::{fan_out, get};
use crate::turns::fixture::Fixture;

const STEPS: [(&str, &str); 7] = [
    ("worker.crash_turns_at", "before_resolve"),
    ("worker.crash_turns_at", "after_resolve"),
    ("worker.crash_turns_at", "before_begin_commit"),
    ("worker.crash_turns_at", "after_begin"),
    ("worker.crash_turns_at", "after_call"),
    ("worker.crash_turns_at", "before_job_end"),
    ("queue.crash_at", "after_commit"),
];

async fn family(fixture: &Fixture) -> (Task, FannedOut) {
    let worker = fixture.start_worker().await;
    let parent = fixture.done(&fixture.add("Plan. [[sim: say six parts]]").await).await;
    worker.stop().await;
    let prompts: Vec<String> = (0..6)
        .map(|n| match n {
            1 => "Part 1. [[sim: error 400]]".to_owned(),
            4 => "Part 4. [[sim: slow 600000]]".to_owned(),
            _ => format!("Part {n}. [[sim: say part {n}]]"),
        })
        .collect();
    let asked = "All of it. [[sim: say all]]";
    let made = fan_out(fixture, &parent, &prompts, asked, None).await.unwrap();
    // The fourth gets a timeout of one second and one attempt.
    let slow = get(fixture, made.children[4].id).await;
    for sql in [
        "update dalsegno.job_payloads set timeout_secs = 1 where job_id = $1",
        "update dalsegno.jobs set max_attempts = 1 where id = $1",
    ] {
        sqlx::query(sql).bind(slow.job_id).execute(&fixture.pool).await.unwrap();
    }
    (parent, made)
}

async fn crash_at(fixture: &Fixture, step: (&str, &str)) {
    let mut armed = fixture.process(&[step]);
    let died = armed.ended_after_pause().await;
    assert_eq!(died.signal(), Some(Signal::ABORT.as_raw()), "{step:?}: {}", armed.log());
}

async fn check_crash(step: (&str, &str)) {
    let fixture = Fixture::new(&[("sim.chunk_chars", "4")]).await;
    let (parent, made) = family(&fixture).await;
    fixture.hold("writer", "main").await;
    crash_at(&fixture, step).await;
    let heir = fixture.process(&[]);
    for child in &made.children {
        fixture.ended_after_pause(&get(&fixture, child.id).await).await;
    }
    drop(heir);
    fixture.release("writer", "main").await;
    // Again, with the continuation.
    crash_at(&fixture, step).await;
    let heir = fixture.process(&[]);
    let continuation = fixture.ended_after_pause(&get(&fixture, made.continuation.id).await).await;
    fixture.settled().await;
    drop(heir);

    assert_eq!((continuation.state, continuation.result.as_deref()), (State::Done, Some("all")));
    assert_eq!(continuation.session_id, parent.session_id, "{step:?}");
    let turns = fixture.turns(&continuation).await;
    let n_done = turns.iter().filter(|turn| turn.state == turns::State::Done).count();
    assert_eq!(n_done, 1, "{step:?}: {turns:?}");
    let messages = fixture.messages(parent.session_id.unwrap()).await;
    let told: Vec<Results> =
        messages.iter().filter_map(|stored| Results::of(&stored.message)).collect();
    assert_eq!(told.len(), 1, "{step:?}");
    let ends = &told[0].ends;
    let ids: Vec<_> = ends.iter().map(|end| end.task).collect();
    assert_eq!(ids, made.children.iter().map(|child| child.id).collect::<Vec<_>>());
    let states: Vec<_> = ends.iter().map(|end| end.state.as_str()).collect();
    assert_eq!(states, ["done", "failed", "done", "done", "failed", "done"], "{step:?}");
    assert_eq!(ends[0].text, "part 0");
    assert!(ends[1].text.contains("400"), "{}", ends[1].text);
    assert!(ends[4].text.contains("deadline"), "{step:?}: {}", ends[4].text);
    let signals = "select coalesce(sum(total), 0)::bigint from dalsegno.transition_counts
                    where kind = 'run_joined_turn' and event = 'due'";
    assert!(fixture.count(signals).await >= 1);
}

#[tokio::test]
async fn a_parent_is_resumed_once_with_six_results_despite_worker_crashes_at_any_point() {
    join_all(STEPS.map(check_crash)).await;
}
