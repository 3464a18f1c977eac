//! Interrupted turns: at once, or at the next safe point.

use dalsegno::domain::{
    amount::Limit,
    tasks::{self, CancelOutcome, InterruptMode, InterruptResult, Links, State, Task},
    turns,
};
use rustix::process::Signal;
use serde_json::json;

use crate::{
    app::{eventually, noon},
    dependencies::cascade,
    mentions,
    providers::fake_ollama::{FakeOllama, Play, Step, line},
    turns::fixture::Fixture,
};

/// An agent on a server that answers when the test lets it.
pub const SLOW: &str = "---\nname: slow\ndescription: Writes slowly\nprovider: ollama\nmodel: qwen3:8b\n---\nYou write.\n";

/// Adds the agent `slow`, on a server that answers like this.
pub async fn slow_answers(plays: impl IntoIterator<Item = Play>) -> (FakeOllama, Fixture) {
    let fake = FakeOllama::playing(plays).await;
    let url = format!("http://{}", fake.addr);
    let settings = [
        ("ollama.base_url", url.as_str()),
        ("ollama.num_ctx", "4096"),
        ("ollama.idle_timeout_secs", "600"),
    ];
    let fixture = Fixture::new(&settings).await;
    fixture.write_agent("slow", SLOW);
    (fake, fixture)
}

