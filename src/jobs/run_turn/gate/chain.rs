//! Turns that move on to the next entry of their agent's chain, instead of a wait or a failure.

use chrono::TimeDelta;

use crate::{
    domain::{
        failovers::{self, SkippedEntry},
        rate_limits, text,
    },
    jobs::{
        Services,
        rate_limits::LimitRefusal,
        run_turn::{
            error::{BeginRefusal, Error},
            load::{
                assignment::Assignment,
                chain::{Chain, of},
            },
        },
    },
    queue::Run,
};

/// A wait for the entry of a turn.
struct EntryWait {
    time: TimeDelta,
    /// Refusals of the model in a row, where they are counted.
    refusals: i32,
    /// True if other turns see it in a row of their own.
    is_shared: bool,
}

/// Returns the entry as skipped, if the turn moves on. The last resort of a chain waits or fails as a single model does.
pub async fn skip_entry(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    refused: &BeginRefusal,
) -> Result<Option<SkippedEntry>, Error> {
    let chain = assignment.chain.as_ref().filter(|chain| !chain.choice.is_last_resort);
    let Some(chain) = chain else { return Ok(None) };
    let entry = chain.chosen();
    let skipped = |because: &str, usable_at| SkippedEntry {
        entry: entry.name.clone(),
        because: text::make_storable(because.to_owned()),
        usable_at,
    };
    let is_limited = entry.conditions.max_charge_micros.is_some();
    if refused.is_too_dear || (refused.budget.is_some() && is_limited) {
        return Ok(Some(skipped(&refused.why, None)));
    }
    let (wait, because) = match (&refused.limit, refused.busy, refused.again_after) {
        (Some(limit), ..) => match wait_for_limit(run, services, chain, limit).await? {
            Some(wait) => wait,
            None => return Ok(None),
        },
        (None, Some(busy), Some(after)) => {
            let time = TimeDelta::from_std(after).unwrap_or(TimeDelta::MAX);
            let refusals = busy.refusals;
            (EntryWait { time, refusals, is_shared: refusals > 0 }, refused.why.clone())
        }
        _ => return Ok(None),
    };
    if !entry.conditions.moves_on(wait.time, wait.refusals) {
        return Ok(None);
    }
    let now = services.clock.now();
    // Looked at again after the rest, because a person may end a pause early.
    let until = now + wait.time.min(chain.rules.rest);
    let skipped = skipped(&because, Some(until));
    if !wait.is_shared {
        let mut state = chain.state.clone();
        state.rest(&skipped.entry, skipped.because.clone(), until);
        failovers::put(run.pool(), of(&assignment.task), &state, now).await?;
    }
    Ok(Some(skipped))
}

/// Estimates the wait for a rate limit. `None`: its end is unknown, and the file sets no longest wait.
async fn wait_for_limit(
    run: &Run,
    services: &Services,
    chain: &Chain,
    refusal: &LimitRefusal,
) -> Result<Option<(EntryWait, String)>, Error> {
    let keys: Vec<String> = refusal.limits.iter().map(|limit| limit.key.clone()).collect();
    let expected = rate_limits::expected_wait(run.pool(), &keys, services.clock.now()).await?;
    let conditions = &chain.chosen().conditions;
    let (time, next) = match expected {
        Some(secs) => {
            let secs = secs.ceil();
            (TimeDelta::seconds(secs as i64), format!("next slot in {secs} s"))
        }
        None if conditions.has_own_limit => {
            // Looked at again with the next turn.
            (
                conditions.limit + TimeDelta::seconds(1),
                "next slot when a running call ends".to_owned(),
            )
        }
        None => return Ok(None),
    };
    let because = format!("{}, {next}", refusal.describe());
    Ok(Some((EntryWait { time, refusals: 0, is_shared: false }, because)))
}
