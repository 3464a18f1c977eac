//! The chain of an agent, and the entry of it that answers the turn.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;

use crate::{
    domain::{
        agents::{self, Agent, ChainEntry},
        busy_models::BusyModel,
        failovers::{
            self, Candidate, ChainChoice, Choice, Conditions, ConversationKey, FailoverState,
            Rules, SkippedEntry,
        },
        tasks::Task,
        usage,
    },
    jobs::{Services, run_turn::error::Error},
};

/// Calls that the median latency of a model needs at least.
const MIN_CALLS: i64 = 3;

/// The chain of an agent with several models, as of when the task was read.
#[derive(Debug, Clone)]
pub struct Chain {
    pub rules: Rules,
    pub candidates: Vec<Candidate>,
    pub state: FailoverState,
    pub choice: Choice,
}

/// The rows that were read for a chain.
#[derive(Debug, Clone, Default)]
pub struct ChainRecord {
    state: FailoverState,
    /// Median latencies of the entries, by their place.
    latencies: Vec<Option<Duration>>,
}

impl Chain {
    /// Chooses the entry of the turn. `refused`: entries that have refused it already. `None`: the agent has one model.
    pub fn of(
        services: &Services,
        agent: &Agent,
        ChainRecord { state, latencies }: ChainRecord,
        (busy_models, refused): (&[BusyModel], &[SkippedEntry]),
        now: DateTime<Utc>,
    ) -> Option<Self> {
        if agent.chain.len() < 2 {
            return None;
        }
        let latencies = latencies.into_iter().chain(std::iter::repeat(None));
        let candidates: Vec<Candidate> = agent
            .chain
            .iter()
            .zip(latencies)
            .map(|(entry, latency)| {
                let (provider, model) = services.entry_route(entry);
                let is_own = |busy: &&BusyModel| {
                    busy.provider == provider.as_str() && Some(&busy.model) == model.as_ref()
                };
                Candidate {
                    busy: busy_models.iter().find(is_own).cloned(),
                    name: match &model {
                        Some(model) => format!("{provider}/{model}"),
                        None => provider.to_string(),
                    },
                    conditions: conditions(&services.agents, entry),
                    latency,
                }
            })
            .collect();
        let choice = failovers::choose(&candidates, &state, refused, now);
        Some(Self { rules: Rules { rest: rest(&services.agents) }, candidates, state, choice })
    }

    /// Returns the chain of a turn that was begun on this entry.
    pub fn on_entry(self, at: usize) -> Self {
        if at == self.choice.at {
            return self;
        }
        let choice = Choice { at, skipped: Vec::new(), is_last_resort: false };
        Self { choice, ..self }
    }

    /// Returns the entry of the turn.
    pub fn chosen(&self) -> &Candidate {
        &self.candidates[self.choice.at]
    }

    /// Returns what the turn stores about the choice.
    pub fn to_record(&self) -> ChainChoice {
        let (entry, skipped) = (self.chosen().name.clone(), self.choice.skipped.clone());
        ChainChoice { entry, skipped }
    }
}

fn conditions(config: &agents::Config, entry: &ChainEntry) -> Conditions {
    let own_limit = entry.limit_secs.and_then(TimeDelta::try_seconds);
    Conditions {
        errors: entry.errors.unwrap_or(config.fallback_after),
        limit: own_limit.unwrap_or_else(|| rest(config)),
        has_own_limit: own_limit.is_some(),
        max_charge_micros: entry.max_charge_micros,
        latency: entry.latency_secs.map(Duration::from_secs_f64),
    }
}

/// Returns the time before an entry that failed is tried again.
fn rest(config: &agents::Config) -> TimeDelta {
    let rest = i64::try_from(config.fallback_secs).ok().and_then(TimeDelta::try_seconds);
    rest.unwrap_or(TimeDelta::days(365))
}

/// Reads the failures of a task's conversation, and the latencies that its agent's chain asks for. Makes no query for an agent with one
/// model.
pub async fn load(
    conn: &mut PgConnection,
    services: &Services,
    task: &Task,
) -> Result<ChainRecord, Error> {
    let catalogue = services.library.current();
    let chain = match catalogue.agent(&task.agent) {
        Ok(agent) if agent.chain.len() > 1 => &agent.chain,
        _ => return Ok(ChainRecord::default()),
    };
    let state = failovers::find(&mut *conn, of(task)).await?;
    let since = services.clock.now() - rest(&services.agents);
    let mut latencies = Vec::new();
    for entry in chain {
        let route = entry.latency_secs.map(|_| services.entry_route(entry));
        latencies.push(match route {
            Some((provider, Some(model))) => {
                let of_model = (provider.as_str(), model.as_str());
                usage::median_latency(&mut *conn, of_model, since, MIN_CALLS).await?
            }
            _ => None,
        });
    }
    Ok(ChainRecord { state, latencies })
}

pub fn of(task: &Task) -> ConversationKey<'_> {
    ConversationKey { campaign_id: task.campaign_id, agent: &task.agent, instance: &task.instance }
}
