//! The rate limits that are in use.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;
use uuid::Uuid;

use super::{Measure, describe_amount, with_separators};
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

    /// Formats what further calls may use now: `2 of 30 requests`.
    pub fn left_words(&self) -> String {
        let (one, many) = match self.measure {
            Measure::Requests => ("request", "requests"),
            Measure::InputTokens => ("input token", "input tokens"),
            Measure::OutputTokens => ("output token", "output tokens"),
            Measure::ConcurrentCalls => ("concurrent call", "concurrent calls"),
        };
        let (left, most) = (self.available.max(0.0).floor(), self.most_at_once().floor());
        let unit = if most < 2.0 { one } else { many };
        let free = format!("{} of {} {unit}", with_separators(left), with_separators(most));
        match self.available {
            debt if debt <= -1.0 => {
                format!("{free}; {} more were used than allowed", with_separators(-debt))
            }
            _ => free,
        }
    }

    /// Formats how fast it fills again: `1 more every 2 s`. `None` for a limit of calls at once, which fills with their ends.
    pub fn flow_words(&self) -> Option<String> {
        let per_sec = self.amount / 60.0;
        match self.measure {
            Measure::ConcurrentCalls => None,
            _ if per_sec >= 1.0 => Some(format!("{} more per second", with_separators(per_sec))),
            _ if per_sec > 0.0 => Some(format!("1 more every {:.0} s", 1.0 / per_sec)),
            _ => None,
        }
    }

    /// Returns the amount that calls may use at one moment: of a limit per minute, what flows in within 3 s. `list.sql` has the same.
    fn most_at_once(&self) -> f64 {
        match self.measure {
            Measure::ConcurrentCalls => self.amount,
            _ => (self.amount / 20.0).max(1.0),
        }
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
    fn the_rest_of_a_limit_has_its_unit_and_its_refill() {
        let words = |measure, amount, available| {
            let limit = UsedRateLimit {
                key: String::new(),
                subject: String::new(),
                measure,
                amount,
                available,
                campaign_id: None,
                waiting_tasks: 0,
                waiting_since: None,
            };
            (limit.left_words(), limit.flow_words().unwrap_or_default())
        };
        let pair = |left: &str, flow: &str| (left.to_owned(), flow.to_owned());
        assert_eq!(
            words(Measure::Requests, 600.0, 6.7),
            pair("6 of 30 requests", "10 more per second")
        );
        assert_eq!(words(Measure::Requests, 6.0, 0.4), pair("0 of 1 request", "1 more every 10 s"));
        assert_eq!(
            words(Measure::InputTokens, 1_200_000.0, -2_000.0),
            pair(
                "0 of 60,000 input tokens; 2,000 more were used than allowed",
                "20,000 more per second"
            )
        );
        assert_eq!(words(Measure::ConcurrentCalls, 4.0, 1.0), pair("1 of 4 concurrent calls", ""));
    }

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
