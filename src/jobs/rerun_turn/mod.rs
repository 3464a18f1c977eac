//! Handler that makes one call of a turn again.
//!
//! ```text
//! read the call ──▶ build the request ──▶ reserve ──▶ call ──▶ one commit: ledger · budget for experiments · answer
//! ```
//!
//! Invariants:
//! - Nothing of the conversation changes. Tool calls of the answer are stored, and never executed.
//! - No transaction is open while the model answers. The cost of an answer and the answer are one commit; a failed call is charged before
//!   it is judged.
//! - The job is done when its rerun has ended, also when that has failed: the rerun has the reason. A provider that fails for now uses up an
//!   attempt of the job.
//!
//! Race: a run that was declared lost may end its call beside the next one. Both are charged, and the first answer stays. On the same host the
//! next call ends the one before, because both have the same conversation: so only a run that holds its lease fails the rerun.

mod request;
mod route;

use std::{sync::Arc, time::Duration};

use sqlx::{PgConnection, PgPool, Postgres, Transaction};

pub use self::route::rerun_routes;
use super::{
    Services,
    side_call::{self, MadeCall, Payer, SideCall},
    write_attempts::WriteRetries,
};
use crate::{
    context::Digest,
    domain::{
        StatementError, campaigns,
        class::{Classify as _, Kind},
        credentials, messages,
        prices::Price,
        reruns::{self, Answer, Rerun, RerunEnd, RerunTurn, ReserveError, State},
        sessions::{self, SessionRow},
        text,
        usage::{self, Purpose},
    },
    providers::{self, Class, Outcome, Provider, Request, StopReason},
    queue::{self, End, HandlerResult, HoldUntil, JobError, Run, WaitCause},
};

/// Wait before another look at a budget of which other reruns hold a part.
const BUDGET_PAUSE: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(
        "every credential of {provider} is paused, `{credential}` because {reason}: the call is made when a pause ends, or after `dalsegno credential resume`"
    )]
    Paused { provider: String, credential: String, reason: String },
}

/// The reason why there is no answer.
enum NoAnswer {
    /// Stored with the rerun, which has failed.
    Failed(String),
    /// The job runs again.
    Later(JobError),
}

pub(super) async fn run(job: RerunTurn, run: Run, services: Arc<Services>) -> HandlerResult {
    let found = reruns::find(run.pool(), job.rerun_id).await.map_err(JobError::retry)?;
    let Some(rerun) = found.filter(|rerun| rerun.state == State::Queued) else {
        return Ok(End::Done);
    };
    match answer(&run, &services, &rerun).await {
        Ok(()) => {}
        Err(NoAnswer::Later(error)) => return Err(error),
        Err(NoAnswer::Failed(reason)) => {
            let reason = text::make_storable(reason);
            let end = RerunEnd::without_call(&reason);
            let now = services.clock.now();
            let mut tx = run.pool().begin().await.map_err(JobError::retry)?;
            reruns::end(&mut *tx, rerun.id, &end, now).await.map_err(JobError::retry)?;
            return Ok(run.commit(tx).await?);
        }
    }
    Ok(End::Done)
}

/// Makes the call, and stores the answer.
async fn answer(run: &Run, services: &Services, rerun: &Rerun) -> Result<(), NoAnswer> {
    let session = sessions::read_live(run.pool(), rerun.session_id).await?;
    let Some(provider) = services.providers.find(&rerun.provider) else {
        return Err(reruns::Error::UnknownProvider(rerun.provider.clone()).into());
    };
    let mut conn = run.pool().acquire().await.map_err(later)?;
    let (context, draft) = request::read_call(&mut conn, services, rerun).await?;
    drop(conn);
    let sent_before = context.manifest.request.map(|request| request.sha256);
    let call = (context, draft.as_ref());
    let of = (rerun, &session);
    let mut request = request::build(services, provider, of, call, run.cancel()).await?;
    // Before the reservation: while a credential is paused, other reruns may use the budget.
    let credential = match provider.holds_session() {
        true => free_credential(run.pool(), services, provider, rerun).await?,
        false => None,
    };
    let reserved = reserve(run.pool(), services, (rerun, &session), provider, &request).await?;
    if provider.holds_session() {
        request::begin_conversation(&mut request, rerun, credential, reserved);
    }
    let cost = |model: &str, tokens| services.cost(&rerun.provider, model, tokens);
    let side_call = SideCall {
        pool: run.pool(),
        clock: &*services.clock,
        cancel: run.cancel(),
        provider,
        model: &rerun.model,
        cost: &cost,
        payer: Payer {
            campaign_id: session.campaign_id,
            session_id: session.id,
            turn: rerun.turn,
            task_id: None,
            agent: &session.agent,
            provider: &rerun.provider,
        },
        busy: services.busy,
        rate_limits: &services.rate_limits,
    };
    let made = match side_call.call(request).await {
        Ok(made) => made,
        Err(error) => return Err(not_called(run, rerun, error).await),
    };
    let sent = made.sent.as_ref().map(|sent| Digest::from_bytes(sent.sha256));
    let is_same_request = sent.zip(sent_before).map(|(sent, before)| sent == before);
    let store = Store { run, services, rerun, side_call: &side_call };
    store.charge(&made, is_same_request).await?;
    match side_call.judge(made).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(failed_call(run, error)),
        Err(error) => Err(NoAnswer::Later(error.into())),
    }
}

