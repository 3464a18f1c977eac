//! `dalsegno queue`: queues, their counters and their pauses.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{Context, Exit, Failure, database::with_database, output::table};
use crate::{
    clock::{Clock as _, SystemClock},
    db::{Database, Use},
    domain::{
        audit::{self, Action},
        transaction::{begin, commit},
    },
    queue::admin::{self, PauseScope, QueueView},
};

#[derive(Debug, Subcommand)]
pub(super) enum QueueCommand {
    /// Lists the queues with their counters.
    Ls,
    /// Claims nothing more from a queue until it is resumed. What runs goes on.
    Pause(Pause),
    /// Ends a pause.
    Resume(Target),
}

#[derive(Debug, Args)]
pub(super) struct Target {
    /// Name of the queue, or of the group with --group.
    name: String,
    /// Means a group (a campaign) instead of a queue.
    #[arg(long)]
    group: bool,
}

#[derive(Debug, Args)]
pub(super) struct Pause {
    #[command(flatten)]
    target: Target,
    /// Why, for whoever finds it paused.
    #[arg(long, default_value = "")]
    reason: String,
}

pub(super) async fn run(command: &QueueCommand, context: &Context) -> Result<Exit, Failure> {
    with_database(context, Use::Look, async |database| on(command, context, database).await).await
}

async fn on(
    command: &QueueCommand,
    context: &Context,
    database: &Database,
) -> Result<Exit, Failure> {
    let pool = &database.pool;
    match command {
        QueueCommand::Ls => {
            let queues = admin::list_queues(pool).await?;
            context.output.data(&queues, || lines(&queues));
        }
        QueueCommand::Pause(Pause { target, reason }) => {
            let (mut tx, who) = (begin(pool).await?, context.who());
            admin::pause(&mut *tx, target.scope(), &target.name, reason).await?;
            let action = if target.group { Action::GroupPause } else { Action::QueuePause };
            let (name, data) = (&target.name, json!({ "reason": reason }));
            audit::write(&mut *tx, &who, action, name, data, SystemClock.now()).await?;
            commit(tx).await?;
            let done = json!({ "paused": target.name });
            context.output.data(&done, || format!("`{}` is paused", target.name));
        }
        QueueCommand::Resume(target) => {
            let (mut tx, who) = (begin(pool).await?, context.who());
            let was_paused = admin::resume(&mut *tx, target.scope(), &target.name).await?;
            let action = if target.group { Action::GroupResume } else { Action::QueueResume };
            let (name, data) = (&target.name, json!({ "was_paused": was_paused }));
            audit::write(&mut *tx, &who, action, name, data, SystemClock.now()).await?;
            commit(tx).await?;
            let done = json!({ "resumed": target.name, "was_paused": was_paused });
            context.output.data(&done, || match was_paused {
                true => format!("`{}` goes on", target.name),
                false => format!("`{}` was not paused", target.name),
            });
        }
    }
    Ok(Exit::Ok)
}

impl Target {
    fn scope(&self) -> PauseScope {
        if self.group { PauseScope::Group } else { PauseScope::Queue }
    }
}

fn lines(queues: &[QueueView]) -> String {
    let head = [
        "QUEUE",
        "READY",
        "RUNNING",
        "BLOCKED",
        "SCHEDULED",
        "HELD",
        "DEAD",
        "WORKERS",
        "OLDEST",
        "",
    ];
    table(
        &head,
        queues.iter().map(|queue| {
            let paused = queue.pause_reason.as_ref().map(|reason| format!("paused: {reason}"));
            let oldest =
                queue.oldest_ready_secs.map_or(String::new(), |secs| format!("{secs:.0} s"));
            [
                queue.queue.clone(),
                queue.ready.to_string(),
                queue.running.to_string(),
                queue.blocked.to_string(),
                queue.scheduled.to_string(),
                queue.held.to_string(),
                queue.dead.to_string(),
                queue.workers.to_string(),
                oldest,
                paused.unwrap_or_default(),
            ]
        }),
    )
}
