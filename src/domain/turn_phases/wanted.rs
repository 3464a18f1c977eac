//! What a turn begins with.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{PgExecutor, types::Json};
use uuid::Uuid;

use crate::domain::{
    Failed,
    agents::SessionMode as Mode,
    amount::Limit,
    busy_models::BusyModel,
    campaigns::{Campaign, Status},
    facts,
    memory::{self, Standing},
    tasks::{self, State as TaskState, Task},
};

/// The task that a job runs, its campaign, and what that may cost at most.
pub struct Wanted {
    pub task: Task,
    pub campaign: Campaign,
    pub limit: Limit,
    /// Where in the work the task belongs.
    pub node: Option<String>,
    /// For an agent that is shown some of it: the whole of it, from which the caller takes what the agent may read.
    pub blackboard: Option<Written>,
    /// What holds for all agents of the campaign.
    pub edicts: Vec<Standing>,
    /// For an agent that is told them: what holds of whom the campaign works for.
    pub facts: Option<AboutUser>,
    /// Since when it waits for its provider, if it does.
    pub busy_since: Option<DateTime<Utc>>,
    /// Models that calls were refused of since they last answered.
    pub busy_models: Vec<BusyModel>,
    /// Whether its agent is to begin no turn now.
    pub is_paused: bool,
    /// Its flow, if that is paused and the task has not begun.
    pub paused_flow: Option<Uuid>,
    /// Whether none of its turns is to begin any more.
    pub is_asked_to_stop: bool,
    /// Who asked for the task, in the words of traces.
    pub traceparent: Option<String>,
    /// It was added to wait for others, and is told what they came to.
    pub has_waited: bool,
    /// It has ended before, and was put on the queue again.
    pub was_retried: bool,
    /// The last place on the campaign's board; 0 while nobody has posted.
    pub last_post: i64,
    /// The post that it came from.
    pub post_id: Option<Uuid>,
    /// The agent that said it, if an agent did; from the row of the post.
    pub asked_by: Option<String>,
}

/// What an agent is told of a user.
pub struct AboutUser {
    pub user: String,
    pub facts: Vec<facts::Told>,
}

/// What stands on a blackboard.
pub struct Written {
    pub version: i64,
    pub document: Value,
}

/// What to read beside the task.
#[derive(Debug, Clone, Copy)]
pub struct Beside<'a> {
    /// The agents whose files let them read something of a blackboard.
    pub readers: &'a [String],
    /// Of the texts of edicts.
    pub edicts_max_bytes: i32,
    /// The agents whose files have them told facts.
    pub told_facts: &'a [String],
    /// Of the facts.
    pub facts_max_bytes: i32,
    pub now: DateTime<Utc>,
}

pub async fn wanted(
    executor: impl PgExecutor<'_>,
    job_id: i64,
    beside: Beside<'_>,
) -> Result<Wanted, tasks::Error> {
    let Beside { readers, edicts_max_bytes, told_facts, facts_max_bytes, now } = beside;
    let row = sqlx::query_file!(
        "src/domain/turn_phases/wanted.sql",
        job_id,
        readers,
        now,
        edicts_max_bytes,
        told_facts,
        facts_max_bytes,
    )
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
        // No turn reads them.
        tags: Vec::new(),
        metadata: Json::default(),
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
    let edicts = memory::standing(row.edicts).map_err(|error| Failed {
        action: "read the edicts of a campaign",
        source: sqlx::Error::Decode(error.into()),
    })?;
    let facts = facts::told(row.facts).map_err(|error| Failed {
        action: "read the facts about a user",
        source: sqlx::Error::Decode(error.into()),
    })?;
    let facts = row.user_name.map(|user| AboutUser { user, facts });
    let busy_models = row.busy_models.map(serde_json::from_value).transpose();
    let busy_models = busy_models.map_err(|error| Failed {
        action: "read which models are busy",
        source: sqlx::Error::Decode(error.into()),
    })?;
    let blackboard = row.blackboard_version.zip(row.blackboard);
    let blackboard = blackboard.map(|(version, document)| Written { version, document });
    Ok(Wanted {
        task,
        campaign,
        limit,
        node: row.node,
        blackboard,
        edicts,
        facts,
        busy_since: row.busy_since,
        busy_models: busy_models.unwrap_or_default(),
        is_paused: row.is_paused,
        paused_flow: row.paused_flow,
        is_asked_to_stop: row.is_asked_to_stop,
        traceparent: row.traceparent,
        has_waited: row.has_waited,
        was_retried: row.was_retried,
        last_post: row.last_post,
        post_id: row.post_id,
        asked_by: row.asked_by,
    })
}
