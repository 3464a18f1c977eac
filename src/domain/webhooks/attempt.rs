//! Attempts at a delivery: the request and its outcome.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Config, Secret, State, Undecodable, secret::Headers};
use crate::domain::StatementError;

/// A delivery that a job has to send.
#[derive(Debug, Clone)]
pub struct DueDelivery {
    pub id: Uuid,
    pub webhook_id: Uuid,
    pub url: String,
    body: String,
    /// True if the webhook is enabled.
    pub enabled: bool,
    attempts: i32,
    failing_since: Option<DateTime<Utc>>,
    secrets: Vec<Secret>,
}

/// The request of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Delivered {
        status: u16,
    },
    Missed(FailedAttempt),
    /// Not tried, because the webhook is disabled.
    Held,
}

/// A failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedAttempt {
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// The error message, without any text of the receiver.
    pub error: String,
    /// The receiver's Retry-After.
    pub retry_after: Option<Duration>,
}

/// The next step of the delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Ended,
    /// Retried after this time.
    Again(Duration),
    /// Another job sends the delivery by now, and will record the outcome, or the delivery was given up.
    Overtaken,
}

/// The status with which a receiver ends its subscription.
const GONE: u16 = 410;
/// Backoff after each failed attempt: three days and some hours in total.
pub(super) const WAITS_SECS: [u64; 9] =
    [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];

impl Message {
    /// Builds the request for a body, with one signature for each secret. `None`: a secret is invalid.
    pub fn signed(id: Uuid, at: DateTime<Utc>, body: String, secrets: &[Secret]) -> Option<Self> {
        let Headers { id, timestamp, signature } = Headers::of(id, at, &body, secrets)?;
        let headers = vec![
            ("webhook-id", id),
            ("webhook-timestamp", timestamp),
            ("webhook-signature", signature),
        ];
        Some(Self { headers, body })
    }
}

impl FailedAttempt {
    /// Builds a failure without an answer.
    pub fn unanswered(error: String) -> Self {
        Self { status: None, error, retry_after: None }
    }
}

impl DueDelivery {
    /// Builds the request, with one signature for each valid secret.
    pub fn message(&self, now: DateTime<Utc>) -> Result<Message, Undecodable> {
        let message = Message::signed(self.id, now, self.body.clone(), &self.secrets);
        message.ok_or(Undecodable(self.webhook_id))
    }

    fn next_wait(&self) -> Option<Duration> {
        let n_waited = usize::try_from(self.attempts).unwrap_or(usize::MAX);
        WAITS_SECS.get(n_waited).copied().map(Duration::from_secs)
    }

    /// Returns the reason to disable the webhook after this failure, if there is one.
    fn reason_to_disable(
        &self,
        config: &Config,
        missed: &FailedAttempt,
        now: DateTime<Utc>,
    ) -> Option<String> {
        if missed.status == Some(GONE) {
            return Some("it answered 410 Gone".to_owned());
        }
        let since = self.failing_since.filter(|since| now - since >= config.disable_after())?;
        let since = since.format("%F %T");
        Some(format!("no delivery succeeded since {since} UTC; last error: {}", missed.error))
    }
}

