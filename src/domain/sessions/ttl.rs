//! Retention of sessions: the section `[sessions]`.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;

use crate::{domain::session_summaries::ExpiryRule, settings::Checks};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Days that a session is kept after its last use, by provider. An agent's file can override it.
    pub ttl_days: BTreeMap<String, u32>,
    /// Memory of the successor of an expired session: `summary` or `fresh`.
    pub expired: ExpiryRule,
    /// Days that the summary of an expired session is kept.
    pub keep_summary_days: u32,
    /// Context size in tokens at which a conversation continues in a new session. 0: only the window limits it.
    pub rotate_at_tokens: u64,
    /// Days that a closed session is kept.
    pub keep_closed_days: u32,
    /// Days that events of the feed are kept.
    pub keep_feed_days: u32,
    /// Days that replaced versions of a campaign's texts are kept. 0: until the campaign is erased.
    pub keep_campaign_versions_days: u32,
    /// Sessions that the cleanup removes in one transaction.
    pub cleanup_batch_sessions: u16,
    /// Pause of the cleanup after each batch, in milliseconds.
    pub cleanup_pause_ms: u32,
}

const MAX_BATCH: u16 = 1_000;
const UNKNOWN_PROVIDER_TTL_DAYS: u32 = 7;
/// Below this a limit leaves no room for instructions and a summary.
const MIN_ROTATE_TOKENS: u64 = 1_000;

impl Config {
    pub fn check(&self, checks: &mut Checks<'_>) {
        for (provider, days) in &self.ttl_days {
            checks.at_least(&format!("sessions.ttl_days.{provider}"), (*days).into(), 1);
        }
        let keys = [
            ("sessions.keep_summary_days", self.keep_summary_days),
            ("sessions.keep_closed_days", self.keep_closed_days),
            ("sessions.keep_feed_days", self.keep_feed_days),
        ];
        for (key, days) in keys {
            checks.at_least(key, days.into(), 1);
        }
        let rotate_at = self.rotate_at_tokens;
        if (1..MIN_ROTATE_TOKENS).contains(&rotate_at) {
            let message = format!("is {rotate_at}, which is too small for a summary");
            let fix = format!("0, or at least {MIN_ROTATE_TOKENS}");
            checks.fail("sessions.rotate_at_tokens", message, fix);
        }
        let batch = self.cleanup_batch_sessions;
        checks.at_least("sessions.cleanup_batch_sessions", batch.into(), 1);
        if batch > MAX_BATCH {
            let message = format!("is {batch}, which would block other transactions for too long");
            checks.fail("sessions.cleanup_batch_sessions", message, format!("at most {MAX_BATCH}"));
        }
    }

    /// Returns the expiry time up to which summaries of sessions are forgotten.
    pub fn forgotten_until(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        match self.expired {
            ExpiryRule::Summary => now - TimeDelta::days(i64::from(self.keep_summary_days)),
            ExpiryRule::Fresh => now,
        }
    }

    /// Returns the expiry of a session that is used now. An agent's own number of days takes precedence.
    pub fn expires_at(
        &self,
        provider: &str,
        agent_days: Option<u32>,
        now: DateTime<Utc>,
    ) -> DateTime<Utc> {
        let of_provider = self.ttl_days.get(provider).copied();
        // A provider of a newer version is missing from the configuration.
        let days = agent_days.or(of_provider).unwrap_or(UNKNOWN_PROVIDER_TTL_DAYS);
        now + TimeDelta::days(i64::from(days))
    }
}
