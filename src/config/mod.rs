//! Configuration: documented defaults, a file, the environment, flags.
//!
//! `config/default.toml` is both the reference and the base layer; a key that is not in it does not exist. This module only
//! assembles the sections: each is a struct beside the component that it configures, and `settings` reads and checks them.

mod print;
mod sections;

use std::path::PathBuf;

use serde::Deserialize;

pub use self::print::print;
use crate::{
    providers,
    settings::{Checks, Environment, Flags, Layers, Problems},
};

/// The documented defaults, as printed by `dalsegno config template`.
pub const TEMPLATE: &str = include_str!("../../config/default.toml");

/// The whole configuration of one process.
#[derive(Debug, Clone)]
pub struct Config {
    pub service: Service,
    pub database: crate::db::Config,
    pub worker: crate::jobs::pool::Config,
    pub queue: crate::queue::Config,
    pub agents: crate::domain::agents::Config,
    pub flows: crate::domain::flows::Config,
    pub sessions: crate::domain::sessions::Config,
    pub compaction: crate::domain::compactions::Config,
    pub tasks: crate::domain::tasks::Config,
    pub mentions: crate::domain::mentions::Config,
    pub board: crate::domain::posts::Config,
    pub memory: crate::domain::memory::Config,
    pub facts: crate::domain::facts::Config,
    pub scheduler: crate::domain::schedules::Config,
    pub audit: crate::domain::audit::Config,
    pub erasures: crate::domain::erasures::Config,
    pub webhooks: crate::domain::webhooks::Config,
    pub providers: crate::domain::busy_models::Config,
    pub ollama: providers::ollama::Config,
    pub claude: providers::claude::Config,
    pub sim: providers::sim::Config,
    pub prices: crate::domain::prices::Config,
    pub http: crate::http::Config,
    pub log: crate::telemetry::Config,
    pub traces: crate::traces::Config,
    pub shutdown: crate::shutdown::Config,
    /// The file that was read. `None` if only defaults, environment and flags apply.
    pub file: Option<PathBuf>,
    /// The environment, in which components look up the secrets that the configuration refers to by name.
    pub environment: Environment,
    /// Every setting with its origin, without secrets.
    pub settings: Vec<crate::domain::installation::Setting>,
}

/// Settings of the process as a whole.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    pub data_dir: PathBuf,
}

impl Config {
    /// Lists provider and name of each credential.
    pub fn credentials(&self) -> impl Iterator<Item = (&str, &str)> {
        self.claude.credentials.iter().map(|credential| ("claude", credential.name.as_str()))
    }

    pub fn provider_sections(&self) -> providers::Sections {
        providers::Sections {
            claude: self.claude.clone(),
            ollama: self.ollama.clone(),
            sim: self.sim.clone(),
        }
    }

