//! Webhooks: addresses that are notified when tasks end.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Call, Change, ChangeOutput, ChangeResult, Method, Operation, Refusal, Spec, Success, by_request,
};
use crate::domain::{
    audit::Action,
    campaigns,
    class::{BAD_VALUE, Kind as RefusalKind, NUL_IN_TEXT},
    keys::Scope,
    tasks, timestamp,
    webhooks::{self, Error, Kind, New, Webhook, WithSecret},
};

pub(super) const TAG: &str = "webhooks";
/// Reads need `operate`, too: addresses of receivers may contain tokens.
const OPERATE: &[Scope] = &[Scope::Operate];
pub(super) const MAX_OVERLAP_SECS: u32 = 30 * 86_400;

/// Lists all webhooks, without their secrets.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListWebhooks {}

/// All webhooks: there are a handful.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Webhooks {
    pub items: Vec<Webhook>,
}

/// Shows a webhook.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowWebhook {
    pub id: Uuid,
}

/// Shows the message that webhooks receive about a task that has ended, to try a receiver out.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowWebhookMessage {
    /// Of the task.
    pub id: Uuid,
}

/// The message about the end of a task, as a delivery sends it.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WebhookMessage {
    pub task_id: Uuid,
    /// `task.done`, `task.failed` or `task.cancelled`.
    pub kind: String,
    /// The body, byte for byte: a JSON object.
    pub body: String,
}

/// Adds a webhook for the ends of tasks. Only this response contains its secret.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewWebhook, example = json!({ "url": "https://shop.example/hooks/dalsegno", "kinds": ["task.done"] }))]
pub struct AddWebhook {
    pub url: String,
    #[serde(default)]
    pub kinds: Vec<Kind>,
    pub campaign_id: Option<Uuid>,
}

/// A webhook with its secret, which no other answer has.
#[derive(Serialize, Deserialize, utoipa::ToSchema)]
pub struct WebhookWithSecret {
    #[serde(flatten)]
    pub webhook: Webhook,
    pub secret: String,
}

/// Removes a webhook with its deliveries.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveWebhook {
    pub id: Uuid,
}

/// Creates a new secret, which only this response contains; the old one also signs during the overlap.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SecretRotation)]
pub struct RotateWebhook {
    pub id: Uuid,
    /// Seconds during which the previous secret signs too: at most 30 days.
    #[serde(default = "a_day")]
    #[schema(maximum = 2_592_000)]
    pub overlap_secs: u32,
}

/// Enables a webhook again. Deliveries held meanwhile can be replayed.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EnableWebhook {
    pub id: Uuid,
}

/// Disables a webhook. Deliveries are held until it is enabled.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DisableWebhook {
    pub id: Uuid,
    /// Shown with the webhook while it is disabled.
    #[serde(default = "by_request")]
    pub reason: String,
}

/// Sends again all deliveries since a time that were not delivered.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReplaySince)]
pub struct ReplayWebhook {
    pub id: Uuid,
    #[serde(deserialize_with = "timestamp::required")]
    pub since: DateTime<Utc>,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = ReplayedMany)]
pub struct ReplayCount {
    pub webhook_id: Uuid,
    pub replayed: usize,
}

impl Operation for ListWebhooks {
    const SPEC: Spec =
        Spec::read("list_webhooks", "/v1/webhooks", "webhook ls").tag(TAG).needs(OPERATE);
    type Output = Webhooks;

    async fn run(self, call: &Call) -> Result<Webhooks, Refusal> {
        Ok(Webhooks { items: webhooks::list(&call.pool).await? })
    }
}

impl Operation for ShowWebhook {
    const SPEC: Spec = Spec::read("show_webhook", "/v1/webhooks/{id}", "webhook show")
        .tag(TAG)
        .needs(OPERATE)
        .refuses(&[Error::UNKNOWN]);
    type Output = Webhook;

    async fn run(self, call: &Call) -> Result<Webhook, Refusal> {
        Ok(webhooks::get(&call.pool, self.id).await?)
    }
}

impl Operation for ShowWebhookMessage {
    const SPEC: Spec =
        Spec::read("show_webhook_message", "/v1/tasks/{id}/webhook-message", "webhook listen")
            .tag(TAG)
            .needs(OPERATE)
            .refuses(&[tasks::Error::UNKNOWN, tasks::Error::NOT_ENDED]);
    type Output = WebhookMessage;

    async fn run(self, call: &Call) -> Result<WebhookMessage, Refusal> {
        let mut transaction = call.begin_read().await?;
        let (state, body) = tasks::end_message(&mut *transaction, self.id).await?;
        let kind = format!("task.{}", state.as_str());
        Ok(WebhookMessage { task_id: self.id, kind, body })
    }
}

