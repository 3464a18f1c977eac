//! Statuses of agents together with their pauses.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Status, of_campaign,
    wait::{AgentWait, OpenWaits},
};
use crate::domain::{
    StatementError,
    agent_pauses::{self, Pause},
    agents::Catalogue,
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = AgentStanding)]
pub struct AgentOverview {
    #[serde(flatten)]
    pub status: Status,
    /// The pause that keeps the agent from beginning turns in this campaign.
    pub pause: Option<Pause>,
    /// The pause in all campaigns, if the agent is paused in this campaign, too.
    #[serde(default)]
    pub also_paused: Option<Pause>,
    /// The cause for which the agent is limited.
    #[serde(default)]
    pub wait: Option<AgentWait>,
}

/// Lists the statuses as [`of_campaign`] does, with the pauses that apply and the causes of limits.
pub async fn list_with_pauses(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    catalogue: &Catalogue,
    now: DateTime<Utc>,
) -> Result<Vec<AgentOverview>, StatementError> {
    let pauses = agent_pauses::list_open(&mut *conn, campaign_id).await?;
    let statuses = of_campaign(&mut *conn, campaign_id, catalogue, now).await?;
    let waits = OpenWaits::load(conn, campaign_id, &statuses, now).await?;
    let overview = |status: Status| {
        let mut own = pauses.iter().filter(|pause| pause.agent == status.agent).cloned();
        let (pause, also_paused) = (own.next(), own.next());
        let wait = waits.of_agent(&status);
        AgentOverview { status, pause, also_paused, wait }
    };
    Ok(statuses.into_iter().map(overview).collect())
}
