//! `dalsegno agent`: the agents, their files, and control of agents while they work.

mod control;
mod files;

use std::{
    cell::Cell,
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde_json::Value;

use self::{
    control::Control,
    files::{FileArgs, VersionArgs},
};
use super::{
    Context, Exit, Failure,
    output::{Output, Table, format_table, text_cell, time_cell},
    server::{Server, with_server},
    watch::watch,
};
use crate::{
    db,
    domain::{
        agent_pauses::Pause,
        agents::{self, Agent, Catalogue, Node},
        files::describe_place,
        text::count,
    },
    jobs,
    operations::{Agents, ListAgentPauses, ListAgents},
    providers::{self, claude},
    tools,
};

/// Head of the column of pauses.
const STATE: &str = "STATE";
/// State of an agent without a pause.
const RUNS: &str = "-";

#[derive(Debug, Subcommand)]
pub(super) enum AgentCommand {
    /// Lists the agents of the files, and marks those that are paused; `agent status` says where.
    Ls,
    /// Lists the nodes that tasks can belong to.
    Nodes,
    /// Lists all problems of the files of agents, skills and nodes on this machine; exits 2 if there is one.
    ///
    /// `flow check` checks the flow templates, `agent files` lists the files of a server.
    Check(Check),
    /// Lists the files of agents, skills, nodes and flow templates with the number of their problems.
    Files,
    /// Prints a file as it was written, and its problems to stderr.
    File(FileArgs),
    /// Lists the versions of an agent's prompt that sessions were made with, the last used first.
    Versions(VersionArgs),
    #[command(flatten)]
    Control(Control),
}

#[derive(Debug, Args)]
pub(super) struct Check {
    /// Folder of agents, or one with the folders `agents` and `skills`. Default: the folders of the configuration.
    folder: Option<PathBuf>,
}

impl AgentCommand {
    /// Returns true for commands that run as operations; the other one reads files.
    pub(super) fn is_remote(&self) -> bool {
        !matches!(self, Self::Check(_))
    }
}

pub(super) async fn run(command: &AgentCommand, context: &Context) -> Result<Exit, Failure> {
    match command {
        AgentCommand::Control(control) => {
            with_server(context, async |server| control::run(control, context, server).await).await
        }
        AgentCommand::Files => {
            with_server(context, async |server| files::list(context, server).await).await
        }
        AgentCommand::File(file) => {
            with_server(context, async |server| files::show(file, context, server).await).await
        }
        AgentCommand::Versions(agent) => {
            with_server(context, async |server| files::versions(agent, context, server).await).await
        }
        AgentCommand::Ls => list(context).await,
        AgentCommand::Nodes => {
            on_all(context, |agents| {
                context.output.print_data(&agents.nodes, || format_nodes(&agents.nodes));
            })
            .await
        }
        AgentCommand::Check(Check { folder }) => {
            let all = context.load()?;
            let refuses_bypass =
                all.claude.refuses_bypass(|name| all.environment.get(name).map(str::to_owned));
            let providers = all.provider_sections();
            let config = match folder {
                Some(folder) => with_folder(folder, all.agents)?,
                None => all.agents,
            };
            let has_folder = folder.is_some();
            Ok(check(&config, &providers, refuses_bypass, has_folder, context))
        }
    }
}

/// Lists the agents with their pauses, which are in the database. Without one, lists the files alone.
async fn list(context: &Context) -> Result<Exit, Failure> {
    let output = context.output;
    let print = |agents: &Agents, pauses: &[Pause]| {
        output.print_data(&agents.items, || format_agents(agents, pauses));
    };
    // Programs read the files here, and pauses in `agent status`.
    if output.is_structured() {
        return on_all(context, |agents| print(&agents, &[])).await;
    }
    let is_open = Cell::new(false);
    let listed = async |server: &Server| {
        is_open.set(true);
        let agents = match context.target {
            Some(_) => server.call(ListAgents {}).await?,
            None => read_agents(context)?,
        };
        let pauses = server.call(ListAgentPauses {}).await;
        let pauses = pauses.map_or_else(
            |failure| {
                note_unknown_pauses(&failure, output);
                Vec::new()
            },
            |listing| listing.items,
        );
        print(&agents, &pauses);
        Ok(Exit::Ok)
    };
    match with_server(context, listed).await {
        Err(failure) if context.target.is_none() && !is_open.get() => {
            let error = failure.error.downcast_ref::<db::Error>();
            if !matches!(error, Some(db::Error::NoDatabase { .. })) {
                note_unknown_pauses(&failure, output);
            }
            on_all(context, |agents| print(&agents, &[])).await
        }
        ended => ended,
    }
}

fn note_unknown_pauses(failure: &Failure, output: Output) {
    output.print_note(&format!(
        "cannot read the pauses of agents, so the list has none: {}; `dalsegno doctor` checks the database",
        failure.error
    ));
}

fn read_agents(context: &Context) -> Result<Agents, Failure> {
    let config = context.load()?.agents;
    let provider = config.provider.clone();
    let agents = Agents::of(&context.agents(&config)?, provider, &config.model);
    agents.map_err(|error| Failure::failed(error.into()))
}

/// Loads the agents of the chosen server, or of the local files, which need no database.
async fn on_all(context: &Context, show: impl Fn(Agents)) -> Result<Exit, Failure> {
    if context.target.is_some() {
        let listed = async |server: &Server| {
            show(server.call(ListAgents {}).await?);
            Ok(Exit::Ok)
        };
        return with_server(context, listed).await;
    }
    let read = async || {
        show(read_agents(context)?);
        Ok(Exit::Ok)
    };
    match context.watch {
        Some(every) => watch(every, read).await,
        None => read().await,
    }
}

/// Checks the files and prints the problems to stdout, because they are this command's data.
fn check(
    config: &agents::Config,
    providers: &providers::Sections,
    refuses_bypass: bool,
    has_folder: bool,
    context: &Context,
) -> Exit {
    let capabilities = |name: &str| providers.capabilities(name);
    let (problems, n_agents) = match Catalogue::load(config) {
        Ok(catalogue) => {
            if refuses_bypass {
                catalogue.agents().for_each(|agent| note_refused_mode(agent, context));
            }
            for agent in catalogue.agents() {
                for why in jobs::ignored_key_reasons(agent, config, &capabilities) {
                    context.output.print_note(&format!("{}: {why}", agent.name));
                }
            }
            let mut problems = catalogue.problems();
            problems.0.extend(tools::agent_problems(&catalogue, config));
            problems.0.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
            (problems, catalogue.agents().count())
        }
        Err(problems) => (problems, 0),
    };
    let flows = match has_folder {
        true => "",
        false => "; `dalsegno flow check` checks the flow templates",
    };
    let place = describe_place(&config.folder);
    context.output.print_data(&problems.0, || {
        let result = match problems.0.is_empty() {
            true if n_agents == 1 => format!("1 agent and its skills are in order, {place}{flows}"),
            true => format!("{n_agents} agents and their skills are in order, {place}{flows}"),
            false => problems.to_string().trim_end().to_owned(),
        };
        format!("{result}{}", context.note_local_files())
    });
    match problems.0.is_empty() {
        true => Exit::Ok,
        false => Exit::Usage,
    }
}

/// Notes that Claude Code refuses the agent's permission mode as root. The file still counts as valid: it works under
/// another user.
fn note_refused_mode(agent: &Agent, context: &Context) {
    if agent.grants.permission_mode == agents::PermissionMode::BypassPermissions {
        context.output.print_note(&format!("{}: {}", agent.name, claude::ROOT_REFUSED));
    }
}

/// Refuses a missing folder: it would select the files that come with the service.
pub(super) fn require_folder(folder: &Path, advice: &str) -> Result<(), Failure> {
    match folder.is_dir() {
        true => Ok(()),
        false => {
            let words = format!("there is no folder {}: {advice}", folder.display());
            Err(Failure::new(Exit::NotFound, anyhow!(words)))
        }
    }
}

pub(super) fn with_folder(
    folder: &Path,
    mut config: agents::Config,
) -> Result<agents::Config, Failure> {
    require_folder(folder, "give the folder with the agents' files")?;
    let below = |name: &str| folder.join(name);
    let agents = below("agents");
    match agents.is_dir() {
        true => {
            config.folder = agents;
            (config.skills_folder, config.nodes_folder) = (below("skills"), below("nodes"));
        }
        false => folder.clone_into(&mut config.folder),
    }
    Ok(config)
}

fn format_nodes(nodes: &[Node]) -> String {
    let row =
        |node: &Node| [node.name.clone(), node.readings.join(", "), text_cell(&node.description)];
    format_table(&["NODE", "READINGS", "FOR"], nodes.iter().map(row))
}

/// Formats the agents as a table, with their states if one is paused.
fn format_agents(agents: &Agents, pauses: &[Pause]) -> String {
    let default = agents.default_provider.as_str();
    let row = |agent: &Value| {
        let text = |key: &str, default: &str| agent[key].as_str().unwrap_or(default).to_owned();
        let chain = agent["chain"].as_array().into_iter().flatten();
        let models = chain.map(|entry| {
            let provider = entry["provider"].as_str().unwrap_or(default);
            let usual = (provider == default).then_some(agents.default_model.as_str());
            match entry["model"].as_str().or(usual).filter(|model| !model.is_empty()) {
                Some(model) => format!("{provider}/{model}"),
                None => provider.to_owned(),
            }
        });
        let skills = agent["skills"].as_array().into_iter().flatten();
        [
            text("name", ""),
            models.collect::<Vec<_>>().join(", "),
            pause_state(&text("name", ""), pauses),
            skills.filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
            text_cell(&text("description", "")),
        ]
    };
    let rows: Vec<_> = agents.items.iter().map(row).collect();
    let is_paused = rows.iter().any(|[_, _, state, ..]| state != RUNS);
    let head = ["AGENT", "MODELS", STATE, "SKILLS", "FOR"];
    let table = Table::new(&head).leaves_out(&["SKILLS"]);
    let table = if is_paused { table } else { table.hides(STATE) };
    table.format(rows.into_iter())
}

/// Says since when and why an agent is paused: in all campaigns, or else in how many.
fn pause_state(agent: &str, pauses: &[Pause]) -> String {
    let own = || pauses.iter().filter(|pause| pause.agent == agent);
    let everywhere = own().find(|pause| pause.campaign_id.is_none());
    let Some(pause) = everywhere.or_else(|| own().min_by_key(|pause| pause.paused_at)) else {
        return RUNS.to_owned();
    };
    let place = match everywhere {
        Some(_) => String::new(),
        None => format!(" in {}", count(own().count(), "campaign", "campaigns")),
    };
    format!("paused{place} since {}: {}", time_cell(pause.paused_at), text_cell(&pause.reason))
}