impl Change for AddWebhook {
    const SPEC: Spec = Spec::change("add_webhook", "/v1/webhooks", "webhook add")
        .tag(TAG)
        .answers(Success::Created)
        .located("/v1/webhooks/{id}")
        .shows_secret()
        .refuses(&[campaigns::Error::UNKNOWN, Error::BAD_URL, NUL_IN_TEXT, BAD_VALUE]);
    const ACTION: Action = Action::WebhookAdd;
    type Output = WebhookWithSecret;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<WebhookWithSecret> {
        let Self { url, kinds, campaign_id } = &self;
        let new = New { url, kinds, campaign_id: *campaign_id };
        let added = webhooks::add(conn, &call.config.webhooks, &new, call.now).await?;
        let data = json!({ "url": added.webhook.url, "campaign_id": campaign_id });
        Ok(ChangeOutput::of(added.webhook.id, added.into(), data))
    }
}

/// Runs in many transactions, each with its audit line.
impl Operation for RemoveWebhook {
    const SPEC: Spec = Spec::change("remove_webhook", "/v1/webhooks/{id}", "webhook rm")
        .tag(TAG)
        .by(Method::Delete)
        .answers(Success::NoContent)
        .audits(Action::WebhookRemove)
        .refuses(&[Error::UNKNOWN]);
    type Output = ();

    async fn run(self, call: &Call) -> Result<(), Refusal> {
        let transactions = call.begin_several().await?;
        Ok(webhooks::remove(&transactions, &call.actor, self.id, call.now).await?)
    }
}

impl Change for RotateWebhook {
    const SPEC: Spec = Spec::change("rotate_webhook", "/v1/webhooks/{id}/rotate", "webhook rotate")
        .tag(TAG)
        .shows_secret()
        .refuses(&[Error::UNKNOWN]);
    const ACTION: Action = Action::WebhookRotate;
    type Output = WebhookWithSecret;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<WebhookWithSecret> {
        let Self { id, overlap_secs } = self;
        if overlap_secs > MAX_OVERLAP_SECS {
            let detail =
                format!("overlap_secs is {overlap_secs}, but must be at most {MAX_OVERLAP_SECS}");
            return Err(Refusal::new(RefusalKind::Invalid, "bad_field", detail));
        }
        let overlap = TimeDelta::seconds(overlap_secs.into());
        let rotated = webhooks::rotate(conn, id, overlap, call.now).await?;
        let data = json!({ "overlap_secs": overlap_secs });
        Ok(ChangeOutput::of(id, rotated.into(), data))
    }
}

impl Change for EnableWebhook {
    const SPEC: Spec = Spec::change("enable_webhook", "/v1/webhooks/{id}/enable", "webhook enable")
        .tag(TAG)
        .refuses(&[Error::UNKNOWN]);
    const ACTION: Action = Action::WebhookEnable;
    type Output = Webhook;

    async fn change(self, conn: &mut PgConnection, _: &Call) -> ChangeResult<Webhook> {
        let output = webhooks::enable(conn, self.id).await?;
        Ok(ChangeOutput::of(self.id, output, json!({})))
    }
}

impl Change for DisableWebhook {
    const SPEC: Spec =
        Spec::change("disable_webhook", "/v1/webhooks/{id}/disable", "webhook disable")
            .tag(TAG)
            .refuses(&[Error::UNKNOWN, NUL_IN_TEXT]);
    const ACTION: Action = Action::WebhookDisable;
    type Output = Webhook;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<Webhook> {
        let output = webhooks::disable(conn, self.id, &self.reason, call.now).await?;
        let data = json!({ "reason": self.reason });
        Ok(ChangeOutput::of(self.id, output, data))
    }
}

/// Runs in many transactions, each with its audit line.
impl Operation for ReplayWebhook {
    const SPEC: Spec = Spec::change("replay_webhook", "/v1/webhooks/{id}/replay", "webhook replay")
        .tag(TAG)
        .answers(Success::Accepted)
        .audits(Action::WebhookReplay)
        .refuses(&[Error::UNKNOWN, Error::DISABLED]);
    type Output = ReplayCount;

    async fn run(self, call: &Call) -> Result<ReplayCount, Refusal> {
        let (transactions, Self { id, since }) = (call.begin_several().await?, self);
        let replayed =
            webhooks::replay_since(&transactions, &call.actor, id, since, call.now).await?;
        Ok(ReplayCount { webhook_id: id, replayed })
    }
}

impl From<WithSecret> for WebhookWithSecret {
    fn from(WithSecret { webhook, secret }: WithSecret) -> Self {
        Self { webhook, secret: secret.expose().to_owned() }
    }
}

fn a_day() -> u32 {
    86_400
}
