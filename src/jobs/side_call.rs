//! A call of a model beside the turns, its line in the ledger, and its stored context.

use std::{borrow::Cow, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    busy,
    rate_limits::{CallSize, CallUse, Permit, RateLimits},
    side_context::{self, SideContext},
    write_attempts::WriteRetries,
};
use crate::{
    causes::causes,
    clock::Clock,
    context::prompt_manifest::Cut,
    domain::{
        Amount, StatementError,
        amount::Owner,
        budgets::{self, Payers, Spender},
        busy_models::{self, BusyModel, RefusedCall},
        campaigns, ids,
        prices::Cost,
        rate_limits::CallScope,
        sessions, tasks, text,
        usage::{self, Tokens},
    },
    providers::{
        self, Class, Origin, Outcome, Provider, Purpose, Request, Scope, SentRequest, StopReason,
        Usage,
    },
    queue::{HoldUntil, JobError},
};

/// The text of the model, or the reason why there is none.
pub(super) type Answer = Result<String, NoAnswer>;

#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error("the answer broke off after {0} tokens")]
    BrokeOff(u32),
    /// The message is the provider's, and may contain foreign text.
    #[error(transparent)]
    Failed(providers::Error),
}

pub(super) struct SideCall<'a> {
    pub(super) pool: &'a PgPool,
    pub(super) clock: &'a dyn Clock,
    pub(super) cancel: &'a CancellationToken,
    pub(super) provider: &'a dyn Provider,
    pub(super) model: &'a str,
    /// Computes the cost of tokens of one of the provider's models.
    pub(super) cost: &'a (dyn Fn(&str, Tokens) -> Cost + Sync),
    pub(super) payer: Payer<'a>,
    /// Settings of the backoff while the provider is busy.
    pub(super) busy: busy_models::Config,
    pub(super) rate_limits: &'a Arc<RateLimits>,
}

/// The session and the budgets that a call is charged to.
#[derive(Clone, Copy)]
pub(super) struct Payer<'a> {
    pub(super) campaign_id: Uuid,
    pub(super) session_id: Uuid,
    pub(super) turn: i32,
    /// The task whose turn waits for the call. It pays, within its own budget. `None`: only the campaign pays.
    pub(super) task_id: Option<Uuid>,
    pub(super) agent: &'a str,
    pub(super) provider: &'a str,
}

/// A call that was made.
pub(super) struct MadeCall {
    pub(super) answered: Result<Outcome, providers::Error>,
    /// The request as it was sent.
    pub(super) sent: Option<Box<SentRequest>>,
    /// The id of the call in the ledger if the provider gives its answer none, so that a repeated write charges it once.
    id: String,
    called_at: DateTime<Utc>,
    /// True if the model was known to be busy.
    was_busy: bool,
}

/// Time until the next call to a server that this worker cannot reach.
const UNREACHABLE_PAUSE: Duration = Duration::from_secs(60);

