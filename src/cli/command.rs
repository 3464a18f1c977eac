//! The commands, and the function that runs each of them.

use std::time::Duration;

use clap::Subcommand;

use super::{
    Context, Exit, Failure, agent, audit, blackboard, board, budget, bulk, campaign, cleanup,
    config, cost, credential, demo, doctor, erasure, eval, feed, fidelity, flow, health,
    installation, job, key, lane, manual, mcp, memory, migrate, overview, queue, rate_limit,
    reference, remotes, schedule, search, sent_context, serve, session, sign_in, task, turn,
    webhook, worker,
};

/// Time limit for dropping the rest of a command: long enough to signal a private Postgres, too short to wait for a
/// name server.
const DROP_LIMIT: Duration = Duration::from_secs(1);

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Runs the whole service in this process.
    Serve,
    /// Shows what waits for a person, what runs, and the last hour.
    Overview,
    /// Searches tasks, posts, memory and transcripts of all campaigns, the newest first.
    Search(search::Search),
    /// Shows version, settings, migrations and sizes of the installation.
    Installation,
    /// Creates, shows, edits, pauses and erases campaigns; sets their budgets.
    #[command(subcommand)]
    Campaign(campaign::CampaignCommand),
    /// Prints and writes posts on the message board of a campaign.
    #[command(subcommand)]
    Board(board::BoardCommand),
    /// Adds, shows, cancels, retries and explains tasks.
    #[command(subcommand)]
    Task(task::TaskCommand),
    /// Lists and shows bulk actions of `task cancel` and `task retry`.
    #[command(subcommand)]
    Bulk(bulk::BulkCommand),
    /// Publishes, searches and revokes edicts, records and journal entries.
    #[command(subcommand)]
    Memory(memory::MemoryCommand),
    /// Lists, shows, resets, compacts and interrupts sessions.
    #[command(subcommand)]
    Session(session::SessionCommand),
    /// Lists the turns of a session, and shows what each call was sent.
    #[command(subcommand)]
    Turn(turn::TurnCommand),
    /// Lists budgets and sets their limits: of campaigns, tasks, agents, users and the day.
    #[command(subcommand)]
    Budget(budget::BudgetCommand),
    /// Adds up the costs of calls by day, campaign, agent, model, provider, purpose or user.
    Cost(cost::CostFlags),
    /// Reports if models saw the history of their conversations, and which summaries were rejected.
    #[command(subcommand)]
    Fidelity(fidelity::FidelityCommand),
    /// Compares variants of an agent by the checks of an eval file.
    #[command(subcommand)]
    Eval(eval::EvalCommand),
    /// Shows what calls were sent, byte for byte.
    #[command(subcommand)]
    Context(sent_context::ContextCommand),
    /// Shows and changes the JSON document that a campaign shares.
    #[command(subcommand)]
    Blackboard(blackboard::BlackboardCommand),
    /// Lists, checks, pauses, interrupts and resets agents.
    #[command(subcommand)]
    Agent(agent::AgentCommand),
    /// Plays a campaign on a simulated model; needs no database.
    ///
    /// It writes a series in twelve parts, with a killed worker, a compaction and an expiry, and removes its files at the end. With --open it
    /// plays slowly enough to read along in the web console, and keeps its database.
    Demo(demo::DemoFlags),
    /// Runs a worker process of one pool, and lists worker processes.
    #[command(subcommand)]
    Worker(worker::WorkerCommand),
    /// Applies missing migrations, and shows their status.
    #[command(subcommand)]
    Migrate(migrate::Migrate),
    /// Checks and prints the configuration.
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Lists, shows, pauses and resumes queues.
    #[command(subcommand)]
    Queue(queue::QueueCommand),
    /// Lists, shows, retries, cancels, holds and explains jobs.
    #[command(subcommand)]
    Job(job::JobCommand),
    /// Lists, shows, holds and releases lanes.
    #[command(subcommand)]
    Lane(lane::LaneCommand),
    /// Adds, shows, runs, pauses and removes recurring work.
    #[command(subcommand)]
    Schedule(schedule::ScheduleCommand),
    /// Checks flow templates; starts, shows, pauses and cancels flows of dependent tasks.
    #[command(subcommand)]
    Flow(flow::FlowCommand),
    /// Lists credentials of Claude, and resumes one that is paused.
    #[command(subcommand)]
    Credential(credential::CredentialCommand),
    /// Rate limits of calls.
    #[command(subcommand)]
    RateLimit(rate_limit::RateLimitCommand),
    /// Runs the nightly cleanup now, or lists past cleanups.
    Cleanup(cleanup::Cleanup),
    /// Prints events as they happen, until Ctrl-C; without --campaign, those of all campaigns.
    ///
    /// With --json, one object per line.
    Feed(feed::Feed),
    /// Serves the operator's tools for a campaign to an MCP client, over stdin and stdout.
    Mcp(mcp::Mcp),
    /// Creates, lists, rotates and revokes API keys.
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Lists and ends sign-ins of browsers to the console.
    #[command(subcommand)]
    SignIn(sign_in::SignInCommand),
    /// Verifies receipts of erasures, and vacuums erased texts.
    #[command(subcommand)]
    Erasure(erasure::ErasureCommand),
    /// Lists the audit log: which caller changed which thing.
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Adds, tests and removes webhooks, which report the ends of tasks; replays their deliveries.
    #[command(subcommand)]
    Webhook(webhook::WebhookCommand),
    /// Checks this installation, and names a fix for each problem.
    Doctor(doctor::Doctor),
    /// Checks that a running service is ready, for container probes.
    Health(health::Health),
    /// Stores servers by name, and selects one for commands.
    #[command(subcommand)]
    Remote(remotes::RemoteCommand),
    /// Prints the OpenAPI 3.1 document of the HTTP API.
    Openapi,
    /// Lists the metrics of `/metrics`: name, type, labels, meaning.
    Metrics,
    /// Writes the generated reference documents and JSON Schemas into a folder.
    Reference(reference::Reference),
    /// Prints completions for a shell, which also know campaigns, agents and tasks.
    ///
    /// For bash, `source <(dalsegno completions bash)` in ~/.bashrc loads them.
    Completions(manual::Completions),
    /// Writes man pages into a folder.
    Man(manual::Man),
}

