//! Loading the input of a turn.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{PgExecutor, types::Json};
use uuid::Uuid;

use crate::domain::{
    StatementError,
    agents::SessionMode as Mode,
    amount::Limit,
    busy_models::BusyModel,
    campaigns::{Campaign, Status},
    facts,
    memory::{self, ValidEdict},
    parameters::Parameters,
    rate_limits,
    tasks::{self, State as TaskState, Task},
};

/// The input of a turn: the task of a job, its campaign, and the campaign's limit.
pub struct TurnInput {
    pub task: Task,
    pub campaign: Campaign,
    pub limit: Limit,
    /// True if the campaign has a soft limit.
    pub has_soft_limit: bool,
    /// The budgets of the agent, the user and the day.
    pub budgets: Vec<i64>,
    /// The node of the task.
    pub node: Option<String>,
    /// Parameters of the task, which win over those of the campaign.
    pub parameters: Parameters,
    /// The whole blackboard, for an agent that may read a part of it. The caller selects that part.
    pub blackboard: Option<BlackboardVersion>,
    /// The valid edicts of the campaign.
    pub edicts: Vec<ValidEdict>,
    /// Facts about the campaign's user, for an agent that is given them.
    pub facts: Option<AboutUser>,
    /// Start of the wait for the provider, if the task waits.
    pub busy_since: Option<DateTime<Utc>>,
    /// Models that have refused calls since they last answered.
    pub busy_models: Vec<BusyModel>,
    /// Grant of the rate limits, if the task has waited for one.
    pub limit_grant: Option<rate_limits::Grant>,
    /// True if the agent is paused and may begin no turn.
    pub is_paused: bool,
    /// The task's flow, if it is paused and the task has not begun.
    pub paused_flow: Option<Uuid>,
    /// True if the task was asked to stop: no further turn begins.
    pub is_asked_to_stop: bool,
    /// W3C Trace Context header of the caller that added the task.
    pub traceparent: Option<String>,
    /// True if the task was added to wait for others, and gets their results.
    pub has_waited: bool,
    /// True if the task has ended before and was retried.
    pub was_retried: bool,
    /// The last place on the campaign's board; 0 for an empty board.
    pub last_post: i64,
    /// The post that it came from.
    pub post_id: Option<Uuid>,
    /// The agent that wrote that post, from the post's row. `None` if a person asked.
    pub asked_by: Option<String>,
    /// The JSON Schema that the task itself has for its answer.
    pub result_schema: Option<Value>,
    /// The correction that its next turn asks for.
    pub correction: Option<Correction>,
    /// True if the call of its last turn was sent as a batch.
    pub has_batch: bool,
    /// The moment until which the answer may take its time.
    pub answer_by: Option<DateTime<Utc>>,
    /// True if the task was given files.
    pub has_attachments: bool,
    /// Places of the prompt that stand for fields of results of its flow.
    pub step_fields: Option<(Uuid, Value)>,
}

/// A request to correct an answer that does not match its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    /// From 1, since the task was last queued.
    pub number: i16,
    pub fault: String,
}

/// Facts about a user for an agent.
pub struct AboutUser {
    pub user: String,
    pub facts: Vec<facts::PromptFact>,
}

/// A version of the blackboard.
pub struct BlackboardVersion {
    pub version: i64,
    pub document: Value,
}

/// Parameters of the load: the data to read besides the task.
#[derive(Debug, Clone, Copy)]
pub struct LoadParams<'a> {
    /// Agents whose files let them read a part of the blackboard.
    pub readers: &'a [String],
    /// Maximum size of the texts of edicts, in bytes.
    pub edicts_max_bytes: i32,
    /// Agents whose files give them facts.
    pub told_facts: &'a [String],
    /// Maximum size of the facts, in bytes.
    pub facts_max_bytes: i32,
    /// True if calls have rate limits, so that the task may have waited for one.
    pub has_rate_limits: bool,
    pub now: DateTime<Utc>,
}

pub async fn load_task_of_job(
    executor: impl PgExecutor<'_>,
    job_id: i64,
    beside: LoadParams<'_>,
) -> Result<TurnInput, tasks::Error> {
    let LoadParams { readers, edicts_max_bytes, told_facts, facts_max_bytes, has_rate_limits, now } =
        beside;
    let row = sqlx::query_file!(
        "src/domain/turn_phases/load.sql",
        job_id,
        readers,
        now,
        edicts_max_bytes,
        told_facts,
        facts_max_bytes,
        has_rate_limits,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read the task of a job"))?
    .ok_or(tasks::Error::NoTaskOfJob(job_id))?;
    let limit = Limit { micros: row.limit_micros, tokens: row.limit_tokens };
    let campaign = Campaign {
        id: row.campaign_id,
        name: row.name,
        status: row.status,
        version: row.campaign_version,
        brief: row.brief,
        client_context: row.client_context,
        parameters: row.campaign_parameters,
        created_at: row.campaign_created_at,
        closed_at: row.closed_at,
        // No turn reads them.
        tags: Vec::new(),
        metadata: Json::default(),
        is_erased: false,
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
        result_json: row.result_json,
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
    let edicts = memory::parse_standing(row.edicts).map_err(|error| StatementError {
        action: "read the edicts of a campaign",
        source: sqlx::Error::Decode(error.into()),
    })?;
    let facts = facts::parse_told(row.facts).map_err(|error| StatementError {
        action: "read the facts about a user",
        source: sqlx::Error::Decode(error.into()),
    })?;
    let facts = row.user_name.map(|user| AboutUser { user, facts });
    let busy_models = row.busy_models.map(serde_json::from_value).transpose();
    let busy_models = busy_models.map_err(|error| StatementError {
        action: "list busy models",
        source: sqlx::Error::Decode(error.into()),
    })?;
    let limit_grant = row.limit_grant.map(serde_json::from_value).transpose();
    let limit_grant = limit_grant.map_err(|error| StatementError {
        action: "read what rate limits have granted to a task",
        source: sqlx::Error::Decode(error.into()),
    })?;
    let blackboard = row.blackboard_version.zip(row.blackboard);
    let blackboard = blackboard.map(|(version, document)| BlackboardVersion { version, document });
    Ok(TurnInput {
        task,
        campaign,
        limit,
        has_soft_limit: row.has_soft_limit,
        budgets: row.budgets,
        node: row.node,
        parameters: row.task_parameters.map(|it| it.0).unwrap_or_default(),
        result_schema: row.result_schema,
        correction: row.result_fault.map(|fault| Correction { number: row.n_corrections, fault }),
        step_fields: row.flow_id.zip(row.step_fields),
        blackboard,
        edicts,
        facts,
        busy_since: row.busy_since,
        busy_models: busy_models.unwrap_or_default(),
        limit_grant,
        is_paused: row.is_paused,
        paused_flow: row.paused_flow,
        is_asked_to_stop: row.is_asked_to_stop,
        traceparent: row.traceparent,
        has_attachments: row.has_attachments,
        has_batch: row.has_batch,
        answer_by: row.answer_by,
        has_waited: row.has_waited,
        was_retried: row.was_retried,
        last_post: row.last_post,
        post_id: row.post_id,
        asked_by: row.asked_by,
    })
}
