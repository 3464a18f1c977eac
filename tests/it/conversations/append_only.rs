//! Messages and costs are never changed.

use dalsegno::domain::messages;

use super::{TurnSettings, World};

#[tokio::test]
async fn append_only_tables_reject_updates_and_deletes() {
    let world = World::new().await;
    let id = world.turn("Part one.", TurnSettings::default()).await.session.id;
    let statements = [
        "update dalsegno.messages set text = 'never said'",
        "delete from dalsegno.messages",
        "truncate dalsegno.messages",
        "update dalsegno.usage set cost_micros = 0",
        "delete from dalsegno.usage",
        "delete from dalsegno.manifests",
        "update dalsegno.feed set kind = 'other'",
        "truncate dalsegno.feed",
    ];
    for statement in statements {
        let error = sqlx::query(statement).execute(&world.pool).await.unwrap_err();
        let error = error.as_database_error().unwrap();
        assert_eq!(error.code().unwrap(), "DS405", "{statement}");
        assert!(error.message().contains("append-only"), "{error}");
    }
    assert_eq!(world.transcript(id).await.len(), 2);
}

#[tokio::test]
async fn only_the_removal_function_may_delete() {
    let world = World::new().await;
    let id = world.turn("Part one.", TurnSettings::default()).await.session.id;
    let mut conn = world.pool.acquire().await.unwrap();
    {
        use sqlx::Connection as _;
        let mut tx = conn.begin().await.unwrap();
        assert_eq!(messages::remove_all(&mut *tx, &[id]).await.unwrap().messages, 2);
        let update = "update dalsegno.usage set cost_micros = 0";
        assert!(sqlx::query(update).execute(&mut *tx).await.is_err());
        tx.rollback().await.unwrap();
    }
    assert_eq!(world.transcript(id).await.len(), 2);
    {
        use sqlx::Connection as _;
        let mut tx = conn.begin().await.unwrap();
        messages::remove_all(&mut *tx, &[id]).await.unwrap();
        tx.commit().await.unwrap();
    }
    assert!(world.transcript(id).await.is_empty());
    // The same connection, after the commit.
    assert!(sqlx::query("delete from dalsegno.usage").execute(&mut *conn).await.is_err());
}
