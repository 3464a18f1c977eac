//! Versions of campaigns: edits of brief and client context, and their history.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Call, Change, ChangeOutput, ChangeResult, Listing, Method, Operation, Refusal, Spec,
    WordChange, diff_words, page_limit,
};
use crate::domain::{
    audit::Action,
    campaigns::{self, CampaignVersion, Edit, EditOutcome, Error, VersionSummary},
    class::NUL_IN_TEXT,
    parameters, text,
};

const TAG: &str = "campaigns";

/// Changes the brief, the client context or parameters of a campaign, from the next call on. No session is rebuilt.
///
/// Each edit makes a version. The record of each call names the version that it contains.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CampaignEdit, example = json!({ "brief": "A song in nine parts.", "expected_version": 1 }))]
pub struct EditCampaign {
    pub id: Uuid,
    pub brief: Option<String>,
    /// Null removes it.
    #[serde(default, deserialize_with = "named", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub client_context: Option<Option<String>>,
    /// Parameters by name; null removes one, others stay.
    #[schema(value_type = Option<Object>)]
    pub parameters: Option<Map<String, Value>>,
    /// The edit is refused unless this is the current version.
    #[schema(minimum = 1)]
    pub expected_version: Option<i32>,
}

/// Lists the versions of a campaign's brief, client context and parameters, the newest first, without the texts.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListCampaignVersions {
    pub id: Uuid,
    /// A version.
    pub cursor: Option<i32>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// Shows a version of a campaign's brief, client context and parameters.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowCampaignVersion {
    pub id: Uuid,
    /// The version.
    #[schema(minimum = 1)]
    pub number: i32,
}

/// Compares two versions of a campaign's brief, client context and parameters, word by word.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompareCampaignVersions {
    pub id: Uuid,
    #[schema(minimum = 1)]
    pub from: i32,
    /// Without it, the current version.
    #[schema(minimum = 1)]
    pub to: Option<i32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CampaignDiff {
    pub campaign_id: Uuid,
    pub from: i32,
    pub to: i32,
    /// The brief with its changes. Empty if both versions have the same.
    pub brief: Vec<WordChange>,
    /// The same for the client context.
    pub client_context: Vec<WordChange>,
    /// The same for the parameters as JSON.
    #[serde(default)]
    pub parameters: Vec<WordChange>,
}

impl Change for EditCampaign {
    const SPEC: Spec = Spec::change("edit_campaign", "/v1/campaigns/{id}", "campaign edit")
        .tag(TAG)
        .by(Method::Patch)
        .refuses(&[
            Error::UNKNOWN,
            Error::CHANGED,
            Error::CLOSED,
            text::Error::TOO_LONG,
            parameters::Error::INVALID,
            NUL_IN_TEXT,
        ]);
    const ACTION: Action = Action::CampaignEdit;
    type Output = EditOutcome;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<EditOutcome> {
        let edit = Edit {
            brief: self.brief.as_deref(),
            client_context: self.client_context.as_ref().map(Option::as_deref),
            parameters: self.parameters.as_ref(),
            expected_version: self.expected_version,
        };
        let output = campaigns::edit(conn, self.id, &edit, &call.actor.label(), call.now).await?;
        if !output.changed {
            return Ok(ChangeOutput::nothing(self.id, output));
        }
        let data = json!({ "version": output.current.version });
        Ok(ChangeOutput::of(self.id, output, data))
    }
}

impl Operation for ListCampaignVersions {
    const SPEC: Spec =
        Spec::read("list_campaign_versions", "/v1/campaigns/{id}/versions", "campaign versions")
            .tag(TAG)
            .refuses(&[Error::UNKNOWN]);
    type Output = Listing<VersionSummary>;

    async fn run(self, call: &Call) -> Result<Listing<VersionSummary>, Refusal> {
        let limit = page_limit(self.limit)?;
        campaigns::get(&call.pool, self.id).await?;
        let rows = campaigns::list_versions(&call.pool, self.id, self.cursor, limit + 1).await?;
        Ok(Listing::of(rows, limit, |row| row.version))
    }
}

impl Operation for ShowCampaignVersion {
    const SPEC: Spec = Spec::read(
        "show_campaign_version",
        "/v1/campaigns/{id}/versions/{number}",
        "campaign versions",
    )
    .tag(TAG)
    .refuses(&[Error::UNKNOWN, Error::NO_VERSION]);
    type Output = CampaignVersion;

    async fn run(self, call: &Call) -> Result<CampaignVersion, Refusal> {
        let mut transaction = call.begin_read().await?;
        Ok(campaigns::version(&mut transaction, self.id, Some(self.number)).await?)
    }
}

impl Operation for CompareCampaignVersions {
    const SPEC: Spec = Spec::read(
        "compare_campaign_versions",
        "/v1/campaigns/{id}/version-diff",
        "campaign versions",
    )
    .tag(TAG)
    .refuses(&[Error::UNKNOWN, Error::NO_VERSION]);
    type Output = CampaignDiff;

    async fn run(self, call: &Call) -> Result<CampaignDiff, Refusal> {
        let mut transaction = call.begin_read().await?;
        let from = campaigns::version(&mut transaction, self.id, Some(self.from)).await?;
        let to = campaigns::version(&mut transaction, self.id, self.to).await?;
        Ok(CampaignDiff::of(&from, &to))
    }
}

impl CampaignDiff {
    fn of(from: &CampaignVersion, to: &CampaignVersion) -> Self {
        let context =
            |version: &CampaignVersion| version.client_context.clone().unwrap_or_default();
        let parameters = |version: &CampaignVersion| match version.parameters.is_empty() {
            true => String::new(),
            false => format!("{:#}", Value::Object(version.parameters.0.clone())),
        };
        Self {
            campaign_id: to.campaign_id,
            from: from.version,
            to: to.version,
            brief: changes(&from.brief, &to.brief),
            client_context: changes(&context(from), &context(to)),
            parameters: changes(&parameters(from), &parameters(to)),
        }
    }
}

fn changes(from: &str, to: &str) -> Vec<WordChange> {
    if from == to { Vec::new() } else { diff_words(from, to) }
}

fn named<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}
