//! Campaigns: their creation, status and erasure.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Call, Change, ChangeOutput, ChangeResult, Listing, Operation, Refusal, Spec, Success,
    by_request, page_limit, queues::pause_data,
};
use crate::{
    domain::{
        Page,
        amount::{Limit, OnLimit},
        audit::Action,
        campaign_control,
        campaign_overview::{Overview, overview, summary},
        campaigns::{self, Campaign, Error, LimitChange},
        class::{BAD_ARGUMENT, BAD_VALUE, NUL_IN_TEXT},
        erasures::{self, Erasure},
        labels::{self, Labels},
        objects, parameters, tasks, text,
    },
    queue::admin::PauseScope,
};

const TAG: &str = "campaigns";

/// Lists campaigns, the newest first.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListCampaigns {
    /// Only those with all of these tags; commas between them.
    pub tags: Option<String>,
    /// Only those with all of these keys and values: a JSON object, such as `{"customer":"acme"}`.
    pub metadata: Option<String>,
    pub cursor: Option<Uuid>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// Shows a campaign with its budget, its open sessions and its costs.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowCampaign {
    pub id: Uuid,
    /// Leaves `sessions` and `usage` empty: adding up the ledger takes long in a campaign with many calls.
    #[serde(default)]
    pub summary: bool,
}

/// Creates a campaign.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewCampaign, example = json!({ "name": "Harbour", "brief": "A song in ten parts.", "budget": { "tokens": 200000 } }))]
pub struct CreateCampaign {
    #[schema(min_length = 1, max_length = 200)]
    pub name: String,
    #[serde(default)]
    pub brief: String,
    pub client_context: Option<String>,
    #[serde(default, deserialize_with = "objects::object")]
    pub budget: Limit,
    /// Effect of the budget on tasks at its limit: they wait until there is space, or fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(inline)]
    pub on_limit: Option<OnLimit>,
    /// Short names to find it by.
    #[serde(default)]
    #[schema(schema_with = labels::tags_schema)]
    pub tags: Vec<String>,
    /// Keys and values to find it by; at most 4096 bytes of JSON.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
    /// Named values that each call contains, such as `{"agent_mode": "plan"}`; at most 32 and 4096 bytes of JSON.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub parameters: Map<String, Value>,
}

/// Pauses a campaign: no turn starts until it is resumed.
///
/// Running turns go on. New tasks are accepted and wait.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseCampaign {
    pub id: Uuid,
    /// Shown with the campaign's tasks while it is paused.
    #[serde(default = "by_request")]
    pub reason: String,
}

/// Ends a pause.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeCampaign {
    pub id: Uuid,
}

/// Closes a campaign: it takes no more tasks. Waiting tasks still run.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CloseCampaign {
    pub id: Uuid,
}

/// Erases the conversations, prompts, results and brief of a campaign permanently; its costs stay.
///
/// A worker erases them. A repeated request returns the same receipt.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EraseCampaign {
    pub id: Uuid,
    /// Stays in the receipt: it must not name what is erased.
    #[serde(default = "by_request")]
    pub reason: String,
}

/// Lists erasures with their receipts, those that were requested last first.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListErasures {
    /// The campaign of the last erasure of the page before.
    pub cursor: Option<Uuid>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// Shows the receipt of the erasure of a campaign.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowErasure {
    pub id: Uuid,
}

impl Operation for ListCampaigns {
    const SPEC: Spec = Spec::read("list_campaigns", "/v1/campaigns", "campaign ls")
        .tag(TAG)
        .for_bound_keys()
        .refuses(&[NUL_IN_TEXT]);
    type Output = Listing<Campaign>;

    async fn run(self, call: &Call) -> Result<Listing<Campaign>, Refusal> {
        let limit = page_limit(self.limit)?;
        let page = Page { after: self.cursor, limit: limit + 1 };
        let tags = self.tags.as_deref().map(labels::tags_of).unwrap_or_default();
        let metadata = self.metadata.as_deref().map(labels::metadata_of).transpose()?;
        let wanted = Labels { tags: &tags, metadata: metadata.as_ref() };
        let rows = campaigns::list(&call.pool, wanted, call.reach.campaigns(), page).await?;
        Ok(Listing::of(rows, limit, |campaign| campaign.id))
    }
}

impl Operation for ShowCampaign {
    const SPEC: Spec = Spec::read("show_campaign", "/v1/campaigns/{id}", "campaign show")
        .tag(TAG)
        .refuses(&[Error::UNKNOWN]);
    type Output = Overview;

    async fn run(self, call: &Call) -> Result<Overview, Refusal> {
        let mut transaction = call.begin_read().await?;
        Ok(match self.summary {
            true => summary(&mut transaction, self.id).await?,
            false => overview(&mut transaction, self.id).await?,
        })
    }
}

