//! How much may be handed out.
//!
//! A model that hands out works for ever as easily as for an hour. So its tasks are bounded three times: in how many came from each other
//! one after the other, in how many the first of them has led to, and, with everybody else's, in how many wait.

use uuid::Uuid;

use super::{Caller, Refusal, Turn, change::Change, tool::Call};
use crate::{
    domain::tasks::{self, RunTurn},
    queue::{Job as _, admin},
};

const INSTEAD: &str = "Do it yourself, or say in your answer what is left to be done";

/// The task that hands out, if one does and so many more fit. It is held until the end of the transaction: one that is cancelled hands
/// nothing out, and what it has handed out is cancelled with it.
pub(super) async fn parent(
    call: &Call<'_>,
    change: &mut Change<'_>,
    n_more: usize,
) -> Result<Option<Uuid>, Refusal> {
    let n_more = i64::try_from(n_more).unwrap_or(i64::MAX);
    check_queue(call, change, n_more).await?;
    let Caller::Turn(turn) = call.caller else { return Ok(None) };
    check_family(call, change, turn, n_more).await?;
    tasks::hold_parent(change.conn(), turn.task_id).await?;
    Ok(Some(turn.task_id))
}

/// Agents must not hand each other work for ever. What others of the family hand out at this moment is not counted: all its turns would
/// wait for each other.
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
        return Err(Refusal::said(format!(
            "nothing was handed out: {depth} tasks that each came from the one before lead to this one, and no more are allowed \
             (mentions.max_depth). {INSTEAD}"
        )));
    }
    // The first one is none that was handed out.
    let limits = (most_above, most.saturating_add(1));
    let n_tasks = tasks::count_of_family(change.conn(), turn.task_id, limits).await? - 1;
    match n_tasks.saturating_add(n_more) > most {
        true => Err(Refusal::said(format!(
            "nothing was handed out: the first task of this chain has led to {n_tasks} others, and at most {most} are allowed \
             (mentions.max_tasks). {INSTEAD}"
        ))),
        false => Ok(()),
    }
}

/// A queue that only grows answers everybody late.
async fn check_queue(call: &Call<'_>, change: &mut Change<'_>, n_more: i64) -> Result<(), Refusal> {
    let most = i64::try_from(call.tools.settings.max_waiting).unwrap_or(i64::MAX);
    if most == 0 {
        return Ok(());
    }
    let n_waiting = admin::waiting(change.conn(), RunTurn::policy().queue).await?;
    match n_waiting.saturating_add(n_more) > most {
        true => Err(Refusal::said(format!(
            "nothing was handed out: {n_waiting} tasks wait, and no more than {most} may (queue.max_waiting). Try again later. {INSTEAD}"
        ))),
        false => Ok(()),
    }
}
