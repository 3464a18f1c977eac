//! The budget of a turn between two calls of the model.
//!
//! What the turn has spent, and what its next call needs, is set aside in the campaign's budget before that call is made: so many
//! turns at once pass a limit by no more than one call each. Where it cannot be set aside, the turn stops.
//!
//! A provider that makes all calls of a turn by itself tells what it has used behind each of them ([`Watch`]). Its next call is not
//! held up meanwhile: one that has begun when the answer is no is cut off, and paid as far as it got.

use std::pin::Pin;

use futures_util::FutureExt as _;

use crate::{
    causes::causes,
    domain::{
        Amount,
        amount::{Limit, Owner, Refusal},
        campaigns::ReserveError,
        ids, messages, tasks,
        turn_phases::{self, Begun},
    },
    jobs::{
        Services,
        measure::measured,
        run_turn::{
            begin::open_turn::OpenTurn,
            call::{ledger, report::CallReport, rounds::window},
            error::BUDGET_PAUSE,
            load::assignment::Assignment,
        },
    },
    providers::{self, Class, Meter, Origin, Scope, Used},
    queue::Run,
    transcript::{Message, Role},
};

/// Sets aside what a turn has `spent` and its next call needs. Where nothing limits the turn, nothing is asked and nothing is
/// written.
pub async fn set_aside(
    run: &Run,
    assignment: &Assignment<'_>,
    begun: &mut Begun,
    spent: Amount,
    ahead: Amount,
) -> Result<(), providers::Error> {
    if !assignment.is_limited {
        return Ok(());
    }
    // What room has cost in between is the task's already.
    let task = tasks::get(run.pool(), assignment.task.id).await.map_err(not_read)?;
    let limit = Limit { micros: task.budget_micros, tokens: task.budget_tokens };
    let before = Amount { micros: task.spent_micros, tokens: task.spent_tokens };
    limit.admit(Owner::Task, before + spent, Amount::ZERO, ahead).map_err(refused)?;
    let mut tx = run.pool().begin().await.map_err(not_read)?;
    match turn_phases::reserve_more(&mut tx, begun, spent, ahead).await {
        Ok(reserved) => {
            tx.commit().await.map_err(not_read)?;
            begun.reserved = reserved;
            Ok(())
        }
        Err(turn_phases::Error::Budget(ReserveError::Refused(refusal))) => Err(refused(refusal)),
        Err(error) => Err(not_read(error)),
    }
}

fn refused(refusal: Refusal) -> providers::Error {
    let (class, why) = match refusal.may_pass_later() {
        true => {
            (Class::Snooze { after: BUDGET_PAUSE, scope: Scope::Host }, refusal.words_of_delay())
        }
        false => (Class::Fail, refusal.to_string()),
    };
    providers::Error::new("turn.budget", class, why).of(Origin::Budget).not_made()
}

/// The end of the turn finds out for itself if another run has the conversation by now.
fn not_read(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> providers::Error {
    let retry = Class::Retry { after: None };
    providers::Error::new("transcript.not_read", retry, error).of(Origin::Host).not_made()
}

/// The budget of a turn whose provider makes the calls.
pub struct Watch<'a> {
    run: &'a Run,
    services: &'a Services,
    assignment: &'a Assignment<'a>,
    begun: Begun,
    /// What the provider had counted before the turn.
    so_far: Meter,
    /// Not asked about yet.
    latest: Option<Used>,
    asking: Option<Asking<'a>>,
    refused: Option<providers::Error>,
}

type Asking<'a> = Pin<Box<dyn Future<Output = (Begun, Result<(), providers::Error>)> + Send + 'a>>;

impl<'a> Watch<'a> {
    pub fn of(
        run: &'a Run,
        services: &'a Services,
        assignment: &'a Assignment<'a>,
        begun: Begun,
        so_far: Meter,
    ) -> Self {
        Self { run, services, assignment, begun, so_far, latest: None, asking: None, refused: None }
    }

    /// The provider is about to ask the model again.
    pub fn take(&mut self, used: Used) {
        if self.assignment.is_limited && self.refused.is_none() {
            self.latest = Some(used);
            self.ask();
        }
    }

    /// Returns when there is an answer: true if the turn has to stop. To be waited for over and over, beside the call.
    pub async fn step(&mut self) -> bool {
        let (begun, answer) = match &mut self.asking {
            Some(asking) => asking.await,
            None => std::future::pending().await,
        };
        (self.asking, self.begun) = (None, begun);
        match answer {
            Ok(()) => self.ask(),
            Err(error) if error.origin == Origin::Budget => self.refused = Some(error),
            // A database that is away stops no turn; the next call asks again.
            Err(error) => {
                tracing::debug!(error = causes(&error), "the budget of a turn was not looked at");
            }
        }
        self.refused.is_some()
    }

    /// Behind the call: what was asked for has to be known, because the end of the turn gives it back.
    pub async fn finish(&mut self) {
        self.latest = None;
        while self.asking.is_some() {
            self.step().await;
        }
    }

    /// The call as what it is: stopped by the budget, with what was said until then.
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
            rounds.said = self.said(opened, &error.said);
            if !rounds.said.is_empty() {
                arrived = unsaid(&arrived, &rounds.said).to_owned();
            }
        }
        CallReport { result, arrived, rounds, ..called }
    }

    /// Asks about the latest, unless an answer is on its way.
    fn ask(&mut self) {
        if self.asking.is_some() {
            return;
        }
        let Some(mut used) = self.latest.take() else { return };
        let Self { run, services, assignment, mut begun, .. } = *self;
        assignment.route.provider.estimate_costs(&mut used.spent, &self.so_far);
        let spent = ledger::amount(services, assignment, &used.spent);
        // Its prompt is what the last one and its answer were, and more. What it costs, the provider looks after itself.
        let tokens = i64::try_from(used.context_tokens).unwrap_or(i64::MAX);
        let ahead = Amount { micros: 0, tokens };
        let asking = async move {
            let answer = set_aside(run, assignment, &mut begun, spent, ahead).await;
            (begun, answer)
        };
        self.asking = Some(asking.boxed());
    }

    /// Why the call has ended, in our own words and sums where it was the budget.
    async fn reason(&mut self, error: providers::Error) -> providers::Error {
        let refused = match error.origin {
            Origin::CostLimit => {
                let spent = ledger::amount(self.services, self.assignment, &error.spent);
                let least = Amount { micros: 1, tokens: 0 };
                let Self { run, assignment, ref mut begun, .. } = *self;
                set_aside(run, assignment, begun, spent, least).await.err()
            }
            _ => self.refused.take().filter(|_| error.class == Class::Cancelled),
        };
        match refused.filter(|refused| refused.origin == Origin::Budget) {
            Some(refused) => refused.instead_of(error),
            None => error,
        }
    }

    fn said(&self, opened: &OpenTurn, said: &[Message]) -> Vec<messages::New> {
        let now = self.services.clock.now();
        let said = said.iter().map(|message| measured(ids::at(now), message.clone()));
        window::fit_stopped(opened, said.collect())
    }
}

/// What had arrived of a call that was cut off, behind all that was said before it.
fn unsaid<'a>(arrived: &'a str, said: &[messages::New]) -> &'a str {
    let answers = said.iter().filter(|new| new.message.role == Role::Assistant);
    let answers: String = answers.map(|new| new.message.text.as_str()).collect();
    arrived.strip_prefix(answers.as_str()).unwrap_or_default()
}
