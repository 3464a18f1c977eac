//! Shared services of all handlers, built once per process, before it claims a job.

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::{
    agent_checks::ignored_key_reasons,
    busy,
    calibrations::Calibrations,
    deliver_webhook,
    endpoint::Endpoint,
    histories::Histories,
    pool,
    rate_limits::RateLimits,
    run_turn::{crash_points::CrashPoints, metrics},
    stored_texts::StoredTexts,
};
use crate::{
    clock::Clock,
    domain::{
        agents, audit, busy_models, compactions, erasures, facts, memory, mentions, posts,
        prices::{self, Cost, Price},
        rate_limits, sessions, task_files, tasks,
        usage::Tokens,
        webhooks,
    },
    providers::{
        self, Provider,
        claude::{self, Claude, HostEnvironment},
    },
    queue::{self, HoldUntil, JobError},
    settings::Environment,
    tools,
    traces::Traces,
};

/// Wait before another look at the broken file of an agent.
pub(super) const REPAIR_PAUSE: Duration = Duration::from_secs(10);

/// The configuration sections that jobs need.
#[derive(Debug)]
pub struct Sections {
    pub data_dir: PathBuf,
    pub worker: pool::Config,
    pub agents: agents::Config,
    pub sessions: sessions::Config,
    pub compaction: compactions::Config,
    pub tasks: tasks::Config,
    pub mentions: mentions::Config,
    pub board: posts::Config,
    pub memory: memory::Config,
    pub facts: facts::Config,
    pub audit: audit::Config,
    pub keep: queue::Keep,
    pub output_files: task_files::Config,
    pub erasures: erasures::Config,
    pub webhooks: webhooks::Config,
    pub busy: busy_models::Config,
    pub providers: providers::Sections,
    pub prices: prices::Config,
    pub rate_limits: rate_limits::Config,
    pub tools: tools::Sections,
    pub environment: Environment,
}

/// Shared by all runs of a process as an `Arc`. Holds no pool: a run brings its own.
#[derive(Debug)]
pub struct Services {
    /// The API shows the same library.
    pub library: Arc<agents::Library>,
    /// Defaults for agents whose files name no provider or model.
    pub agents: agents::Config,
    pub providers: providers::Available,
    pub busy: busy_models::Config,
    pub sessions: sessions::Config,
    pub compaction: compactions::Config,
    pub tasks: tasks::Config,
    pub mentions: mentions::Config,
    pub board: posts::Config,
    pub memory: memory::Config,
    pub facts: facts::Config,
    pub audit: audit::Config,
    pub output_files: task_files::Config,
    /// Retention of the queue's rows, and of idempotency keys of operations.
    pub keep: queue::Keep,
    /// Settings of the tools that turns call, in this process or over its endpoint.
    pub tools: Arc<tools::Settings>,
    /// Address at which child processes of turns reach these tools.
    pub endpoint: Endpoint,
    pub prices: prices::Config,
    /// The shares of rate limits that this process has.
    pub(super) rate_limits: Arc<RateLimits>,
    pub calibrations: Calibrations,
    pub(super) webhooks: deliver_webhook::Sender,
    pub(super) histories: Histories,
    pub(super) stored_texts: StoredTexts,
    pub clock: Arc<dyn Clock>,
    pub traces: Traces,
    /// The environment, in which variables that agents' files name are looked up.
    pub(super) environment: Environment,
    /// Folder of the campaigns' workspaces.
    pub(super) workspaces: PathBuf,
    /// The file with the key that signs receipts of erasures.
    pub(super) erasure_key: PathBuf,
    pub(super) crash_points: CrashPoints,
}

