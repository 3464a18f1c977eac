//! Handler of the begin of a budget's period: wakes the tasks that wait for the budget.

use std::sync::Arc;

use super::Services;
use crate::{
    domain::budgets::{self, BeginBudgetPeriod},
    queue::{End, HandlerResult, HoldUntil, JobError, Run},
};

pub(super) async fn run(
    BeginBudgetPeriod { owner, key }: BeginBudgetPeriod,
    run: Run,
    services: Arc<Services>,
) -> HandlerResult {
    let now = services.clock.now();
    // Before the wake-up, which begins the next period.
    let end = budgets::period_end(run.pool(), &owner, &key).await.map_err(JobError::retry)?;
    // Also before the end of the period: a turn that cannot lock the whole budget leaves the wake-up to this job.
    budgets::wake(run.pool(), &owner, &key, now).await.map_err(JobError::retry)?;
    let left = end.and_then(|end| (end - now).to_std().ok()).filter(|left| !left.is_zero());
    if let Some(left) = left {
        let reason = "the period of the budget has not ended".to_owned();
        return Ok(End::Snooze { until: HoldUntil::After(left), reason });
    }
    Ok(End::Done)
}