/// Reserves money where the call may cost some. Returns the amount.
async fn reserve(
    pool: &PgPool,
    services: &Services,
    (rerun, session): (&Rerun, &SessionRow),
    provider: &dyn Provider,
    request: &Request,
) -> Result<Option<i64>, NoAnswer> {
    let price = services.price(&rerun.provider, &rerun.model);
    let prompt_tokens = u64::from(request.estimated_prompt_tokens.unwrap_or(0));
    let answer_tokens = u64::from(request.reserve_tokens);
    let tokens = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let needed = match price {
        Some(_) => {
            let ceiling = Price::ceiling(price, tokens(prompt_tokens), tokens(answer_tokens));
            Some(ceiling.micros)
        }
        None if provider.reports_costs() => {
            provider.ceiling_micros(&rerun.model, prompt_tokens, answer_tokens).map(tokens)
        }
        None => return Ok(None),
    };
    let mut tx = begin(pool).await?;
    let reserved = reruns::reserve(&mut tx, session.campaign_id, rerun, needed).await;
    let reserved = reserved.map_err(|error| match error {
        ReserveError::Refused(refusal) if refusal.may_pass_later() => {
            let until = HoldUntil::After(BUDGET_PAUSE);
            NoAnswer::Later(JobError::snooze_for(Some(WaitCause::Limit), until)(refusal))
        }
        ReserveError::Refused(refusal) => NoAnswer::Failed(refusal.to_string()),
        error => NoAnswer::Later(JobError::retry(error)),
    })?;
    commit(tx).await?;
    Ok(Some(reserved))
}

/// Chooses the first credential that is not paused. `None`: the provider has none, or it refuses the call until a pause ends.
async fn free_credential(
    pool: &PgPool,
    services: &Services,
    provider: &dyn Provider,
    rerun: &Rerun,
) -> Result<Option<String>, NoAnswer> {
    let paused = credentials::paused(pool, &rerun.provider, services.clock.now()).await?;
    let is_free = |name: &&str| !paused.iter().any(|it| it.name == **name);
    let configured = provider.credentials();
    match (configured.iter().copied().find(is_free), paused.first()) {
        (None, Some(first)) if !configured.is_empty() => {
            let error = Error::Paused {
                provider: rerun.provider.clone(),
                credential: first.name.clone(),
                reason: first.why.clone(),
            };
            let until = HoldUntil::At(first.until);
            Err(NoAnswer::Later(JobError::snooze_for(Some(WaitCause::Provider), until)(error)))
        }
        (free, _) => Ok(free.map(str::to_owned)),
    }
}

/// Releases the reservation of a call that was not made.
async fn not_called(run: &Run, rerun: &Rerun, error: side_call::Error) -> NoAnswer {
    let released = async {
        let mut tx = begin(run.pool()).await?;
        release(&mut tx, run, rerun).await?;
        commit(tx).await
    };
    match released.await {
        Ok(()) => NoAnswer::Later(error.into()),
        Err(failed) => failed,
    }
}

