//! Rate limits: requests and tokens per minute, and concurrent calls, shared by all workers.
//!
//! The migration that creates `dalsegno.rate_limits` describes buckets, leases and waits. Workers call models within the shares that they
//! have leased ([`lease()`]); tasks that find no share wait ([`wait()`]), and the leases of all workers serve them.

mod config;
mod lease;
mod list;
mod waits;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use self::{
    config::{Config, Rule},
    lease::{Lease, WantedShare, lease, tend},
    list::{UsedRateLimit, list},
    waits::{Grant, NewWait, RateLimitWait, count_waiting, expected_wait, wait, wait_of},
};

/// The amount that a limit counts.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = RateLimitMeasure)]
pub enum Measure {
    Requests,
    InputTokens,
    OutputTokens,
    ConcurrentCalls,
}

/// One limit of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RateLimit {
    /// Identity among all workers.
    pub key: String,
    /// Provider, model, credential or campaign, as explanations name it.
    pub subject: String,
    pub measure: Measure,
    /// Per minute; of concurrent calls, at once.
    pub amount: f64,
    /// True for a limit of one provider or one credential over all campaigns: the provider may know it, and pause it.
    #[serde(skip)]
    pub is_of_provider: bool,
}

/// The properties of a call that decide its limits.
#[derive(Debug, Clone, Copy)]
pub struct CallScope<'a> {
    pub provider: &'a str,
    pub model: &'a str,
    pub credential: Option<&'a str>,
    pub campaign_id: Uuid,
}

impl Measure {
    pub const ALL: [Self; 4] =
        [Self::Requests, Self::InputTokens, Self::OutputTokens, Self::ConcurrentCalls];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::InputTokens => "input_tokens",
            Self::OutputTokens => "output_tokens",
            Self::ConcurrentCalls => "concurrent_calls",
        }
    }
}

impl RateLimit {
    /// Builds a limit. `None` among the selectors stands for all of its kind.
    pub fn new(
        provider: Option<&str>,
        model: Option<&str>,
        credential: Option<&str>,
        campaign: Option<Uuid>,
        (measure, amount): (Measure, f64),
    ) -> Self {
        let campaign_id = campaign.map(|id| id.to_string());
        let selected = [provider, model, credential, campaign_id.as_deref()];
        let key = selected.map(|selected| selected.unwrap_or("*")).join(" ");
        let named = match (model, credential, provider) {
            (Some(model), ..) => Some(format!("`{model}`")),
            (None, Some(credential), _) => Some(format!("the credential `{credential}`")),
            (None, None, Some(provider)) => Some(format!("the provider `{provider}`")),
            (None, None, None) => None,
        };
        let subject = match (named, campaign) {
            (Some(named), Some(_)) => format!("{named} in its campaign"),
            (Some(named), None) => named,
            (None, Some(_)) => "its campaign".to_owned(),
            (None, None) => "all calls".to_owned(),
        };
        let key = format!("{key} {}", measure.as_str());
        let is_of_provider = campaign.is_none() && (provider.is_some() || credential.is_some());
        Self { key, subject, measure, amount, is_of_provider }
    }

    /// Formats the reason of a wait.
    pub fn describe_wait(&self) -> String {
        describe_wait(&self.subject, (self.measure, self.amount))
    }
}

fn describe_wait(subject: &str, (measure, amount): (Measure, f64)) -> String {
    format!("waiting for {subject}: {}", describe_amount(measure, amount))
}

fn describe_amount(measure: Measure, amount: f64) -> String {
    let amount = with_separators(amount);
    let unit = match measure {
        Measure::Requests => "requests per minute",
        Measure::InputTokens => "input tokens per minute",
        Measure::OutputTokens => "output tokens per minute",
        Measure::ConcurrentCalls => "concurrent calls",
    };
    format!("{amount} {unit}")
}

/// Formats `20000` as `20,000`.
fn with_separators(amount: f64) -> String {
    let digits = format!("{amount:.0}");
    let n_digits = digits.len();
    let separated = digits.chars().enumerate().map(|(at, digit)| {
        let is_start = at > 0 && (n_digits - at) % 3 == 0;
        if is_start { format!(",{digit}") } else { digit.to_string() }
    });
    separated.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_names_the_limit_and_its_amount() {
        let limit = |model, campaign, measure| {
            RateLimit::new(Some("openai"), model, None, campaign, measure)
        };
        let tokens = limit(Some("gpt-5"), None, (Measure::InputTokens, 20_000.0));
        assert_eq!(tokens.key, "openai gpt-5 * * input_tokens");
        assert_eq!(tokens.describe_wait(), "waiting for `gpt-5`: 20,000 input tokens per minute");
        let calls = limit(None, Some(Uuid::nil()), (Measure::ConcurrentCalls, 4.0));
        assert_eq!(
            calls.describe_wait(),
            "waiting for the provider `openai` in its campaign: 4 concurrent calls"
        );
    }

    #[test]
    fn thousands_are_separated() {
        let shown = [0.0, 60.0, 999.0, 1000.0, 1_234_567.0].map(with_separators);
        assert_eq!(shown, ["0", "60", "999", "1,000", "1,234,567"]);
    }
}
