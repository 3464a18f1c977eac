//! Urgent jobs of groups that have no turn: a claim looks at 32 groups, of which these are none.

use sqlx::Executor as _;

use super::statements::{claim, register, worker_session};
use crate::app::TestDatabase;

#[tokio::test]
async fn an_urgent_job_of_a_paused_group_or_an_unknown_kind_is_not_claimed() {
    let database = TestDatabase::migrated().await;
    let mut conn = worker_session(&database).await;
    let me = register(&mut conn, &["k"]).await;
    let jobs = "select count(dalsegno.enqueue('k', group_key => 'group-' || n)) from generate_series(100, 139) as n";
    conn.execute(jobs).await.unwrap();
    conn.execute("select dalsegno.pause('group', 'paused')").await.unwrap();
    let mut urgent = Vec::new();
    for (kind, group) in [("k", "paused"), ("strange", "urgent"), ("k", "urgent"), ("k", "more")] {
        let add = "select job_id from dalsegno.enqueue($1, group_key => $2, priority => 10)";
        let add = sqlx::query_scalar::<_, i64>(add).bind(kind).bind(group);
        urgent.push(add.fetch_one(&mut conn).await.unwrap());
    }

    let claimed = claim(&mut conn, me, &["k"]).await;
    assert_eq!(claimed.len(), 34, "those of the 32 groups that have a turn, and the urgent ones");
    let is_claimed = |id: &i64| claimed.iter().any(|(claimed, _)| claimed == id);
    assert_eq!(urgent.iter().map(is_claimed).collect::<Vec<_>>(), [false, false, true, true]);
}