/// Releases the reservation, unless the run has lost its lease: then it may be the reservation of the next run.
async fn release(conn: &mut PgConnection, run: &Run, rerun: &Rerun) -> Result<(), NoAnswer> {
    let is_ours = queue::check_and_lock_lease(&mut *conn, run.job_id(), run.lease()).await;
    if is_ours.map_err(JobError::retry).map_err(NoAnswer::Later)? {
        reruns::release(conn, rerun.id).await?;
    }
    Ok(())
}

/// A provider's error that is not about its load: the last attempt fails the rerun.
fn failed_call(run: &Run, error: providers::Error) -> NoAnswer {
    match error.class {
        Class::Retry { after } if run.attempt() < run.max_attempts() => {
            NoAnswer::Later(match after {
                Some(after) => JobError::retry_after(after)(error),
                None => JobError::retry(error),
            })
        }
        _ => NoAnswer::Failed(error.to_string()),
    }
}

/// Writes of a call that was made.
struct Store<'a> {
    run: &'a Run,
    services: &'a Services,
    rerun: &'a Rerun,
    side_call: &'a SideCall<'a>,
}

impl Store<'_> {
    /// Charges the call, and stores its answer if there is one, as soon as the database answers. A repeated write charges nothing twice.
    async fn charge(&self, made: &MadeCall, is_same_request: Option<bool>) -> Result<(), NoAnswer> {
        let mut retries = WriteRetries::new(self.run.cancel());
        loop {
            match self.try_charge(made, is_same_request).await {
                Err(NoAnswer::Later(error)) if retries.wait_after(&*error.source).await => {}
                charged => return charged,
            }
        }
    }

    async fn try_charge(
        &self,
        made: &MadeCall,
        is_same_request: Option<bool>,
    ) -> Result<(), NoAnswer> {
        let line = self.side_call.ledger_line(Purpose::Rerun, made);
        let mut tx = begin(self.run.pool()).await?;
        let mut ledger_id = None;
        if let Some(line) = &line {
            ledger_id = usage::record(&mut *tx, line).await?;
            // An answer that is already in the ledger was charged.
            if ledger_id.is_some() {
                let cost_micros = line.cost_micros;
                campaigns::charge_experiments(&mut *tx, line.campaign_id, cost_micros).await?;
            }
        }
        match (&made.answered, &line) {
            (Ok(outcome), Some(line)) => {
                let call = (line, ledger_id);
                self.end(&mut tx, outcome, call, is_same_request).await?;
            }
            _ => release(&mut tx, self.run, self.rerun).await?,
        }
        commit(tx).await
    }

    async fn end(
        &self,
        tx: &mut Transaction<'static, Postgres>,
        outcome: &Outcome,
        (line, ledger_id): (&usage::Call<'_>, Option<i64>),
        is_same_request: Option<bool>,
    ) -> Result<(), NoAnswer> {
        let message = messages::make_storable(outcome.message.clone());
        let answer = Answer {
            text: &message.text,
            tool_calls: &message.tool_calls,
            partial: outcome.stop == StopReason::Length,
        };
        let end = RerunEnd {
            result: Ok(answer),
            is_same_request,
            tokens: line.tokens,
            cost_micros: line.cost_micros,
            took_ms: line.total_ms,
            ledger_id,
        };
        Ok(reruns::end(&mut **tx, self.rerun.id, &end, self.services.clock.now()).await?)
    }
}

async fn begin(pool: &PgPool) -> Result<Transaction<'static, Postgres>, NoAnswer> {
    pool.begin().await.map_err(later)
}

async fn commit(tx: Transaction<'static, Postgres>) -> Result<(), NoAnswer> {
    tx.commit().await.map_err(later)
}

fn later(error: sqlx::Error) -> NoAnswer {
    NoAnswer::Later(JobError::retry(error))
}

impl From<StatementError> for NoAnswer {
    fn from(error: StatementError) -> Self {
        Self::Later(JobError::retry(error))
    }
}

impl From<reruns::Error> for NoAnswer {
    /// Errors of the installation and of the database may pass; the others are for the person who asked.
    fn from(error: reruns::Error) -> Self {
        match error.class().kind {
            Kind::Internal | Kind::Unavailable => Self::Later(JobError::retry(error)),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<sessions::Error> for NoAnswer {
    fn from(error: sessions::Error) -> Self {
        reruns::Error::from(error).into()
    }
}
