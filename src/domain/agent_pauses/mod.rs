//! Pauses of agents: in one campaign, or in all of them.
//!
//! A paused agent begins no turn. Turns that run end normally. New tasks are accepted and wait: the worker that claims the job of such a
//! task holds the job, so that no worker checks it again and again. Resuming the agent returns the held jobs to the queue.
//!
//! Race: a pause may end between the worker's check and its hold of the job. The worker therefore locks the pause's row with the hold
//! ([`lock_pause`]). A resumption either waits for that lock and then finds the held job, or comes first, and the worker finds no pause.

mod error;

pub use self::error::Error;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{
    StatementError,
    audit::ActorKind,
    campaigns,
    feed::{self, Kind},
    ids,
    limits::{LimitEffect::Refused, LimitEntry},
    tasks, text,
};
use crate::queue::admin;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = AgentPause)]
pub struct Pause {
    pub id: Uuid,
    /// The campaign in which the pause holds; null: all campaigns.
    pub campaign_id: Option<Uuid>,
    pub agent: String,
    pub reason: String,
    pub paused_at: DateTime<Utc>,
    pub paused_by: String,
    /// Null while the pause holds.
    pub resumed_at: Option<DateTime<Utc>>,
    pub resumed_by: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = AgentPaused)]
pub struct PauseOutcome {
    #[serde(flatten)]
    pub pause: Pause,
    /// False: the agent was paused there already, for the reason that is shown.
    pub changed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = AgentResumed)]
pub struct ResumeOutcome {
    #[serde(flatten)]
    pub pause: Pause,
    /// Number of held tasks that are on the queue again.
    pub released: i64,
    /// The reason of the pause in all campaigns that still holds.
    #[serde(default)]
    pub paused_everywhere_because: Option<String>,
    /// After the end of a pause in all campaigns: the campaigns in which the agent is still paused.
    #[serde(default)]
    pub paused_in: Vec<Uuid>,
}

/// The scope of a pause: an agent in one campaign, or in all of them.
#[derive(Debug, Clone, Copy)]
pub struct PauseScope<'a> {
    /// `None`: in all campaigns.
    pub campaign_id: Option<Uuid>,
    pub agent: &'a str,
}

/// Maximum size of a pause's reason: it becomes part of the reason of a held job.
const REASON_MAX_BYTES: usize = 500;

pub const LIMITS: &[LimitEntry] = &[LimitEntry::fixed(
    "bytes of the reason of a pause",
    REASON_MAX_BYTES as u64,
    Refused(text::Error::TOO_LONG.code),
)];

impl Pause {
    /// Builds the reason of a job that is held for this pause. A resumption finds its jobs by this text. The text contains the pause's id,
    /// so that jobs held for other reasons do not match.
    pub fn hold_reason(&self) -> String {
        let place = format_place(self.campaign_id);
        format!("agent `{}` is paused {place} ({}): {}", self.agent, self.id, self.reason)
    }

    /// Describes the pause to people: which agent, where, by whom and why.
    pub fn describe(&self) -> String {
        let place = format_place(self.campaign_id);
        format!("agent `{}` is paused {place} by {}: {}", self.agent, self.paused_by, self.reason)
    }

    /// Formats the command that ends the pause.
    pub fn resume_command(&self) -> String {
        let agent = &self.agent;
        match self.campaign_id {
            Some(id) => format!("`dalsegno agent resume {agent} --campaign {id}`"),
            None => format!("`dalsegno agent resume {agent} --everywhere`"),
        }
    }
}

impl PauseScope<'_> {
    /// Subject of the audit log's lines: the campaign's id, or the agent for a pause in all campaigns. An erasure finds the lines of its
    /// campaign by it.
    pub fn subject(self) -> String {
        self.campaign_id.map_or_else(|| self.agent.to_owned(), |id| id.to_string())
    }
}

fn format_place(campaign_id: Option<Uuid>) -> String {
    campaign_id.map_or_else(|| "in all campaigns".to_owned(), |id| format!("in campaign {id}"))
}

/// Stops an agent from beginning turns until [`resume`]. Pausing it again changes nothing.
pub async fn pause(
    conn: &mut PgConnection,
    place: PauseScope<'_>,
    reason: &str,
    by: &str,
    now: DateTime<Utc>,
) -> Result<PauseOutcome, Error> {
    text::check("reason", reason, REASON_MAX_BYTES)?;
    if let Some(id) = place.campaign_id
        && campaigns::lock_against_erasure(&mut *conn, id).await? == campaigns::Status::Closed
    {
        return Err(campaigns::Error::Closed(id).into());
    }
    let inserted = sqlx::query_scalar!(
        "insert into dalsegno.agent_pauses (id, campaign_id, agent, reason, paused_at, paused_by) values ($1, $2, $3, $4, $5, $6)
         on conflict do nothing returning id",
        ids::new_at(now),
        place.campaign_id,
        place.agent,
        reason,
        now,
        by,
    )
    .fetch_optional(&mut *conn)
    .await
    .map_err(StatementError::to("pause an agent"))?;
    let pause = find_open(&mut *conn, place).await?.ok_or_else(|| not_paused(place))?;
    if inserted.is_some() {
        feed::append(conn, &[event(Kind::AgentPaused, &pause)], now).await?;
    }
    Ok(PauseOutcome { pause, changed: inserted.is_some() })
}

