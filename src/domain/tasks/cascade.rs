//! What is cancelled together with a task: what it has handed out, and what was to take its work up again.

use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use crate::domain::Failed;

/// The open ones among the tasks that hang on this one: its children and theirs, and what continues it. Of one that continues
/// another, also the children that it waits for. Those that wait come first, so that the end of a child wakes nobody up.
pub(super) async fn below(conn: &mut PgConnection, id: Uuid) -> Result<Vec<Uuid>, Failed> {
    sqlx::query_scalar!(
        r#"with recursive below (id) as (
               select $1::uuid
               union
               select o.id
                 from below as b
                cross join lateral (
                    select t.id from dalsegno.tasks as t where t.parent_id = b.id
                    union all
                    select t.id from dalsegno.tasks as t where t.continues_id = b.id
                    union all
                    select t.id from dalsegno.task_dependencies as d
                      join dalsegno.tasks as own on own.id = d.task_id
                      join dalsegno.tasks as t on t.id = d.on_task_id and t.parent_id = own.continues_id
                     where d.task_id = b.id) as o)
           select t.id as "id!" from below as b join dalsegno.tasks as t on t.id = b.id
            where t.id <> $1 and t.ended_at is null
            order by t.continues_id is null, t.id"#,
        id,
    )
    .fetch_all(conn)
    .await
    .map_err(Failed::to("look for what hangs on a task"))
}

/// Keeps a task as it is until the end of the transaction: nothing is handed out by it meanwhile.
pub(super) async fn lock(executor: impl PgExecutor<'_>, id: Uuid) -> Result<(), Failed> {
    sqlx::query!("select id from dalsegno.tasks where id = $1 for no key update", id)
        .fetch_optional(executor)
        .await
        .map(drop)
        .map_err(Failed::to("lock a task"))
}
