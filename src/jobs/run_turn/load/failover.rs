//! The choice between an agent's provider and its fallback.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;

use crate::{
    domain::{
        agents,
        failovers::{self, ConversationKey, FailoverState, ProviderSide, Rules},
        tasks::Task,
    },
    jobs::{Services, run_turn::error::Error},
};

/// Failover of a conversation whose agent has a fallback.
#[derive(Debug, Clone, Copy)]
pub struct Failover {
    pub rules: Rules,
    pub standing: Option<FailoverState>,
    pub side: ProviderSide,
}

impl Failover {
    pub fn of(
        config: &agents::Config,
        standing: Option<FailoverState>,
        now: DateTime<Utc>,
    ) -> Self {
        let rest = i64::try_from(config.fallback_secs).ok().and_then(TimeDelta::try_seconds);
        let rules =
            Rules { after: config.fallback_after, rest: rest.unwrap_or(TimeDelta::days(365)) };
        Self { rules, standing, side: rules.side(standing, now) }
    }

    pub fn is_long(&self, pause: Duration) -> bool {
        TimeDelta::from_std(pause).is_ok_and(|pause| pause >= self.rules.rest)
    }
}

/// Reads the failover state of a task's conversation. Without a fallback it makes no query.
pub async fn load_standing(
    conn: &mut PgConnection,
    services: &Services,
    task: &Task,
) -> Result<Option<FailoverState>, Error> {
    let catalogue = services.library.current();
    match catalogue.agent(&task.agent) {
        Ok(agent) if agent.fallback.is_some() => Ok(failovers::find(conn, of(task)).await?),
        _ => Ok(None),
    }
}

pub fn of(task: &Task) -> ConversationKey<'_> {
    ConversationKey { campaign_id: task.campaign_id, agent: &task.agent, instance: &task.instance }
}
