//! A campaign with what belongs to it.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Page,
    campaigns::{self, Budget, Campaign, Error},
    sessions::{self, Session},
    usage::{self, Total},
};

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = CampaignOverview)]
pub struct Overview {
    #[serde(flatten)]
    pub campaign: Campaign,
    /// Null unless the campaign is paused.
    #[serde(default)]
    pub pause_reason: Option<String>,
    #[serde(default)]
    pub paused_at: Option<DateTime<Utc>>,
    /// The author of the pause, as in the audit log. Null unless the log has it.
    #[serde(default)]
    pub paused_by: Option<String>,
    /// Null until the campaign's transaction has committed.
    pub budget: Option<Budget>,
    /// Open sessions, the newest first, at most one page.
    pub sessions: Vec<Session>,
    /// The ledger, by agent, model and purpose.
    pub usage: Vec<Total>,
}

pub async fn overview(conn: &mut PgConnection, id: Uuid) -> Result<Overview, Error> {
    let summary = summary(&mut *conn, id).await?;
    let open =
        sessions::Filter { campaign_id: Some(id), open_only: true, ..sessions::Filter::default() };
    let sessions = sessions::list(&mut *conn, open, Page::default()).await?;
    Ok(Overview { sessions, usage: usage::totals(conn, id).await?, ..summary })
}

/// Reads a campaign without its sessions and its ledger.
pub async fn summary(conn: &mut PgConnection, id: Uuid) -> Result<Overview, Error> {
    let campaign = campaigns::get(&mut *conn, id).await?;
    let pause = campaigns::find_pause(&mut *conn, id).await?;
    Ok(Overview {
        campaign,
        pause_reason: pause.as_ref().map(|pause| pause.reason.clone()),
        paused_at: pause.as_ref().map(|pause| pause.paused_at),
        paused_by: pause.and_then(|pause| pause.paused_by),
        budget: campaigns::budget(conn, id).await?,
        sessions: Vec::new(),
        usage: Vec::new(),
    })
}
