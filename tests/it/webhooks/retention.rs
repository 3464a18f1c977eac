//! Deliveries are removed when they expire.

use chrono::{TimeDelta, Utc};
use dalsegno::domain::{cleanups, webhooks};

use super::{WebhookSetup, deliveries};
use crate::app::eventually;

#[tokio::test]
async fn the_cleanup_removes_old_deliveries_and_keeps_pending_ones() {
    let setup = WebhookSetup::with(&[("webhooks.keep_days", "30")]).await;
    let (_, old) = setup.end_a_task().await;
    let (_, replayed) = setup.end_a_task().await;
    setup.fixture.advance(TimeDelta::days(31));
    let (_, new) = setup.end_a_task().await;
    let now = Utc::now() + TimeDelta::days(31);
    let mut tx = setup.fixture.pool.begin().await.unwrap();
    webhooks::replay(&mut tx, replayed.id, now).await.unwrap();
    // The jobs of deliveries wait here; none is sent.
    sqlx::query("update dalsegno.jobs set run_at = now() + interval '1 day', state = 'scheduled', wait_reason = 'later'")
        .execute(&mut *tx)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    cleanups::request(&setup.fixture.pool, "cli:ann@vm").await.unwrap();
    let upkeep = setup.fixture.upkeep().await;
    let left = eventually("old rows are removed", async || {
        let left = deliveries(&setup.fixture, None).await;
        (left.len() < 3).then_some(left)
    })
    .await;
    let left: Vec<_> = left.into_iter().map(|one| one.id).collect();
    assert_eq!(left, [new.id, replayed.id], "{old:?}");
    upkeep.stop().await;
}
