//! `dalsegno task`: what agents are asked to do, and what came of it.

mod add;
mod add_file;
mod show;
mod teller;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

pub(super) use self::show::turn_lines;
use super::{
    Context, Exit, Failure,
    args::{Id, Paging},
    database::with_database,
    words::cancellation_words,
};
use crate::{
    clock::{Clock as _, SystemClock},
    db::{Database, Use},
    domain::{
        Page,
        audit::{self, Action},
        campaigns,
        explanations::{self, Explanation},
        ids::GivenCampaign,
        tasks::{self, Filter, State},
        transaction::{begin, commit},
    },
};

#[derive(Debug, Subcommand)]
pub(super) enum TaskCommand {
    /// Asks an agent to do something.
    Add(Box<add::Add>),
    /// Lists tasks, the newest first.
    Ls(List),
    /// Shows a task with its result and its attempts.
    Show(Id),
    /// Cancels a task: at once if it does not run, through its worker if it does.
    Cancel(Cancel),
    /// Puts a failed or cancelled task on the queue again.
    Retry(Id),
    /// Says in words why a task is in its state, and what has to happen next.
    Explain(Id),
}

#[derive(Debug, Args)]
pub(super) struct List {
    #[arg(long, value_name = "ID")]
    campaign: Option<GivenCampaign>,
    #[arg(long)]
    agent: Option<String>,
    #[arg(long)]
    state: Option<StateName>,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Debug, Args)]
pub(super) struct Cancel {
    #[command(flatten)]
    id: Id,
    /// Why, for whoever finds it cancelled.
    #[arg(long, default_value = "by an operator")]
    reason: String,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum StateName {
    Queued,
    Running,
    Done,
    Failed,
    Cancelled,
}

pub(super) async fn run(command: &TaskCommand, context: &Context) -> Result<Exit, Failure> {
    with_database(context, Use::Look, async |database| on(command, context, database).await).await
}

async fn on(
    command: &TaskCommand,
    context: &Context,
    database: &Database,
) -> Result<Exit, Failure> {
    let (pool, output) = (&database.pool, context.output);
    if let TaskCommand::Add(add) = command {
        return add::run(add, context, pool).await;
    }
    let mut tx = begin(pool).await?;
    match command {
        TaskCommand::Add(_) => {}
        TaskCommand::Ls(list) => {
            let campaign_id = match &list.campaign {
                Some(given) => Some(campaigns::find(&mut *tx, given, None).await?),
                None => None,
            };
            let after = match &list.paging.after {
                Some(given) => Some(tasks::find(&mut *tx, given, None).await?),
                None => None,
            };
            let (agent, state) = (list.agent.as_deref(), list.state.map(State::from));
            let page = Page { after, limit: list.paging.limit };
            let filter = Filter { campaign_id, agent, state, within: None };
            let tasks = tasks::list(&mut *tx, filter, page).await?;
            output.data(&tasks, || show::lines(&tasks, &context.catalogue()));
        }
        TaskCommand::Show(Id { id }) => {
            let id = tasks::find(&mut *tx, id, None).await?;
            let detail = tasks::detail(&mut tx, id).await?;
            output.data(&detail, || show::words(&detail, &context.catalogue()));
        }
        TaskCommand::Cancel(Cancel { id, reason }) => {
            let id = tasks::find(&mut *tx, &id.id, None).await?;
            let now = SystemClock.now();
            let cancelled = tasks::cancel(&mut tx, id, reason, now).await?;
            let data = json!({ "reason": reason });
            audit::write(&mut *tx, &context.who(), Action::TaskCancel, id, data, now).await?;
            commit(tx).await?;
            let data =
                json!({ "task_id": id, "cancel": cancelled.cancel, "below": cancelled.below });
            output.data(&data, || cancellation_words(id, &cancelled));
        }
        TaskCommand::Retry(Id { id }) => {
            let id = tasks::find(&mut *tx, id, None).await?;
            let (who, now) = (context.who(), SystemClock.now());
            let task = tasks::retry(&mut tx, id, now).await?;
            audit::write(&mut *tx, &who, Action::TaskRetry, id, json!({}), now).await?;
            commit(tx).await?;
            output.data(&task, || format!("task {id} is {}", task.state.as_str()));
        }
        TaskCommand::Explain(Id { id }) => {
            let id = tasks::find(&mut *tx, id, None).await?;
            let explanation = explanations::explain(&mut tx, id).await?;
            output.data(&explanation, || words(&explanation));
        }
    }
    Ok(Exit::Ok)
}

fn words(explanation: &Explanation) -> String {
    let Explanation { task_id, state, because, next } = explanation;
    format!("Task {task_id} is {}.\n{because}\n{next}", state.as_str())
}

impl From<StateName> for State {
    fn from(name: StateName) -> Self {
        match name {
            StateName::Queued => Self::Queued,
            StateName::Running => Self::Running,
            StateName::Done => Self::Done,
            StateName::Failed => Self::Failed,
            StateName::Cancelled => Self::Cancelled,
        }
    }
}
