//! A campaign with what belongs to it.

use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Page,
    campaigns::{self, Budget, Campaign, Error},
    sessions::{self, Session},
    usage::{self, Total},
};
use crate::queue::admin;

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = CampaignOverview)]
pub struct Overview {
    #[serde(flatten)]
    pub campaign: Campaign,
    /// Null unless the campaign is paused.
    #[serde(default)]
    pub pause_reason: Option<String>,
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
    let scope = admin::PauseScope::Group;
    Ok(Overview {
        campaign,
        pause_reason: admin::pause_reason(&mut *conn, scope, &id.to_string()).await?,
        budget: campaigns::budget(conn, id).await?,
        sessions: Vec::new(),
        usage: Vec::new(),
    })
}