/// Ends a pause, and returns the held jobs to the queue, in their order. If another pause of the agent holds, workers hold them again.
pub async fn resume(
    conn: &mut PgConnection,
    place: PauseScope<'_>,
    by: &str,
    now: DateTime<Utc>,
) -> Result<ResumeOutcome, Error> {
    let ended = end(&mut *conn, place, by, now).await?;
    let mut outcome = ended.ok_or_else(|| not_paused(place))?;
    for other in list_all(conn).await? {
        match (other.campaign_id, place.campaign_id) {
            _ if other.agent != place.agent => {}
            (None, _) => outcome.paused_everywhere_because = Some(other.reason),
            // Without its reason: the result of this change may be stored, and an erasure of that campaign would not find it.
            (Some(id), None) => outcome.paused_in.push(id),
            (Some(_), Some(_)) => {}
        }
    }
    Ok(outcome)
}

/// Ends the pauses of one campaign. Called when the campaign closes: its held tasks would otherwise wait for ever.
pub async fn resume_all_of(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    now: DateTime<Utc>,
) -> Result<(), campaigns::Error> {
    let agents = sqlx::query_scalar!(
        "select agent from dalsegno.agent_pauses where campaign_id = $1 and resumed_at is null order by agent",
        campaign_id,
    )
    .fetch_all(&mut *conn)
    .await
    .map_err(StatementError::to("list the paused agents of a campaign"))?;
    for agent in agents {
        let place = PauseScope { campaign_id: Some(campaign_id), agent: &agent };
        end(&mut *conn, place, ActorKind::System.as_str(), now).await?;
    }
    Ok(())
}

/// Finds the pause that stops an agent in a campaign, and locks it: it cannot end before the transaction does.
pub async fn lock_pause(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    agent: &str,
) -> Result<Option<Pause>, StatementError> {
    sqlx::query_as!(
        Pause,
        "select id, campaign_id, agent, reason, paused_at, paused_by, resumed_at, resumed_by from dalsegno.agent_pauses
          where agent = $2 and (campaign_id = $1 or campaign_id is null) and resumed_at is null
          order by campaign_id nulls last limit 1 for share",
        campaign_id,
        agent,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("find the pause of an agent"))
}

/// Lists all open pauses: in one campaign, or in all of them.
pub async fn list_all(executor: impl PgExecutor<'_>) -> Result<Vec<Pause>, StatementError> {
    sqlx::query_as!(
        Pause,
        "select id, campaign_id, agent, reason, paused_at, paused_by, resumed_at, resumed_by from dalsegno.agent_pauses
          where resumed_at is null order by agent, campaign_id nulls first",
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the pauses of agents"))
}

/// Lists the open pauses that hold in a campaign.
pub async fn list_open(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<Vec<Pause>, StatementError> {
    sqlx::query_as!(
        Pause,
        "select id, campaign_id, agent, reason, paused_at, paused_by, resumed_at, resumed_by from dalsegno.agent_pauses
          where (campaign_id = $1 or campaign_id is null) and resumed_at is null
          order by agent, campaign_id nulls last",
        campaign_id,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the paused agents"))
}

pub async fn remove_of_campaign(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<(), StatementError> {
    sqlx::query!("delete from dalsegno.agent_pauses where campaign_id = $1", campaign_id)
        .execute(executor)
        .await
        .map(drop)
        .map_err(StatementError::to("remove the pauses of a campaign"))
}

/// Ends a pause. Returns `None` if the agent is not paused there.
async fn end(
    conn: &mut PgConnection,
    place: PauseScope<'_>,
    by: &str,
    now: DateTime<Utc>,
) -> Result<Option<ResumeOutcome>, campaigns::Error> {
    // Waits for workers that hold this row's lock. The query below then sees the jobs that they held.
    let ended = sqlx::query_as!(
        Pause,
        "update dalsegno.agent_pauses set resumed_at = $3, resumed_by = $4
          where agent = $1 and campaign_id is not distinct from $2 and resumed_at is null
         returning id, campaign_id, agent, reason, paused_at, paused_by, resumed_at, resumed_by",
        place.agent,
        place.campaign_id,
        now,
        by,
    )
    .fetch_optional(&mut *conn)
    .await
    .map_err(StatementError::to("end the pause of an agent"))?;
    let Some(pause) = ended else { return Ok(None) };
    let jobs = tasks::queued_jobs(&mut *conn, place.campaign_id, place.agent).await?;
    let released = admin::release_held(&mut *conn, &jobs, &pause.hold_reason()).await?;
    feed::append(conn, &[event(Kind::AgentResumed, &pause)], now).await?;
    Ok(Some(ResumeOutcome {
        pause,
        released,
        paused_everywhere_because: None,
        paused_in: Vec::new(),
    }))
}

async fn find_open(
    executor: impl PgExecutor<'_>,
    place: PauseScope<'_>,
) -> Result<Option<Pause>, StatementError> {
    sqlx::query_as!(
        Pause,
        "select id, campaign_id, agent, reason, paused_at, paused_by, resumed_at, resumed_by from dalsegno.agent_pauses
          where agent = $1 and campaign_id is not distinct from $2 and resumed_at is null",
        place.agent,
        place.campaign_id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read the pause of an agent"))
}

fn not_paused(place: PauseScope<'_>) -> Error {
    Error::NotPaused { agent: place.agent.to_owned(), campaign_id: place.campaign_id }
}

fn event(kind: Kind, pause: &Pause) -> feed::New {
    feed::New {
        campaign_id: pause.campaign_id,
        task_id: None,
        session_id: None,
        kind,
        data: json!({ "agent": pause.agent, "reason": pause.reason }),
    }
}
