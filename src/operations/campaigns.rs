//! Campaigns.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Call, Listing, Operation, Refusal, Spec, page_limit};
use crate::domain::{
    Page,
    campaign_overview::{Overview, overview},
    campaigns::{self, Campaign},
};

const TAG: &str = "campaigns";

/// Lists campaigns, the newest first.
#[derive(Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListCampaigns {
    pub cursor: Option<Uuid>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// Shows a campaign with its budget, its open sessions and what it has cost.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowCampaign {
    pub id: Uuid,
}

impl Operation for ListCampaigns {
    const SPEC: Spec =
        Spec::read("list_campaigns", "/v1/campaigns", "campaign ls").tag(TAG).for_bound_keys();
    type Output = Listing<Campaign>;

    async fn run(self, call: &Call) -> Result<Listing<Campaign>, Refusal> {
        let limit = page_limit(self.limit)?;
        let page = Page { after: self.cursor, limit: limit + 1 };
        let rows = campaigns::list(&call.pool, call.reach.campaigns(), page).await?;
        Ok(Listing::of(rows, limit, |campaign| campaign.id))
    }
}

impl Operation for ShowCampaign {
    const SPEC: Spec = Spec::read("show_campaign", "/v1/campaigns/{id}", "campaign show")
        .tag(TAG)
        .refuses(&[campaigns::Error::UNKNOWN]);
    type Output = Overview;

    async fn run(self, call: &Call) -> Result<Overview, Refusal> {
        let mut transaction = call.begin_read().await?;
        Ok(overview(&mut transaction, self.id).await?)
    }
}
