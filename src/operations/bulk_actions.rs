//! Bulk actions: one action on all tasks that match a filter.

use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Call, Change, ChangeResult, Changed, Operation, Refusal, Spec, Success, by_request};
use crate::domain::{
    audit,
    bulk_actions::{self, Action, BulkAction, Error},
    class::NUL_IN_TEXT,
    objects,
    tasks::Matching,
    text,
};

const TAG: &str = "tasks";

/// Cancels or retries all tasks that match a filter. A worker does it.
///
/// Tasks that are added later are not meant. Those that have changed before their turn comes are skipped.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewBulkAction, example = json!({ "action": "cancel", "filter": { "agent": "copywriter" }, "reason": "the brief has changed" }))]
pub struct CreateBulkAction {
    pub action: Action,
    #[serde(deserialize_with = "objects::object")]
    pub filter: Matching,
    /// Shown with the tasks that it cancels.
    #[serde(default = "by_request")]
    pub reason: String,
    /// Nothing is done unless exactly so many tasks match.
    pub expected_count: Option<i64>,
}

/// Shows how far a bulk action is.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowBulkAction {
    pub id: Uuid,
}

impl Change for CreateBulkAction {
    const SPEC: Spec = Spec::change("create_bulk_action", "/v1/bulk-actions", "")
        .tag(TAG)
        .answers(Success::Accepted)
        .located("/v1/bulk-actions/{id}")
        .refuses(&[Error::COUNT_DIFFERS, text::Error::TOO_LONG, Error::EMPTY_FILTER, NUL_IN_TEXT])
        .without_command("commands name their tasks one by one so far");
    const ACTION: audit::Action = audit::Action::BulkActionCreate;
    type Output = BulkAction;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<BulkAction> {
        let Self { action, filter, reason, expected_count } = &self;
        let (action, expected_count) = (*action, *expected_count);
        let new = bulk_actions::New { action, filter, reason, expected_count };
        let output = bulk_actions::request(conn, &new, call.now).await?;
        let data = json!({ "action": action, "filter": filter, "matched": output.matched, "reason": reason });
        Ok(Changed { subject: output.id.to_string(), output, data })
    }
}

impl Operation for ShowBulkAction {
    const SPEC: Spec = Spec::read("show_bulk_action", "/v1/bulk-actions/{id}", "")
        .tag(TAG)
        .refuses(&[Error::UNKNOWN])
        .without_command("bulk actions are asked for over HTTP so far");
    type Output = BulkAction;

    async fn run(self, call: &Call) -> Result<BulkAction, Refusal> {
        Ok(bulk_actions::get(&call.pool, self.id).await?)
    }
}
