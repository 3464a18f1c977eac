//! Completions that know campaigns, agents and tasks. The shell runs this program, which asks the server or the database.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use tokio::time::timeout;

use super::{
    Context, Exit, Failure, block_on, default_file,
    output::{Format, Output, escape_control},
    server::{Server, with_server_for},
    target::RemoteFlags,
    words::first_line,
};
use crate::{
    db::Use,
    domain::{ids::short, tasks::Task},
    operations::{ListAgents, ListCampaigns, ListTasks},
    settings::{Environment, Flags},
};

/// Set by the script in the shell. Another name than the default, which other programs set, too.
pub(super) const VARIABLE: &str = "DALSEGNO_COMPLETE";

/// Longest time that a person waits for a list after the tab key.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// Options that choose another server, database or configuration.
const ELSEWHERE: [&str; 5] = ["--remote", "--url", "--key-file", "--config", "--set"];
const N_CANDIDATES: i64 = 100;
const MAX_HELP_CHARS: usize = 60;

/// Settings of a completion: no output beside the candidates, and a quick end without a database.
const SETTINGS: [(&str, &str); 2] = [("log.filter", "off"), ("database.connect_timeout_secs", "1")];

/// Adds the candidates to the arguments of a command and its subcommands.
pub(super) fn with_candidates(command: Command) -> Command {
    let command = command.mut_subcommands(with_candidates);
    let is_task = command.get_name() == "task";
    let command = command.mut_args(|argument| match value_of(&argument) {
        Some(Value::Campaign) => argument.add(ArgValueCandidates::new(campaigns)),
        Some(Value::Agent) => argument.add(ArgValueCandidates::new(agents)),
        Some(Value::Task) => argument.add(ArgValueCandidates::new(tasks)),
        None => argument,
    });
    match is_task {
        true => command.mut_subcommands(|below| {
            let adds = below.get_name() == "add";
            below.mut_args(|argument| {
                match argument.get_id() == "id" || adds && argument.get_id() == "after" {
                    true => argument.add(ArgValueCandidates::new(tasks)),
                    false => argument,
                }
            })
        }),
        false => command,
    }
}

#[derive(Debug, Clone, Copy)]
enum Value {
    Campaign,
    Agent,
    Task,
}

/// Returns the thing that an argument names.
fn value_of(argument: &Arg) -> Option<Value> {
    let name = argument.get_value_names().and_then(|names| names.first())?.as_str();
    match name {
        "CAMPAIGN" => Some(Value::Campaign),
        "AGENT" => Some(Value::Agent),
        "TASK" => Some(Value::Task),
        _ => None,
    }
}

/// Lists campaigns by name. A name that the shell would split stands behind its id.
fn campaigns() -> Vec<CompletionCandidate> {
    candidates(&async |server: &Server| {
        let limit = Some(N_CANDIDATES);
        let list = ListCampaigns { tags: None, metadata: None, cursor: None, limit };
        let campaigns = server.call(list).await?.items;
        Ok(campaigns
            .into_iter()
            .map(|campaign| {
                let is_word = |c: char| c.is_alphanumeric() || "-_.".contains(c);
                match campaign.name.chars().all(is_word) && !campaign.name.starts_with('-') {
                    true => candidate(&campaign.name, campaign.status.as_str()),
                    false => candidate(&short(campaign.id), &campaign.name),
                }
            })
            .collect())
    })
}

fn agents() -> Vec<CompletionCandidate> {
    candidates(&async |server: &Server| {
        let agents = server.call(ListAgents {}).await?.items;
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let agents = agents.iter().map(|it| (text(&it["name"]), text(&it["description"])));
        Ok(agents.map(|(name, description)| candidate(&name, &description)).collect())
    })
}

/// Lists the newest tasks by the end of their id.
fn tasks() -> Vec<CompletionCandidate> {
    candidates(&async |server: &Server| {
        let list = ListTasks { limit: Some(N_CANDIDATES), ..ListTasks::default() };
        let tasks = server.call(list).await?.items;
        let help = |task: &Task| format!("{}: {}", task.state.as_str(), task.subject());
        Ok(tasks
            .iter()
            .map(|listed| candidate(&short(listed.task.id), &help(&listed.task)))
            .collect())
    })
}

fn candidate(value: &str, help: &str) -> CompletionCandidate {
    let help = first_line(help, MAX_HELP_CHARS);
    CompletionCandidate::new(value).help(Some(escape_control(&help).into_owned().into()))
}

/// Returns true if the line that is completed names a server or a configuration, whose things these candidates would not be.
fn names_another_place() -> bool {
    let is_named = |word: &str| {
        let option = word.split('=').next().unwrap_or(word);
        ELSEWHERE.contains(&option)
    };
    std::env::args().any(|word| is_named(&word))
}

/// Asks the server or a running database. Without an answer in time there are no candidates.
fn candidates(
    ask: &impl AsyncFn(&Server) -> Result<Vec<CompletionCandidate>, Failure>,
) -> Vec<CompletionCandidate> {
    let environment = Environment::capture();
    if names_another_place() {
        return Vec::new();
    }
    let set = SETTINGS.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    let flags = Flags { file: default_file(&environment), set };
    let remote = RemoteFlags::default();
    let Ok(target) = remote.target(&environment) else { return Vec::new() };
    // Notes would stand between the prompt and the candidates.
    let output = Output::new(Format::Table).kept();
    let context = Context {
        environment,
        flags,
        output,
        remote,
        target,
        idempotency_key: None,
        watch: None,
        shows_agents: false,
    };
    let found = Mutex::new(Vec::new());
    let asked = with_server_for(&context, Use::Join, async |server| {
        let answer = ask(server).await?;
        found.lock().unwrap_or_else(PoisonError::into_inner).extend(answer);
        Ok(Exit::Ok)
    });
    let _ =
        block_on(async { timeout(PATIENCE, Box::pin(asked)).await.unwrap_or(Ok(Exit::TimedOut)) });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}
