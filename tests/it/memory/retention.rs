//! Retention of revoked and expired items.

use chrono::TimeDelta;
use dalsegno::domain::{
    cleanups::{self, Walk},
    memory::{self, Kind, New},
};

use super::{OPERATOR, config, listed, new, publish, read, revoke};
use crate::{
    app::{defaults, noon, until_blocked},
    conversations::world::World,
};

fn walk(days: i64) -> Walk {
    let sessions = defaults().sessions;
    Walk::new(noon() + TimeDelta::days(days), &sessions, &config())
}

async fn remove(world: &World, days: i64) -> (i64, i64) {
    let mut tx = world.pool.begin().await.unwrap();
    let told = cleanups::preview(&mut tx, walk(days)).await.unwrap().memory_items;
    let gone = cleanups::remove_memory(&mut tx, &walk(days), 100).await.unwrap().items;
    tx.commit().await.unwrap();
    (told, gone)
}

#[tokio::test]
async fn revoked_and_expired_items_are_removed_after_their_retention_and_no_others() {
    let world = World::new().await;
    let put = async |new: &New<'_>| publish(&world, new, &OPERATOR).await.unwrap();
    put(&new(Kind::Record, "stays", "Text.")).await;
    put(&new(Kind::Record, "revoked", "One.")).await;
    put(&new(Kind::Record, "revoked", "Two.")).await;
    put(&new(Kind::Record, "again", "Text.")).await;
    let end = Some(noon() + TimeDelta::days(10));
    put(&New { expires_at: end, ..new(Kind::Edict, "expires", "Text.") }).await;
    for name in ["revoked", "again"] {
        revoke(&world, (Kind::Record, None, name), &OPERATOR).await.unwrap();
    }
    put(&new(Kind::Record, "again", "Text.")).await;
    assert_eq!(remove(&world, 89).await, (0, 0));
    assert_eq!(remove(&world, 91).await, (1, 1));
    assert!(read(&world, (Kind::Record, None, "revoked"), &OPERATOR).await.is_err());
    assert!(read(&world, (Kind::Edict, None, "expires"), &OPERATOR).await.is_ok());
    assert_eq!(remove(&world, 101).await, (1, 1));
    assert_eq!(listed(&world, &OPERATOR).await, ["record again", "record stays"]);
    let n_versions: i64 = sqlx::query_scalar("select count(*) from dalsegno.memory_versions")
        .fetch_one(&world.pool)
        .await
        .unwrap();
    assert_eq!(n_versions, 1);
}

/// Publishing an item while it is removed waits for the removal, and then creates it again.
#[tokio::test]
async fn an_item_published_during_its_removal_exists_afterwards() {
    let world = World::new().await;
    publish(&world, &new(Kind::Record, "late", "Text."), &OPERATOR).await.unwrap();
    revoke(&world, (Kind::Record, None, "late"), &OPERATOR).await.unwrap();
    let mut tx = world.pool.begin().await.unwrap();
    assert_eq!(cleanups::remove_memory(&mut tx, &walk(100), 100).await.unwrap().items, 1);
    let record = new(Kind::Record, "late", "Again.");
    let (written, ()) = tokio::join!(publish(&world, &record, &OPERATOR), async {
        until_blocked(&world.pool).await;
        tx.commit().await.unwrap();
    });
    assert_eq!(written.unwrap().item.version, 1);
    assert_eq!(listed(&world, &OPERATOR).await, ["record late"]);
    assert_eq!(memory::count_ended(&world.pool, noon() + TimeDelta::days(100)).await.unwrap(), 0);
}
