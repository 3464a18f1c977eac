//! What a turn begins with.

use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::{
    Failed,
    amount::Limit,
    campaigns::{Campaign, Status},
    sessions::resolve::Mode,
    tasks::{self, State as TaskState, Task},
};

/// The task that a job runs, its campaign, and what that may cost at most.
pub struct Wanted {
    pub task: Task,
    pub campaign: Campaign,
    pub limit: Limit,
    /// Who asked for the task, in the words of traces.
    pub traceparent: Option<String>,
    /// It was added to wait for others, and is told what they came to.
    pub has_waited: bool,
    /// The post that it came from.
    pub post_id: Option<Uuid>,
    /// The last place on the campaign's board; 0 while nobody has posted.
    pub last_post: i64,
}

pub async fn wanted(executor: impl PgExecutor<'_>, job_id: i64) -> Result<Wanted, tasks::Error> {
    let row = sqlx::query_file!("src/domain/turns/wanted.sql", job_id)
        .fetch_optional(executor)
        .await
        .map_err(Failed::to("read the task of a job"))?
        .ok_or(tasks::Error::NoTaskOfJob(job_id))?;
    let limit = Limit { micros: row.limit_micros, tokens: row.limit_tokens };
    let campaign = Campaign {
        id: row.campaign_id,
        name: row.name,
        status: row.status,
        brief: row.brief,
        client_context: row.client_context,
        created_at: row.campaign_created_at,
        closed_at: row.closed_at,
    };
    let task = Task {
        id: row.id,
        campaign_id: row.campaign_id,
        agent: row.agent,
        instance: row.instance,
        session_mode: row.session_mode,
        state: row.state,
        prompt: row.prompt,
        result: row.result,
        error: row.error,
        budget_micros: row.budget_micros,
        budget_tokens: row.budget_tokens,
        spent_micros: row.spent_micros,
        spent_tokens: row.spent_tokens,
        job_id: row.job_id,
        session_id: row.session_id,
        turn: row.turn,
        created_at: row.created_at,
        started_at: row.started_at,
        ended_at: row.ended_at,
    };
    let (traceparent, has_waited) = (row.traceparent, row.has_waited);
    let (post_id, last_post) = (row.post_id, row.last_post);
    Ok(Wanted { task, campaign, limit, traceparent, has_waited, post_id, last_post })
}
