//! Tasks added by turns are cancelled with them, and a stopped turn can add no more.

use dalsegno::{
    domain::{
        Amount,
        tasks::{self, End, InterruptMode, State, Task},
    },
    tools::{Caller, Turn},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::Setup;
use crate::app::noon;

fn dispatching_calls() -> [(&'static str, Value); 3] {
    let tasks = json!([{ "agent": "helper", "text": "Part one." }]);
    [
        ("dispatch", json!({ "tasks": tasks })),
        ("dispatch", json!({ "tasks": tasks, "then": "Put together." })),
        ("flows_start", json!({ "template": "pair", "inputs": { "topic": "tides" } })),
    ]
}

/// Ends a turn as its worker does.
async fn end(setup: &Setup, turn: &Turn, end: End<'_>) {
    let mut tx = setup.pool().begin().await.unwrap();
    tasks::end(&mut tx, turn.task_id, end, Amount::ZERO, noon()).await.unwrap();
    let ends = sqlx::query("delete from dalsegno.jobs where id = $1").bind(turn.job_id);
    ends.execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn a_stopped_turn_cannot_dispatch_tasks() {
    let setup = Setup::new().await;
    for how in [InterruptMode::Soft, InterruptMode::Hard] {
        let turn =
            setup.turn("foreman", if how == InterruptMode::Soft { "main" } else { "2" }).await;
        let mut tx = setup.pool().begin().await.unwrap();
        tasks::interrupt(&mut tx, turn.session_id, how, "not wanted", noon()).await.unwrap();
        tx.commit().await.unwrap();
        let (caller, before) = (Caller::Turn(turn), setup.state().await);
        for (name, arguments) in dispatching_calls() {
            let words = setup.fail_tool(&caller, name, arguments).await;
            assert!(words.contains("is being cancelled"), "{how:?}: {words}");
        }
        assert_eq!(setup.state().await, before, "{how:?}");
    }
}

#[tokio::test]
async fn tasks_dispatched_by_a_turn_are_cancelled_with_its_task() {
    let setup = Setup::new().await;
    let turn = setup.turn("foreman", "main").await;
    let caller = Caller::Turn(turn.clone());
    for (name, arguments) in dispatching_calls() {
        setup.call_tool(&caller, name, arguments).await;
    }
    let mut tx = setup.pool().begin().await.unwrap();
    tasks::cancel(&mut tx, turn.task_id, "not wanted", noon()).await.unwrap();
    tx.commit().await.unwrap();
    let handed = setup.tasks().await.into_iter().filter(|task| task.id != turn.task_id);
    let states: Vec<State> = handed.map(|task| task.state).collect();
    assert_eq!(states, [State::Cancelled; 5]);
}

#[tokio::test]
async fn cancelled_tasks_are_dispatched_again_when_their_parent_is_retried() {
    let setup = Setup::new().await;
    let turn = setup.turn("boss", "main").await;
    let caller = Caller::Turn(turn.clone());
    let post = json!({ "text": "I begin." });
    setup.call_tool(&caller, "board_post", post.clone()).await;
    for (name, arguments) in dispatching_calls() {
        setup.call_tool(&caller, name, arguments).await;
    }
    let mut tx = setup.pool().begin().await.unwrap();
    tasks::cancel(&mut tx, turn.task_id, "not wanted", noon()).await.unwrap();
    tx.commit().await.unwrap();
    end(&setup, &turn, End::Cancelled).await;
    let n_open = async || {
        let open = |task: &Task| task.ended_at.is_none();
        setup.tasks().await.into_iter().filter(open).count()
    };
    assert_eq!(n_open().await, 0);

    let mut tx = setup.pool().begin().await.unwrap();
    let task = tasks::retry(&mut tx, turn.task_id, noon()).await.unwrap();
    tx.commit().await.unwrap();
    let again = Caller::Turn(setup.attempt(&task).await);
    setup.call_tool(&again, "board_post", post).await;
    for (name, arguments) in dispatching_calls() {
        setup.call_tool(&again, name, arguments).await;
    }
    assert_eq!(n_open().await, 6, "the task and its children");
    assert_eq!(setup.posts().await.len(), 1, "the post stays");
}

#[tokio::test]
async fn finished_tasks_are_not_dispatched_again_when_their_parent_is_retried() {
    let setup = Setup::new().await;
    let turn = setup.turn("boss", "main").await;
    let caller = Caller::Turn(turn.clone());
    let (name, arguments) = dispatching_calls()[0].clone();
    let first = setup.call_tool(&caller, name, arguments.clone()).await;
    let second = setup.call_tool(&caller, name, arguments.clone()).await;
    let id = |said: &Value| said["tasks"][0]["task_id"].as_str().unwrap().to_owned();
    assert_ne!(id(&first), id(&second), "the task was added twice");
    let cancel = async |id: Uuid| {
        let mut tx = setup.pool().begin().await.unwrap();
        tasks::cancel(&mut tx, id, "not wanted", noon()).await.unwrap();
        tx.commit().await.unwrap();
    };
    cancel(id(&first).parse().unwrap()).await;
    let done = setup.tasks().await.into_iter().find(|task| task.id.to_string() == id(&second));
    end(
        &setup,
        &setup.attempt(&done.unwrap()).await,
        End::Done { result: "It is done.", result_json: None },
    )
    .await;
    cancel(turn.task_id).await;
    end(&setup, &turn, End::Cancelled).await;

    let mut tx = setup.pool().begin().await.unwrap();
    let task = tasks::retry(&mut tx, turn.task_id, noon()).await.unwrap();
    tx.commit().await.unwrap();
    let again = Caller::Turn(setup.attempt(&task).await);
    assert_eq!(
        setup.call_tool(&again, name, arguments.clone()).await,
        second,
        "the task gets that result"
    );
    let third = setup.call_tool(&again, name, arguments).await;
    assert!(![id(&first), id(&second)].contains(&id(&third)), "the cancelled child is added again");
    let states = setup.tasks().await.into_iter().filter(|task| task.id != turn.task_id);
    let mut states: Vec<State> = states.map(|task| task.state).collect();
    states.sort_by_key(|state| format!("{state:?}"));
    assert_eq!(states, [State::Cancelled, State::Done, State::Queued]);
}

/// Also where all tasks that it waits for are done.
#[tokio::test]
async fn a_continuation_runs_when_its_task_is_retried() {
    let setup = Setup::new().await;
    let turn = setup.turn("boss", "main").await;
    let caller = Caller::Turn(turn.clone());
    let (name, arguments) = dispatching_calls()[1].clone();
    let said = setup.call_tool(&caller, name, arguments.clone()).await;
    let child = said["tasks"][0]["task_id"].as_str().unwrap();
    let done = setup.tasks().await.into_iter().find(|task| task.id.to_string() == child);
    end(
        &setup,
        &setup.attempt(&done.unwrap()).await,
        End::Done { result: "It is done.", result_json: None },
    )
    .await;
    let mut tx = setup.pool().begin().await.unwrap();
    tasks::cancel(&mut tx, turn.task_id, "not wanted", noon()).await.unwrap();
    tx.commit().await.unwrap();
    end(&setup, &turn, End::Cancelled).await;
    let mut tx = setup.pool().begin().await.unwrap();
    let task = tasks::retry(&mut tx, turn.task_id, noon()).await.unwrap();
    tx.commit().await.unwrap();
    let again = Caller::Turn(setup.attempt(&task).await);
    let said_again = setup.call_tool(&again, name, arguments).await;
    assert_ne!(said_again, said, "the child is added again");
    let waits = setup.tasks().await.into_iter().filter(|it| it.prompt.contains("Put together."));
    let mut states: Vec<State> = waits.map(|task| task.state).collect();
    states.sort_by_key(|state| format!("{state:?}"));
    assert_eq!(states, [State::Cancelled, State::Queued]);
}

/// The agent of a step may start the same flow again.
#[tokio::test]
async fn flow_templates_that_start_flows_come_to_an_end() {
    let setup = Setup::new().await;
    let mut turn = setup.turn("foreman", "main").await;
    let start = json!({ "template": "series", "inputs": {} });
    for round in 0..5 {
        let series = format!(
            "---\nname: series\ndescription: Begins itself\nsteps:\n  - step: lead\n    agent: foreman\n    instance: n{round}\n---\n## lead\nGo on.\n"
        );
        setup.fixture.write_template("series", &series);
        let caller = Caller::Turn(turn);
        let answer = setup.call(&caller, "flows_start", start.clone()).await;
        assert!(!answer.is_error, "{}", answer.text);
        let started = setup.tasks().await.into_iter().next().unwrap();
        turn = setup.attempt(&started).await;
    }
    let words = setup.fail_tool(&Caller::Turn(turn), "flows_start", start).await;
    assert!(words.contains("mentions.max_depth"), "{words}");
}
