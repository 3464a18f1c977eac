//! The budget of a turn between two calls of the model.
//!
//! Before each call, the turn's spending so far and the needs of that call are reserved in the turn's budgets. So
//! parallel turns exceed a limit by one call each at most. Without a reservation the turn stops.
//!
//! A provider that makes all calls of a turn itself reports its usage after each of them ([`Watch`]). Its next call
//! does not wait for the reservation. If that is refused, the running call is cut off, and its usage so far is paid.

use std::{pin::Pin, time::Duration};

use chrono::{DateTime, Utc};
use futures_util::FutureExt as _;

use crate::{
    causes::causes,
    domain::{
        Amount,
        amount::{OnLimit, Refusal},
        budgets::ReserveError,
        ids, messages, tasks,
        turn_phases::{self, StartedTurn},
    },
    jobs::{
        Services,
        measure::measure_message,
        run_turn::{
            begin::open_turn::OpenTurn,
            call::{ledger, report::CallReport, rounds::window},
            error::{BUDGET_CODE, BUDGET_PAUSE, database_error},
            load::assignment::Assignment,
        },
    },
    providers::{self, Class, Meter, Origin, Scope, UsageSoFar},
    queue::{BoxError, Run},
    transcript::{Message, Role},
};

/// Reserves what a turn has `spent` and its next call needs. Without a limit it makes no query.
pub async fn reserve_for_call(
    run: &Run,
    assignment: &Assignment<'_>,
    begun: &mut StartedTurn,
    spent: Amount,
    ahead: Amount,
    now: DateTime<Utc>,
) -> Result<(), providers::Error> {
    if !assignment.is_limited {
        return Ok(());
    }
    // The cost of folding is on the task already.
    let task = tasks::get(run.pool(), assignment.task.id).await.map_err(not_read)?;
    let refused = |refusal| refused(assignment.complete_refusal(refusal));
    task.check_budget(spent, ahead).map_err(refused)?;
    let mut tx = run.pool().begin().await.map_err(not_read)?;
    match turn_phases::reserve_more(&mut tx, begun, spent, ahead, now).await {
        Ok(reserved) => {
            tx.commit().await.map_err(not_read)?;
            begun.reserved = reserved;
            Ok(())
        }
        Err(turn_phases::Error::Budget(ReserveError::Refused(refusal))) => Err(refused(refusal)),
        Err(error) => Err(not_read(error)),
    }
}

/// Builds the error of a turn that stops. Its end finds the refusal in it, if the task fails or waits for its budget. A task also waits
/// for a call that needs more than the whole limit, because the calls before it are paid.
fn refused(refusal: Refusal) -> providers::Error {
    let snooze = |after| Class::Snooze { after, scope: Scope::Host };
    let error = match (refusal.on_limit, refusal.may_pass_later()) {
        (OnLimit::Wait, _) => providers::Error::new(BUDGET_CODE, snooze(Duration::ZERO), refusal),
        (OnLimit::Fail, true) => {
            providers::Error::new(BUDGET_CODE, snooze(BUDGET_PAUSE), refusal.describe_delay())
        }
        (OnLimit::Fail, false) => providers::Error::new(BUDGET_CODE, Class::Fail, refusal),
    };
    error.of(Origin::Budget).before_call()
}

fn not_read(error: impl Into<BoxError>) -> providers::Error {
    database_error("transcript.not_read", error)
}

/// The budget of a turn whose provider makes the calls.
pub struct Watch<'a> {
    run: &'a Run,
    services: &'a Services,
    assignment: &'a Assignment<'a>,
    begun: StartedTurn,
    /// The provider's counters from before the turn.
    so_far: Meter,
    /// Latest usage that was not checked yet.
    latest: Option<UsageSoFar>,
    asking: Option<BudgetCheck<'a>>,
    refused: Option<providers::Error>,
}

type BudgetCheck<'a> =
    Pin<Box<dyn Future<Output = (StartedTurn, Result<(), providers::Error>)> + Send + 'a>>;

impl<'a> Watch<'a> {
    pub fn of(
        run: &'a Run,
        services: &'a Services,
        assignment: &'a Assignment<'a>,
        begun: StartedTurn,
        so_far: Meter,
    ) -> Self {
        Self { run, services, assignment, begun, so_far, latest: None, asking: None, refused: None }
    }

