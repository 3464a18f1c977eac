//! `dalsegno task add`: adds a task and, with --wait or --follow, stays until it has ended.

use std::{path::PathBuf, time::Duration};

use anyhow::anyhow;
use chrono::{DateTime, TimeDelta, Utc};
use clap::{ArgGroup, Args, ValueEnum};
use serde_json::Value;
use uuid::Uuid;

use super::{
    add_file,
    attached_files::{self, FileReference},
    event_printer::EventPrinter,
};
use crate::{
    cli::{
        Context, Exit, Failure,
        args::{LabelFlags, ParameterFlags, Question},
        estimate::format_estimate,
        follow::{data_of, until_interrupted, with_task_hint},
        server::Server,
        words::{BudgetFlags, parse_period},
    },
    domain::{
        campaign_overview::Overview,
        campaigns::Status,
        ids::PartialId,
        tasks::{self, Detail, OnFailure, State, Task, TaskLink},
        timestamp,
    },
    operations::{AddTask, AddedTask, END, EstimateTask, FollowTask, Noun, ShowCampaign, ShowTask},
};

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("stay").multiple(true).args(["wait", "follow"])))]
pub(in crate::cli) struct Add {
    #[command(flatten)]
    pub(super) question: Question,
    /// File with many tasks, one JSON object per line; `-` is the standard input.
    ///
    /// A line: {"agent": "copywriter", "prompt": "Write part one.", "idempotency_key": "part-1"}. If the tasks have keys, the command may be
    /// repeated after any failure. With --idempotency-key, a line without a key gets that key with the number of the line behind it.
    #[arg(long, value_name = "FILE", group = "prompt_given", conflicts_with_all = ["agent", "instance", "session", "budget_money", "budget_tokens", "priority", "at", "after", "node", "flow_templates", "wait", "follow", "tags", "metadata", "parameters", "result_schema", "attach", "attach_from", "within"])]
    file: Option<PathBuf>,
    /// Node of the work: `dalsegno agent nodes` lists them. Default: the node of the session.
    #[arg(long)]
    node: Option<String>,
    /// Flow template that the agent may start in the task; may be repeated. Default: those of the agent's file.
    #[arg(long = "flow-template", value_name = "NAME")]
    flow_templates: Vec<String>,
    #[command(flatten)]
    budget: BudgetFlags,
    #[command(flatten)]
    labels: LabelFlags,
    #[command(flatten)]
    parameters: ParameterFlags,
    /// JSON Schema that the answer has to match: a file, or the JSON itself. Default: that of the agent's file.
    #[arg(long, value_name = "FILE|JSON", value_parser = read_schema)]
    result_schema: Option<Value>,
    /// File that the agent is given with the prompt: a PNG, JPEG, GIF or WebP image, a PDF, or text in UTF-8. May be repeated.
    #[arg(long, value_name = "PATH")]
    attach: Vec<PathBuf>,
    /// File of another task of the campaign that the agent is given, for example 0193/report.pdf. May be repeated.
    #[arg(long, value_name = "TASK/FILE", value_parser = attached_files::parse_reference)]
    attach_from: Vec<FileReference>,
    /// Time that the answer may take, 1h to 7d: a provider with a batch API is then asked at its lower price for batches.
    ///
    /// Counted from now, from --at, or from the end of the tasks in --after. Later tasks of the conversation wait meanwhile. Other providers are called as usual.
    #[arg(long, value_name = "DURATION", value_parser = parse_period)]
    within: Option<TimeDelta>,
    /// Priority of the conversation, 0 to 32767; 0 is the most urgent. Default: 100.
    #[arg(long)]
    priority: Option<i32>,
    /// Earliest start: 2026-11-23T08:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = timestamp::parse)]
    at: Option<DateTime<Utc>>,
    /// Starts after the end of this task, with its result; may be repeated.
    ///
    /// The results are given to the agent in this order.
    #[arg(long, value_name = "ID")]
    after: Vec<PartialId>,
    /// Action if one of the --after tasks fails or is cancelled.
    #[arg(long, value_enum, default_value = "run", requires = "after")]
    on_failure: FailureMode,
    /// Prints the low, likely and high cost of the task's turn, and adds nothing.
    #[arg(long, conflicts_with_all = ["file", "after", "wait", "follow"])]
    estimate: bool,
    /// Waits for the end of the task and prints its result.
    #[arg(long)]
    wait: bool,
    /// Waits for the end and prints the events.
    #[arg(long)]
    follow: bool,
    /// Maximum time to wait, for example 10m; the task goes on.
    #[arg(long, value_name = "DURATION", requires = "stay", value_parser = parse_period)]
    timeout: Option<TimeDelta>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FailureMode {
    /// The task runs, and its prompt names the failure.
    Run,
    /// The task is cancelled.
    Cancel,
}

pub(super) async fn run(add: &Add, context: &Context, server: &Server) -> Result<Exit, Failure> {
    if let Some(file) = &add.file {
        return add_file::run(add, file, context, server).await;
    }
    if add.estimate {
        let estimate = server.call(estimate(add, context, server).await?).await?;
        context.output.print_data(&estimate, || format_estimate(&estimate));
        return Ok(Exit::Ok);
    }
    let new = new(add, context, server).await?;
    let added = server.call(new).await?;
    if !add.wait && !add.follow {
        context.output.print_data(&added, || describe(&added));
        return Ok(Exit::Ok);
    }
    let id = added.task.id;
    // Before the wait, so that others can look at the task meanwhile. stdout is for the result.
    if !context.output.is_structured() {
        context.output.print_note(&describe(&added));
    }
    let limit = add.timeout.and_then(|limit| limit.to_std().ok()).unwrap_or(Duration::MAX);
    match add.follow {
        true => {
            let mut teller = EventPrinter::new(context.output);
            let wait = async {
                note_pause(&added.task, context, server).await;
                follow(id, limit, &mut teller, server).await.map_err(|it| with_task_hint(it, id))
            };
            let Some(task) = until_interrupted(id, context.output, wait).await? else {
                return Ok(Exit::Interrupted);
            };
            teller.end(&task);
            end(&task)
        }
        false => {
            let wait = async {
                note_pause(&added.task, context, server).await;
                server.wait_for(id, limit).await.map_err(|it| with_task_hint(it, id))
            };
            let Some(Detail { task, .. }) = until_interrupted(id, context.output, wait).await?
            else {
                return Ok(Exit::Interrupted);
            };
            context.output.print_result(&task, || task.result.clone().unwrap_or_default());
            end(&task)
        }
    }
}

/// Reads a schema. A text that begins with `{` is JSON, because names of files do not.
fn read_schema(given: &str) -> Result<Value, String> {
    let text = match given.trim_start().starts_with('{') {
        true => given.to_owned(),
        false => {
            std::fs::read_to_string(given).map_err(|error| format!("cannot read it: {error}"))?
        }
    };
    serde_json::from_str(&text).map_err(|error| format!("it is not valid JSON: {error}"))
}

fn describe(AddedTask { task, created, .. }: &AddedTask) -> String {
    let before = if *created { "" } else { "was added before and " };
    format!("task {} {before}is {}", task.id, task.state.as_str())
}

/// Says that the task waits for the end of a pause of its campaign. Keys that only add tasks may not read the campaign.
async fn note_pause(task: &Task, context: &Context, server: &Server) {
    if context.output.is_structured() {
        return;
    }
    let id = task.campaign_id;
    let Ok(Overview { campaign, pause_reason, .. }) =
        server.call(ShowCampaign { id, summary: true }).await
    else {
        return;
    };
    if campaign.status == Status::Paused {
        context.output.print_note(&format!(
            "campaign {id} is paused: {}; the task waits until `dalsegno campaign resume {id}`",
            pause_reason.as_deref().unwrap_or("no reason was given")
        ));
    }
}

async fn new(add: &Add, context: &Context, server: &Server) -> Result<AddTask, Failure> {
    let question = &add.question;
    let id = question.campaign.id(context, server).await?;
    let mut depends_on = Vec::with_capacity(add.after.len());
    for given in &add.after {
        depends_on.push(TaskLink::Task(server.id(Noun::Task, given).await?));
    }
    Ok(AddTask {
        id,
        agent: question.agent().to_owned(),
        instance: question.instance.clone(),
        prompt: question.prompt()?,
        node: add.node.clone(),
        flow_templates: Some(add.flow_templates.clone()).filter(|names| !names.is_empty()),
        session: question.session_mode(),
        budget: add.budget.limit(),
        priority: add.priority,
        run_at: add.at,
        depends_on,
        on_failure: add.on_failure.into(),
        tags: add.labels.tags.clone(),
        metadata: add.labels.metadata(),
        parameters: add.parameters.object(),
        result_schema: add.result_schema.clone(),
        within_secs: add.within.map(tasks::within_secs),
        attachments: attached_files::read(&add.attach, &add.attach_from, server).await?,
    })
}

async fn estimate(add: &Add, context: &Context, server: &Server) -> Result<EstimateTask, Failure> {
    let question = &add.question;
    Ok(EstimateTask {
        id: question.campaign.id(context, server).await?,
        agent: question.agent().to_owned(),
        instance: question.instance.clone(),
        prompt: Some(question.prompt()?),
        node: add.node.clone(),
        session: question.session_mode(),
        attachments: attached_files::read(&add.attach, &add.attach_from, server).await?,
    })
}

/// Prints events as they arrive. Returns the task as it is at its end or at the limit.
async fn follow(
    id: Uuid,
    limit: Duration,
    teller: &mut EventPrinter,
    server: &Server,
) -> Result<Task, Failure> {
    let told = async {
        let mut follower = server.follow(FollowTask { id }).await?;
        while let Some(event) = follower.next().await? {
            match event.name.as_str() {
                END => return Ok(Some(data_of(&event)?)),
                _ => teller.print_event(&data_of(&event)?),
            }
        }
        Ok::<_, Failure>(None)
    };
    match tokio::time::timeout(limit, told).await.unwrap_or(Ok(None))? {
        Some(task) => Ok(task),
        None => Ok(server.call(ShowTask { id, wait: None }).await?.task),
    }
}

/// Maps the state of the task to an exit code.
pub(super) fn end(task: &Task) -> Result<Exit, Failure> {
    let id = task.id;
    let (exit, words) = match task.state {
        State::Done => return Ok(Exit::Ok),
        State::Failed => {
            let error = task.error.as_deref().unwrap_or_default();
            (
                Exit::Failed,
                format!(
                    "task {id} failed: {error}; fix the cause, then run `dalsegno task retry {id}`"
                ),
            )
        }
        State::Cancelled => (
            Exit::Cancelled,
            format!("task {id} was cancelled; `dalsegno task retry {id}` runs it after all"),
        ),
        State::Queued | State::Running => (
            Exit::TimedOut,
            format!(
                "task {id} is still {} and continues; `dalsegno task explain {id}` explains why",
                task.state.as_str()
            ),
        ),
    };
    Err(Failure::new(exit, anyhow!(words)))
}

impl From<FailureMode> for OnFailure {
    fn from(failing: FailureMode) -> Self {
        match failing {
            FailureMode::Run => Self::Run,
            FailureMode::Cancel => Self::Cancel,
        }
    }
}
