//! `dalsegno flow`: flows, the sets of tasks that are made from a template.

mod show;
mod templates;

use std::{
    io::IsTerminal as _,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::{Context as _, anyhow};
use chrono::TimeDelta;
use clap::{Args, Subcommand, ValueEnum};
use tokio::sync::OnceCell;

use self::{
    show::format_flow,
    templates::{check, show_templates},
};
use super::{
    Context, Exit, Failure,
    args::{InCampaign, Paging},
    estimate::format_flow_estimate,
    output::{Output, format_table, short_id, time_cell, time_cell_or_dash},
    progress::{Progress, wait_for_end},
    server::{Server, with_server},
    words::{format_below, parse_period},
};
use crate::{
    clock::{Clock as _, SystemClock},
    domain::{
        flows::{self, CancelledFlow, Flow, InputValue as Value, Inputs, State, Templates},
        ids::PartialId,
    },
    operations::{
        AllTemplates, CancelFlow, EstimateFlow, ListFlowTemplates, ListFlows, Noun, PauseFlow,
        ResumeFlow, RetryFlow, ShowFlow, StartFlow,
    },
};

/// Printed below an empty list.
const NO_FLOWS: &str =
    "no flows: `dalsegno flow templates` lists what `dalsegno flow start` can start";

#[derive(Debug, Subcommand)]
pub(super) enum FlowCommand {
    /// Lists flows, the newest first; without --campaign, those of all campaigns.
    Ls(List),
    /// Lists the templates with their inputs and steps, and the problems of invalid ones.
    Templates,
    /// Lists all problems of the files of flow templates; exits 2 if there is one.
    Check(Check),
    /// Adds all tasks of a template; each waits for the steps that it depends on.
    Start(Start),
    /// Shows a flow with its tasks.
    Show(Id),
    /// Pauses a flow: no task starts until it is resumed. Running tasks go on.
    Pause(Id),
    /// Resumes a paused flow.
    Resume(Id),
    /// Runs the tasks of a step again, and all that depend on them.
    Retry(Retry),
    /// Cancels all tasks of a flow that have not ended.
    Cancel(Cancel),
}

#[derive(Debug, Args)]
pub(super) struct Check {
    /// Folder of flow templates, or one with the folders `flows` and `agents`. Default: the folders of the configuration.
    folder: Option<PathBuf>,
}

impl FlowCommand {
    /// Returns true for commands that run as operations; the other one reads files.
    pub(super) fn is_remote(&self) -> bool {
        !matches!(self, Self::Check(_))
    }
}

#[derive(Debug, Args)]
pub(super) struct Id {
    /// The id, or a unique beginning or end of it.
    id: PartialId,
}

#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    campaign: InCampaign,
    /// Only flows in this state.
    #[arg(long)]
    state: Option<StateName>,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Debug, Args)]
pub(super) struct Start {
    /// Name of the template: its file without `.md`.
    template: String,
    #[command(flatten)]
    campaign: InCampaign,
    /// Input of the template; may be repeated, also for the items of a list.
    ///
    /// Example: `--input topic="The harbour" --input parts=History --input parts=Boats`.
    #[arg(long = "input", value_name = "NAME=TEXT")]
    inputs: Vec<String>,
    /// File with all inputs: a JSON object of texts and lists of texts.
    #[arg(long, value_name = "FILE", conflicts_with = "inputs")]
    inputs_file: Option<PathBuf>,
    /// Prints the low, likely and high cost of the flow's steps, and starts nothing.
    #[arg(long, conflicts_with = "wait")]
    estimate: bool,
    /// Waits for the end of the flow and prints its steps. On a terminal a bar shows the progress.
    ///
    /// The exit code is that of the flow's end: 1 if it failed, 9 if it was cancelled. It is 6 if the time of --timeout ran out; the flow goes on then.
    #[arg(long)]
    wait: bool,
    /// Maximum time to wait, for example 10m.
    #[arg(long, value_name = "DURATION", requires = "wait", value_parser = parse_period)]
    timeout: Option<TimeDelta>,
}

#[derive(Debug, Args)]
pub(super) struct Retry {
    #[command(flatten)]
    id: Id,
    /// Step to begin with.
    #[arg(long, value_name = "STEP")]
    from: String,
}

