//! Bulk actions: one action on all tasks that match a filter.

use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Call, Change, ChangeOutput, ChangeResult, Listing, Operation, Refusal, Spec, Success,
    by_request, page_limit,
};
use crate::domain::{
    Page, audit,
    bulk_actions::{self, Action, BulkAction, Error, Preview},
    campaigns,
    class::{Class, Kind, NUL_IN_TEXT},
    keys::Scope,
    objects,
    tasks::{self, TaskFilter},
    text,
};

const TAG: &str = "tasks";

/// Cancels or retries all tasks that match a filter, on a worker.
///
/// Tasks that are added later are not affected. Tasks whose state changes before the worker reaches them are skipped.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewBulkAction, example = json!({ "action": "cancel", "filter": { "agent": "copywriter" }, "reason": "the brief has changed" }))]
pub struct CreateBulkAction {
    pub action: Action,
    #[serde(deserialize_with = "objects::object")]
    pub filter: TaskFilter,
    /// Shown with the tasks that it cancels.
    #[serde(default = "by_request")]
    pub reason: String,
    /// Nothing is done unless exactly so many tasks match.
    pub expected_count: Option<i64>,
}

/// Lists the tasks that a bulk action would match, and changes nothing.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PreviewedBulkAction, example = json!({ "action": "retry", "filter": { "state": "failed" } }))]
pub struct PreviewBulkAction {
    pub action: Action,
    #[serde(deserialize_with = "objects::object")]
    pub filter: TaskFilter,
}

/// Lists bulk actions, the newest first.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListBulkActions {
    pub cursor: Option<Uuid>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// Shows the progress of a bulk action.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowBulkAction {
    pub id: Uuid,
}

impl Change for CreateBulkAction {
    const SPEC: Spec = Spec::change("create_bulk_action", "/v1/bulk-actions", "task cancel")
        .tag(TAG)
        .for_bound_keys()
        .answers(Success::Accepted)
        .located("/v1/bulk-actions/{id}")
        .refuses(&[
            campaigns::Error::UNKNOWN,
            Error::COUNT_DIFFERS,
            text::Error::TOO_LONG,
            Error::EMPTY_FILTER,
            tasks::Error::BAD_FILTER,
            NUL_IN_TEXT,
        ]);
    const ACTION: audit::Action = audit::Action::BulkActionCreate;
    type Output = BulkAction;

    async fn change(mut self, conn: &mut PgConnection, call: &Call) -> ChangeResult<BulkAction> {
        check_reach(&self.filter, call)?;
        split_agent(&mut self.filter, call)?;
        let Self { action, filter, reason, expected_count } = &self;
        let (action, expected_count) = (*action, *expected_count);
        let new = bulk_actions::New { action, filter, reason, expected_count };
        let output = bulk_actions::request(conn, &new, call.now).await?;
        let data = json!({ "action": action, "filter": filter, "matched": output.matched, "reason": reason });
        Ok(ChangeOutput::of(output.id, output, data))
    }
}

impl Operation for PreviewBulkAction {
    const SPEC: Spec =
        Spec::change("preview_bulk_action", "/v1/bulk-actions/preview", "task retry")
            .tag(TAG)
            .for_bound_keys()
            .needs(&[Scope::Read])
            .unaudited("it changes nothing")
            .refuses(&[
                campaigns::Error::UNKNOWN,
                text::Error::TOO_LONG,
                Error::EMPTY_FILTER,
                tasks::Error::BAD_FILTER,
                NUL_IN_TEXT,
            ]);
    type Output = Preview;

    async fn run(mut self, call: &Call) -> Result<Preview, Refusal> {
        check_reach(&self.filter, call)?;
        split_agent(&mut self.filter, call)?;
        let mut transaction = call.begin_search().await?;
        Ok(bulk_actions::preview(&mut transaction, self.action, &self.filter, call.now).await?)
    }
}

impl Operation for ListBulkActions {
    const SPEC: Spec =
        Spec::read("list_bulk_actions", "/v1/bulk-actions", "bulk ls").tag(TAG).for_bound_keys();
    type Output = Listing<BulkAction>;

    async fn run(self, call: &Call) -> Result<Listing<BulkAction>, Refusal> {
        let limit = page_limit(self.limit)?;
        let page = Page { after: self.cursor, limit: limit + 1 };
        let actions = bulk_actions::list(&call.pool, call.reach.campaigns(), page).await?;
        Ok(Listing::of(actions, limit, |action| action.id))
    }
}

impl Operation for ShowBulkAction {
    const SPEC: Spec = Spec::read("show_bulk_action", "/v1/bulk-actions/{id}", "bulk show")
        .tag(TAG)
        .for_bound_keys()
        .refuses(&[Error::UNKNOWN]);
    type Output = BulkAction;

    async fn run(self, call: &Call) -> Result<BulkAction, Refusal> {
        let action = bulk_actions::get(&call.pool, self.id).await?;
        match check_reach(&action.filter, call) {
            Ok(()) => Ok(action),
            Err(_) => Err(Error::Unknown(self.id).into()),
        }
    }
}

/// Splits the name of an instance in the filter into its agent and its instance.
fn split_agent(filter: &mut TaskFilter, call: &Call) -> Result<(), Refusal> {
    if filter.agent.is_none() {
        return Ok(());
    }
    let Class { kind, code, .. } = tasks::Error::BAD_FILTER;
    let catalogue = call.catalogue()?;
    filter.split_agent(&catalogue).map_err(|error| Refusal::new(kind, code, error.to_string()))
}

/// A key that is bound to campaigns has to name one of them.
fn check_reach(filter: &TaskFilter, call: &Call) -> Result<(), Refusal> {
    let Some(reached) = call.reach.campaigns() else { return Ok(()) };
    match filter.campaign_id {
        Some(id) if reached.contains(&id) => Ok(()),
        Some(id) => Err(campaigns::Error::Unknown(id).into()),
        None => {
            let detail =
                "the key is bound to campaigns: name one of them in the filter, as `campaign_id`";
            Err(Refusal::new(Kind::Forbidden, "key_is_bound", detail))
        }
    }
}
