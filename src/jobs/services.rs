//! What handlers need beside the job and the database: built once per process, before it claims anything.

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use super::{
    busy, calibrations::Calibrations, compact_session::Cost, deliver_webhook, endpoint::Endpoint,
    histories::Histories, purge, run_turn,
};
use crate::{
    clock::Clock,
    config::{Config, Environment},
    domain::{
        agents, audit, busy_models, compactions, facts, memory, mentions,
        prices::{self, Price},
        sessions::{self, resolve::Mode},
        tasks,
        usage::Tokens,
    },
    providers::{
        self,
        claude::{self, Claude, Surroundings},
    },
    queue::{JobError, Until},
    tools,
    traces::Traces,
};

/// Between two looks at the broken file of an agent.
const REPAIR_PAUSE: Duration = Duration::from_secs(60);

/// Shared by all runs of a process as an `Arc`. Holds no pool: a run brings its own.
#[derive(Debug)]
pub struct Services {
    /// Also what the API shows.
    pub library: Arc<agents::Library>,
    /// Who answers for agents whose files do not say.
    pub agents: agents::Config,
    pub providers: providers::Available,
    pub busy: busy_models::Config,
    pub sessions: sessions::Config,
    pub compaction: compactions::Config,
    pub tasks: tasks::Config,
    pub mentions: mentions::Config,
    pub memory: memory::Config,
    pub facts: facts::Config,
    pub audit: audit::Config,
    /// Of turns, in this process or through the service.
    pub tools: Arc<tools::Settings>,
    /// Where the second way leads.
    pub endpoint: Endpoint,
    pub prices: prices::Config,
    pub calibrations: Calibrations,
    pub(super) webhooks: deliver_webhook::Sender,
    pub(super) histories: Histories,
    pub clock: Arc<dyn Clock>,
    pub traces: Traces,
    /// Where what agents' files only name is looked up.
    pub(super) environment: Environment,
    /// One folder for each campaign whose agents have been granted one is made in it.
    pub(super) workspaces: PathBuf,
    /// The file with the key that signs receipts of erasures.
    pub(super) erasure_key: PathBuf,
    pub(super) crash_points: run_turn::CrashPoints,
}

