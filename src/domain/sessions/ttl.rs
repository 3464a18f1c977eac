//! How long a session is kept after its last use.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;

use crate::config::Checks;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub claude_ttl_days: u32,
    pub ollama_ttl_days: u32,
    pub sim_ttl_days: u32,
}

impl Config {
    pub fn check(&self, checks: &mut Checks<'_>) {
        let keys = [
            ("sessions.claude_ttl_days", self.claude_ttl_days),
            ("sessions.ollama_ttl_days", self.ollama_ttl_days),
            ("sessions.sim_ttl_days", self.sim_ttl_days),
        ];
        for (key, days) in keys {
            checks.at_least(key, days.into(), 1);
        }
    }

    /// When a session that is used now expires. An agent's own number of days goes first.
    pub fn expires_at(
        &self,
        provider: &str,
        agent_days: Option<u32>,
        now: DateTime<Utc>,
    ) -> DateTime<Utc> {
        let days = agent_days.unwrap_or(match provider {
            "claude" => self.claude_ttl_days,
            "ollama" => self.ollama_ttl_days,
            _ => self.sim_ttl_days,
        });
        now + TimeDelta::days(i64::from(days))
    }
}
