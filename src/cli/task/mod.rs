//! `dalsegno task`: tasks and their results.

mod add;
mod add_file;
mod attached_files;
mod children;
mod event_printer;
mod files;
mod filter;
mod list;
mod many;
mod run_worker;
mod show;

use chrono::TimeDelta;
use clap::{Args, Subcommand};
use uuid::Uuid;

use self::run_worker::RunWorker;
pub(super) use self::{
    event_printer::format_event,
    show::{format_turns, spent},
};
use super::{
    Context, Exit, Failure,
    agent_filter::note_unknown_agent,
    args::{Id, Paging},
    campaign_names::CampaignNames,
    follow::with_task_hint,
    server::{Server, with_server},
    words::{LimitFlags, format_cancellation, parse_period},
};
use crate::{
    domain::{
        bulk_actions::Action,
        explanations::Explanation,
        tasks::{Detail, State, TaskPriority},
    },
    operations::{
        CancelTask, ChangeTaskBudget, ChangeTaskPriority, ExplainTask, Noun, RetryTask, ShowTask,
    },
};

#[derive(Debug, Subcommand)]
pub(super) enum TaskCommand {
    /// Adds a task for an agent, or many from a file.
    #[command(
        override_usage = "dalsegno task add [OPTIONS] --agent <AGENT> <PROMPT>\n       dalsegno task add [OPTIONS] --file <FILE>"
    )]
    Add(Box<add::Add>),
    /// Lists tasks, the newest first; without --campaign, those of all campaigns.
    Ls(Box<List>),
    /// Shows a task with its result and its attempts.
    Show(Show),
    /// Lists the output files of a task, or saves them to a folder.
    Files(files::Files),
    /// Adds children to a task; its agent continues after the end of all of them.
    #[command(override_usage = "dalsegno task children [OPTIONS] --file <FILE> <ID> <PROMPT>")]
    Children(Box<children::Children>),
    /// Cancels a task, or all tasks that match the options; the worker stops a running one.
    Cancel(Box<Cancel>),
    /// Retries a failed or cancelled task, or all tasks that match the options.
    Retry(Box<many::Target>),
    /// Changes the priority of a waiting task: 0 is the most urgent, 100 the default. Tasks of a conversation keep their order.
    Priority(Priority),
    /// Changes the budget of a task, or shows the task. A task that waits for it continues if the next call fits.
    Budget(Budget),
    /// Explains why a task is in its state, and what has to happen next.
    Explain(Id),
}

#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    filter: filter::FilterFlags,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Debug, Args)]
pub(super) struct Show {
    #[command(flatten)]
    id: Id,
    /// Waits for the end first, at most this time: 30s, 10m, 2h.
    ///
    /// The exit code is then 0 for done, 1 for failed, 9 for cancelled, 6 if the time ran out.
    #[arg(long, value_name = "DURATION", value_parser = parse_period)]
    wait: Option<TimeDelta>,
}

#[derive(Debug, Args)]
pub(super) struct Cancel {
    #[command(flatten)]
    target: many::Target,
    /// Reason, shown with the cancelled task.
    #[arg(long, default_value = "by an operator")]
    reason: String,
}

#[derive(Debug, Args)]
pub(super) struct Priority {
    #[command(flatten)]
    id: Id,
    /// The new priority, 0 to 32767.
    priority: i32,
}

#[derive(Debug, Args)]
pub(super) struct Budget {
    #[command(flatten)]
    id: Id,
    #[command(flatten)]
    limits: LimitFlags,
}

pub(super) async fn run(command: &TaskCommand, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| Box::pin(run_on_server(command, context, server)).await)
        .await
}

