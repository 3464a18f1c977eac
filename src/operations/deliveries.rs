//! Deliveries of events to webhooks.

use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Call, Change, ChangeOutput, ChangeResult, Listing, Operation, Refusal, Spec, Success,
    page_limit, webhooks::TAG,
};
use crate::domain::{
    Page,
    audit::Action,
    webhooks::{self, Delivery, Error, Filter, State},
};

/// Sends a test delivery through a worker; the delivery shows the result.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TestWebhook {
    pub id: Uuid,
}

/// Lists deliveries, the newest first.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListDeliveries {
    pub webhook_id: Option<Uuid>,
    pub task_id: Option<Uuid>,
    #[schema(inline)]
    pub state: Option<State>,
    pub cursor: Option<Uuid>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// Shows a delivery.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowDelivery {
    pub id: Uuid,
}

/// Sends a delivery again, under the same id.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayDelivery {
    pub id: Uuid,
}

impl Change for TestWebhook {
    const SPEC: Spec = Spec::change("test_webhook", "/v1/webhooks/{id}/test", "webhook test")
        .tag(TAG)
        .answers(Success::Accepted)
        .refuses(&[Error::UNKNOWN, Error::DISABLED]);
    const ACTION: Action = Action::WebhookTest;
    type Output = Delivery;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<Delivery> {
        let output = webhooks::send_test(conn, self.id, call.now).await?;
        let data = json!({ "delivery_id": output.id });
        Ok(ChangeOutput::of(self.id, output, data))
    }
}

impl Operation for ListDeliveries {
    const SPEC: Spec =
        Spec::read("list_deliveries", "/v1/webhook-deliveries", "webhook deliveries").tag(TAG);
    type Output = Listing<Delivery>;

    async fn run(self, call: &Call) -> Result<Listing<Delivery>, Refusal> {
        let Self { webhook_id, task_id, state, cursor, limit } = self;
        let limit = page_limit(limit)?;
        let filter = Filter { webhook_id, task_id, state };
        let page = Page { after: cursor, limit: limit + 1 };
        let mut transaction = call.begin_search().await?;
        let rows = webhooks::deliveries(&mut *transaction, filter, page).await?;
        Ok(Listing::of(rows, limit, |delivery| delivery.id))
    }
}

impl Operation for ShowDelivery {
    const SPEC: Spec = Spec::read("show_delivery", "/v1/webhook-deliveries/{id}", "")
        .tag(TAG)
        .refuses(&[Error::UNKNOWN_DELIVERY])
        .without_command("`webhook deliveries --json` prints it completely");
    type Output = Delivery;

    async fn run(self, call: &Call) -> Result<Delivery, Refusal> {
        Ok(webhooks::get_delivery(&call.pool, self.id).await?)
    }
}

impl Change for ReplayDelivery {
    const SPEC: Spec =
        Spec::change("replay_delivery", "/v1/webhook-deliveries/{id}/replay", "webhook replay")
            .tag(TAG)
            .answers(Success::Accepted)
            .refuses(&[Error::UNKNOWN_DELIVERY, Error::DISABLED]);
    const ACTION: Action = Action::WebhookReplay;
    type Output = Delivery;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<Delivery> {
        let output = webhooks::replay(conn, self.id, call.now).await?;
        let data = json!({ "delivery_id": self.id });
        Ok(ChangeOutput::of(output.webhook_id, output, data))
    }
}