#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The call was not made, or was stopped.
    #[error("the model could not be called: {0}")]
    NotAsked(#[source] providers::Error),
    #[error(transparent)]
    Task(#[from] tasks::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
    #[error("cannot begin or commit a transaction of a call")]
    Transaction(#[source] sqlx::Error),
}

impl SideCall<'_> {
    /// Returns the reason why the budget of the campaign or of the task does not allow the call, if there is one. It
    /// reads without a lock: a call that just fitted is still charged in full.
    pub(super) async fn refusal(
        &self,
        prompt_tokens: u64,
        reply_max_tokens: u64,
    ) -> Result<Option<String>, Error> {
        let most = Tokens {
            input: Some(clamped(prompt_tokens)),
            output: Some(clamped(reply_max_tokens)),
            ..Tokens::default()
        };
        let needed = Amount { micros: (self.cost)(self.model, most).micros, tokens: most.total() };
        if let Some(task_id) = self.payer.task_id {
            match tasks::check_budget(self.pool, task_id, needed).await {
                Err(tasks::Error::Budget(refusal)) => return Ok(Some(refusal.to_string())),
                admitted => admitted?,
            }
        }
        let campaign_id = self.payer.campaign_id;
        let Some(budget) = campaigns::budget(self.pool, campaign_id).await? else {
            return Ok(None);
        };
        let owner = Owner::Campaign(campaign_id);
        let admitted = budget.limit.check(owner, budget.spent, budget.reserved, needed);
        if let Err(refusal) = admitted {
            return Ok(Some(refusal.to_string()));
        }
        let (agent, now) = (self.payer.agent, self.clock.now());
        let refusal = budgets::refusal(self.pool, campaign_id, agent, needed, now).await?;
        Ok(refusal.map(|refusal| refusal.to_string()))
    }

    /// Makes the call, and records its cost and its context. `cuts` are those of the only message. After an error there was no call.
    pub(super) async fn ask(&self, request: Request, cuts: &[Cut]) -> Result<Answer, Error> {
        let reply_max_tokens = request.reserve_tokens;
        let purpose = purpose(&request.purpose);
        let mut context = SideContext::new(&request, cuts);
        let called = self.call(request).await?;
        if let Some(sent) = &called.sent {
            context.add_request(sent);
        }
        if let Some(line) = self.ledger_line(purpose, &called) {
            context.store_texts(self.pool, self.payer.session_id).await;
            self.record(&line, &context).await?;
        }
        Ok(match self.judge(called).await? {
            Ok(outcome) if outcome.stop == StopReason::Length => {
                Err(NoAnswer::BrokeOff(reply_max_tokens))
            }
            Ok(outcome) => Ok(outcome.message.text),
            Err(error) => Err(NoAnswer::Failed(error)),
        })
    }

    /// Makes the call. The caller charges it, and then judges it. After an error there was no call.
    pub(super) async fn call(&self, request: Request) -> Result<MadeCall, Error> {
        let known = self.admit().await?;
        let mut permit = self.admit_within_limits(&request)?;
        let called_at = self.clock.now();
        let (answered, sent) = side_context::run(self.provider, request, self.cancel.clone()).await;
        let usage = match &answered {
            Ok(outcome) => outcome.usage,
            Err(error) => error.usage.as_deref().copied().unwrap_or_default(),
        };
        if answered.as_ref().err().is_none_or(|error| !error.is_unasked) {
            let counts_cached = self.provider.limits_count_cached_tokens();
            permit.charge(CallUse { n_calls: 1, usage, counts_cached });
        }
        let id = ids::new_at(called_at).to_string();
        Ok(MadeCall { answered, sent, id, called_at, was_busy: known.is_some() })
    }

    /// Records if the model is busy. Returns the answer, or the error for which there is none. Other errors do not count as a call.
    pub(super) async fn judge(
        &self,
        MadeCall { answered, called_at, was_busy, .. }: MadeCall,
    ) -> Result<Result<Outcome, providers::Error>, Error> {
        let mut error = match answered {
            Ok(outcome) => {
                if was_busy {
                    self.record_availability(called_at).await;
                }
                return Ok(Ok(outcome));
            }
            Err(error) => error,
        };
        if let Some(after) = model_pause(&error) {
            return self.back_off(error, after, called_at).await.map(Err);
        }
        match error.class {
            Class::Snooze { scope: scope @ Scope::Worker, after } => {
                error.class = Class::Snooze { after: after.max(UNREACHABLE_PAUSE), scope };
                Err(Error::NotAsked(error))
            }
            Class::Snooze { .. } | Class::Cancelled => Err(Error::NotAsked(error)),
            Class::Retry { .. } | Class::Rebuild { .. } | Class::Reject | Class::Fail => {
                Ok(Err(error))
            }
        }
    }

    /// Records that a busy model answers again. A failure is only logged, because the answer was paid for; the next answer records it.
    async fn record_availability(&self, called_at: DateTime<Utc>) {
        let (provider, model) = (self.payer.provider, self.model);
        let recorded = busy_models::record_answer(self.pool, provider, model, called_at).await;
        if let Err(error) = recorded {
            let error = causes(&error);
            tracing::warn!(provider, model, error, "cannot record that a busy model answers again");
        }
    }

    /// Refuses the call while its model is busy. Returns the busy model where this call may try it again.
    async fn admit(&self) -> Result<Option<BusyModel>, Error> {
        let (provider, now) = (self.payer.provider, self.clock.now());
        let Some(known) = busy_models::find(self.pool, provider, self.model).await? else {
            return Ok(None);
        };
        if busy_models::claim_retry(self.pool, &self.busy, provider, self.model, now).await? {
            return Ok(Some(known));
        }
        let after = if known.until > now { known.wait(now) } else { self.busy.first_wait() };
        let class = Class::Snooze { after, scope: Scope::Host };
        let error = providers::Error::new("busy", class, known.describe()).before_call();
        Err(Error::NotAsked(error))
    }

    /// Takes the shares of rate limits. A call for a turn is charged without a wait, because the turn was or will be admitted itself. Others
    /// wait while a limit is in debt.
    fn admit_within_limits(&self, request: &Request) -> Result<Permit, Error> {
        let call = CallScope {
            provider: self.payer.provider,
            model: self.model,
            credential: request.credential.as_deref().or_else(|| self.provider.credential_name()),
            campaign_id: self.payer.campaign_id,
        };
        let size = CallSize {
            input_tokens: request.estimated_prompt_tokens.unwrap_or_default().into(),
            output_tokens: request.reserve_tokens.into(),
        };
        let must_run = self.payer.task_id.is_some();
        self.rate_limits.charge_unadmitted(call, size, must_run).map_err(|(limit, after)| {
            let class = Class::Snooze { after, scope: Scope::Host };
            let why = limit.describe_wait();
            let error = providers::Error::new("rate_limit", class, why).of(Origin::RateLimit);
            Error::NotAsked(error.before_call())
        })
    }

    /// Records the model as busy. After `busy.is_over` the call counts as failed instead.
    async fn back_off(
        &self,
        mut error: providers::Error,
        after: Duration,
        called_at: DateTime<Utc>,
    ) -> Result<providers::Error, Error> {
        let now = self.clock.now();
        busy::count(self.payer.provider);
        let call = RefusedCall {
            provider: self.payer.provider,
            model: self.model,
            called_at,
            at_least: after,
            why: &text::make_storable(error.to_string()),
        };
        let known = busy_models::record_refusal(self.pool, &self.busy, call, now).await?;
        let after = known.wait(now);
        if self.busy.is_over(known.since, now) {
            error.class = Class::Retry { after: Some(after) };
            return Ok(error);
        }
        error.class = Class::Snooze { after, scope: Scope::Host };
        Err(Error::NotAsked(error))
    }

    /// Builds the line of the ledger; `None` if the provider has not accepted the call.
    pub(super) fn ledger_line<'c>(
        &'c self,
        purpose: usage::Purpose,
        MadeCall { answered, id, .. }: &'c MadeCall,
    ) -> Option<usage::Call<'c>> {
        let (outcome, usage) = billed_usage(answered)?;
        let tokens = tokens(usage);
        let cost = (self.cost)(self.model, tokens);
        let told = reported_micros(answered).filter(|_| cost.price.is_none());
        let durations = answered.as_ref().ok().map(|outcome| outcome.durations);
        let millis = |duration: Duration| i32::try_from(duration.as_millis()).ok();
        let of_answer =
            answered.as_ref().ok().and_then(|outcome| outcome.provider_message_id.as_deref());
        Some(usage::Call {
            campaign_id: self.payer.campaign_id,
            task_id: self.payer.task_id,
            session_id: Some(self.payer.session_id),
            turn: Some(self.payer.turn),
            agent: self.payer.agent,
            provider: self.payer.provider,
            model: self.model,
            purpose,
            outcome,
            provider_message_id: Some(of_answer.unwrap_or(id)),
            tokens,
            cost_micros: told.unwrap_or(cost.micros),
            price: cost.price.map(Cow::Owned),
            first_byte_ms: durations.and_then(|durations| durations.first_byte).and_then(millis),
            total_ms: durations.map(|durations| durations.total).and_then(millis),
            called_at: self.clock.now(),
        })
    }

    /// Writes the call as soon as the database answers: without its line, it would be made and paid for again.
    async fn record(&self, call: &usage::Call<'_>, context: &SideContext) -> Result<(), Error> {
        let mut retries = WriteRetries::new(self.cancel);
        loop {
            match self.write(call, context).await {
                Err(error) if retries.wait_after(&error).await => {}
                written => return written,
            }
        }
    }

    /// Writes ledger, session, task and budget in one transaction, in the order in which turns lock them.
    async fn write(&self, call: &usage::Call<'_>, context: &SideContext) -> Result<(), Error> {
        let mut tx = self.pool.begin().await.map_err(Error::Transaction)?;
        let session_id = self.payer.session_id;
        sessions::add_tokens(&mut *tx, session_id, call.tokens.total()).await?;
        // A call that is already in the ledger was charged: the transaction is dropped.
        if let Some(ledger_id) = usage::record(&mut *tx, call).await? {
            usage::insert_context(&mut *tx, ledger_id, session_id, &context.manifest()).await?;
            if let Some(task_id) = call.task_id {
                tasks::charge(&mut *tx, task_id, call.amount()).await?;
            }
            let payers = Payers::campaign(self.payer.campaign_id);
            let amounts = (Amount::ZERO, call.amount());
            let spender = Spender { agent: self.payer.agent, task_id: self.payer.task_id };
            budgets::settle(&mut *tx, payers, spender, amounts, self.clock.now()).await?;
            tx.commit().await.map_err(Error::Transaction)?;
        }
        Ok(())
    }
}

