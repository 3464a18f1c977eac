//! Webhooks: subscribers to the ends of tasks, and the deliveries to them.
//!
//! Invariants: each end of a task has one delivery for each webhook that subscribes to it, written by the database in the transaction of
//! the end. A delivery keeps its id and its body through all attempts and replays, so a receiver that remembers ids processes each end
//! once. Messages follow the Standard Webhooks specification.
//!
//! Races: a delivery names the only job that may send it. Of a replay and the previous attempt, only one therefore writes an outcome. A
//! job checks again that its webhook is enabled, and otherwise holds the delivery.
//!
//! Secrets are read in two places: where one is made, to be shown once, and where a delivery is signed.

mod address;
mod attempt;
mod config;
mod deliver;
mod deliveries;
mod error;
mod list;
mod many;
mod messages;
mod notify_many;
mod secret;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

pub use self::{
    address::{RefusalReason, check as check_url, is_public},
    attempt::{DueDelivery, FailedAttempt, Message, Next, Outcome, due, record},
    config::Config,
    deliver::{DeliverWebhook, give_up, replay, send_test},
    deliveries::{
        Delivery, FailedDeliveries, Filter, State, deliveries, failed_since, get_delivery,
        oldest_missed, remove_of_tasks, remove_old, remove_warnings_without_task,
    },
    error::Error,
    list::{find, find_delivery, get, list},
    many::{remove, replay_since},
    messages::{MESSAGES, MessageFormat},
    notify_many::{set_batching, write_deliveries},
    secret::{Secret, Undecodable},
};
use super::{
    StatementError, ids,
    limits::{
        LimitEffect::{Refused, Sentence},
        LimitEntry,
    },
};

pub const LIMITS: &[LimitEntry] = &[
    LimitEntry::fixed(
        "characters of the address of a webhook",
        address::MAX_CHARS as u64,
        Refused(Error::BAD_URL.code),
    ),
    LimitEntry::fixed(
        "attempts of a delivery, over about three days",
        attempt::WAITS_SECS.len() as u64 + 1,
        Sentence("The delivery has failed; `webhook replay` sends it again."),
    ),
    LimitEntry::setting(
        "seconds of an attempt",
        "webhooks.timeout_secs",
        (1, Some(60)),
        Sentence("The attempt has failed."),
    ),
    LimitEntry::setting(
        "days of failures without a success",
        "webhooks.disable_after_days",
        (1, None),
        Sentence("The webhook is disabled, and its deliveries are held."),
    ),
];

/// Kind of message that a webhook subscribes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = WebhookKind)]
pub enum Kind {
    #[serde(rename = "task.done")]
    Done,
    #[serde(rename = "task.failed")]
    Failed,
    #[serde(rename = "task.cancelled")]
    Cancelled,
    /// A budget has reached its soft limit.
    #[serde(rename = "budget.warning")]
    BudgetWarning,
}

/// A webhook, without its secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Webhook {
    pub id: Uuid,
    pub url: String,
    pub kinds: Vec<String>,
    /// Limits the webhook to the tasks of this campaign. Null: all campaigns.
    pub campaign_id: Option<Uuid>,
    pub enabled: bool,
    pub disabled_because: Option<String>,
    pub failing_since: Option<DateTime<Utc>>,
    /// Time until which two secrets sign side by side.
    pub rotates_until: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
}

/// A webhook to add.
#[derive(Debug, Clone, Copy, Default)]
pub struct New<'a> {
    pub url: &'a str,
    /// Empty: all ends of tasks.
    pub kinds: &'a [Kind],
    pub campaign_id: Option<Uuid>,
}

/// A webhook with its new secret, which is shown only once.
#[derive(Debug, Clone)]
pub struct WithSecret {
    pub webhook: Webhook,
    pub secret: Secret,
}

impl Kind {
    /// The ends of tasks, which a webhook gets by default.
    pub const ENDS: [Self; 3] = [Self::Done, Self::Failed, Self::Cancelled];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "task.done",
            Self::Failed => "task.failed",
            Self::Cancelled => "task.cancelled",
            Self::BudgetWarning => "budget.warning",
        }
    }
}

/// Adds a webhook.
pub async fn add(
    conn: &mut PgConnection,
    config: &Config,
    new: &New<'_>,
    now: DateTime<Utc>,
) -> Result<WithSecret, Error> {
    let url = address::check(new.url, config.allow_private)?;
    let kinds = if new.kinds.is_empty() { &Kind::ENDS[..] } else { new.kinds };
    let kinds: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
    let id = ids::new_at(now);
    let added = sqlx::query!(
        "insert into dalsegno.webhooks (id, created_at, url, kinds, campaign_id) values ($1, $2, $3, $4, $5)",
        id,
        now,
        url.as_str(),
        &kinds as &[&str],
        new.campaign_id,
    )
    .execute(&mut *conn)
    .await;
    if let Err(error) = added {
        let campaign = new.campaign_id.filter(|_| is_about(&error, "webhooks_campaign"));
        return Err(match campaign {
            Some(campaign) => Error::UnknownCampaign(campaign),
            None => StatementError { action: "add a webhook", source: error }.into(),
        });
    }
    let secret = secret::store(&mut *conn, id, now).await?;
    Ok(WithSecret { webhook: get(conn, id).await?, secret })
}

/// Gives a webhook a new secret. The previous one also signs for a while, so that the receiver can switch.
pub async fn rotate(
    conn: &mut PgConnection,
    id: Uuid,
    overlap: TimeDelta,
    now: DateTime<Utc>,
) -> Result<WithSecret, Error> {
    // Locks the row, so that rotations exclude each other, and checks that the webhook exists.
    sqlx::query!("select id from dalsegno.webhooks where id = $1 for update", id)
        .fetch_optional(&mut *conn)
        .await
        .map_err(StatementError::to("rotate the secret of a webhook"))?
        .ok_or(Error::Unknown(id))?;
    secret::retire(&mut *conn, id, now + overlap, now).await?;
    let secret = secret::store(&mut *conn, id, now).await?;
    Ok(WithSecret { webhook: get(conn, id).await?, secret })
}

/// Disables a webhook until it is enabled. Deliveries are held meanwhile. Disabling again replaces the reason.
pub async fn disable(
    conn: &mut PgConnection,
    id: Uuid,
    reason: &str,
    now: DateTime<Utc>,
) -> Result<Webhook, Error> {
    sqlx::query!(
        "update dalsegno.webhooks
            set disabled_at = coalesce(disabled_at, $3), disabled_because = $2, failing_since = null where id = $1",
        id,
        reason,
        now,
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("disable a webhook"))?;
    get(conn, id).await
}

/// Enables a webhook. Held deliveries stay held until they are replayed.
pub async fn enable(conn: &mut PgConnection, id: Uuid) -> Result<Webhook, Error> {
    sqlx::query!(
        "update dalsegno.webhooks set disabled_at = null, disabled_because = null, failing_since = null where id = $1",
        id,
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("enable a webhook"))?;
    get(conn, id).await
}

fn is_about(error: &sqlx::Error, constraint: &str) -> bool {
    error.as_database_error().and_then(|error| error.constraint()) == Some(constraint)
}
