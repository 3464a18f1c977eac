//! Hosts whose own disk is full.

use std::sync::Arc;

use dalsegno::domain::tasks::Task;
use rustix::process::Signal;
use tokio::sync::Notify;

use super::Stage;
use crate::{app::eventually, providers::claude::api::Play};

impl Stage {
    /// Waits until a turn was postponed because of missing disk space.
    async fn put_off(&self) {
        let put_off = "select count(*) from dalsegno.runs where outcome = 'snooze' and error like '%has no disk space%'";
        let is_put_off = async || (self.ground.count(put_off).await >= 1).then_some(());
        eventually("the turn is postponed", is_put_off).await;
    }

    /// Checks for space now, instead of some seconds later.
    async fn done_at_last(&self, task: &Task) {
        let due = "update dalsegno.jobs set run_at = now() where wait_reason = 'snooze'";
        sqlx::query(due).execute(&self.ground.pool).await.unwrap();
        self.ground.done(task).await;
        self.ground.settled().await;
        let burned = "select count(*) from dalsegno.runs where outcome not in ('done', 'snooze')";
        assert_eq!(self.ground.count(burned).await, 0);
    }
}

#[tokio::test]
async fn a_host_without_disk_space_makes_no_call_and_uses_up_no_attempt() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let ground = &stage.ground;
    let (mut worker, volume) = ground.process_on_volume(64);
    stage.says("One.").await;
    volume.fill();
    let task = ground.add("Two.").await;
    stage.put_off().await;
    assert_eq!(stage.api.requests().len(), 1, "no further call was made");
    volume.make_space();
    stage.done_at_last(&task).await;
    assert_eq!(stage.api.requests().len(), 2);
    let said = stage.api.last_messages();
    assert_eq!(said.len(), 3, "{said:?}");
    worker.signal(Signal::TERM);
    worker.ended().await;
}

#[tokio::test]
async fn an_answer_lost_to_a_full_disk_is_requested_again_with_free_space() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let ground = &stage.ground;
    let (mut worker, volume) = ground.process_on_volume(64);
    stage.says("One.").await;
    let answer = Arc::new(Notify::new());
    stage.api.plays([Play::Waits(answer.clone(), "Much to write. ".repeat(5_000))]);
    let task = ground.add("Two.").await;
    eventually("the model is called", async || (stage.api.requests().len() == 2).then_some(()))
        .await;
    volume.fill();
    answer.notify_one();
    stage.put_off().await;
    assert_eq!(stage.api.requests().len(), 2);
    volume.make_space();
    stage.done_at_last(&task).await;
    assert_eq!(stage.api.last_messages().len(), 3);
    assert_eq!(
        ground.count("select count(*) from dalsegno.usage").await,
        3,
        "all calls are charged"
    );
    worker.signal(Signal::TERM);
    worker.ended().await;
}
