//! The users for whom campaigns work.

use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Call, Change, ChangeOutput, ChangeResult, Method, Operation, Refusal, Spec};
use crate::domain::{
    audit::Action,
    campaigns,
    facts::{self, CampaignUser},
};

const TAG: &str = "memory";
const PATH: &str = "/v1/campaigns/{id}/user";

/// Shows the user for whom a campaign works; null if it has none.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowCampaignUser {
    /// The campaign.
    pub id: Uuid,
}

/// Sets the user for whom a campaign works. Earlier prompts are not read for facts about them.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "user": "ann@example.org" }))]
pub struct PutCampaignUser {
    /// The campaign.
    pub id: Uuid,
    /// English letters, digits, and `. _ @ + -` behind the first; null: no user in particular.
    #[schema(max_length = 128)]
    pub user: Option<String>,
}

/// Null: no user in particular.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
pub struct UserOfCampaign(pub Option<CampaignUser>);

impl Operation for ShowCampaignUser {
    const SPEC: Spec = Spec::read("show_campaign_user", PATH, "memory facts user")
        .tag(TAG)
        .refuses(&[campaigns::Error::UNKNOWN]);
    type Output = UserOfCampaign;

    async fn run(self, call: &Call) -> Result<UserOfCampaign, Refusal> {
        campaigns::get(&call.pool, self.id).await?;
        Ok(UserOfCampaign(facts::user_of(&call.pool, self.id).await?))
    }
}

impl Change for PutCampaignUser {
    const SPEC: Spec = Spec::change("put_campaign_user", PATH, "memory facts user")
        .tag(TAG)
        .by(Method::Put)
        .refuses(&[campaigns::Error::UNKNOWN, campaigns::Error::CLOSED, facts::Error::BAD_USER]);
    const ACTION: Action = Action::CampaignUser;
    type Output = UserOfCampaign;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<UserOfCampaign> {
        let Self { id, user } = self;
        let user = match user {
            Some(name) => Some(facts::set_user(conn, id, &name, call.now).await?),
            None => {
                facts::unset_user(conn, id).await?;
                None
            }
        };
        let data = json!({ "has_user": user.is_some() });
        Ok(ChangeOutput::of(id, UserOfCampaign(user), data))
    }
}
