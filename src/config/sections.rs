//! The sections for each component: components know their own sections instead of the whole configuration.

use std::sync::Arc;

use super::Config;
use crate::{app, jobs, tools};

impl From<&Config> for app::Sections {
    fn from(config: &Config) -> Self {
        Self {
            agents: config.agents.clone(),
            tasks: config.tasks.clone(),
            mentions: config.mentions.clone(),
            board: config.board,
            memory: config.memory.clone(),
            facts: config.facts.clone(),
            flows: config.flows.clone(),
            sessions: config.sessions.clone(),
            webhooks: config.webhooks.clone(),
            credentials: config
                .credentials()
                .map(|(on, name)| (on.to_owned(), name.to_owned()))
                .collect(),
            currency: config.prices.currency.clone(),
            time_zone: config.scheduler.time_zone.clone(),
            max_waiting: config.queue.max_waiting,
            request_timeout_secs: config.http.request_timeout_secs,
            settings: config.settings.clone(),
        }
    }
}

impl From<&Config> for tools::Sections {
    fn from(config: &Config) -> Self {
        Self {
            tasks: config.tasks.clone(),
            mentions: config.mentions.clone(),
            memory: config.memory.clone(),
            facts: config.facts.clone(),
            flows: config.flows.clone(),
            ollama: config.ollama.clone(),
            max_waiting: config.queue.max_waiting,
            request_timeout_secs: config.http.request_timeout_secs,
        }
    }
}

impl From<&Config> for jobs::Sections {
    fn from(config: &Config) -> Self {
        Self {
            data_dir: config.service.data_dir.clone(),
            worker: config.worker.clone(),
            agents: config.agents.clone(),
            sessions: config.sessions.clone(),
            compaction: config.compaction.clone(),
            tasks: config.tasks.clone(),
            mentions: config.mentions.clone(),
            board: config.board,
            memory: config.memory.clone(),
            facts: config.facts.clone(),
            audit: config.audit.clone(),
            keep: config.queue.keep.clone(),
            output_files: config.output_files,
            erasures: config.erasures.clone(),
            webhooks: config.webhooks.clone(),
            busy: config.providers,
            providers: config.provider_sections(),
            prices: config.prices.clone(),
            rate_limits: config.rate_limits.clone(),
            tools: config.into(),
            environment: config.environment.clone(),
        }
    }
}

impl From<&Arc<Config>> for jobs::Sections {
    fn from(config: &Arc<Config>) -> Self {
        config.as_ref().into()
    }
}