    /// Reads all layers, and reports all problems of all of them together.
    pub fn load(environment: &Environment, flags: &Flags) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let layers = Layers::read(TEMPLATE, environment, flags, &mut problems);
        let config = Self::from_layers(layers, environment, &mut problems);
        match config {
            Some(config) if problems.is_empty() => Ok(config),
            _ => Err(problems.sorted()),
        }
    }

    fn from_layers(
        mut layers: Layers,
        environment: &Environment,
        problems: &mut Problems,
    ) -> Option<Self> {
        layers.reject_unknown(problems);
        let settings = print::settings(&layers);
        let service: Option<Service> = layers.section("service", problems);
        let database: Option<crate::db::Config> = layers.section("database", problems);
        let worker = layers.section("worker", problems);
        let queue: Option<crate::queue::Config> = layers.section("queue", problems);
        let agents = layers.section("agents", problems);
        let flows = layers.section("flows", problems);
        let sessions = layers.section("sessions", problems);
        let compaction = layers.section("compaction", problems);
        let tasks = layers.section("tasks", problems);
        let mentions = layers.section("mentions", problems);
        let board: Option<crate::domain::posts::Config> = layers.section("board", problems);
        let memory: Option<crate::domain::memory::Config> = layers.section("memory", problems);
        let facts: Option<crate::domain::facts::Config> = layers.section("facts", problems);
        let scheduler = layers.section("scheduler", problems);
        let audit = layers.section("audit", problems);
        let erasures = layers.section("erasures", problems);
        let webhooks = layers.section("webhooks", problems);
        let providers = layers.section("providers", problems);
        let ollama = layers.section("ollama", problems);
        let claude = layers.section("claude", problems);
        let sim = layers.section("sim", problems);
        let prices = layers.section("prices", problems);
        let http = layers.section("http", problems);
        let log = layers.section("log", problems);
        let traces = layers.section("traces", problems);
        let shutdown = layers.section("shutdown", problems);
        let service = service?;
        let mut database = database?;
        database.embedded.data_dir.clone_from(&service.data_dir);
        database.has_default_connect_timeout =
            layers.has_default_value("database.connect_timeout_secs");
        if database.url.is_some() {
            database.url_from = layers.origin("database.url");
        }
        let config = Self {
            service,
            database,
            worker: worker?,
            queue: queue?,
            agents: agents?,
            flows: flows?,
            sessions: sessions?,
            compaction: compaction?,
            tasks: tasks?,
            mentions: mentions?,
            board: board?,
            memory: memory?,
            facts: facts?,
            scheduler: scheduler?,
            audit: audit?,
            erasures: erasures?,
            webhooks: webhooks?,
            providers: providers?,
            ollama: ollama?,
            claude: claude?,
            sim: sim?,
            prices: prices?,
            http: http?,
            log: log?,
            traces: traces?,
            shutdown: shutdown?,
            file: layers.file.clone(),
            environment: environment.clone(),
            settings,
        };
        config.check(&mut Checks::new(&layers, problems));
        Some(config)
    }

    fn check(&self, checks: &mut Checks<'_>) {
        if self.service.data_dir.as_os_str().is_empty() {
            checks.fail("service.data_dir", "is empty", "a folder, for example .dalsegno");
        }
        self.database.check(checks);
        self.worker.check(checks);
        self.queue.check(checks);
        self.agents.check(checks);
        self.flows.check(checks);
        self.sessions.check(checks);
        self.compaction.check(checks);
        self.tasks.check(checks);
        self.mentions.check(checks);
        self.board.check(checks);
        self.memory.check(checks);
        self.facts.check(checks);
        self.scheduler.check(checks);
        self.audit.check(checks);
        self.webhooks.check(checks);
        self.providers.check(checks);
        check_provider("ollama", self.ollama.check(), checks);
        check_provider("claude", self.claude.check(), checks);
        check_provider("sim", self.sim.check(), checks);
        self.prices.check(checks);
        self.http.check(checks);
        self.log.check(checks);
        self.traces.check(checks);
        self.shutdown.check(checks);
        // Last, so that a pair is checked only where each of the two values is valid.
        self.check_timeouts(checks);
    }

    fn check_timeouts(&self, checks: &mut Checks<'_>) {
        let (acquire, request) =
            (self.database.acquire_timeout_secs, self.http.request_timeout_secs);
        if acquire > request {
            let keys = ["database.acquire_timeout_secs", "http.request_timeout_secs"];
            let message = format!(
                "{} = {acquire} is longer than {} = {request}: a request would time out before the database error arrives",
                keys[0], keys[1]
            );
            let fix =
                format!("{} of at most {request}, or {} of at least {acquire}", keys[0], keys[1]);
            checks.fail_pair(keys, message, fix);
        }
    }
}

/// Reports problems of a provider's section. Providers name keys within their own section only.
fn check_provider(section: &str, problems: Vec<providers::Problem>, checks: &mut Checks<'_>) {
    for problem in problems {
        checks.fail(&format!("{section}.{}", problem.key), problem.message, problem.fix);
    }
}
