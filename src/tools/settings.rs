//! Settings of the tools, and the state that a process keeps between calls.

use std::{sync::Arc, time::Duration};

use sqlx::PgPool;

use super::{concurrency::CallSlots, denials::DenialLog, question_embeddings::Meanings, wait};
use crate::{
    clock::Clock,
    domain::{
        agents::Library, facts as facts_domain, flows, memory as memory_domain,
        mentions as mentions_domain, tasks as tasks_domain,
    },
    providers::ollama,
};

/// The database and the settings that tools work with. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Tools {
    pub pool: PgPool,
    pub settings: Arc<Settings>,
}

/// Configuration sections that the tools work with.
#[derive(Debug)]
pub struct Sections {
    pub tasks: tasks_domain::Config,
    pub mentions: mentions_domain::Config,
    pub memory: memory_domain::Config,
    pub facts: facts_domain::Config,
    pub flows: flows::Config,
    pub ollama: ollama::Config,
    /// Maximum number of waiting tasks over all campaigns; 0 disables the limit.
    pub max_waiting: u64,
    pub request_timeout_secs: u64,
}

/// Settings, fixed while a process runs, and its state between calls.
#[derive(Debug)]
pub struct Settings {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) agents: Arc<Library>,
    pub(super) tasks: tasks_domain::Config,
    pub(super) mentions: mentions_domain::Config,
    pub(super) memory: memory_domain::Config,
    pub(super) facts: facts_domain::Config,
    pub(super) flows: flows::Config,
    pub meanings: Arc<Meanings>,
    /// Maximum number of waiting tasks over all campaigns; 0 disables the limit.
    pub(super) max_waiting: u64,
    /// Maximum time that one call waits for tasks.
    pub(super) longest_wait: Duration,
    pub(super) denied: DenialLog,
    pub(super) at_once: CallSlots,
}

impl Settings {
    pub fn new(sections: impl Into<Sections>, clock: Arc<dyn Clock>, agents: Arc<Library>) -> Self {
        let Sections {
            tasks,
            mentions,
            memory,
            facts,
            flows,
            ollama,
            max_waiting,
            request_timeout_secs,
        } = sections.into();
        Self {
            clock,
            agents,
            meanings: Arc::new(Meanings::new(&memory, &ollama)),
            tasks,
            mentions,
            memory,
            facts,
            flows,
            max_waiting,
            longest_wait: wait::longest(request_timeout_secs),
            denied: DenialLog::default(),
            at_once: CallSlots::default(),
        }
    }
}
