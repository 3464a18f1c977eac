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

use super::Stage;
use crate::app::noon;

fn handing_out() -> [(&'static str, Value); 3] {
    let tasks = json!([{ "agent": "helper", "text": "Part one." }]);
    [
        ("dispatch", json!({ "tasks": tasks })),
        ("dispatch", json!({ "tasks": tasks, "then": "Put together." })),
        ("workflows_start", json!({ "workflow": "pair", "inputs": { "topic": "tides" } })),
    ]
}

/// Ends a turn as its worker does.
async fn end(stage: &Stage, turn: &Turn, end: End<'_>) {
    let mut tx = stage.pool().begin().await.unwrap();
    tasks::end(&mut tx, turn.task_id, end, Amount::ZERO, noon()).await.unwrap();
    let ends = sqlx::query("delete from dalsegno.jobs where id = $1").bind(turn.job_id);
    ends.execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn a_turn_that_is_stopped_hands_nothing_out() {
    let stage = Stage::new().await;
    for how in [InterruptMode::Soft, InterruptMode::Hard] {
        let turn =
            stage.turn("foreman", if how == InterruptMode::Soft { "main" } else { "2" }).await;
        let mut tx = stage.pool().begin().await.unwrap();
        tasks::interrupt(&mut tx, turn.session_id, how, "not wanted", noon()).await.unwrap();
        tx.commit().await.unwrap();
        let (caller, before) = (Caller::Turn(turn), stage.state().await);
        for (name, arguments) in handing_out() {
            let words = stage.refuses(&caller, name, arguments).await;
            assert!(words.contains("is being cancelled"), "{how:?}: {words}");
        }
        assert_eq!(stage.state().await, before, "{how:?}");
    }
}

#[tokio::test]
async fn what_a_turn_has_handed_out_is_cancelled_with_its_task() {
    let stage = Stage::new().await;
    let turn = stage.turn("foreman", "main").await;
    let caller = Caller::Turn(turn.clone());
    for (name, arguments) in handing_out() {
        stage.says(&caller, name, arguments).await;
    }
    let mut tx = stage.pool().begin().await.unwrap();
    tasks::cancel(&mut tx, turn.task_id, "not wanted", noon()).await.unwrap();
    tx.commit().await.unwrap();
    let handed = stage.tasks().await.into_iter().filter(|task| task.id != turn.task_id);
    let states: Vec<State> = handed.map(|task| task.state).collect();
    assert_eq!(states, [State::Cancelled; 5]);
}

#[tokio::test]
async fn what_was_cancelled_is_handed_out_again_when_its_task_is_tried_again() {
    let stage = Stage::new().await;
    let turn = stage.turn("boss", "main").await;
    let caller = Caller::Turn(turn.clone());
    let post = json!({ "text": "I begin." });
    stage.says(&caller, "board_post", post.clone()).await;
    for (name, arguments) in handing_out() {
        stage.says(&caller, name, arguments).await;
    }
    let mut tx = stage.pool().begin().await.unwrap();
    tasks::cancel(&mut tx, turn.task_id, "not wanted", noon()).await.unwrap();
    tx.commit().await.unwrap();
    end(&stage, &turn, End::Cancelled).await;
    let n_open = async || {
        let open = |task: &Task| task.ended_at.is_none();
        stage.tasks().await.into_iter().filter(open).count()
    };
    assert_eq!(n_open().await, 0);

    let mut tx = stage.pool().begin().await.unwrap();
    let task = tasks::retry(&mut tx, turn.task_id, noon()).await.unwrap();
    tx.commit().await.unwrap();
    let again = Caller::Turn(stage.attempt(&task).await);
    stage.says(&again, "board_post", post).await;
    for (name, arguments) in handing_out() {
        stage.says(&again, name, arguments).await;
    }
    assert_eq!(n_open().await, 6, "itself, and all that it handed out");
    assert_eq!(stage.posts().await.len(), 1, "what was posted is there all the same");
}

#[tokio::test]
async fn what_is_done_is_not_handed_out_again_when_its_task_is_tried_again() {
    let stage = Stage::new().await;
    let turn = stage.turn("boss", "main").await;
    let caller = Caller::Turn(turn.clone());
    let (name, arguments) = handing_out()[0].clone();
    let first = stage.says(&caller, name, arguments.clone()).await;
    let second = stage.says(&caller, name, arguments.clone()).await;
    let id = |said: &Value| said["tasks"][0]["task_id"].as_str().unwrap().to_owned();
    assert_ne!(id(&first), id(&second), "asked for twice");
    let cancel = async |id: Uuid| {
        let mut tx = stage.pool().begin().await.unwrap();
        tasks::cancel(&mut tx, id, "not wanted", noon()).await.unwrap();
        tx.commit().await.unwrap();
    };
    cancel(id(&first).parse().unwrap()).await;
    let done = stage.tasks().await.into_iter().find(|task| task.id.to_string() == id(&second));
    end(&stage, &stage.attempt(&done.unwrap()).await, End::Done { result: "It is done." }).await;
    cancel(turn.task_id).await;
    end(&stage, &turn, End::Cancelled).await;

    let mut tx = stage.pool().begin().await.unwrap();
    let task = tasks::retry(&mut tx, turn.task_id, noon()).await.unwrap();
    tx.commit().await.unwrap();
    let again = Caller::Turn(stage.attempt(&task).await);
    assert_eq!(stage.says(&again, name, arguments.clone()).await, second, "it is told of that");
    let third = stage.says(&again, name, arguments).await;
    assert!(![id(&first), id(&second)].contains(&id(&third)), "and the cancelled one is made anew");
    let states = stage.tasks().await.into_iter().filter(|task| task.id != turn.task_id);
    let mut states: Vec<State> = states.map(|task| task.state).collect();
    states.sort_by_key(|state| format!("{state:?}"));
    assert_eq!(states, [State::Cancelled, State::Done, State::Queued]);
}

/// Also where all tasks that it waits for are done.
#[tokio::test]
async fn what_was_to_be_asked_afterwards_is_asked_when_its_task_is_tried_again() {
    let stage = Stage::new().await;
    let turn = stage.turn("boss", "main").await;
    let caller = Caller::Turn(turn.clone());
    let (name, arguments) = handing_out()[1].clone();
    let said = stage.says(&caller, name, arguments.clone()).await;
    let child = said["tasks"][0]["task_id"].as_str().unwrap();
    let done = stage.tasks().await.into_iter().find(|task| task.id.to_string() == child);
    end(&stage, &stage.attempt(&done.unwrap()).await, End::Done { result: "It is done." }).await;
    let mut tx = stage.pool().begin().await.unwrap();
    tasks::cancel(&mut tx, turn.task_id, "not wanted", noon()).await.unwrap();
    tx.commit().await.unwrap();
    end(&stage, &turn, End::Cancelled).await;
    let mut tx = stage.pool().begin().await.unwrap();
    let task = tasks::retry(&mut tx, turn.task_id, noon()).await.unwrap();
    tx.commit().await.unwrap();
    let again = Caller::Turn(stage.attempt(&task).await);
    let said_again = stage.says(&again, name, arguments).await;
    assert_ne!(said_again, said, "it is handed out anew");
    let waits = stage.tasks().await.into_iter().filter(|it| it.prompt.contains("Put together."));
    let mut states: Vec<State> = waits.map(|task| task.state).collect();
    states.sort_by_key(|state| format!("{state:?}"));
    assert_eq!(states, [State::Cancelled, State::Queued]);
}

/// The agent of a step may start the same flow again.
#[tokio::test]
async fn workflows_that_start_workflows_come_to_an_end() {
    let stage = Stage::new().await;
    let mut turn = stage.turn("foreman", "main").await;
    let start = json!({ "workflow": "series", "inputs": {} });
    for round in 0..5 {
        let series = format!(
            "---\nname: series\ndescription: Begins itself\nsteps:\n  - step: lead\n    agent: foreman\n    instance: n{round}\n---\n## lead\nGo on.\n"
        );
        stage.ground.write_template("series", &series);
        let caller = Caller::Turn(turn);
        let answer = stage.call(&caller, "workflows_start", start.clone()).await;
        assert!(!answer.is_error, "{}", answer.text);
        let started = stage.tasks().await.into_iter().next().unwrap();
        turn = stage.attempt(&started).await;
    }
    let words = stage.refuses(&Caller::Turn(turn), "workflows_start", start).await;
    assert!(words.contains("mentions.max_depth"), "{words}");
}