    /// Takes the usage before the provider's next call of the model.
    pub fn record_usage(&mut self, used: UsageSoFar) {
        if self.assignment.is_limited && self.refused.is_none() {
            self.latest = Some(used);
            self.ask();
        }
    }

    /// Waits for the answer of a check. Returns true if the turn has to stop. To be polled in a loop, beside the call.
    pub async fn wait_for_check(&mut self) -> bool {
        let (begun, answer) = match &mut self.asking {
            Some(asking) => asking.await,
            None => std::future::pending().await,
        };
        (self.asking, self.begun) = (None, begun);
        match answer {
            Ok(()) => self.ask(),
            Err(error) if error.origin == Origin::Budget => self.refused = Some(error),
            // An unreachable database stops no turn; the next call checks again.
            Err(error) => {
                tracing::debug!(error = causes(&error), "cannot check the budget of a turn");
            }
        }
        self.refused.is_some()
    }

    /// Waits for running checks after the call: their reservations belong to the turn, which ends after them.
    pub async fn finish(&mut self) {
        self.latest = None;
        while self.asking.is_some() {
            self.wait_for_check().await;
        }
    }

    /// Replaces the error of a call that the budget has stopped, and keeps its messages until then.
    pub async fn end(mut self, opened: &mut OpenTurn, called: CallReport) -> CallReport {
        let CallReport { result, mut arrived, mut rounds, .. } = called;
        let result = match result {
            Ok(outcome) => Ok(outcome),
            Err(error) => Err(self.reason(error).await),
        };
        opened.begun.reserved = self.begun.reserved;
        if let Err(error) = &result
            && error.origin == Origin::Budget
        {
            rounds.said = self.completed_messages(opened, &error.said);
            if !rounds.said.is_empty() {
                arrived = unfinished_output(&arrived, &rounds.said).to_owned();
            }
        }
        CallReport { result, arrived, rounds, ..called }
    }

    /// Checks the latest usage, unless a check is running.
    fn ask(&mut self) {
        if self.asking.is_some() {
            return;
        }
        let Some(mut used) = self.latest.take() else { return };
        let Self { run, services, assignment, mut begun, .. } = *self;
        assignment.route.provider.estimate_costs(&mut used.spent, &self.so_far);
        let spent = ledger::sum_amounts(services, assignment, &used.spent);
        // The next prompt has at least the last prompt and its answer. The provider itself limits the cost.
        let tokens = i64::try_from(used.context_tokens).unwrap_or(i64::MAX);
        let ahead = Amount { micros: 0, tokens };
        let asking = async move {
            let now = services.clock.now();
            let answer = reserve_for_call(run, assignment, &mut begun, spent, ahead, now).await;
            (begun, answer)
        };
        self.asking = Some(asking.boxed());
    }

    /// Returns the error of the call, with the budget's reason where the budget has stopped it.
    async fn reason(&mut self, error: providers::Error) -> providers::Error {
        let refused = match error.origin {
            Origin::CostLimit => {
                let spent = ledger::sum_amounts(self.services, self.assignment, &error.spent);
                let least = Amount { micros: 1, tokens: 0 };
                let Self { run, services, assignment, ref mut begun, .. } = *self;
                let now = services.clock.now();
                reserve_for_call(run, assignment, begun, spent, least, now).await.err()
            }
            _ => self.refused.take().filter(|_| error.class == Class::Cancelled),
        };
        match refused.filter(|refused| refused.origin == Origin::Budget) {
            Some(refused) => refused.instead_of(error),
            None => error,
        }
    }

    fn completed_messages(&self, opened: &OpenTurn, said: &[Message]) -> Vec<messages::New> {
        let now = self.services.clock.now();
        let said = said.iter().map(|message| measure_message(ids::new_at(now), message.clone()));
        window::fit_stopped(opened, said.collect())
    }
}

/// Returns the part of the output that is after all complete messages.
fn unfinished_output<'a>(arrived: &'a str, said: &[messages::New]) -> &'a str {
    let answers = said.iter().filter(|new| new.message.role == Role::Assistant);
    let answers: String = answers.map(|new| new.message.text.as_str()).collect();
    arrived.strip_prefix(answers.as_str()).unwrap_or_default()
}
