//! The shared parts of a running process.

use std::sync::Arc;

use sqlx::PgPool;
use tokio::sync::Semaphore;

use crate::{
    clock::Clock,
    domain::{
        agents::{self, Library},
        context_previews::Previews,
        facts,
        findings::Examination,
        flows,
        installation::Setting,
        memory, mentions, posts,
        reruns::RerunRoutes,
        sessions, tasks, webhooks,
    },
    shutdown::Shutdown,
    telemetry::Metrics,
    tools,
    traces::Traces,
};

/// The parts that requests, jobs and tools share. Cheap to clone.
#[derive(Debug, Clone)]
pub struct App {
    pub config: Arc<Sections>,
    pub pool: PgPool,
    /// Permits for the transactions of requests; see [`App::places`].
    pub places: Arc<Semaphore>,
    pub clock: Arc<dyn Clock>,
    pub agents: Arc<Library>,
    /// Drafts of turns that are not run.
    pub previews: Previews,
    /// Routes of calls that are made again.
    pub rerun_routes: RerunRoutes,
    /// The checks of `dalsegno doctor`, for this process.
    pub examination: Examination,
    pub tools: Arc<tools::Settings>,
    pub metrics: Metrics,
    pub traces: Traces,
    pub shutdown: Shutdown,
}

impl App {
    /// Makes one permit for every two connections. A transaction of a request may wait for another system's
    /// transaction; the other half of the connections stays free meanwhile.
    pub fn transaction_permits(pool: &PgPool) -> Arc<Semaphore> {
        let n_connections = pool.options().get_max_connections() as usize;
        Arc::new(Semaphore::new((n_connections / 2).max(1)))
    }
}

/// The configuration sections that requests need.
#[derive(Debug)]
pub struct Sections {
    pub agents: agents::Config,
    pub tasks: tasks::Config,
    pub mentions: mentions::Config,
    pub board: posts::Config,
    pub memory: memory::Config,
    pub facts: facts::Config,
    pub flows: flows::Config,
    pub sessions: sessions::Config,
    pub webhooks: webhooks::Config,
    /// Provider and name of each credential.
    pub credentials: Vec<(String, String)>,
    /// The label of all amounts of money.
    pub currency: String,
    /// Time zone of days and of the nightly cleanup.
    pub time_zone: String,
    /// Limit of waiting tasks over all campaigns. 0 disables it.
    pub max_waiting: u64,
    pub request_timeout_secs: u64,
    /// Every setting with its origin, without secrets.
    pub settings: Vec<Setting>,
}
