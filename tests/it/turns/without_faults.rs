//! Turns without faults.

use std::collections::BTreeSet;

use dalsegno::{
    context::Digest,
    domain::{sessions::State, turns},
};
use futures_util::future::join_all;

use super::Fixture;
use crate::app::eventually;

#[tokio::test]
async fn a_task_gets_its_answer_and_the_next_one_continues_the_conversation() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let first = fixture.add("Write part one.").await;
    let first = fixture.done(&first).await;
    let answer = first.result.clone().unwrap();
    assert!(answer.contains("imulat"), "{answer}");
    let second = fixture.add("Write part two.").await;
    let second = fixture.done(&second).await;
    assert_eq!(second.session_id, first.session_id);
    worker.stop().await;

    let session = fixture.session(&second).await;
    assert_eq!(session.state, State::Idle);
    assert_eq!(session.turns, 2);
    let transcript = fixture.transcript(session.id).await;
    let second_answer = second.result.clone().unwrap();
    let expected = [
        "User: Write part one.".to_owned(),
        format!("Assistant: {answer}"),
        "User: Write part two.".to_owned(),
        format!("Assistant: {second_answer}"),
    ];
    assert_eq!(transcript, expected);
    let turns = fixture.turns(&second).await;
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0].state, turns::State::Done);
    assert_eq!(turns[0].calls, 1);
    assert!(turns[0].input_tokens > 0 && turns[0].output_tokens > 0, "{turns:?}");
    assert_eq!(second.spent_tokens, turns[0].input_tokens + turns[0].output_tokens);
    assert_eq!(session.context_tokens, second.spent_tokens);
    assert_eq!(session.token_count, first.spent_tokens + second.spent_tokens);
    let ledger = fixture.count("select count(*) from dalsegno.usage where outcome = 'done'").await;
    assert_eq!(ledger, 2);
    let manifests = fixture.manifests(session.id).await;
    assert_eq!(manifests.len(), 2);
    assert_eq!(manifests[1].real_tokens, Some(turns[0].input_tokens));
    assert_eq!(fixture.kinds(&first).await, ["session.opened", "turn.started", "turn.done"]);
    assert_eq!(fixture.kinds(&second).await, ["turn.started", "turn.done"]);
    assert_eq!(fixture.count("select count(*) from dalsegno.jobs").await, 0);
}

/// The manifest has the digest of the sent messages, and the simulation returns the number of messages it received.
#[tokio::test]
async fn a_worker_with_cached_history_sends_messages_that_others_added() {
    let fixture = Fixture::new(&[]).await;
    let remembering = fixture.services(&[]);
    let (mut session_id, mut expected) = (None, Vec::new());
    for (turn, remembers) in [true, true, false, true, false, true].into_iter().enumerate() {
        let services = if remembers { remembering.clone() } else { fixture.services(&[]) };
        let worker = fixture.start_worker_on(services, &[]).await;
        let task = fixture.add(&format!("Write part {turn}.")).await;
        let task = fixture.done(&task).await;
        worker.stop().await;
        let answer = task.result.unwrap();
        assert!(answer.contains(&format!("Context: {} messages", 2 * turn + 1)), "{answer}");
        session_id = task.session_id;
        expected.push((turn > 0).then_some(2 * turn));
    }
    let stored = fixture.messages(session_id.unwrap()).await;
    for (manifest, expected) in fixture.manifests(session_id.unwrap()).await.iter().zip(expected) {
        let parts = manifest.manifest["parts"].as_array().unwrap();
        let sent = parts.iter().find(|part| part["kind"] == "transcript");
        assert_eq!(sent.map(|part| part["span"]["count"].as_u64().unwrap() as usize), expected);
        let stored = stored.iter().take(expected.unwrap_or(0));
        let digest = Digest::chain(stored.map(|stored| Digest::from_bytes(stored.digest)));
        assert_eq!(
            sent.map(|part| part["sha256"].clone()),
            expected.map(|_| digest.to_string().into())
        );
    }
}

#[tokio::test]
async fn a_worker_process_runs_turns_too() {
    let fixture = Fixture::new(&[]).await;
    let mut worker = fixture.process(&[]);
    let task = fixture.add("Write part one.").await;
    fixture.done(&task).await;
    worker.signal(rustix::process::Signal::TERM);
    assert!(worker.ended().await.success(), "{}", worker.log());
    assert!(worker.log().contains("these agents use the simulation"), "{}", worker.log());
    assert_eq!(fixture.transcript(fixture.session(&task).await.id).await.len(), 2);
}

#[tokio::test]
async fn two_workers_run_the_turns_of_one_session_in_order() {
    let fixture = Fixture::new(&[("sim.latency_ms", "20")]).await;
    let mut tasks = Vec::new();
    for number in 1..=20 {
        tasks.push(fixture.add(&format!("Write part {number}.")).await);
    }
    let (one, other) = (fixture.process(&[]), fixture.process(&[]));
    for task in &tasks {
        fixture.done(task).await;
    }
    fixture.settled().await;
    let session = fixture.session(&tasks[0]).await;
    let transcript = fixture.transcript(session.id).await;
    let prompts: Vec<_> = transcript.iter().filter(|line| line.starts_with("User")).collect();
    let expected: Vec<_> = (1..=20).map(|number| format!("User: Write part {number}.")).collect();
    assert_eq!(prompts, expected.iter().collect::<Vec<_>>());
    assert_eq!(transcript.len(), 40);
    let overlapping = fixture
        .count(
            "select count(*) from dalsegno.runs as a join dalsegno.runs as b
               on a.job_id < b.job_id and a.started_at < b.ended_at and b.started_at < a.ended_at",
        )
        .await;
    assert_eq!(overlapping, 0);
    let workers = fixture.count("select count(distinct worker_id) from dalsegno.runs").await;
    drop((one, other));
    println!("{workers} workers took part");
}

#[tokio::test]
async fn two_hundred_sessions_run_side_by_side() {
    let fixture = Fixture::new(&[("worker.turns_slots", "64"), ("sim.latency_ms", "200")]).await;
    let instances: Vec<String> = (0..200).map(|number| format!("writer-{number}")).collect();
    let tasks =
        join_all(instances.iter().map(|name| fixture.add_for("writer", name, "Write."))).await;
    let worker = fixture.start_worker().await;
    let done = join_all(tasks.iter().map(|task| fixture.done(task))).await;
    worker.stop().await;
    let sessions: BTreeSet<_> = done.iter().map(|task| task.session_id.unwrap()).collect();
    assert_eq!(sessions.len(), 200);
    let side_by_side = fixture
        .count(
            "select max(n) from (select count(*) as n from dalsegno.runs as a join dalsegno.runs as b
               on b.started_at <= a.started_at and b.ended_at > a.started_at group by a.job_id) as x",
        )
        .await;
    assert!(side_by_side >= 32, "{side_by_side} sessions at once");
}

#[tokio::test]
async fn a_worker_without_a_scraper_merges_its_samples() {
    let fixture = Fixture::new(&[]).await;
    let settings = [("log.filter", "info,dalsegno::telemetry=trace"), ("worker.listen", "")];
    for worker in [fixture.process(&settings), fixture.upkeep_process(&settings)] {
        eventually("samples are merged", async || {
            worker.log().contains("merged recorded samples").then_some(())
        })
        .await;
    }
}