/// Returns the least time for which a refused call pauses all calls of its model. `None`: the error says nothing about the model, for example
/// because this host has no disk space left.
fn model_pause(error: &providers::Error) -> Option<Duration> {
    match error.class {
        Class::Snooze { scope: Scope::Host, after } if !error.origin.is_unrelated_to_provider() => {
            Some(after)
        }
        _ => None,
    }
}

/// Maps to the ledger's name.
fn purpose(asked: &Purpose) -> usage::Purpose {
    match asked {
        Purpose::Turn => usage::Purpose::Turn,
        Purpose::Summary { .. } => usage::Purpose::Summary,
        Purpose::Facts { .. } => usage::Purpose::Facts,
    }
}

/// Returns the cost that the provider reports, if it reports one.
fn reported_micros(answered: &Result<Outcome, providers::Error>) -> Option<i64> {
    let spent = match answered {
        Ok(outcome) => &outcome.spent,
        Err(error) => &error.spent,
    };
    let told: u64 = spent.iter().filter_map(|spent| spent.cost_micros).sum();
    i64::try_from(told).ok().filter(|_| !spent.is_empty())
}

/// Maps an answer to an outcome of the ledger. A call that was not made, or that the provider did not accept, gets no line.
fn billed_usage(
    answered: &Result<Outcome, providers::Error>,
) -> Option<(usage::Outcome, Option<Usage>)> {
    match answered {
        Ok(outcome) => Some((usage::Outcome::Done, Some(outcome.usage))),
        Err(error) if error.is_unasked => None,
        Err(error) => {
            let usage = error.usage.as_deref().copied();
            match error.class {
                Class::Snooze { .. } if usage.is_none() => None,
                Class::Cancelled => Some((usage::Outcome::Interrupted, usage)),
                _ => Some((usage::Outcome::Failed, usage)),
            }
        }
    }
}