/// Reads the delivery that a job has to send. `None`: it is done, or another job sends it.
pub async fn due(
    executor: impl PgExecutor<'_>,
    delivery_id: Uuid,
    job_id: i64,
    now: DateTime<Utc>,
) -> Result<Option<DueDelivery>, StatementError> {
    let row = sqlx::query!(
        r#"select d.webhook_id, d.body, d.attempts, w.url, w.failing_since, w.disabled_at is null as "enabled!",
                  array(select s.secret from dalsegno.webhook_secrets as s
                         where s.webhook_id = w.id and (s.valid_until is null or s.valid_until > $3) order by s.id desc) as "secrets!"
             from dalsegno.webhook_deliveries as d join dalsegno.webhooks as w on w.id = d.webhook_id
            where d.id = $1 and d.job_id = $2 and d.state = 'waiting'"#,
        delivery_id,
        job_id,
        now,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read a delivery"))?;
    Ok(row.map(|row| DueDelivery {
        id: delivery_id,
        webhook_id: row.webhook_id,
        url: row.url,
        body: row.body,
        enabled: row.enabled,
        attempts: row.attempts,
        failing_since: row.failing_since,
        secrets: row.secrets.into_iter().map(Secret::from_text).collect(),
    }))
}

/// Records the outcome of an attempt, in the transaction that ends the job's run.
pub async fn record(
    conn: &mut PgConnection,
    config: &Config,
    due: &DueDelivery,
    job_id: i64,
    outcome: &Outcome,
    now: DateTime<Utc>,
) -> Result<Next, StatementError> {
    let (state, next) = match outcome {
        Outcome::Delivered { .. } => (State::Delivered, Next::Ended),
        Outcome::Held => (State::Held, Next::Ended),
        Outcome::Missed(missed) => match due.next_wait().filter(|_| missed.status != Some(GONE)) {
            Some(wait) => {
                let wait = wait.max(missed.retry_after.unwrap_or_default());
                (State::Waiting, Next::Again(wait))
            }
            None => (State::Failed, Next::Ended),
        },
    };
    // Locks the webhook's row before the delivery's, the order of a removal.
    match outcome {
        Outcome::Delivered { .. } if due.failing_since.is_some() => {
            recover(&mut *conn, due).await?;
        }
        Outcome::Missed(missed) => {
            let disable = due.reason_to_disable(config, missed, now);
            record_failure(&mut *conn, due, disable.as_deref(), now).await?;
        }
        Outcome::Delivered { .. } | Outcome::Held => {}
    }
    match write(conn, due, job_id, outcome, (state, next), now).await? {
        true => Ok(next),
        false => Ok(Next::Overtaken),
    }
}

/// Writes the outcome. Returns false if another job sends the delivery by now, or if it was given up, unless it has just arrived.
async fn write(
    conn: &mut PgConnection,
    due: &DueDelivery,
    job_id: i64,
    outcome: &Outcome,
    (state, next): (State, Next),
    now: DateTime<Utc>,
) -> Result<bool, StatementError> {
    let (tried, status, error) = match outcome {
        Outcome::Delivered { status } => (1, Some(*status), None),
        Outcome::Missed(missed) => (1, missed.status, Some(missed.error.as_str())),
        Outcome::Held => (0, None, None),
    };
    let next_at = match next {
        Next::Again(wait) => Some(now + wait),
        Next::Ended | Next::Overtaken => None,
    };
    let ended_at = matches!(state, State::Delivered | State::Failed).then_some(now);
    let written = sqlx::query!(
        "update dalsegno.webhook_deliveries
            set state = $3, attempts = attempts + $4, last_status = case when $4 = 1 then $5 else last_status end,
                last_error = case when $4 = 1 then $6 else last_error end, next_at = $7, ended_at = $8
          where id = $1 and job_id = $2 and (state = 'waiting' or $3::text = 'delivered' and state = 'failed')",
        due.id,
        job_id,
        state as State,
        tried,
        status.and_then(|status| i16::try_from(status).ok()),
        error,
        next_at,
        ended_at,
    )
    .execute(conn)
    .await
    .map_err(StatementError::to("record the result of a delivery"))?;
    Ok(written.rows_affected() == 1)
}

async fn recover(conn: &mut PgConnection, due: &DueDelivery) -> Result<(), StatementError> {
    sqlx::query!("update dalsegno.webhooks set failing_since = null where id = $1", due.webhook_id)
        .execute(conn)
        .await
        .map(|_| ())
        .map_err(StatementError::to("record that a webhook answers again"))
}

/// Records a failure if it changes the webhook. Further failures of a failing webhook are not written.
async fn record_failure(
    conn: &mut PgConnection,
    due: &DueDelivery,
    disable_because: Option<&str>,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    sqlx::query!(
        "update dalsegno.webhooks
            set failing_since = coalesce(failing_since, $2),
                disabled_at = case when $3::text is null then disabled_at else coalesce(disabled_at, $2) end,
                disabled_because = case when $3::text is null then disabled_because else coalesce(disabled_because, $3) end
          where id = $1 and disabled_at is null and (failing_since is null or $3::text is not null)",
        due.webhook_id,
        now,
        disable_because,
    )
    .execute(conn)
    .await
    .map(|_| ())
    .map_err(StatementError::to("record that a webhook fails"))
}
