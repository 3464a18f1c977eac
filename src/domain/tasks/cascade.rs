//! What is cancelled together with a task: what it has handed out, and what was to take its work up again.

use sqlx::PgConnection;
use uuid::Uuid;

use super::{Mode, State, Task};
use crate::domain::Failed;

/// The open ones among the tasks that hang on this one: its children and theirs, and what continues it. Of one that continues
/// another, also the children that it waits for. Those that wait come first, so that the end of a child wakes nobody up.
pub(super) async fn below(conn: &mut PgConnection, id: Uuid) -> Result<Vec<Task>, Failed> {
    sqlx::query_as!(
        Task,
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
           select t.id as "id!", t.campaign_id as "campaign_id!", t.agent as "agent!", t.instance as "instance!",
                  t.session_mode as "session_mode!: Mode", t.state as "state!: State", t.prompt as "prompt!", t.result, t.error,
                  t.budget_micros, t.budget_tokens, t.spent_micros as "spent_micros!", t.spent_tokens as "spent_tokens!",
                  t.job_id as "job_id!", t.session_id, t.turn, t.created_at as "created_at!", t.started_at, t.ended_at
             from below as b join dalsegno.tasks as t on t.id = b.id
            where t.id <> $1 and t.ended_at is null
            order by t.continues_id is null, t.id"#,
        id,
    )
    .fetch_all(conn)
    .await
    .map_err(Failed::to("look for what hangs on a task"))
}