impl Change for CreateCampaign {
    const SPEC: Spec = Spec::change("create_campaign", "/v1/campaigns", "campaign create")
        .tag(TAG)
        .answers(Success::Created)
        .located("/v1/campaigns/{id}")
        .refuses(&[
            text::Error::TOO_LONG,
            labels::Error::METADATA_TOO_LONG,
            labels::Error::BAD_TAGS,
            parameters::Error::INVALID,
            text::Error::EMPTY,
            NUL_IN_TEXT,
            BAD_VALUE,
        ]);
    const ACTION: Action = Action::CampaignCreate;
    type Output = Overview;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<Overview> {
        let new = campaigns::New {
            name: &self.name,
            brief: &self.brief,
            client_context: self.client_context.as_deref(),
            limit: self.budget,
        };
        let id = campaigns::create(conn, &new, call.now).await?.id;
        let author = call.actor.label();
        campaigns::add_first_version(&mut *conn, id, &self.parameters, &author).await?;
        let labels = Labels { tags: &self.tags, metadata: Some(&self.metadata) };
        campaigns::label(&mut *conn, id, labels).await?;
        if self.on_limit.is_some() {
            let change = LimitChange { on_limit: self.on_limit, ..LimitChange::default() };
            campaigns::change_limit(&mut *conn, id, change).await?;
        }
        let output = overview(conn, id).await?;
        Ok(ChangeOutput::of(id, output, json!({ "name": self.name })))
    }
}

impl Change for PauseCampaign {
    const SPEC: Spec = Spec::change("pause_campaign", "/v1/campaigns/{id}/pause", "campaign pause")
        .tag(TAG)
        .refuses(&[Error::UNKNOWN, Error::CLOSED, NUL_IN_TEXT, BAD_ARGUMENT]);
    const ACTION: Action = Action::CampaignPause;
    type Output = Campaign;

    async fn change(self, conn: &mut PgConnection, _: &Call) -> ChangeResult<Campaign> {
        let output = campaign_control::pause(&mut *conn, self.id, &self.reason).await?;
        let group = self.id.to_string();
        let data = pause_data(conn, PauseScope::Group, &group, &self.reason).await?;
        Ok(ChangeOutput::of(self.id, output, data))
    }
}

impl Change for ResumeCampaign {
    const SPEC: Spec =
        Spec::change("resume_campaign", "/v1/campaigns/{id}/resume", "campaign resume")
            .tag(TAG)
            .refuses(&[Error::UNKNOWN, Error::CLOSED]);
    const ACTION: Action = Action::CampaignResume;
    type Output = Campaign;

    async fn change(self, conn: &mut PgConnection, _: &Call) -> ChangeResult<Campaign> {
        let output = campaign_control::resume(conn, self.id).await?;
        Ok(ChangeOutput::of(self.id, output, json!({})))
    }
}

impl Change for CloseCampaign {
    const SPEC: Spec = Spec::change("close_campaign", "/v1/campaigns/{id}/close", "campaign close")
        .tag(TAG)
        .refuses(&[Error::UNKNOWN, Error::CLOSED]);
    const ACTION: Action = Action::CampaignClose;
    type Output = Campaign;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<Campaign> {
        let output = campaign_control::close(conn, self.id, call.now).await?;
        Ok(ChangeOutput::of(self.id, output, json!({})))
    }
}

impl Change for EraseCampaign {
    const SPEC: Spec =
        Spec::change("erase_campaign", "/v1/campaigns/{id}/erasure", "campaign erase")
            .tag(TAG)
            .answers(Success::Accepted)
            .refuses(&[
                Error::UNKNOWN,
                tasks::Error::REQUEUED,
                tasks::Error::ENDED,
                text::Error::TOO_LONG,
                text::Error::EMPTY,
                NUL_IN_TEXT,
                BAD_ARGUMENT,
            ]);
    const ACTION: Action = Action::CampaignErase;
    type Output = Erasure;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<Erasure> {
        let output = erasures::request(conn, self.id, &self.reason, call.now).await?;
        let data = json!({ "receipt": output.id });
        Ok(ChangeOutput::of(self.id, output, data))
    }
}

impl Operation for ListErasures {
    const SPEC: Spec = Spec::read("list_erasures", "/v1/erasures", "erasure ls").tag(TAG);
    type Output = Listing<Erasure>;

    async fn run(self, call: &Call) -> Result<Listing<Erasure>, Refusal> {
        let limit = page_limit(self.limit)?;
        let mut transaction = call.begin_read().await?;
        let page = Page { after: self.cursor, limit: limit + 1 };
        let campaigns = erasures::list_campaigns(&mut *transaction, page).await?;
        let mut receipts = Vec::with_capacity(campaigns.len());
        for id in campaigns {
            receipts.push(erasures::get(&mut transaction, id).await?);
        }
        Ok(Listing::of(receipts, limit, |receipt| receipt.campaign_id))
    }
}

impl Operation for ShowErasure {
    const SPEC: Spec = Spec::read("show_erasure", "/v1/campaigns/{id}/erasure", "campaign erase")
        .tag(TAG)
        .refuses(&[erasures::Error::NOT_ASKED, Error::UNKNOWN]);
    type Output = Erasure;

    async fn run(self, call: &Call) -> Result<Erasure, Refusal> {
        let mut transaction = call.begin_read().await?;
        Ok(erasures::get(&mut transaction, self.id).await?)
    }
}
