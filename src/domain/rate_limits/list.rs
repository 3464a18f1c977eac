//! The rate limits that are in use.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;
use uuid::Uuid;

use super::{Measure, describe_amount};
use crate::domain::StatementError;

/// A rate limit that workers use, and the tasks that wait for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct UsedRateLimit {
    /// Its identity: provider, model, credential, campaign and measure, with `*` for all.
    pub key: String,
    /// The calls that it limits, in words.
    pub subject: String,
    #[schema(inline)]
    pub measure: Measure,
    /// Per minute; of concurrent calls, at once.
    pub amount: f64,
    /// Neither used nor leased by a worker. Negative: a debt, which flows off before a further call begins.
    pub available: f64,
    /// The campaign, if it limits the calls of one.
    pub campaign_id: Option<Uuid>,
    pub waiting_tasks: i64,
    /// The time from which the first of them has waited.
    pub waiting_since: Option<DateTime<Utc>>,
}

impl UsedRateLimit {
    /// Formats the limit: `600 requests per minute`.
    pub fn amount_words(&self) -> String {
        describe_amount(self.measure, self.amount)
    }
}

/// Lists the limits that workers have used in the last hour.
pub async fn list(
    executor: impl PgExecutor<'_>,
    now: DateTime<Utc>,
) -> Result<Vec<UsedRateLimit>, StatementError> {
    let rows = sqlx::query_file!("src/domain/rate_limits/list.sql", now);
    let rows = rows.map(|row| UsedRateLimit {
        campaign_id: campaign_of(&row.key),
        key: row.key,
        subject: row.subject,
        measure: row.measure,
        amount: row.amount,
        available: row.available,
        waiting_tasks: row.waiting_tasks,
        waiting_since: row.waiting_since,
    });
    rows.fetch_all(executor).await.map_err(StatementError::to("list rate limits"))
}

/// Reads the campaign of a key. Names of models may have spaces, so it is counted from the end.
fn campaign_of(key: &str) -> Option<Uuid> {
    key.rsplit(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::rate_limits::RateLimit;

    #[test]
    fn a_key_names_its_campaign() {
        let campaign = Uuid::from_u128(7);
        let limit = |campaign| {
            RateLimit::new(
                Some("openai"),
                Some("my model"),
                None,
                campaign,
                (Measure::Requests, 1.0),
            )
        };
        assert_eq!(campaign_of(&limit(Some(campaign)).key), Some(campaign));
        assert_eq!(campaign_of(&limit(None).key), None);
    }
}