pub async fn interrupt(fixture: &Fixture, task: &Task, how: InterruptMode) -> InterruptResult {
    let session_id = fixture.task(task).await.session_id.unwrap();
    let mut tx = fixture.pool.begin().await.unwrap();
    let interrupted =
        tasks::interrupt(&mut tx, session_id, how, "not wanted", noon()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!((interrupted.task_id, interrupted.session_id), (task.id, session_id));
    interrupted
}

pub async fn wait_until_running(fixture: &Fixture, task: &Task) {
    eventually("the task runs", async || {
        (fixture.task(task).await.state == State::Running).then_some(())
    })
    .await;
}

#[tokio::test]
async fn all_turns_of_an_agent_are_stopped_and_those_of_others_continue() {
    let (fake, fixture) = slow_answers([Play::gated("Edited", " with care.")]).await;
    let worker = fixture.start_worker().await;
    let slow = "Write. [[sim: slow 600000]]";
    let running =
        [fixture.add_for("writer", "main", slow).await, fixture.add_for("writer", "2", slow).await];
    let next = fixture.add_for("writer", "2", "Write part two.").await;
    let other = fixture.add_for("slow", "main", "Edit.").await;
    for task in running.iter().chain([&other]) {
        wait_until_running(&fixture, task).await;
    }
    let stop = async |agent| {
        let mut tx = fixture.pool.begin().await.unwrap();
        let whom = (fixture.campaign.id, agent);
        let stopped =
            tasks::interrupt_agent(&mut tx, whom, InterruptMode::Hard, "not wanted", noon()).await;
        tx.commit().await.unwrap();
        stopped.unwrap()
    };
    let mut stopped: Vec<_> = stop("writer").await.iter().map(|one| one.task_id).collect();
    stopped.sort_unstable();
    assert_eq!(stopped, running.each_ref().map(|task| task.id));
    for task in &running {
        assert_eq!(fixture.ended(task).await.state, State::Cancelled);
    }
    fixture.done(&next).await;
    fake.open();
    fixture.done(&other).await;
    assert!(stop("writer").await.is_empty() && stop("stranger").await.is_empty());
    let told = fixture.feed().await.into_iter().filter(|event| event.kind == "task.interrupted");
    assert_eq!(told.count(), 2);
    worker.stop().await;
}

fn chunk(text: &str) -> Step {
    let message = json!({ "role": "assistant", "content": text });
    Step::Bytes(line(&json!({ "model": "qwen3:8b", "message": message, "done": false })))
}

/// Streams half of an answer, then this step.
async fn half_an_answer(then: Step) -> (FakeOllama, Fixture) {
    slow_answers([Play::Stream(vec![chunk("Half an answer"), Step::Gate, then])]).await
}

async fn wait_for_partial_output(fixture: &Fixture, task: &Task) {
    eventually("partial output arrives", async || {
        let feed = fixture.feed().await;
        let shown = |event: &&dalsegno::domain::feed::Event| {
            event.task_id == Some(task.id) && event.data["text"] == "Half an answer"
        };
        feed.iter().find(shown).map(drop)
    })
    .await;
}

#[tokio::test]
async fn a_soft_interrupt_keeps_the_pending_answer_and_a_hard_one_discards_it() {
    let (fake, fixture) = slow_answers([Play::gated("The answer", " counts.")]).await;
    let worker = fixture.start_worker().await;
    let soft = fixture.add_for("slow", "soft", "Write.").await;
    let hard = fixture.add_for("writer", "hard", "Write. [[sim: slow 600000]]").await;
    let behind = fixture.add_for("slow", "soft", "Write the next.").await;
    wait_until_running(&fixture, &soft).await;
    wait_until_running(&fixture, &hard).await;
    assert_eq!(
        interrupt(&fixture, &soft, InterruptMode::Soft).await.cancel,
        CancelOutcome::AtSafePoint
    );
    assert_eq!(
        interrupt(&fixture, &soft, InterruptMode::Soft).await.cancel,
        CancelOutcome::AtSafePoint,
        "again"
    );
    assert_eq!(
        interrupt(&fixture, &hard, InterruptMode::Hard).await.cancel,
        CancelOutcome::Requested
    );
    assert_eq!(fixture.ended(&hard).await.state, State::Cancelled);
    assert_eq!(fixture.turns(&hard).await[0].state, turns::State::Interrupted);
    fake.open();
    assert!(fixture.done(&soft).await.result.is_some());
    fixture.done(&behind).await;
    let told = fixture.feed().await;
    let how: Vec<_> =
        told.iter().filter(|it| it.kind == "task.interrupted").map(|it| &it.data["how"]).collect();
    assert_eq!(how, ["soft", "soft", "hard"]);
    fixture.settled().await;
    worker.stop().await;
}

#[tokio::test]
async fn a_soft_interrupt_retries_nothing_and_keeps_partial_output() {
    let (fake, fixture) = half_an_answer(Step::HangUp).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add_for("slow", "main", "Write part one.").await;
    wait_for_partial_output(&fixture, &task).await;
    interrupt(&fixture, &task, InterruptMode::Soft).await;
    fake.open();
    let task = fixture.ended(&task).await;
    assert_eq!(task.state, State::Cancelled, "{task:?}");
    assert_eq!(fake.chats().len(), 1, "no other attempt");
    let turns = fixture.turns(&task).await;
    assert_eq!((turns.len(), turns[0].state), (1, turns::State::Interrupted));
    assert_eq!(cancel_reason(&fixture, &task).await.as_deref(), Some("not wanted"));
    let transcript = fixture.transcript(task.session_id.unwrap()).await;
    assert_eq!(transcript, ["User: Write part one.", "Assistant: Half an answer"]);

    // After a retry it is a task like any other, and the turn mentions the interruption.
    let mut tx = fixture.pool.begin().await.unwrap();
    tasks::retry(&mut tx, task.id, noon()).await.unwrap();
    tx.commit().await.unwrap();
    fixture.done(&task).await;
    assert!(fake.chats()[1].to_string().contains("was interrupted"));
    fixture.settled().await;
    worker.stop().await;
}

#[tokio::test]
async fn a_hard_interrupt_aborts_the_call_and_keeps_partial_output() {
    let (fake, fixture) = half_an_answer(Step::Stall).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add_for("slow", "main", "Write part one.").await;
    wait_for_partial_output(&fixture, &task).await;
    interrupt(&fixture, &task, InterruptMode::Hard).await;
    let task = fixture.ended(&task).await;
    assert_eq!((task.state, fake.chats().len()), (State::Cancelled, 1));
    let transcript = fixture.transcript(task.session_id.unwrap()).await;
    assert_eq!(transcript, ["User: Write part one.", "Assistant: Half an answer"]);
    fixture.settled().await;
    worker.stop().await;
}

async fn cancel_reason(fixture: &Fixture, task: &Task) -> Option<String> {
    let mut conn = fixture.pool.acquire().await.unwrap();
    tasks::detail(&mut conn, task.id).await.unwrap().cancelled_because
}

/// Running child tasks may also end, and queued ones never begin.
#[tokio::test]
async fn a_soft_interrupt_stops_the_child_tasks_too() {
    let plays = [Play::gated("One", " answer."), Play::gated("Another", " answer.")];
    let (fake, fixture) = slow_answers(plays).await;
    let parent = fixture.add_for("slow", "main", "Plan.").await;
    let child = async |instance: &str, prompt: &str| {
        let links = Links { parent_id: Some(parent.id), ..Links::default() };
        let child = fixture.add_linked("slow", instance, prompt, None, Limit::default(), links);
        child.await.unwrap()
    };
    let runs_too = child("one", "Write one.").await;
    let waits = child("two", "Write two.").await;
    fixture.hold("slow", "two").await;
    let worker = fixture.start_worker().await;
    wait_until_running(&fixture, &parent).await;
    wait_until_running(&fixture, &runs_too).await;
    assert_eq!(
        interrupt(&fixture, &parent, InterruptMode::Soft).await.cancel,
        CancelOutcome::AtSafePoint
    );
    assert_eq!(fixture.task(&waits).await.state, State::Cancelled);
    let why =
        format!("not wanted (together with task {} of slow/main, on which it depends)", parent.id);
    assert_eq!(cancel_reason(&fixture, &waits).await, Some(why));
    assert!(tasks::is_asked_to_stop(&fixture.pool, runs_too.id).await.unwrap());
    // No answer is cut off.
    fake.open();
    fixture.done(&parent).await;
    fixture.done(&runs_too).await;
    fixture.settled().await;
    worker.stop().await;
}

/// Between two attempts no turn runs, so the task ends at once.
#[tokio::test]
async fn an_interrupted_task_begins_no_other_turn() {
    let fixture = Fixture::new(&[]).await;
    let mut victim = fixture.process(&[]);
    let task = fixture.add("Write. [[sim: slow 600000]]").await;
    wait_until_running(&fixture, &task).await;
    interrupt(&fixture, &task, InterruptMode::Soft).await;
    victim.signal(Signal::KILL);
    victim.ended().await;
    let heir = fixture.process(&[]);
    let task = fixture.ended_after_pause(&task).await;
    drop(heir);
    assert_eq!(task.state, State::Cancelled, "{task:?}");
    let turns = fixture.turns(&task).await;
    assert_eq!((turns.len(), turns[0].state), (1, turns::State::Interrupted));
    assert_eq!(cancel_reason(&fixture, &task).await.as_deref(), Some("not wanted"));
    let told = fixture.feed().await;
    let end = told.iter().find(|event| event.kind == "task.cancelled").unwrap();
    assert_eq!(end.data["because"], "the task was cancelled before its next turn started");
}

/// Three conversations run and one waits when their worker is killed, before it has stopped them. The next worker ends
/// each of them once.
#[tokio::test]
async fn a_soft_interrupt_with_a_killed_worker_ends_everything_once() {
    let fixture = Fixture::new(&[]).await;
    let mut victim = fixture.process(&[]);
    let posted = mentions::post(&fixture, "@writer Plan. [[sim: slow 600000]]").await;
    let parent = mentions::task(&fixture, &posted, 0).await;
    wait_until_running(&fixture, &parent).await;
    let slow = "Write. [[sim: slow 600000]]".to_owned();
    let prompts = [slow.clone(), slow, "Write three.".to_owned()];
    let made = cascade::fan_out(&fixture, &parent, &prompts[..2], "Put together.", None).await;
    let made = made.unwrap();
    let ids = made.children.iter().chain([&made.continuation]).map(|placed| placed.id);
    let mut below = Vec::new();
    for id in ids {
        below.push(tasks::get(&fixture.pool, id).await.unwrap());
    }
    let links = Links { parent_id: Some(parent.id), ..Links::default() };
    // Waits behind a running child, in its conversation.
    let waits = fixture.add_linked("writer", "part-0", &prompts[2], None, Limit::default(), links);
    below.push(waits.await.unwrap());
    for child in &below[..2] {
        wait_until_running(&fixture, child).await;
    }
    assert_eq!(
        interrupt(&fixture, &parent, InterruptMode::Soft).await.cancel,
        CancelOutcome::AtSafePoint
    );
    victim.signal(Signal::KILL);
    victim.ended().await;
    let heirs = [fixture.process(&[]), fixture.process(&[])];
    for task in [&parent].into_iter().chain(&below) {
        let task = fixture.ended_after_pause(task).await;
        assert_eq!(task.state, State::Cancelled, "{task:?}");
        assert!(
            cancel_reason(&fixture, &task).await.unwrap().starts_with("not wanted"),
            "{task:?}"
        );
    }
    fixture.settled().await;
    drop(heirs);
    for (task, n_turns) in [&parent].into_iter().chain(&below).zip([1, 1, 1, 0, 0]) {
        let turns = fixture.turns(task).await;
        assert_eq!(turns.len(), n_turns, "{turns:?}");
        assert!(turns.iter().all(|turn| turn.state == turns::State::Interrupted), "{turns:?}");
        let kinds = fixture.kinds(task).await;
        let ends = kinds.iter().filter(|kind| *kind == "task.cancelled").count();
        assert_eq!(
            (ends, kinds.last().map(String::as_str)),
            (1, Some("task.cancelled")),
            "{kinds:?}"
        );
    }
    // The author of the post gets one answer.
    let board = mentions::board(&fixture).await;
    assert_eq!(mentions::answers_of(&board, posted.post.id).len(), 1, "{board:?}");
}

/// Dependent tasks get the result of a task that is stopped like this.
#[tokio::test]
async fn tasks_that_wait_for_an_interrupted_task_of_a_killed_worker_get_its_result_once() {
    let fixture = Fixture::new(&[]).await;
    let mut victim = fixture.process(&[]);
    let first = fixture.add("Write. [[sim: slow 600000]]").await;
    let joins = fixture.add_after("joins", "Join.", &[&first]).await;
    let after = [tasks::TaskLink::Task(first.id)];
    let links =
        Links { depends_on: &after, on_failure: tasks::OnFailure::Cancel, ..Links::default() };
    let goes_too = fixture.add_linked("writer", "next", "Next.", None, Limit::default(), links);
    let goes_too = goes_too.await.unwrap();
    wait_until_running(&fixture, &first).await;
    interrupt(&fixture, &first, InterruptMode::Soft).await;
    assert_eq!(fixture.task(&joins).await.state, State::Queued);
    victim.signal(Signal::KILL);
    victim.ended().await;
    let heir = fixture.process(&[]);
    assert_eq!(fixture.ended_after_pause(&first).await.state, State::Cancelled);
    assert_eq!(fixture.ended_after_pause(&goes_too).await.state, State::Cancelled);
    let joined = fixture.ended_after_pause(&joins).await;
    assert_eq!(joined.state, State::Done, "{joined:?}");
    drop(heir);
    assert_eq!([fixture.turns(&goes_too).await.len(), fixture.turns(&joins).await.len()], [0, 1]);
    let told = fixture.transcript(joined.session_id.unwrap()).await;
    assert!(told[0].contains("cancelled") && told[0].contains("not wanted"), "{told:?}");
}
