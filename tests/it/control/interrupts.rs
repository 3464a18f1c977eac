//! Interrupted turns: at once, or at the next safe point.

use dalsegno::domain::{
    amount::Limit,
    tasks::{self, Cancelled, How, Interrupted, Links, State, Task},
    turns,
};
use rustix::process::Signal;
use serde_json::json;

use crate::{
    app::{eventually, noon},
    joins::cascade,
    mentions,
    providers::fake_ollama::{FakeOllama, Play, Step, line},
    turns::ground::Ground,
};

/// An agent on a server that answers when the test lets it.
pub const SLOW: &str = "---\nname: slow\ndescription: Writes slowly\nprovider: ollama\nmodel: qwen3:8b\n---\nYou write.\n";

/// Adds the agent `slow`, on a server that answers like this.
pub async fn slow_answers(plays: impl IntoIterator<Item = Play>) -> (FakeOllama, Ground) {
    let fake = FakeOllama::playing(plays).await;
    let url = format!("http://{}", fake.addr);
    let settings = [
        ("ollama.base_url", url.as_str()),
        ("ollama.num_ctx", "4096"),
        ("ollama.idle_timeout_secs", "600"),
    ];
    let ground = Ground::new(&settings).await;
    ground.write_agent("slow", SLOW);
    (fake, ground)
}

