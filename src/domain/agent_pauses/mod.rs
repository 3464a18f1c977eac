//! Pauses of agents: in one campaign, or in all of them.
//!
//! A paused agent begins no turn. What runs ends; what comes in is taken in, by whatever way, and waits: a worker that gets
//! the job of such a task holds it, so that nothing looks again and again. Its end gives those jobs back to the queue.
//!
//! Race: a worker has read that an agent is paused, and the pause ends before the job is held. The worker locks the pause's row
//! with the hold ([`hold`]); a resumption waits for that lock and then finds the job, or comes first and the worker finds no
//! pause any more.

mod error;

pub use self::error::Error;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{
    Failed,
    audit::ActorKind,
    campaigns,
    feed::{self, Kind},
    ids, tasks, text,
};
use crate::queue::admin;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = AgentPause)]
pub struct Pause {
    pub id: Uuid,
    /// Where it holds; null: in all campaigns.
    pub campaign_id: Option<Uuid>,
    pub agent: String,
    pub reason: String,
    pub paused_at: DateTime<Utc>,
    pub paused_by: String,
    /// Null: it is paused.
    pub resumed_at: Option<DateTime<Utc>>,
    pub resumed_by: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = AgentPaused)]
pub struct Paused {
    #[serde(flatten)]
    pub pause: Pause,
    /// False: it was paused there before, for the reason that is shown.
    pub changed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = AgentResumed)]
pub struct Resumed {
    #[serde(flatten)]
    pub pause: Pause,
    /// Tasks that were held for it and are on the queue again.
    pub released: i64,
}

/// An agent, and where.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// `None`: in all campaigns.
    pub campaign_id: Option<Uuid>,
    pub agent: &'a str,
}

/// What fits beside other words in the reason of a held job.
const REASON_MAX_BYTES: usize = 500;

impl Pause {
    /// What a job says that is held for it. A resumption finds its jobs by these words, and they name the pause: nobody who
    /// holds a job for a reason of their own has them by chance.
    pub fn words(&self) -> String {
        let place = in_words(self.campaign_id);
        format!("agent `{}` is paused {place} ({}): {}", self.agent, self.id, self.reason)
    }
}

impl Place<'_> {
    /// What the audit log says that it is done to. An erasure finds the lines of its campaign by it.
    pub fn subject(self) -> String {
        self.campaign_id.map_or_else(|| self.agent.to_owned(), |id| id.to_string())
    }
}

fn in_words(campaign_id: Option<Uuid>) -> String {
    campaign_id.map_or_else(|| "in all campaigns".to_owned(), |id| format!("in campaign {id}"))
}

/// Lets an agent begin no more turns until [`resume`]. Pausing it again changes nothing.
pub async fn pause(
    conn: &mut PgConnection,
    place: Place<'_>,
    reason: &str,
    by: &str,
    now: DateTime<Utc>,
) -> Result<Paused, Error> {
    text::check("reason", reason, REASON_MAX_BYTES)?;
    if let Some(id) = place.campaign_id
        && campaigns::hold(&mut *conn, id).await? == campaigns::Status::Closed
    {
        return Err(campaigns::Error::Closed(id).into());
    }
    let inserted = sqlx::query_scalar!(
        "insert into dalsegno.agent_pauses (id, campaign_id, agent, reason, paused_at, paused_by) values ($1, $2, $3, $4, $5, $6)
         on conflict do nothing returning id",
        ids::at(now),
        place.campaign_id,
        place.agent,
        reason,
        now,
        by,
    )
    .fetch_optional(&mut *conn)
    .await
    .map_err(Failed::to("pause an agent"))?;
    let pause = find_open(&mut *conn, place).await?.ok_or_else(|| not_paused(place))?;
    if inserted.is_some() {
        feed::append(conn, &[event(Kind::AgentPaused, &pause)], now).await?;
    }
    Ok(Paused { pause, changed: inserted.is_some() })
}

/// Ends a pause, and puts what was held for it on the queue again, in its order.
pub async fn resume(
    conn: &mut PgConnection,
    place: Place<'_>,
    by: &str,
    now: DateTime<Utc>,
) -> Result<Resumed, Error> {
    end(conn, place, by, now).await?.ok_or_else(|| not_paused(place))
}

/// Ends what is paused in a campaign alone, which closes: those of its tasks that wait should not do so for ever.
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
    .map_err(Failed::to("list the paused agents of a campaign"))?;
    for agent in agents {
        let place = Place { campaign_id: Some(campaign_id), agent: &agent };
        end(&mut *conn, place, ActorKind::System.as_str(), now).await?;
    }
    Ok(())
}

/// The pause that keeps an agent from its turns in a campaign, locked until the end of the transaction: it does not end before.
pub async fn hold(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    agent: &str,
) -> Result<Option<Pause>, Failed> {
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
    .map_err(Failed::to("look for the pause of an agent"))
}

/// The open pauses that hold in a campaign; without one, all that hold in all campaigns.
pub async fn list_open(
    executor: impl PgExecutor<'_>,
    campaign_id: Option<Uuid>,
) -> Result<Vec<Pause>, Failed> {
    sqlx::query_as!(
        Pause,
        "select id, campaign_id, agent, reason, paused_at, paused_by, resumed_at, resumed_by from dalsegno.agent_pauses
          where (campaign_id = $1 or campaign_id is null) and resumed_at is null
          order by agent, campaign_id nulls last",
        campaign_id,
    )
    .fetch_all(executor)
    .await
    .map_err(Failed::to("list the paused agents"))
}

pub async fn remove_of_campaign(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<(), Failed> {
    sqlx::query!("delete from dalsegno.agent_pauses where campaign_id = $1", campaign_id)
        .execute(executor)
        .await
        .map(drop)
        .map_err(Failed::to("remove the pauses of a campaign"))
}

/// `None`: it is not paused there.
async fn end(
    conn: &mut PgConnection,
    place: Place<'_>,
    by: &str,
    now: DateTime<Utc>,
) -> Result<Option<Resumed>, campaigns::Error> {
    // Waits for workers that are holding a job for it at this moment; their jobs are seen below.
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
    .map_err(Failed::to("end the pause of an agent"))?;
    let Some(pause) = ended else { return Ok(None) };
    let jobs = tasks::queued_jobs(&mut *conn, place.campaign_id, place.agent).await?;
    let released = admin::release_held(&mut *conn, &jobs, &pause.words()).await?;
    feed::append(conn, &[event(Kind::AgentResumed, &pause)], now).await?;
    Ok(Some(Resumed { pause, released }))
}

async fn find_open(
    executor: impl PgExecutor<'_>,
    place: Place<'_>,
) -> Result<Option<Pause>, Failed> {
    sqlx::query_as!(
        Pause,
        "select id, campaign_id, agent, reason, paused_at, paused_by, resumed_at, resumed_by from dalsegno.agent_pauses
          where agent = $1 and campaign_id is not distinct from $2 and resumed_at is null",
        place.agent,
        place.campaign_id,
    )
    .fetch_optional(executor)
    .await
    .map_err(Failed::to("read the pause of an agent"))
}

fn not_paused(place: Place<'_>) -> Error {
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
