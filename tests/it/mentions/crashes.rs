//! Workers that die between an answer and its post, or at other steps.

use std::os::unix::process::ExitStatusExt as _;

use futures_util::future::join_all;
use rustix::process::Signal;

use super::*;

const POINTS: [(&str, &str); 7] = [
    ("queue.crash_at", "after_claim"),
    ("worker.crash_turns_at", "before_begin_commit"),
    ("worker.crash_turns_at", "after_begin"),
    ("worker.crash_turns_at", "after_call"),
    ("worker.crash_turns_at", "before_job_end"),
    ("queue.crash_at", "after_end_write_before_commit"),
    ("queue.crash_at", "after_commit"),
];

/// Runs a lead that answers and calls two others, with a crash at this step. Returns the ground, because its drop
/// blocks.
async fn crash_at((key, point): (&'static str, &'static str)) -> Fixture {
    let fixture = fixture(&["ann", "bea"], &[]).await;
    let posted = post(&fixture, "Plan. `[[sim: say @ann and @bea, please.]]`").await;
    let mut armed = fixture.process(&[(key, point)]);
    let died = armed.ended_after_pause().await;
    assert_eq!(died.signal(), Some(Signal::ABORT.as_raw()), "at {point}: {}", armed.log());
    let heir = fixture.process(&[]);
    let planned = task(&fixture, &posted, 0).await;
    fixture.ended_after_pause(&planned).await;
    wait_for_all_tasks(&fixture).await;
    drop(heir);
    let board = board(&fixture).await;
    let answers = answers_of(&board, posted.post.id);
    assert_eq!(answers.len(), 1, "{point}: {:#?}", lines(&board));
    let plan = answers[0];
    assert_eq!((plan.sender.as_str(), plan.text.as_str()), ("planner", "@ann and @bea, please."));
    let mut senders: Vec<_> =
        answers_of(&board, plan.id).iter().map(|post| post.sender.as_str()).collect();
    senders.sort_unstable();
    assert_eq!(senders, ["ann", "bea"], "{point}: {:#?}", lines(&board));
    assert_eq!(board.len(), 4, "{point}");
    assert_eq!(fixture.count("select count(*) from dalsegno.tasks").await, 3, "{point}");
    fixture
}

#[tokio::test]
async fn an_answer_is_posted_once_despite_worker_crashes_at_any_point() {
    join_all(POINTS.map(crash_at)).await;
}

#[tokio::test]
async fn an_answer_whose_commit_fails_halfway_is_posted_once() {
    let fixture = fixture(&["ann"], &[]).await;
    let worker = fixture.process(&[("worker.fail_turns_at", "before_job_end")]);
    let posted = post(&fixture, "Plan. `[[sim: say @ann, please.]]`").await;
    wait_for_all_tasks(&fixture).await;
    drop(worker);
    let board = board(&fixture).await;
    assert_eq!(answers_of(&board, posted.post.id).len(), 1);
    assert_eq!(board.len(), 3, "{:#?}", lines(&board));
}
