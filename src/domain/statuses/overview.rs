//! Statuses of agents together with their pauses.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Status, of_campaign};
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
}

/// Lists the statuses as [`of_campaign`] does, with the pauses that apply.
pub async fn list_with_pauses(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    catalogue: &Catalogue,
    now: DateTime<Utc>,
) -> Result<Vec<AgentOverview>, StatementError> {
    let pauses = agent_pauses::list_open(&mut *conn, campaign_id).await?;
    let statuses = of_campaign(conn, campaign_id, catalogue, now).await?;
    let with_pause = |status: Status| {
        let mut own = pauses.iter().filter(|pause| pause.agent == status.agent).cloned();
        let (pause, also_paused) = (own.next(), own.next());
        AgentOverview { status, pause, also_paused }
    };
    Ok(statuses.into_iter().map(with_pause).collect())
}