#[derive(Debug, Args)]
pub(super) struct Cancel {
    #[command(flatten)]
    id: Id,
    /// Reason, shown with the cancelled tasks.
    #[arg(long, default_value = "by an operator")]
    reason: String,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum StateName {
    Running,
    Paused,
    Done,
    Failed,
    Cancelled,
}

pub(super) async fn run(command: &FlowCommand, context: &Context) -> Result<Exit, Failure> {
    match (command, &context.target) {
        (FlowCommand::Check(Check { folder }), _) => check(folder.as_deref(), context),
        // Templates of this host need no database.
        (FlowCommand::Templates, None) => {
            let config = context.load()?;
            let catalogue = context.agents(&config.agents)?;
            let templates =
                Templates::load(&config.flows, &catalogue).map_err(flows::Error::from)?;
            show_templates(&AllTemplates::of(&templates), context.output);
            Ok(Exit::Ok)
        }
        _ => {
            with_server(context, async |server| run_on_server(command, context, server).await).await
        }
    }
}

async fn run_on_server(
    command: &FlowCommand,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let output = context.output;
    let flow = match command {
        FlowCommand::Check(Check { folder }) => return check(folder.as_deref(), context),
        FlowCommand::Templates => {
            show_templates(&server.call(ListFlowTemplates {}).await?, output);
            return Ok(Exit::Ok);
        }
        FlowCommand::Ls(list) => {
            let campaign_id = list.campaign.id_if_given(context, server).await?;
            let state = list.state.map(Into::into);
            let page = |cursor, limit| ListFlows { campaign_id, state, cursor, limit };
            let flows = server.list(Noun::Flow, &list.paging, page).await?;
            let is_filtered =
                campaign_id.is_some() || state.is_some() || list.paging.after.is_some();
            output.print_rows(&flows, is_filtered, NO_FLOWS, || format_flows(&flows));
            return Ok(Exit::Ok);
        }
        FlowCommand::Show(Id { id }) => {
            let id = server.id(Noun::Flow, id).await?;
            let shown = server.call(ShowFlow { id }).await?;
            output.print_data(&shown, || format_flow(&shown, SystemClock.now()));
            return Ok(Exit::Ok);
        }
        FlowCommand::Cancel(Cancel { id: Id { id }, reason }) => {
            let id = server.id(Noun::Flow, id).await?;
            let cancelled = server.call(CancelFlow { id, reason: reason.clone() }).await?;
            output.print_data(&cancelled, || format_cancelled(&cancelled));
            return Ok(Exit::Ok);
        }
        FlowCommand::Start(start) => {
            let id = start.campaign.id(context, server).await?;
            let (template, inputs) = (start.template.clone(), start.inputs()?);
            if start.estimate {
                let estimate = server.call(EstimateFlow { id, template, inputs }).await?;
                output.print_data(&estimate, || format_flow_estimate(&estimate));
                return Ok(Exit::Ok);
            }
            let new = StartFlow { id, template, inputs, templates: OnceCell::new() };
            let flow = server.call(new).await?;
            if start.wait {
                return wait_for_flow(&flow, start.timeout, output, server).await;
            }
            flow
        }
        FlowCommand::Pause(Id { id }) => {
            let id = server.id(Noun::Flow, id).await?;
            server.call(PauseFlow { id }).await?
        }
        FlowCommand::Resume(Id { id }) => {
            let id = server.id(Noun::Flow, id).await?;
            server.call(ResumeFlow { id }).await?
        }
        FlowCommand::Retry(Retry { id: Id { id }, from }) => {
            let id = server.id(Noun::Flow, id).await?;
            server.call(RetryFlow { id, from: from.clone() }).await?
        }
    };
    output.print_data(&flow, || format!("flow {} is {}", flow.id, flow.state.as_str()));
    Ok(Exit::Ok)
}

/// Waits for the end of a flow. The exit code is that of its state.
async fn wait_for_flow(
    flow: &Flow,
    limit: Option<TimeDelta>,
    output: Output,
    server: &Server,
) -> Result<Exit, Failure> {
    let id = flow.id;
    // Before the wait, so that others can look at the flow meanwhile.
    if !output.is_structured() {
        output.print_note(&format!("flow {id} is {}", flow.state.as_str()));
    }
    let is_noted = AtomicBool::new(false);
    let look = async || {
        let shown = server.call(ShowFlow { id }).await?;
        if let Some(note) = pause_note(&shown.flow).filter(|_| !output.is_structured())
            && !is_noted.swap(true, Ordering::Relaxed)
        {
            // The progress bar is on this line.
            if std::io::stderr().is_terminal() {
                output.rewrite_note("");
            }
            output.print_note(&note);
        }
        let Flow { tasks, open, .. } = &shown.flow;
        let count = |n: i64| u64::try_from(n).unwrap_or_default();
        let progress = Progress { done: count(tasks - open), total: count(*tasks) };
        let has_ended = *open == 0;
        Ok((shown, progress, has_ended))
    };
    let limit = limit.unwrap_or(TimeDelta::MAX);
    let (shown, exit) = wait_for_end("tasks", limit, output, look).await?;
    output.print_data(&shown, || format_flow(&shown, SystemClock.now()));
    Ok(match shown.flow.state {
        State::Failed => Exit::Failed,
        State::Cancelled => Exit::Cancelled,
        State::Running | State::Paused | State::Done => exit,
    })
}

/// Says why the wait for a flow goes on, if the flow is paused.
fn pause_note(flow: &Flow) -> Option<String> {
    (flow.state == State::Paused).then(|| {
        let id = flow.id;
        format!("flow {id} is paused: the wait goes on until `dalsegno flow resume {id}`")
    })
}

fn format_cancelled(cancelled: &CancelledFlow) -> String {
    let CancelledFlow { flow, cancel, had_ended } = cancelled;
    let (id, words) = (flow.id, format_below(*cancel));
    let had_ended = match had_ended {
        0 => String::new(),
        1 => "; 1 task had ended before".to_owned(),
        n => format!("; {n} tasks had ended before"),
    };
    match flow.open {
        0 => format!("flow {id} is {}: {words}{had_ended}", flow.state.as_str()),
        _ => format!("flow {id} ends when its running tasks have stopped: {words}{had_ended}"),
    }
}

impl Start {
    fn inputs(&self) -> Result<Inputs, Failure> {
        let usage = |error| Failure::new(Exit::Usage, error);
        if let Some(file) = &self.inputs_file {
            let text = std::fs::read_to_string(file)
                .with_context(|| format!("cannot read {}", file.display()));
            let read = serde_json::from_str(&text.map_err(usage)?).with_context(|| {
                format!("{} is not a JSON object of texts and lists of texts", file.display())
            });
            return read.map_err(usage);
        }
        let mut inputs = Inputs::new();
        for text in &self.inputs {
            let named = text.split_once('=');
            let (name, value) =
                named.ok_or_else(|| usage(anyhow!("invalid input `{text}`: use NAME=TEXT")))?;
            match inputs.remove(name) {
                None => inputs.insert(name.to_owned(), Value::Text(value.to_owned())),
                Some(before) => inputs.insert(name.to_owned(), Value::List(before.append(value))),
            };
        }
        Ok(inputs)
    }
}

fn format_flows(flows: &[Flow]) -> String {
    let row = |flow: &Flow| {
        [
            short_id(flow.id),
            flow.state.as_str().to_owned(),
            flow.template.clone(),
            format!("{}/{}", flow.tasks - flow.open, flow.tasks),
            time_cell(flow.created_at),
            time_cell_or_dash(flow.ended_at),
        ]
    };
    format_table(
        &["ID", "STATE", "TEMPLATE", "TASKS", "CREATED (UTC)", "ENDED (UTC)"],
        flows.iter().map(row),
    )
}

impl From<StateName> for State {
    fn from(name: StateName) -> Self {
        match name {
            StateName::Running => Self::Running,
            StateName::Paused => Self::Paused,
            StateName::Done => Self::Done,
            StateName::Failed => Self::Failed,
            StateName::Cancelled => Self::Cancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_paused_flow_names_the_command_that_ends_its_wait() {
        let id = Uuid::from_u128(7);
        let flow = |state: &str| -> Flow {
            serde_json::from_value(json!({
                "id": id, "campaign_id": id, "template": "article-series", "state": state, "inputs": {}, "tasks": 2, "done": 1, "failed": 0,
                "cancelled": 0, "open": 1, "added_by": null, "created_at": "2026-11-29T12:00:00Z", "paused_at": null, "ended_at": null,
            }))
            .unwrap()
        };
        assert_eq!(pause_note(&flow("running")), None);
        let note = pause_note(&flow("paused")).unwrap();
        assert!(
            note.contains(" is paused") && note.contains(&format!("`dalsegno flow resume {id}`")),
            "{note}"
        );
    }
}
