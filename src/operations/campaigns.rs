//! Campaigns.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Call, Listing, Operation, Refusal, Spec, page_limit};
use crate::domain::{
    Page,
    campaign_overview::{Overview, overview},
    campaigns::{self, Campaign},
    class::Kind,
    ids::GivenCampaign,
};

const TAG: &str = "campaigns";

/// Lists campaigns, the newest first.
#[derive(Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListCampaigns {
    /// Only campaigns of this name, or else those whose id begins or ends so.
    pub named: Option<String>,
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
        let reach = call.reach.campaigns();
        let named = match &self.named {
            Some(text) => Some(matches(text, reach, call).await?),
            None => None,
        };
        let page = Page { after: self.cursor, limit: limit + 1 };
        let rows = campaigns::list(&call.pool, named.as_deref().or(reach), page).await?;
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

async fn matches(text: &str, within: Option<&[Uuid]>, call: &Call) -> Result<Vec<Uuid>, Refusal> {
    let given: GivenCampaign = text.parse().map_err(|_| {
        let detail = "the query parameter `named` is empty: write a name, an id, or the beginning or end of an id";
        Refusal::new(Kind::Malformed, "bad_query", detail)
    })?;
    let found = campaigns::matches(&call.pool, &given, within).await?;
    Ok(found.into_iter().map(|found| found.id).collect())
}