impl Command {
    /// Returns true for commands whose output depends on the files of all agents.
    pub(super) fn shows_agents(&self) -> bool {
        matches!(self, Self::Agent(_) | Self::Context(_))
    }

    pub(super) fn run(self, context: &Context) -> Result<Exit, Failure> {
        match self {
            Self::Config(command) => config::run(&command, context),
            Self::Remote(command) => remotes::run(&command, context),
            Self::Openapi => Ok(manual::openapi(context)),
            Self::Metrics => Ok(manual::metrics(context)),
            Self::Reference(reference) => reference::run(&reference, context),
            Self::Completions(shell) => manual::completions(&shell, context),
            Self::Man(man) => manual::man(&man),
            Self::Agent(command) => block_on(agent::run(&command, context)),
            Self::Overview => block_on(overview::run(context)),
            Self::Search(search) => block_on(search::run(&search, context)),
            Self::Installation => block_on(installation::run(context)),
            Self::Campaign(command) => block_on(campaign::run(&command, context)),
            Self::Task(command) => block_on(task::run(&command, context)),
            Self::Bulk(command) => block_on(bulk::run(&command, context)),
            Self::Board(command) => block_on(board::run(&command, context)),
            Self::Memory(command) => block_on(memory::run(&command, context)),
            Self::Session(command) => block_on(session::run(&command, context)),
            Self::Turn(command) => block_on(turn::run(&command, context)),
            Self::Eval(command) => block_on(eval::run(&command, context)),
            Self::Budget(command) => block_on(budget::run(&command, context)),
            Self::Cost(flags) => block_on(cost::run(&flags, context)),
            Self::Fidelity(command) => block_on(fidelity::run(&command, context)),
            Self::Context(command) => block_on(sent_context::run(&command, context)),
            Self::Blackboard(command) => block_on(blackboard::run(&command, context)),
            Self::Serve => block_on(serve::run(context)),
            Self::Demo(flags) => block_on(demo::run(flags, context)),
            Self::Worker(command) => block_on(worker::run_named(&command, context)),
            Self::Migrate(command) => block_on(migrate::run(&command, context)),
            Self::Queue(command) => block_on(queue::run(&command, context)),
            Self::Job(command) => block_on(job::run(&command, context)),
            Self::Lane(command) => block_on(lane::run(&command, context)),
            Self::Schedule(command) => block_on(schedule::run(&command, context)),
            Self::Flow(command) => block_on(flow::run(&command, context)),
            Self::RateLimit(command) => block_on(rate_limit::run(&command, context)),
            Self::Credential(command) => block_on(credential::run(&command, context)),
            Self::Cleanup(cleanup) => block_on(cleanup::run(&cleanup, context)),
            Self::Feed(feed) => block_on(feed::run(&feed, context)),
            Self::Mcp(mcp) => block_on(mcp::run(&mcp, context)),
            Self::Key(command) => block_on(key::run(&command, context)),
            Self::SignIn(command) => block_on(sign_in::run(&command, context)),
            Self::Erasure(command) => block_on(erasure::run(&command, context)),
            Self::Audit(command) => block_on(audit::run(&command, context)),
            Self::Webhook(command) => block_on(webhook::run(&command, context)),
            Self::Doctor(doctor) => block_on(doctor::run(&doctor, context)),
            Self::Health(health) => block_on(health::run(&health, context)),
        }
    }
}

pub(super) fn block_on(
    command: impl Future<Output = Result<Exit, Failure>>,
) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed(error.into()))?;
    let ended = runtime.block_on(command);
    runtime.shutdown_timeout(DROP_LIMIT);
    ended
}
