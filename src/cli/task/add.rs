//! `dalsegno task add`: takes a task in and, if wanted, stays with it until it has ended.

use std::{path::PathBuf, time::Duration};

use anyhow::anyhow;
use chrono::{DateTime, TimeDelta, Utc};
use clap::{ArgGroup, Args, ValueEnum};
use uuid::Uuid;

use super::{add_file, teller::Teller};
use crate::{
    cli::{
        Context, Exit, Failure,
        args::{LabelFlags, Question},
        follow::{data_of, lost},
        server::Server,
        words::{BudgetFlags, period},
    },
    domain::{
        ids::Given,
        tasks::{After, OnFailure, State, Task},
        timestamp,
    },
    operations::{AddTask, AddedTask, END, FollowTask, Noun, ShowTask},
};

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("stay").multiple(true).args(["wait", "follow"])))]
pub(in crate::cli) struct Add {
    #[command(flatten)]
    pub(super) question: Question,
    /// Many tasks, one JSON object per line, such as {"agent": "copywriter", "prompt": "Write part one.", "idempotency_key":
    /// "part-1"}; `-` reads them from the standard input. May be repeated after any end, if the tasks have keys. With
    /// --idempotency-key, lines without a key get that one with the number of the line behind it.
    #[arg(long, value_name = "FILE", group = "prompt_given", conflicts_with_all = ["agent", "instance", "session", "budget_money", "budget_tokens", "priority", "at", "after", "node", "wait", "follow", "tags", "metadata"])]
    file: Option<PathBuf>,
    /// Where in the work the task belongs: `dalsegno agent nodes` lists them. Else wherever the session stands.
    #[arg(long)]
    node: Option<String>,
    #[command(flatten)]
    budget: BudgetFlags,
    #[command(flatten)]
    labels: LabelFlags,
    /// 0 is the most urgent. Orders conversations, not the tasks within one.
    #[arg(long)]
    priority: Option<i32>,
    /// Not before this moment: 2026-11-20T12:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = timestamp::parse)]
    at: Option<DateTime<Utc>>,
    /// Waits until this task has ended, and tells the agent what it came to; may be given several times, in the order in which it
    /// should be told.
    #[arg(long, value_name = "ID")]
    after: Vec<Given>,
    /// What to do if one of those has failed or was cancelled.
    #[arg(long, value_enum, default_value = "run", requires = "after")]
    on_failure: Failing,
    /// Waits for the end and prints the result.
    #[arg(long)]
    wait: bool,
    /// Waits for the end and tells what happens meanwhile.
    #[arg(long)]
    follow: bool,
    /// Waits no longer than this; the task goes on.
    #[arg(long, value_name = "DURATION", requires = "stay", value_parser = period)]
    timeout: Option<TimeDelta>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Failing {
    /// It is told, and runs.
    Run,
    /// It is cancelled.
    Cancel,
}

pub(super) async fn run(add: &Add, context: &Context, server: &Server) -> Result<Exit, Failure> {
    if let Some(file) = &add.file {
        return add_file::run(add, file, context, server).await;
    }
    let new = new(add, context, server).await?;
    let added = server.call(new).await?;
    if !add.wait && !add.follow {
        context.output.data(&added, || {
            let AddedTask { task, created, .. } = &added;
            match created {
                true => format!("task {} is {}", task.id, task.state.as_str()),
                false => {
                    format!("task {} was added before and is {}", task.id, task.state.as_str())
                }
            }
        });
        return Ok(Exit::Ok);
    }
    let id = added.task.id;
    let limit = add.timeout.and_then(|limit| limit.to_std().ok()).unwrap_or(Duration::MAX);
    match add.follow {
        true => {
            let mut teller = Teller::new(context.output);
            let task = follow(id, limit, &mut teller, server).await.map_err(|it| lost(it, id))?;
            teller.end(&task);
            end(&task)
        }
        false => {
            let task = server.wait_for(id, limit).await.map_err(|it| lost(it, id))?.task;
            context.output.result(&task, || task.result.clone().unwrap_or_default());
            end(&task)
        }
    }
}

async fn new(add: &Add, context: &Context, server: &Server) -> Result<AddTask, Failure> {
    let question = &add.question;
    let id = question.campaign.id(context, server).await?;
    let mut depends_on = Vec::with_capacity(add.after.len());
    for given in &add.after {
        depends_on.push(After::Task(server.id(Noun::Task, given).await?));
    }
    Ok(AddTask {
        id,
        agent: question.agent().to_owned(),
        instance: question.instance.clone(),
        prompt: question.prompt()?,
        node: add.node.clone(),
        session: question.session_mode(),
        budget: add.budget.limit(),
        priority: add.priority,
        run_at: add.at,
        depends_on,
        on_failure: add.on_failure.into(),
        tags: add.labels.tags.clone(),
        metadata: add.labels.metadata(),
    })
}

/// Tells the events as they come, and gives the task as it is at the end or at the limit.
async fn follow(
    id: Uuid,
    limit: Duration,
    teller: &mut Teller,
    server: &Server,
) -> Result<Task, Failure> {
    let told = async {
        let mut follower = server.follow(FollowTask { id }).await?;
        while let Some(event) = follower.next().await? {
            match event.name.as_str() {
                END => return Ok(Some(data_of(&event)?)),
                _ => teller.tell(&data_of(&event)?),
            }
        }
        Ok::<_, Failure>(None)
    };
    match tokio::time::timeout(limit, told).await.unwrap_or(Ok(None))? {
        Some(task) => Ok(task),
        None => Ok(server.call(ShowTask { id, wait: None }).await?.task),
    }
}

/// The exit code says what came of the task.
pub(super) fn end(task: &Task) -> Result<Exit, Failure> {
    let id = task.id;
    let (exit, words) = match task.state {
        State::Done => return Ok(Exit::Ok),
        State::Failed => {
            let error = task.error.as_deref().unwrap_or_default();
            let next = format!("mend the cause, then `dalsegno task retry {id}`");
            (Exit::Failed, format!("task {id} failed: {error}; {next}"))
        }
        State::Cancelled => (
            Exit::Cancelled,
            format!("task {id} was cancelled; `dalsegno task retry {id}` runs it after all"),
        ),
        State::Queued | State::Running => (
            Exit::TimedOut,
            format!(
                "task {id} is still {}, and goes on; `dalsegno task explain {id}` says why",
                task.state.as_str()
            ),
        ),
    };
    Err(Failure::new(exit, anyhow!(words)))
}

impl From<Failing> for OnFailure {
    fn from(failing: Failing) -> Self {
        match failing {
            Failing::Run => Self::Run,
            Failing::Cancel => Self::Cancel,
        }
    }
}