async fn run_on_server(
    command: &TaskCommand,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let output = context.output;
    match command {
        TaskCommand::Add(add) => return add::run(add, context, server).await,
        TaskCommand::Children(children) => return children::run(children, context, server).await,
        TaskCommand::Files(files) => return files::run(files, context, server).await,
        TaskCommand::Ls(list) => {
            let campaign_id = list.filter.campaign_id(context, server).await?;
            let page = |cursor, limit| list.filter.page(campaign_id, cursor, limit);
            let tasks = server.list(Noun::Task, &list.paging, page).await?;
            let names = CampaignNames::of_list(campaign_id, &tasks, output, server).await;
            let is_filtered = !list.filter.is_empty() || list.paging.after.is_some();
            let none = "no tasks: `dalsegno task add` adds one";
            output.print_rows(&tasks, is_filtered, none, || {
                list::format_tasks(&tasks, names.as_ref(), &context.catalogue())
            });
            if tasks.is_empty() {
                note_unknown_agent(list.filter.agent(), context, server).await;
            }
        }
        TaskCommand::Show(Show { id: Id { id }, wait }) => {
            let id = server.id(Noun::Task, id).await?;
            let limit = wait.and_then(|wait| wait.to_std().ok());
            let detail = match limit {
                Some(limit) => {
                    server.wait_for(id, limit).await.map_err(|it| with_task_hint(it, id))?
                }
                None => server.call(ShowTask { id, wait: None }).await?,
            };
            let because = explain_wait(&detail, context, server).await;
            let worker = match output.is_structured() {
                true => None,
                false => RunWorker::of_task(&detail, server).await,
            };
            output.print_data(&detail, || {
                let catalogue = context.catalogue();
                show::format_task(&detail, because.as_deref(), worker.as_ref(), &catalogue)
            });
            if limit.is_some() {
                return add::end(&detail.task);
            }
        }
        TaskCommand::Cancel(cancel) => {
            let Cancel { target, reason } = &**cancel;
            let Some(id) = target.single_id(Action::Cancel)? else {
                return many::run(Action::Cancel, target, reason, context, server).await;
            };
            let id = server.id(Noun::Task, id).await?;
            let cancelled = server.call(CancelTask { id, reason: reason.clone() }).await?;
            output.print_data(&cancelled, || format_cancellation(id, &cancelled.cancellation));
        }
        TaskCommand::Retry(target) => {
            let Some(id) = target.single_id(Action::Retry)? else {
                return many::run(Action::Retry, target, "by an operator", context, server).await;
            };
            let id = server.id(Noun::Task, id).await?;
            let task = server.call(RetryTask { id }).await?;
            output.print_data(&task, || format!("task {id} is {}", task.state.as_str()));
        }
        TaskCommand::Priority(Priority { id: Id { id }, priority }) => {
            let id = server.id(Noun::Task, id).await?;
            let changed = server.call(ChangeTaskPriority { id, priority: *priority }).await?;
            output.print_data(&changed, || format_priority(&changed));
        }
        TaskCommand::Budget(Budget { id: Id { id }, limits }) => {
            let id = server.id(Noun::Task, id).await?;
            let task = match limits.are_none() {
                true => server.call(ShowTask { id, wait: None }).await?.task,
                false => server.call(limits_of(id, limits)).await?,
            };
            output.print_data(&task, || format!("task {id} has spent {}", spent(&task)));
        }
        TaskCommand::Explain(Id { id }) => {
            let id = server.id(Noun::Task, id).await?;
            let explanation = server.call(ExplainTask { id }).await?;
            output.print_data(&explanation, || format_explanation(&explanation));
        }
    }
    Ok(Exit::Ok)
}

/// Explains why a task waits, for people. Keys may not be allowed to ask.
async fn explain_wait(detail: &Detail, context: &Context, server: &Server) -> Option<String> {
    if context.output.is_structured() || detail.task.state != State::Queued {
        return None;
    }
    let explanation = server.call(ExplainTask { id: detail.task.id }).await.ok()?;
    Some(explanation.because)
}

/// Builds the change of a task's limits.
pub(super) fn limits_of(id: Uuid, limits: &LimitFlags) -> ChangeTaskBudget {
    ChangeTaskBudget {
        id,
        micros: limits.micros(),
        tokens: limits.tokens(),
        soft_micros: limits.soft_micros(),
        soft_tokens: limits.soft_tokens(),
    }
}

fn format_priority(TaskPriority { task_id, priority, before }: &TaskPriority) -> String {
    match priority == before {
        true => format!("task {task_id} already had the priority {priority}"),
        false => format!("task {task_id} has the priority {priority}, before {before}"),
    }
}

fn format_explanation(explanation: &Explanation) -> String {
    let Explanation { task_id, state, because, next, .. } = explanation;
    format!("Task {task_id} is {}.\n{because}\n{next}", state.as_str())
}
