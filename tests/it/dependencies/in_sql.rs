//! Tasks with dependencies that other systems add in their own transactions.

use dalsegno::domain::{
    amount::Limit,
    tasks::{self, Links, State, TaskLink},
};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::turns::fixture::Fixture;

async fn call(conn: &mut PgConnection, campaign: Uuid, sql: &str) -> Result<Uuid, sqlx::Error> {
    let sql = format!("select task_id from dalsegno.add_task($1, {sql})");
    sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).bind(campaign).fetch_one(conn).await
}

#[tokio::test]
async fn another_system_adds_a_whole_plan_in_one_transaction() {
    let fixture = Fixture::new(&[]).await;
    let campaign = fixture.campaign.id;
    let mut tx = fixture.pool.begin().await.unwrap();
    let one = call(&mut tx, campaign, "'writer', 'One. [[sim: say one]]', 'a'").await.unwrap();
    let two = call(&mut tx, campaign, "'writer', 'Two.', instance => 'b'").await.unwrap();
    let after = format!(
        "'writer', 'Join.', depends_on => array['{one}', '{two}']::uuid[], parent_id => '{one}', idempotency_key => 'join'"
    );
    let joined = call(&mut tx, campaign, &after).await.unwrap();
    assert_eq!(call(&mut tx, campaign, &after).await.unwrap(), joined);
    tx.commit().await.unwrap();
    let worker = fixture.start_worker().await;
    let joined = fixture.done(&tasks::get(&fixture.pool, joined).await.unwrap()).await;
    worker.stop().await;
    let ends = tasks::predecessors(&fixture.pool, joined.id, 100).await.unwrap();
    let told: Vec<_> = ends.iter().map(|end| (end.id, end.state)).collect();
    assert_eq!(told, [(one, State::Done), (two, State::Done)]);
    // The key means the same request over HTTP.
    let others = [TaskLink::Task(one), TaskLink::Task(two)];
    let links = Links { depends_on: &others, parent_id: Some(one), ..Links::default() };
    let again = fixture.add_keyed("Join.", "join", links).await.unwrap();
    assert_eq!((again.task.id, again.created), (joined.id, false));
    let other = Links { depends_on: &others[..1], parent_id: Some(one), ..Links::default() };
    let refused = fixture.add_keyed("Join.", "join", other).await.unwrap_err();
    assert!(matches!(refused, tasks::Error::KeyTaken(_)), "{refused}");
    let unlimited = Limit::default();
    assert_eq!((joined.budget_micros, joined.budget_tokens), (unlimited.micros, unlimited.tokens));
}

#[tokio::test]
async fn an_invalid_dependency_is_refused_with_a_hint() {
    let fixture = Fixture::new(&[]).await;
    let one = fixture.add("One.").await.id;
    let nil = Uuid::nil();
    let cases = [
        (format!("array['{nil}']::uuid[]"), "DS404"),
        ("array[null]::uuid[]".to_owned(), "DS404"),
        (format!("array['{one}']::uuid[], on_failure => 'ignore'"), "DS400"),
        (format!("array['{one}']::uuid[], parent_id => '{nil}'"), "DS404"),
        (format!("array_fill('{one}'::uuid, array[1001])"), "DS400"),
    ];
    for (after, code) in cases {
        let mut tx = fixture.pool.begin().await.unwrap();
        let sql = format!("'writer', 'x', depends_on => {after}");
        let error = call(&mut tx, fixture.campaign.id, &sql).await.unwrap_err();
        let found = error.as_database_error().unwrap().code().unwrap().into_owned();
        assert_eq!(found, code, "{after}: {error}");
    }
    // A dependency that is named twice counts once.
    let mut tx = fixture.pool.begin().await.unwrap();
    let twice = format!("'writer', 'x', depends_on => array['{one}', '{one}']::uuid[]");
    let task = call(&mut tx, fixture.campaign.id, &twice).await.unwrap();
    assert_eq!(tasks::predecessors(&mut *tx, task, 1).await.unwrap().len(), 1);
}