async fn interrupt(ground: &Ground, task: &Task, how: How) -> Interrupted {
    let session_id = ground.task(task).await.session_id.unwrap();
    let mut tx = ground.pool.begin().await.unwrap();
    let interrupted =
        tasks::interrupt(&mut tx, session_id, how, "not wanted", noon()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!((interrupted.task_id, interrupted.session_id), (task.id, session_id));
    interrupted
}

async fn runs(ground: &Ground, task: &Task) {
    eventually("it runs", async || (ground.task(task).await.state == State::Running).then_some(()))
        .await;
}

#[tokio::test]
async fn all_turns_of_an_agent_are_stopped_and_nobody_elses() {
    let (fake, ground) = slow_answers([Play::gated("Edited", " with care.")]).await;
    let worker = ground.work().await;
    let slow = "Write. [[sim: slow 600000]]";
    let running =
        [ground.add_for("writer", "main", slow).await, ground.add_for("writer", "2", slow).await];
    let next = ground.add_for("writer", "2", "Write part two.").await;
    let other = ground.add_for("slow", "main", "Edit.").await;
    for task in running.iter().chain([&other]) {
        runs(&ground, task).await;
    }
    let stop = async |agent| {
        let mut tx = ground.pool.begin().await.unwrap();
        let whom = (ground.campaign.id, agent);
        let stopped = tasks::interrupt_agent(&mut tx, whom, How::Hard, "not wanted", noon()).await;
        tx.commit().await.unwrap();
        stopped.unwrap()
    };
    let mut stopped: Vec<_> = stop("writer").await.iter().map(|one| one.task_id).collect();
    stopped.sort_unstable();
    assert_eq!(stopped, running.each_ref().map(|task| task.id));
    for task in &running {
        assert_eq!(ground.ended(task).await.state, State::Cancelled);
    }
    ground.done(&next).await;
    fake.open();
    ground.done(&other).await;
    assert!(stop("writer").await.is_empty() && stop("nobody").await.is_empty());
    let told = ground.feed().await.into_iter().filter(|event| event.kind == "task.interrupted");
    assert_eq!(told.count(), 2);
    worker.stop().await;
}

fn piece(text: &str) -> Step {
    let message = json!({ "role": "assistant", "content": text });
    Step::Bytes(line(&json!({ "model": "qwen3:8b", "message": message, "done": false })))
}

/// Streams half of an answer, then this step.
async fn half_an_answer(then: Step) -> (FakeOllama, Ground) {
    slow_answers([Play::Stream(vec![piece("Half an answer"), Step::Gate, then])]).await
}

async fn words_arrive(ground: &Ground, task: &Task) {
    eventually("words arrive", async || {
        let feed = ground.feed().await;
        let shown = |event: &&dalsegno::domain::feed::Event| {
            event.task_id == Some(task.id) && event.data["text"] == "Half an answer"
        };
        feed.iter().find(shown).map(drop)
    })
    .await;
}

#[tokio::test]
async fn softly_an_answer_that_is_on_its_way_counts_and_now_it_does_not() {
    let (fake, ground) = slow_answers([Play::gated("The answer", " counts.")]).await;
    let worker = ground.work().await;
    let soft = ground.add_for("slow", "soft", "Write.").await;
    let hard = ground.add_for("writer", "hard", "Write. [[sim: slow 600000]]").await;
    let behind = ground.add_for("slow", "soft", "Write the next.").await;
    runs(&ground, &soft).await;
    runs(&ground, &hard).await;
    assert_eq!(interrupt(&ground, &soft, How::Soft).await.cancel, Cancelled::AtSafePoint);
    assert_eq!(interrupt(&ground, &soft, How::Soft).await.cancel, Cancelled::AtSafePoint, "again");
    assert_eq!(interrupt(&ground, &hard, How::Hard).await.cancel, Cancelled::Requested);
    assert_eq!(ground.ended(&hard).await.state, State::Cancelled);
    assert_eq!(ground.turns(&hard).await[0].state, turns::State::Interrupted);
    fake.open();
    assert!(ground.done(&soft).await.result.is_some());
    ground.done(&behind).await;
    let told = ground.feed().await;
    let how: Vec<_> =
        told.iter().filter(|it| it.kind == "task.interrupted").map(|it| &it.data["how"]).collect();
    assert_eq!(how, ["soft", "soft", "hard"]);
    ground.settled().await;
    worker.stop().await;
}

#[tokio::test]
async fn softly_nothing_is_tried_again_and_what_had_arrived_is_kept() {
    let (fake, ground) = half_an_answer(Step::HangUp).await;
    let worker = ground.work().await;
    let task = ground.add_for("slow", "main", "Write part one.").await;
    words_arrive(&ground, &task).await;
    interrupt(&ground, &task, How::Soft).await;
    fake.open();
    let task = ground.ended(&task).await;
    assert_eq!(task.state, State::Cancelled, "{task:?}");
    assert_eq!(fake.chats().len(), 1, "no other attempt");
    let turns = ground.turns(&task).await;
    assert_eq!((turns.len(), turns[0].state), (1, turns::State::Interrupted));
    assert_eq!(because(&ground, &task).await.as_deref(), Some("not wanted"));
    let transcript = ground.transcript(task.session_id.unwrap()).await;
    assert_eq!(transcript, ["User: Write part one.", "Assistant: Half an answer"]);

    // After a retry it is a task like any other, and the turn mentions the interruption.
    let mut tx = ground.pool.begin().await.unwrap();
    tasks::retry(&mut tx, task.id, noon()).await.unwrap();
    tx.commit().await.unwrap();
    ground.done(&task).await;
    assert!(fake.chats()[1].to_string().contains("was interrupted"));
    ground.settled().await;
    worker.stop().await;
}

#[tokio::test]
async fn now_the_call_is_given_up_and_what_had_arrived_is_kept() {
    let (fake, ground) = half_an_answer(Step::Stall).await;
    let worker = ground.work().await;
    let task = ground.add_for("slow", "main", "Write part one.").await;
    words_arrive(&ground, &task).await;
    interrupt(&ground, &task, How::Hard).await;
    let task = ground.ended(&task).await;
    assert_eq!((task.state, fake.chats().len()), (State::Cancelled, 1));
    let transcript = ground.transcript(task.session_id.unwrap()).await;
    assert_eq!(transcript, ["User: Write part one.", "Assistant: Half an answer"]);
    ground.settled().await;
    worker.stop().await;
}

async fn because(ground: &Ground, task: &Task) -> Option<String> {
    let mut conn = ground.pool.acquire().await.unwrap();
    tasks::detail(&mut conn, task.id).await.unwrap().cancelled_because
}

/// Running child tasks may also end, and queued ones never begin.
#[tokio::test]
async fn softly_what_a_task_has_handed_out_is_stopped_with_it() {
    let plays = [Play::gated("One", " answer."), Play::gated("Another", " answer.")];
    let (fake, ground) = slow_answers(plays).await;
    let parent = ground.add_for("slow", "main", "Plan.").await;
    let child = async |instance: &str, prompt: &str| {
        let links = Links { parent_id: Some(parent.id), ..Links::default() };
        let child = ground.add_linked("slow", instance, prompt, None, Limit::default(), links);
        child.await.unwrap()
    };
    let runs_too = child("one", "Write one.").await;
    let waits = child("two", "Write two.").await;
    ground.hold("slow", "two").await;
    let worker = ground.work().await;
    runs(&ground, &parent).await;
    runs(&ground, &runs_too).await;
    assert_eq!(interrupt(&ground, &parent, How::Soft).await.cancel, Cancelled::AtSafePoint);
    assert_eq!(ground.task(&waits).await.state, State::Cancelled);
    let why =
        format!("not wanted (together with task {} of slow/main, on which it depends)", parent.id);
    assert_eq!(because(&ground, &waits).await, Some(why));
    assert!(tasks::is_asked_to_stop(&ground.pool, runs_too.id).await.unwrap());
    // No answer is cut off.
    fake.open();
    ground.done(&parent).await;
    ground.done(&runs_too).await;
    ground.settled().await;
    worker.stop().await;
}

/// Between two attempts no turn runs, so the task ends at once.
#[tokio::test]
async fn a_task_that_is_asked_to_stop_begins_no_other_turn() {
    let ground = Ground::new(&[]).await;
    let mut victim = ground.process(&[]);
    let task = ground.add("Write. [[sim: slow 600000]]").await;
    runs(&ground, &task).await;
    interrupt(&ground, &task, How::Soft).await;
    victim.signal(Signal::KILL);
    victim.ended().await;
    let heir = ground.process(&[]);
    let task = ground.patiently_ended(&task).await;
    drop(heir);
    assert_eq!(task.state, State::Cancelled, "{task:?}");
    let turns = ground.turns(&task).await;
    assert_eq!((turns.len(), turns[0].state), (1, turns::State::Interrupted));
    assert_eq!(because(&ground, &task).await.as_deref(), Some("not wanted"));
    let told = ground.feed().await;
    let end = told.iter().find(|event| event.kind == "task.cancelled").unwrap();
    assert_eq!(end.data["because"], "the task was cancelled before its next turn started");
}

/// Three conversations run and one waits when their worker is killed, before it has stopped them. The next worker ends
/// each of them once.
#[tokio::test]
async fn a_soft_interrupt_whose_worker_is_killed_ends_everything_once_and_nothing_runs_on() {
    let ground = Ground::new(&[]).await;
    let mut victim = ground.process(&[]);
    let posted = mentions::post(&ground, "@writer Plan. [[sim: slow 600000]]").await;
    let parent = mentions::task(&ground, &posted, 0).await;
    runs(&ground, &parent).await;
    let slow = "Write. [[sim: slow 600000]]".to_owned();
    let prompts = [slow.clone(), slow, "Write three.".to_owned()];
    let made = cascade::fan_out(&ground, &parent, &prompts[..2], "Put together.", None).await;
    let made = made.unwrap();
    let ids = made.children.iter().chain([&made.continuation]).map(|placed| placed.id);
    let mut below = Vec::new();
    for id in ids {
        below.push(tasks::get(&ground.pool, id).await.unwrap());
    }
    let links = Links { parent_id: Some(parent.id), ..Links::default() };
    // Waits behind a running child, in its conversation.
    let waits = ground.add_linked("writer", "part-0", &prompts[2], None, Limit::default(), links);
    below.push(waits.await.unwrap());
    for child in &below[..2] {
        runs(&ground, child).await;
    }
    assert_eq!(interrupt(&ground, &parent, How::Soft).await.cancel, Cancelled::AtSafePoint);
    victim.signal(Signal::KILL);
    victim.ended().await;
    let heirs = [ground.process(&[]), ground.process(&[])];
    for task in [&parent].into_iter().chain(&below) {
        let task = ground.patiently_ended(task).await;
        assert_eq!(task.state, State::Cancelled, "{task:?}");
        assert!(because(&ground, &task).await.unwrap().starts_with("not wanted"), "{task:?}");
    }
    ground.settled().await;
    drop(heirs);
    for (task, n_turns) in [&parent].into_iter().chain(&below).zip([1, 1, 1, 0, 0]) {
        let turns = ground.turns(task).await;
        assert_eq!(turns.len(), n_turns, "{turns:?}");
        assert!(turns.iter().all(|turn| turn.state == turns::State::Interrupted), "{turns:?}");
        let kinds = ground.kinds(task).await;
        let ends = kinds.iter().filter(|kind| *kind == "task.cancelled").count();
        assert_eq!(
            (ends, kinds.last().map(String::as_str)),
            (1, Some("task.cancelled")),
            "{kinds:?}"
        );
    }
    // The author of the post gets one answer.
    let board = mentions::board(&ground).await;
    assert_eq!(mentions::answers_to(&board, posted.post.id).len(), 1, "{board:?}");
}

/// Dependent tasks get the result of a task that is stopped like this.
#[tokio::test]
async fn what_waits_for_a_task_whose_worker_is_killed_while_it_stops_is_told_once() {
    let ground = Ground::new(&[]).await;
    let mut victim = ground.process(&[]);
    let first = ground.add("Write. [[sim: slow 600000]]").await;
    let joins = ground.add_after("joins", "Join.", &[&first]).await;
    let after = [tasks::After::Task(first.id)];
    let links =
        Links { depends_on: &after, on_failure: tasks::OnFailure::Cancel, ..Links::default() };
    let goes_too = ground.add_linked("writer", "next", "Next.", None, Limit::default(), links);
    let goes_too = goes_too.await.unwrap();
    runs(&ground, &first).await;
    interrupt(&ground, &first, How::Soft).await;
    assert_eq!(ground.task(&joins).await.state, State::Queued);
    victim.signal(Signal::KILL);
    victim.ended().await;
    let heir = ground.process(&[]);
    assert_eq!(ground.patiently_ended(&first).await.state, State::Cancelled);
    assert_eq!(ground.patiently_ended(&goes_too).await.state, State::Cancelled);
    let joined = ground.patiently_ended(&joins).await;
    assert_eq!(joined.state, State::Done, "{joined:?}");
    drop(heir);
    assert_eq!([ground.turns(&goes_too).await.len(), ground.turns(&joins).await.len()], [0, 1]);
    let told = ground.transcript(joined.session_id.unwrap()).await;
    assert!(told[0].contains("cancelled") && told[0].contains("not wanted"), "{told:?}");
}
