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
    domain::agents::Provider,
    providers,
    settings::{Checks, Environment, Flags, Layers, Problems},
};

/// The documented defaults, as printed by `dalsegno config template`.
pub const TEMPLATE: &str = include_str!("../../config/default.toml");

/// Section with the endpoints below it.
const PROVIDERS: &str = "providers";

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
    pub output_files: crate::domain::task_files::Config,
    pub erasures: crate::domain::erasures::Config,
    pub webhooks: crate::domain::webhooks::Config,
    pub providers: crate::domain::busy_models::Config,
    pub ollama: providers::ollama::Config,
    pub claude: providers::claude::Config,
    pub sim: providers::sim::Config,
    /// The sections `[providers.NAME]`.
    pub endpoints: Vec<providers::endpoint::Config>,
    pub prices: crate::domain::prices::Config,
    pub rate_limits: crate::domain::rate_limits::Config,
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

/// Reads all layers without a look at their values, for the origins of keys.
pub fn layers(environment: &Environment, flags: &Flags, problems: &mut Problems) -> Layers {
    Layers::read(TEMPLATE, environment, flags, problems)
}

impl Config {
    /// Lists provider and name of each credential.
    pub fn credentials(&self) -> impl Iterator<Item = (&str, &str)> {
        let credentials = self.claude.credentials.iter();
        credentials.map(|credential| (providers::claude::NAME, credential.name.as_str()))
    }

    pub fn provider_sections(&self) -> providers::Sections {
        providers::Sections {
            claude: self.claude.clone(),
            ollama: self.ollama.clone(),
            sim: self.sim.clone(),
            endpoints: self.endpoints.clone(),
        }
    }

    /// Reads all layers, and reports all problems of all of them together.
    pub fn load(environment: &Environment, flags: &Flags) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let layers = layers(environment, flags, &mut problems);
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
        let output_files: Option<crate::domain::task_files::Config> =
            layers.section("output_files", problems);
        let erasures = layers.section("erasures", problems);
        let webhooks = layers.section("webhooks", problems);
        let providers = layers.section("providers", problems);
        let ollama = layers.section("ollama", problems);
        let claude = layers.section("claude", problems);
        let sim = layers.section("sim", problems);
        let endpoints = endpoints(&mut layers, problems);
        let prices = layers.section("prices", problems);
        let rate_limits: Option<crate::domain::rate_limits::Config> =
            layers.section("rate_limits", problems);
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
        let mut config = Self {
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
            output_files: output_files?,
            erasures: erasures?,
            webhooks: webhooks?,
            providers: providers?,
            ollama: ollama?,
            claude: claude?,
            sim: sim?,
            endpoints: endpoints?,
            prices: prices?,
            rate_limits: rate_limits?,
            http: http?,
            log: log?,
            traces: traces?,
            shutdown: shutdown?,
            file: layers.file.clone(),
            environment: environment.clone(),
            settings,
        };
        config.apply_endpoints();
        config.check(&mut Checks::new(&layers, problems));
        Some(config)
    }

    /// Tells other sections about the endpoints: agents may name them, and their sessions have a lifetime.
    fn apply_endpoints(&mut self) {
        let sections = self.provider_sections();
        // A name that cannot be one is a problem of its section.
        let names = sections.names().filter_map(|name| Provider::parse(name).ok());
        self.agents.known_providers = names.collect();
        let holds_session = |name: &&Provider| {
            sections.capabilities(name.as_str()).is_some_and(|it| it.holds_session)
        };
        let known = self.agents.known_providers.iter();
        self.agents.session_holders = known.filter(holds_session).cloned().collect();
        for endpoint in &self.endpoints {
            self.sessions.ttl_days.insert(endpoint.name.clone(), endpoint.ttl_days);
        }
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
        self.output_files.check(checks);
        self.webhooks.check(checks);
        self.providers.check(checks);
        check_provider("ollama", self.ollama.check(), checks);
        check_provider("claude", self.claude.check(), checks);
        check_provider("sim", self.sim.check(), checks);
        for endpoint in &self.endpoints {
            check_provider(&format!("providers.{}", endpoint.name), endpoint.check(), checks);
        }
        self.check_default_model(checks);
        self.prices.check(checks);
        self.rate_limits.check(checks);
        self.http.check(checks);
        self.log.check(checks);
        self.traces.check(checks);
        self.shutdown.check(checks);
        // Last, so that a pair is checked only where each of the two values is valid.
        self.check_timeouts(checks);
    }

    /// Checks that the model is not the one of the default provider, if another provider is set.
    fn check_default_model(&self, checks: &mut Checks<'_>) {
        let provider = self.agents.provider.as_str();
        let sections = self.provider_sections();
        if self.agents.model == providers::sim::MODEL
            && let Some(example) = sections.example_model(provider)
        {
            let message = format!(
                "`{}` is a model of the simulation, but agents.provider is {provider}",
                self.agents.model
            );
            checks.fail("agents.model", message, format!("agents.model = \"{example}\""));
        }
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

/// Reads the sections `[providers.NAME]`.
fn endpoints(
    layers: &mut Layers,
    problems: &mut Problems,
) -> Option<Vec<providers::endpoint::Config>> {
    let sections = layers.named_sections(PROVIDERS);
    let read = sections.iter().map(|section| {
        let config: providers::endpoint::Config = layers.section(section, problems)?;
        let name = section.trim_start_matches(PROVIDERS).trim_start_matches('.').to_owned();
        Some(providers::endpoint::Config { name, ..config })
    });
    read.collect()
}

/// Reports problems of a provider's section. Providers name keys within their own section only.
fn check_provider(section: &str, problems: Vec<providers::Problem>, checks: &mut Checks<'_>) {
    for problem in problems {
        checks.fail(&format!("{section}.{}", problem.key), problem.message, problem.fix);
    }
}
