//! A change is made once, and only by a run that still has its job.

use dalsegno::tools::Caller;
use futures_util::future::join_all;
use serde_json::json;

use super::{Stage, changes};

#[tokio::test]
async fn what_a_killed_attempt_has_handed_out_is_not_handed_out_again() {
    let stage = Stage::new().await;
    let first = stage.turn("boss", "main").await;
    let hand = |text: &str| json!({ "tasks": [{ "agent": "helper", "text": text }] });
    let caller = Caller::Turn(first.clone());
    // Twice the same is two, and the worker dies before the answer of the second one arrives.
    let one = stage.says(&caller, "dispatch", hand("Part.")).await;
    let two = stage.says(&caller, "dispatch", hand("Part.")).await;
    assert_ne!(one, two);
    let n_tasks = stage.tasks().await.len();

    let task = stage.world.task(first.task_id).await;
    let again = Caller::Turn(stage.attempt(&task).await);
    assert_eq!(stage.says(&again, "dispatch", hand("Part.")).await, one);
    assert_eq!(stage.says(&again, "dispatch", hand("Part.")).await, two);
    assert_eq!(stage.tasks().await.len(), n_tasks, "both were there");
    stage.says(&again, "dispatch", hand("Part.")).await;
    stage.says(&again, "dispatch", hand("Another.")).await;
    assert_eq!(stage.tasks().await.len(), n_tasks + 2);

    let third = Caller::Turn(stage.attempt(&task).await);
    for _ in 0..3 {
        stage.says(&third, "dispatch", hand("Part.")).await;
    }
    assert_eq!(stage.tasks().await.len(), n_tasks + 2);
}

#[tokio::test]
async fn a_run_that_has_lost_its_job_changes_nothing() {
    let stage = Stage::new().await;
    let turn = stage.turn("boss", "main").await;
    let caller = Caller::Turn(turn.clone());
    // There is something to revoke.
    let edict = json!({ "name": "tone", "title": "Tone", "text": "Write short." });
    stage.says(&stage.operator(), "edicts_publish", edict).await;
    let before = stage.state().await;
    let lost = sqlx::query("update dalsegno.jobs set lease = lease + 1000 where id = $1");
    lost.bind(turn.job_id).execute(stage.pool()).await.unwrap();
    for (name, arguments) in changes() {
        let words = stage.refuses(&caller, name, arguments).await;
        assert!(words.contains("nothing was done"), "{words}");
    }
    assert_eq!(stage.state().await, before);
    assert_eq!(stage.audit().await.len(), 1, "the operator's");

    // And a turn that has ended, while its run goes on with another.
    let back = sqlx::query("update dalsegno.jobs set lease = lease - 1000 where id = $1");
    back.bind(turn.job_id).execute(stage.pool()).await.unwrap();
    sqlx::query("update dalsegno.turns set state = 'failed', error = 'no room', ended_at = now()")
        .execute(stage.pool())
        .await
        .unwrap();
    for (name, arguments) in changes() {
        stage.refuses(&caller, name, arguments).await;
    }
    assert_eq!(stage.state().await, before);
}

#[tokio::test]
async fn calls_of_one_turn_at_once_are_all_done_once() {
    let stage = Stage::new().await;
    let first = stage.turn("boss", "main").await;
    let post = |caller| stage.says(caller, "board_post", json!({ "text": "Same." }));
    let caller = Caller::Turn(first.clone());
    join_all((0..8).map(|_| post(&caller))).await;
    assert_eq!(stage.posts().await.len(), 8);
    let task = stage.world.task(first.task_id).await;
    let again = Caller::Turn(stage.attempt(&task).await);
    join_all((0..10).map(|_| post(&again))).await;
    assert_eq!(stage.posts().await.len(), 10, "eight of the ten were there");
}
