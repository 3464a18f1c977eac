//! A change is made once, and only by a run that still has its job.

use dalsegno::tools::{Caller, Turn};
use futures_util::future::join_all;
use serde_json::json;

use super::{Setup, changes};
use crate::conversations::world::TurnSettings;

#[tokio::test]
async fn tasks_dispatched_by_a_killed_attempt_are_not_dispatched_again() {
    let setup = Setup::new().await;
    let first = setup.turn("boss", "main").await;
    let hand = |text: &str| json!({ "tasks": [{ "agent": "helper", "text": text }] });
    let caller = Caller::Turn(first.clone());
    // The same call twice makes two tasks. The worker dies before the second answer arrives.
    let one = setup.call_tool(&caller, "dispatch", hand("Part.")).await;
    let two = setup.call_tool(&caller, "dispatch", hand("Part.")).await;
    assert_ne!(one, two);
    let n_tasks = setup.tasks().await.len();

    let task = setup.world.task(first.task_id).await;
    let again = Caller::Turn(setup.attempt(&task).await);
    assert_eq!(setup.call_tool(&again, "dispatch", hand("Part.")).await, one);
    assert_eq!(setup.call_tool(&again, "dispatch", hand("Part.")).await, two);
    assert_eq!(setup.tasks().await.len(), n_tasks, "both tasks existed");
    setup.call_tool(&again, "dispatch", hand("Part.")).await;
    setup.call_tool(&again, "dispatch", hand("Another.")).await;
    assert_eq!(setup.tasks().await.len(), n_tasks + 2);

    let third = Caller::Turn(setup.attempt(&task).await);
    for _ in 0..3 {
        setup.call_tool(&third, "dispatch", hand("Part.")).await;
    }
    assert_eq!(setup.tasks().await.len(), n_tasks + 2);
}

#[tokio::test]
async fn tasks_dispatched_by_an_earlier_turn_of_the_run_are_not_dispatched_again() {
    let setup = Setup::new().await;
    let first = setup.turn("boss", "main").await;
    let hand = |text: &str| json!({ "tasks": [{ "agent": "helper", "text": text }] });
    let told = setup.call_tool(&Caller::Turn(first.clone()), "dispatch", hand("Part.")).await;
    let n_tasks = setup.tasks().await.len();
    let second = begin_next_turn(&setup, &first).await;
    assert_eq!((second.lease, second.turn), (first.lease, first.turn + 1));
    let caller = Caller::Turn(second.clone());
    assert_eq!(setup.call_tool(&caller, "dispatch", hand("Part.")).await, told);
    assert_eq!(setup.tasks().await.len(), n_tasks, "the task existed");
    // Called twice by one turn, it makes two.
    assert_ne!(setup.call_tool(&caller, "dispatch", hand("Part.")).await, told);
    assert_eq!(setup.tasks().await.len(), n_tasks + 1);

    // And once more, by an attempt of another run.
    let task = setup.world.task(first.task_id).await;
    let third = Caller::Turn(setup.attempt(&task).await);
    assert_eq!(setup.call_tool(&third, "dispatch", hand("Part.")).await, told);
    assert_eq!(setup.tasks().await.len(), n_tasks + 1);
}

/// Begins the next turn of the run with the same question, after a prompt that did not fit.
async fn begin_next_turn(setup: &Setup, turn: &Turn) -> Turn {
    for sql in [
        "update dalsegno.turns set state = 'failed', error = 'no room', ended_at = now() where state = 'running'",
        "update dalsegno.sessions set state = 'idle', running_turn = null where state = 'running'",
    ] {
        sqlx::query(sql).execute(setup.pool()).await.unwrap();
    }
    let task = setup.world.task(turn.task_id).await;
    let (_, begun) = setup.world.begin(&task, turn.lease, TurnSettings::default()).await;
    Turn { session_id: begun.session_id, turn: begun.turn, ..turn.clone() }
}

#[tokio::test]
async fn a_run_without_its_job_changes_nothing() {
    let setup = Setup::new().await;
    let turn = setup.turn("boss", "main").await;
    let caller = Caller::Turn(turn.clone());
    // Publishes an item that the calls below could revoke.
    let edict = json!({ "name": "tone", "title": "Tone", "text": "Write short." });
    setup.call_tool(&setup.operator(), "edicts_publish", edict).await;
    let before = setup.state().await;
    let lost = sqlx::query("update dalsegno.jobs set lease = lease + 1000 where id = $1");
    lost.bind(turn.job_id).execute(setup.pool()).await.unwrap();
    for (name, arguments) in changes() {
        let words = setup.fail_tool(&caller, name, arguments).await;
        assert!(words.contains("nothing was done"), "{words}");
    }
    assert_eq!(setup.state().await, before);
    assert_eq!(setup.audit().await.len(), 1, "the operator's post");

    // Also a turn that has ended, while its run continues with another.
    let back = sqlx::query("update dalsegno.jobs set lease = lease - 1000 where id = $1");
    back.bind(turn.job_id).execute(setup.pool()).await.unwrap();
    sqlx::query("update dalsegno.turns set state = 'failed', error = 'no room', ended_at = now()")
        .execute(setup.pool())
        .await
        .unwrap();
    for (name, arguments) in changes() {
        setup.fail_tool(&caller, name, arguments).await;
    }
    assert_eq!(setup.state().await, before);
}

#[tokio::test]
async fn concurrent_calls_of_one_turn_are_each_made_once() {
    let setup = Setup::new().await;
    let first = setup.turn("boss", "main").await;
    let post = |caller| setup.call_tool(caller, "board_post", json!({ "text": "Same." }));
    let caller = Caller::Turn(first.clone());
    join_all((0..8).map(|_| post(&caller))).await;
    assert_eq!(setup.posts().await.len(), 8);
    let task = setup.world.task(first.task_id).await;
    let again = Caller::Turn(setup.attempt(&task).await);
    join_all((0..10).map(|_| post(&again))).await;
    assert_eq!(setup.posts().await.len(), 10, "eight of the ten existed");
}