/// An error that keeps a process from starting its work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Agents(#[from] agents::Problems),
    #[error("cannot set up the providers: {0}")]
    Providers(#[from] providers::Error),
    #[error("claude.credentials: {0}")]
    Credential(#[from] claude::CredentialError),
    #[error("cannot find the absolute path of service.data_dir `{}`; set an absolute path", folder.display())]
    Folder {
        folder: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl Services {
    /// Builds the services. `program` is one of our binaries: it guards the processes that the Claude CLI starts.
    pub fn build(
        sections: impl Into<Sections>,
        clock: Arc<dyn Clock>,
        program: PathBuf,
        traces: Traces,
    ) -> Result<Arc<Self>, Error> {
        metrics::describe();
        let sections = sections.into();
        busy::describe(sections.providers.names());
        tools::describe();
        let services = Self::build_quietly(sections, clock, program, traces)?;
        services.warn();
        metrics::begin(services.models());
        Ok(services)
    }

    /// Builds the services of a process that runs no jobs: without warnings for operators, and without metrics.
    pub fn build_quietly(
        sections: impl Into<Sections>,
        clock: Arc<dyn Clock>,
        program: PathBuf,
        traces: Traces,
    ) -> Result<Arc<Self>, Error> {
        let config = sections.into();
        let claude = claude(&config, &clock, program)?;
        let variable = |name: &str| config.environment.get(name).map(str::to_owned);
        let providers = providers::Available::new(claude, &config.providers, &variable)?;
        let library = Arc::new(agents::Library::open(&config.agents)?);
        Ok(Arc::new(Self {
            tools: Arc::new(tools::Settings::new(config.tools, clock.clone(), library.clone())),
            endpoint: Endpoint::default(),
            library,
            agents: config.agents,
            providers,
            busy: config.busy,
            sessions: config.sessions,
            compaction: config.compaction,
            tasks: config.tasks,
            mentions: config.mentions,
            board: config.board,
            memory: config.memory,
            facts: config.facts,
            audit: config.audit,
            output_files: config.output_files,
            keep: config.keep,
            prices: config.prices,
            rate_limits: Arc::new(RateLimits::new(config.rate_limits)),
            calibrations: Calibrations::default(),
            webhooks: deliver_webhook::Sender::new(&config.webhooks),
            histories: Histories::new(config.worker.histories_mb),
            stored_texts: StoredTexts::default(),
            clock,
            traces,
            environment: config.environment,
            workspaces: absolute(config.data_dir.join("workspaces"))?,
            erasure_key: config.erasures.key_file(&config.data_dir),
            #[cfg(feature = "test-fakes")]
            crash_points: CrashPoints::armed(
                config.worker.crash_turns_at,
                config.worker.fail_turns_at,
            ),
            #[cfg(not(feature = "test-fakes"))]
            crash_points: CrashPoints::default(),
        }))
    }

    /// Renews the shares of rate limits, until `stop`.
    pub async fn renew_rate_limits(&self, pool: &PgPool, stop: &CancellationToken) {
        self.rate_limits.run(pool, &*self.clock, stop).await;
    }

    /// Returns the number of conversations that this process has cached.
    #[cfg(feature = "test-fakes")]
    pub fn n_cached_conversations(&self) -> usize {
        self.histories.n_views()
    }

    /// Returns the provider and the model of the first entry of an agent's chain.
    pub fn route(&self, agent: &agents::Agent) -> (agents::Provider, Option<String>) {
        self.entry_route(agent.chain.first().unwrap_or(&agents::ChainEntry::default()))
    }

    /// Returns the provider and the model of an entry of a chain.
    pub fn entry_route(&self, entry: &agents::ChainEntry) -> (agents::Provider, Option<String>) {
        let (provider, model) = entry.resolve(&self.agents);
        let usual = || self.providers.find(provider.as_str())?.default_model();
        let model = model.or_else(usual).map(str::to_owned);
        (provider.clone(), model)
    }

    /// Lists the models that agents' files name, each with its provider.
    fn models(&self) -> Vec<(agents::Provider, String)> {
        let catalogue = self.library.current();
        let entries = catalogue.agents().flat_map(|agent| &agent.chain);
        let named = entries.map(|entry| self.entry_route(entry));
        named.filter_map(|(provider, model)| Some((provider, model?))).collect()
    }

    /// Finds the configured price of a model, by the requested name or by another name of the same model.
    pub fn price(&self, provider: &str, model: &str) -> Option<&Price> {
        let own = self.prices.of(provider, model);
        own.or_else(|| {
            let answers = self.providers.find(provider)?;
            let mut of_provider = self.prices.models.iter().filter(|it| it.provider == provider);
            of_provider.find(|price| answers.is_same_model(&price.model, model))
        })
    }

    /// Computes the cost of a call at the configured price.
    pub fn cost(&self, provider: &str, model: &str, tokens: Tokens) -> Cost {
        let price = self.price(provider, model);
        Cost {
            micros: price.map_or(0, |price| price.cost_micros(tokens)),
            price: price.map(Price::to_ledger_json),
        }
    }

    /// Logs problems that the operator should know before the first task arrives.
    fn warn(&self) {
        let catalogue = self.library.current();
        let (mut simulated, mut unpriced) = (Vec::new(), Vec::new());
        let capabilities = |name: &str| self.providers.find(name).map(Provider::capabilities);
        for agent in catalogue.agents() {
            let routes: Vec<_> = agent.chain.iter().map(|entry| self.entry_route(entry)).collect();
            let first = routes.first().map(|(provider, _)| provider.as_str());
            if first.and_then(|name| self.providers.find(name)).is_some_and(Provider::is_simulation)
            {
                simulated.push(agent.name.as_str());
            }
            for why in ignored_key_reasons(agent, &self.agents, &capabilities) {
                tracing::warn!(agent = agent.name, "{why}");
            }
            for (entry, route) in agent.chain.iter().zip(&routes) {
                if let Some(why) = self.unusable_reason(agent, route) {
                    let model = entry.name(&self.agents);
                    tracing::warn!(
                        agent = agent.name,
                        model,
                        "tasks of this agent fail on this model: {why}"
                    );
                }
            }
            if routes.iter().any(|route| self.is_unpriced(route)) {
                unpriced.push(agent.name.as_str());
            }
        }
        if !simulated.is_empty() {
            tracing::warn!(
                agents = simulated.join(", "),
                "these agents use the simulation, which calls no model: set agents.provider, or provider in their files"
            );
        }
        if !unpriced.is_empty() {
            tracing::warn!(
                agents = unpriced.join(", "),
                "prices.models has no price for the models of these agents: a budget in money is charged the cost that Claude Code reports, and reserves nothing before the first turn"
            );
        }
    }

    /// Returns the reason why no turn of an agent can succeed on this route, if there is one.
    fn unusable_reason(
        &self,
        agent: &agents::Agent,
        (provider, model): &(agents::Provider, Option<String>),
    ) -> Option<&'static str> {
        let variable = |name: &str| self.environment.get(name).map(str::to_owned);
        let wants_everything =
            agent.grants.permission_mode == agents::PermissionMode::BypassPermissions;
        let Some(provider) = self.providers.find(provider.as_str()) else {
            return Some("this version does not support the provider in its file");
        };
        match model {
            None => Some("its file names a provider without a model"),
            Some(_) => provider.unusable_reason(wants_everything, &variable),
        }
    }

    fn is_unpriced(&self, (provider, model): &(agents::Provider, Option<String>)) -> bool {
        let answers = self.providers.find(provider.as_str());
        let price = model.as_deref().and_then(|model| self.price(provider.as_str(), model));
        answers.is_some_and(Provider::reports_costs) && price.is_none()
    }
}

/// Sets up Claude with the secrets of its credentials.
fn claude(config: &Sections, clock: &Arc<dyn Clock>, program: PathBuf) -> Result<Claude, Error> {
    let own = |name: &str| config.environment.get(name).map(str::to_owned);
    let named = config.agents.variables.iter().filter_map(|name| own(name));
    let credentials =
        config.providers.claude.credentials.iter().map(|credential| credential.resolve(own));
    let surroundings = HostEnvironment {
        credentials: credentials.collect::<Result<_, _>>()?,
        secrets: named.map(Into::into).collect(),
        sessions: absolute(config.data_dir.join("claude"))?,
        guard: program,
        passed: config.environment.only(&config.providers.claude.pass_variables),
        clock: Arc::clone(clock),
    };
    Ok(Claude::new(config.providers.claude.clone(), surroundings))
}

fn absolute(folder: PathBuf) -> Result<PathBuf, Error> {
    std::path::absolute(&folder).map_err(|source| Error::Folder { folder, source })
}

/// Ends a job whose agent cannot be used: it is snoozed while a file is broken, and fails if the agent is unknown.
pub(super) fn no_agent(error: agents::LookupError) -> JobError {
    match error {
        agents::LookupError::Broken { .. } => {
            JobError::snooze(HoldUntil::After(REPAIR_PAUSE))(error)
        }
        agents::LookupError::Unknown { .. } => JobError::fail(error),
    }
}
