//! The blackboard of a campaign.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Call, ChangeOutput, ChangeResult, Listing, Method, Operation, Refusal, Spec, page_limit,
};
use crate::domain::{
    audit::Action,
    blackboard::{self, Blackboard, Change, ChangeAuthor, Entry, Error, WriteOutcome},
    campaigns,
    class::{Class, NUL_IN_TEXT},
};

const TAG: &str = "campaigns";
const PATH: &str = "/v1/campaigns/{id}/blackboard";

/// Shows the blackboard of a campaign.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowBlackboard {
    pub id: Uuid,
    /// An earlier version; else the current one.
    #[schema(minimum = 0)]
    pub version: Option<i64>,
}

/// Replaces the named version of the document.
///
/// The change is refused if another version is current; the detail of the problem names that version.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = BlackboardSet)]
pub struct SetBlackboard {
    pub id: Uuid,
    #[schema(value_type = Object)]
    pub document: Value,
    /// The version that it replaces; 0 before the first one.
    pub expected_version: i64,
}

/// Merges a JSON Merge Patch (RFC 7396) into the document.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = BlackboardPatch, example = json!({ "patch": { "plan": { "parts": 9, "draft": null } } }))]
pub struct PatchBlackboard {
    pub id: Uuid,
    /// A JSON Merge Patch (RFC 7396): null removes a key.
    #[schema(value_type = Object)]
    pub patch: Value,
    /// The change is refused unless this is the current version.
    pub expected_version: Option<i64>,
}

/// Lists the changes of a blackboard, the newest first.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListBlackboardChanges {
    pub id: Uuid,
    /// A version.
    pub cursor: Option<i64>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

const OF_CHANGES: &[Class] = &[
    campaigns::Error::UNKNOWN,
    Error::CHANGED,
    campaigns::Error::CLOSED,
    Error::TOO_LARGE,
    Error::NO_OBJECT,
    Error::BAD_KEY,
    NUL_IN_TEXT,
];

impl Operation for ShowBlackboard {
    const SPEC: Spec = Spec::read("show_blackboard", PATH, "blackboard show")
        .tag(TAG)
        .refuses(&[campaigns::Error::UNKNOWN, Error::NO_VERSION]);
    type Output = Blackboard;

    async fn run(self, call: &Call) -> Result<Blackboard, Refusal> {
        let mut transaction = call.begin_read().await?;
        campaigns::get(&mut *transaction, self.id).await?;
        Ok(match self.version {
            None => blackboard::get(&mut *transaction, self.id).await?,
            Some(version) => blackboard::at_version(&mut transaction, self.id, version).await?,
        })
    }
}

impl super::Change for SetBlackboard {
    const SPEC: Spec = Spec::change("set_blackboard", PATH, "blackboard set")
        .tag(TAG)
        .by(Method::Put)
        .refuses(OF_CHANGES);
    const ACTION: Action = Action::BlackboardSet;
    type Output = WriteOutcome;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<WriteOutcome> {
        let Self { id, document, expected_version } = self;
        write(id, &Change::Set { document: &document, expected_version }, conn, call).await
    }
}

impl super::Change for PatchBlackboard {
    const SPEC: Spec = Spec::change("patch_blackboard", PATH, "blackboard patch")
        .tag(TAG)
        .by(Method::Patch)
        .refuses(OF_CHANGES);
    const ACTION: Action = Action::BlackboardPatch;
    type Output = WriteOutcome;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<WriteOutcome> {
        let Self { id, patch, expected_version } = self;
        write(id, &Change::Patch { patch: &patch, expected_version }, conn, call).await
    }
}

impl Operation for ListBlackboardChanges {
    const SPEC: Spec = Spec::read(
        "list_blackboard_changes",
        "/v1/campaigns/{id}/blackboard/history",
        "blackboard history",
    )
    .tag(TAG)
    .refuses(&[campaigns::Error::UNKNOWN]);
    type Output = Listing<Entry>;

    async fn run(self, call: &Call) -> Result<Listing<Entry>, Refusal> {
        let limit = page_limit(self.limit)?;
        campaigns::get(&call.pool, self.id).await?;
        let entries = blackboard::history(&call.pool, self.id, self.cursor, limit + 1).await?;
        Ok(Listing::of(entries, limit, |entry| entry.version))
    }
}

async fn write(
    id: Uuid,
    change: &Change<'_>,
    conn: &mut PgConnection,
    call: &Call,
) -> ChangeResult<WriteOutcome> {
    let by = ChangeAuthor::Operator { label: &call.actor.label() };
    let output = blackboard::change(conn, id, change, &by, call.now).await?;
    if !output.changed {
        return Ok(ChangeOutput::nothing(id, output));
    }
    let data = json!({ "version": output.blackboard.version });
    Ok(ChangeOutput::of(id, output, data))
}