/// Why a process cannot do its work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Agents(#[from] agents::Problems),
    #[error("setting up the providers: {0}")]
    Providers(#[from] providers::Error),
    #[error("claude.credentials: {0}")]
    Login(#[from] claude::CredentialError),
    #[error("service.data_dir: `{}` has no absolute path; name another folder", folder.display())]
    Folder {
        folder: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl Services {
    /// `program` is one of our binaries: it guards what the Claude CLI starts.
    pub fn build(
        config: &Config,
        clock: Arc<dyn Clock>,
        program: PathBuf,
        traces: Traces,
    ) -> Result<Arc<Self>, Error> {
        run_turn::describe();
        busy::describe();
        purge::begin_counts();
        tools::describe();
        let claude = claude(config, &clock, program)?;
        let library = Arc::new(agents::Library::open(&config.agents)?);
        let services = Self {
            tools: Arc::new(tools::Settings::of(config, clock.clone(), library.clone())),
            endpoint: Endpoint::default(),
            library,
            agents: config.agents.clone(),
            providers: providers::Available::new(claude, &config.ollama, &config.sim)?,
            busy: config.providers,
            sessions: config.sessions.clone(),
            compaction: config.compaction.clone(),
            tasks: config.tasks.clone(),
            mentions: config.mentions.clone(),
            memory: config.memory.clone(),
            facts: config.facts.clone(),
            audit: config.audit.clone(),
            prices: config.prices.clone(),
            calibrations: Calibrations::default(),
            webhooks: deliver_webhook::Sender::new(&config.webhooks),
            histories: Histories::new(config.worker.histories_mb),
            clock,
            traces,
            environment: config.environment.clone(),
            workspaces: absolute(config.service.data_dir.join("workspaces"))?,
            erasure_key: config.erasures.key_file(&config.service.data_dir),
            #[cfg(feature = "test-fakes")]
            crash_points: run_turn::CrashPoints::armed(
                config.worker.crash_turns_at,
                config.worker.fail_turns_at,
            ),
            #[cfg(not(feature = "test-fakes"))]
            crash_points: run_turn::CrashPoints::default(),
        };
        services.warn();
        run_turn::begin_metrics(&services);
        Ok(Arc::new(services))
    }

    /// Who answers for this agent, and with which model.
    pub fn route(&self, agent: &agents::Agent) -> (agents::Provider, Option<String>) {
        let provider = agent.provider.unwrap_or(self.agents.provider);
        self.with_model(provider, agent.model.clone())
    }

    /// The same for the one that takes over.
    pub fn fallback_route(
        &self,
        fallback: &agents::Fallback,
    ) -> (agents::Provider, Option<String>) {
        self.with_model(fallback.provider, fallback.model.clone())
    }

    fn with_model(
        &self,
        provider: agents::Provider,
        model: Option<String>,
    ) -> (agents::Provider, Option<String>) {
        let model = model.or_else(|| match provider {
            provider if provider == self.agents.provider => Some(self.agents.model.clone()),
            // The simulation takes any name for one of its models.
            agents::Provider::Sim => Some("sim-1".to_owned()),
            _ => None,
        });
        (provider, model)
    }

    /// The configured price of a model: under the name that was asked for, or another of the same model.
    pub fn price(&self, provider: &str, model: &str) -> Option<&Price> {
        let mut of_provider = self.prices.models.iter().filter(|price| price.provider == provider);
        let is_same = |price: &&Price| {
            claude::is_same_model(&price.model, model) || claude::is_same_model(model, &price.model)
        };
        let is_claude = provider == agents::Provider::Claude.as_str();
        let own = self.prices.of(provider, model);
        own.or_else(|| of_provider.find(is_same).filter(|_| is_claude))
    }

    /// What a call costs at the configured price.
    pub fn cost(&self, provider: &str, model: &str, tokens: Tokens) -> Cost {
        let price = self.price(provider, model);
        Cost {
            micros: price.map_or(0, |price| price.cost_micros(tokens)),
            price: price.map(Price::frozen),
        }
    }

    /// What the operator should know before the first task comes.
    fn warn(&self) {
        let catalogue = self.library.current();
        let (mut simulated, mut unpriced) = (Vec::new(), Vec::new());
        for agent in catalogue.agents() {
            let own = self.route(agent);
            if own.0 == agents::Provider::Sim {
                simulated.push(agent.name.as_str());
            }
            if let Some(why) = why_not_warm(agent, own.0, self.providers.claude().config()) {
                tracing::warn!(agent = agent.name, "{why}");
            }
            if let Some(why) = self.hindrance(agent, &own) {
                tracing::warn!(agent = agent.name, "tasks of this agent will fail: {why}");
            }
            let other = agent.fallback.as_ref().map(|fallback| self.fallback_route(fallback));
            if let Some(why) = other.as_ref().and_then(|route| self.hindrance(agent, route)) {
                let provider = "its fallback_provider cannot take over";
                tracing::warn!(agent = agent.name, "{provider}: {why}");
            }
            let routes = [Some(&own), other.as_ref()].into_iter().flatten();
            if routes.into_iter().any(|route| self.is_unpriced(route)) {
                unpriced.push(agent.name.as_str());
            }
        }
        if !simulated.is_empty() {
            tracing::warn!(
                agents = simulated.join(", "),
                "these agents run on the simulation: no model is called; set agents.provider, or provider in their files"
            );
        }
        if !unpriced.is_empty() {
            tracing::warn!(
                agents = unpriced.join(", "),
                "prices.models has no price for what these agents call: a budget in money is charged what Claude Code says, and sets \
                 nothing aside for a turn before the first one has told the price"
            );
        }
    }

    /// Why no turn of an agent can succeed there.
    fn hindrance(
        &self,
        agent: &agents::Agent,
        (provider, model): &(agents::Provider, Option<String>),
    ) -> Option<&'static str> {
        let variable = |name: &str| self.environment.get(name).map(str::to_owned);
        let (claude, is_claude) = (self.providers.claude(), *provider == agents::Provider::Claude);
        let wants_everything =
            agent.grants.permission_mode == agents::PermissionMode::BypassPermissions;
        if self.providers.named(provider.as_str()).is_none() {
            Some("this version does not have the provider that its file names")
        } else if is_claude && claude.logins().next().is_none() {
            Some("it runs on Claude, and claude.credentials names no login")
        } else if model.is_none() {
            Some("its file names a provider and no model for it")
        } else if is_claude && wants_everything && claude.config().refuses_bypass(variable) {
            Some(claude::ROOT_REFUSED)
        } else {
            None
        }
    }

    fn is_unpriced(&self, (provider, model): &(agents::Provider, Option<String>)) -> bool {
        let price = model.as_deref().and_then(|model| self.price(provider.as_str(), model));
        *provider == agents::Provider::Claude && price.is_none()
    }
}

/// Reads the secrets of its logins.
fn claude(config: &Config, clock: &Arc<dyn Clock>, program: PathBuf) -> Result<Claude, Error> {
    let own = |name: &str| config.environment.get(name).map(str::to_owned);
    let named = config.agents.variables.iter().filter_map(|name| own(name));
    let logins = config.claude.credentials.iter().map(|login| login.resolve(own));
    let surroundings = Surroundings {
        credentials: logins.collect::<Result<_, _>>()?,
        secrets: named.map(Into::into).collect(),
        sessions: absolute(config.service.data_dir.join("claude"))?,
        guard: program,
        passed: config.environment.only(&config.claude.pass_variables),
        clock: Arc::clone(clock),
    };
    Ok(Claude::new(config.claude.clone(), surroundings))
}

fn absolute(folder: PathBuf) -> Result<PathBuf, Error> {
    std::path::absolute(&folder).map_err(|source| Error::Folder { folder, source })
}

/// Ends a job whose agent cannot be used: it waits for the repair of a file, and fails where there is none.
pub(super) fn no_agent(error: agents::LookupError) -> JobError {
    match error {
        agents::LookupError::Broken { .. } => JobError::snooze(Until::After(REPAIR_PAUSE))(error),
        agents::LookupError::Unknown { .. } => JobError::fail(error),
    }
}

/// Why `warm: true` in an agent's file has no effect. `None`: it has, or is not there.
pub fn why_not_warm(
    agent: &agents::Agent,
    own: agents::Provider,
    claude: &claude::Config,
) -> Option<&'static str> {
    let fallback = agent.fallback.as_ref().map(|fallback| fallback.provider);
    if !agent.warm {
        None
    } else if ![Some(own), fallback].contains(&Some(agents::Provider::Claude)) {
        Some("`warm: true` has no effect: only the CLI of Claude is started ahead")
    } else if tools::are_granted(&agent.grants) {
        Some(
            "`warm: true` has no effect together with mcp__dalsegno: the CLI gets a token of its own for each turn, so it cannot be \
             started before the turn; remove one of the two",
        )
    } else if agent.session == Mode::None {
        Some("`warm: true` has no effect with `session: none`: no turn follows")
    } else if claude.ahead_max == 0 {
        Some("`warm: true` has no effect while claude.ahead_max is 0")
    } else {
        None
    }
}
