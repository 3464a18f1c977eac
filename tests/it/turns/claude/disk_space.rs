//! Hosts whose own disk is full.

use std::sync::Arc;

use dalsegno::domain::tasks::Task;
use rustix::process::Signal;
use tokio::sync::Notify;

use super::Setup;
use crate::{app::eventually, providers::claude::api::Play};

impl Setup {
    /// Waits until a turn was postponed because of missing disk space.
    async fn wait_until_postponed(&self) {
        let put_off = "select count(*) from dalsegno.runs where outcome = 'snooze' and error like '%has no disk space%'";
        let is_put_off = async || (self.fixture.count(put_off).await >= 1).then_some(());
        eventually("the turn is postponed", is_put_off).await;
    }

    /// Checks for space now, instead of some seconds later.
    async fn wait_until_done(&self, task: &Task) {
        let due = "update dalsegno.jobs set run_at = now() where wait_reason = 'snooze'";
        sqlx::query(due).execute(&self.fixture.pool).await.unwrap();
        self.fixture.done(task).await;
        self.fixture.settled().await;
        let burned = "select count(*) from dalsegno.runs where outcome not in ('done', 'snooze')";
        assert_eq!(self.fixture.count(burned).await, 0);
    }
}

#[tokio::test]
async fn a_host_without_disk_space_makes_no_call_and_uses_up_no_attempt() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    let (mut worker, volume) = fixture.process_on_volume(64);
    setup.run_prompt("One.").await;
    volume.fill();
    let task = fixture.add("Two.").await;
    setup.wait_until_postponed().await;
    assert_eq!(setup.api.requests().len(), 1, "no further call was made");
    volume.make_space();
    setup.wait_until_done(&task).await;
    assert_eq!(setup.api.requests().len(), 2);
    let said = setup.api.last_messages();
    assert_eq!(said.len(), 3, "{said:?}");
    worker.signal(Signal::TERM);
    worker.ended().await;
}

#[tokio::test]
async fn an_answer_lost_to_a_full_disk_is_requested_again_with_free_space() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    let (mut worker, volume) = fixture.process_on_volume(64);
    setup.run_prompt("One.").await;
    let answer = Arc::new(Notify::new());
    setup.api.plays([Play::Waits(answer.clone(), "Much to write. ".repeat(5_000))]);
    let task = fixture.add("Two.").await;
    eventually("the model is called", async || (setup.api.requests().len() == 2).then_some(()))
        .await;
    volume.fill();
    answer.notify_one();
    setup.wait_until_postponed().await;
    assert_eq!(setup.api.requests().len(), 2);
    volume.make_space();
    setup.wait_until_done(&task).await;
    assert_eq!(setup.api.last_messages().len(), 3);
    assert_eq!(
        fixture.count("select count(*) from dalsegno.usage").await,
        3,
        "all calls are charged"
    );
    worker.signal(Signal::TERM);
    worker.ended().await;
}