fn tokens(usage: Option<Usage>) -> Tokens {
    let usage = usage.unwrap_or_default();
    Tokens {
        input: usage.input.map(clamped),
        output: usage.output.map(clamped),
        cache_read: usage.cache_read.map(clamped),
        cache_creation: usage.cache_creation.map(clamped),
    }
}

fn clamped(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

pub(super) fn clamp_to_u32(tokens: u64) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

impl From<Error> for JobError {
    fn from(error: Error) -> Self {
        match &error {
            Error::NotAsked(source) => match source.class {
                Class::Snooze { after, .. } => {
                    Self::snooze_for(busy::wait_cause(source), HoldUntil::After(after))(error)
                }
                // A worker that shuts down returns the job; the queue knows why the token was cancelled.
                _ => Self::retry(error),
            },
            _ => Self::retry(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_of_the_provider_pauses_the_model() {
        let after = Duration::from_secs(7);
        let pause = |scope, origin| {
            let class = Class::Snooze { after, scope };
            model_pause(&providers::Error::new("test", class, "no space").of(origin))
        };
        assert_eq!(pause(Scope::Host, Origin::Provider), Some(after));
        for origin in [Origin::Host, Origin::Budget, Origin::RateLimit] {
            assert_eq!(pause(Scope::Host, origin), None, "{origin:?}");
        }
        for scope in [Scope::Worker, Scope::Credential] {
            assert_eq!(pause(scope, Origin::Provider), None, "{scope:?}");
        }
    }

    #[test]
    fn a_call_that_was_not_made_has_no_ledger_line() {
        for class in [Class::Fail, Class::Cancelled, Class::Retry { after: None }] {
            let failed = || providers::Error::new("test", class, "no program");
            assert!(billed_usage(&Err(failed().before_call())).is_none(), "{class:?}");
            assert!(billed_usage(&Err(failed())).is_some(), "{class:?}");
        }
    }
}
