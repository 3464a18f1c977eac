//! Limits on the number of tasks that a call may add.
//!
//! A model can hand out work without end. So its tasks are limited in three ways:
//! - the length of a chain of tasks that came from each other,
//! - the number of tasks that the first one has led to,
//! - the number of waiting tasks of all campaigns.

use uuid::Uuid;

use super::{Caller, Refusal, Turn, change::Change, tool::Call};
use crate::{
    domain::tasks::{self, RunTurn},
    queue::{Job as _, admin},
};

const REFUSAL_ADVICE: &str = "Do it yourself, or list the open work in your answer";

/// Checks that `n_more` tasks fit, and returns the calling turn's task as their parent. `None` for operators. The parent stays locked until
/// the end of the transaction. A cancelled task hands nothing out, and the tasks that it has handed out are cancelled with it.
pub(super) async fn check_and_lock_parent(
    call: &Call<'_>,
    change: &mut Change<'_>,
    n_more: usize,
) -> Result<Option<Uuid>, Refusal> {
    let n_more = i64::try_from(n_more).unwrap_or(i64::MAX);
    check_queue(call, change, n_more).await?;
    let Caller::Turn(turn) = call.caller else { return Ok(None) };
    check_family(call, change, turn, n_more).await?;
    tasks::check_and_lock_parent(change.conn(), turn.task_id).await?;
    Ok(Some(turn.task_id))
}

/// Checks the depth and size of the task's family, so that agents do not hand each other work forever. Tasks that others of the family add
/// at this moment are not counted: otherwise all turns of the family would wait for each other.
async fn check_family(
    call: &Call<'_>,
    change: &mut Change<'_>,
    turn: &Turn,
    n_more: i64,
) -> Result<(), Refusal> {
    let config = &call.tools.settings.mentions;
    let (most_above, most) = (i64::from(config.max_depth), i64::from(config.max_tasks));
    let depth = tasks::depth(change.conn(), turn.task_id, most_above).await?;
    if depth >= most_above {
        return Err(Refusal::of_text(format!(
            "nothing was handed out: this task is number {depth} in a chain of tasks, the limit (mentions.max_depth). {REFUSAL_ADVICE}"
        )));
    }
    // The first task was not handed out itself.
    let limits = (most_above, most.saturating_add(1));
    let n_tasks = tasks::count_of_family(change.conn(), turn.task_id, limits).await? - 1;
    match n_tasks.saturating_add(n_more) > most {
        true => Err(Refusal::of_text(format!(
            "nothing was handed out: the first task of this chain has led to {n_tasks} others, at most {most} are allowed (mentions.max_tasks). {REFUSAL_ADVICE}"
        ))),
        false => Ok(()),
    }
}

/// Checks the length of the queue: if it only grows, every task waits longer.
async fn check_queue(call: &Call<'_>, change: &mut Change<'_>, n_more: i64) -> Result<(), Refusal> {
    let most = i64::try_from(call.tools.settings.max_waiting).unwrap_or(i64::MAX);
    if most == 0 {
        return Ok(());
    }
    let n_waiting = admin::count_waiting(change.conn(), RunTurn::policy().queue).await?;
    match n_waiting.saturating_add(n_more) > most {
        true => Err(Refusal::of_text(format!(
            "nothing was handed out: {n_waiting} tasks are waiting, the limit is {most} (queue.max_waiting). Try again later. {REFUSAL_ADVICE}"
        ))),
        false => Ok(()),
    }
}
