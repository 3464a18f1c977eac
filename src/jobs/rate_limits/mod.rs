//! The shares of rate limits that this process has leased.
//!
//! A call begins within the shares of all its limits, without a statement. Where a share is missing, the process leases once more, and the
//! task waits if that brings none ([`crate::domain::rate_limits`]). A loop renews the shares about twice a second.
//!
//! Without rules nothing is done for a call: its permit is empty, and the loop does not run.
//!
//! Races: calls use their shares while a lease is in flight. The lease returns the amount that was left when it began, so what was used
//! since then is subtracted from the new share, and a debt is paid with the next lease.

mod permit;
mod share;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use sqlx::PgPool;
use tokio::{sync::Notify, time::sleep};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub(super) use self::permit::{CallUse, Permit};
use self::share::Share;
use crate::{
    causes::causes,
    clock::Clock,
    domain::{
        StatementError,
        rate_limits::{self, CallScope, Config, Grant, Measure, RateLimit, WantedShare},
    },
};

/// The shares of a process, which all its runs use.
#[derive(Debug)]
pub struct RateLimits {
    config: Config,
    /// Identity of this process among those that lease.
    worker: Uuid,
    state: Mutex<State>,
    renewing: tokio::sync::Mutex<()>,
    /// Number of leases that have begun.
    n_begun: AtomicU64,
    /// Notified when a concurrent call ends for which tasks wait.
    freed: Notify,
}

/// A call without a share of one of its limits.
#[derive(Debug, Clone)]
pub(super) struct LimitRefusal {
    pub(super) limits: Vec<RateLimit>,
    /// Charges of the call in each of them.
    pub(super) amounts: Vec<f64>,
    /// Place of the limit that refuses the call.
    pub(super) at: usize,
    /// True if other tasks wait for that limit: this one goes behind them.
    pub(super) is_awaited: bool,
}

/// Estimated size of a call.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CallSize {
    pub(super) input_tokens: u64,
    /// Longest answer.
    pub(super) output_tokens: u64,
}

#[derive(Debug, Default)]
struct State {
    shares: HashMap<String, Share>,
    /// Tasks whose grants were taken since the last lease.
    begun: Vec<Uuid>,
    models: HashMap<ModelKey, Model>,
}

/// Provider, model and credential.
type ModelKey = (String, String, Option<String>);

/// Findings from the calls of a model.
#[derive(Debug, Default)]
struct Model {
    /// Limits that the provider tells.
    told: Vec<(Measure, f64)>,
    /// Counted tokens per estimated token of prompts and of the longest answers.
    input_ratio: Option<f64>,
    output_ratio: Option<f64>,
}

/// Time between two leases of a process.
const RENEW_EVERY: Duration = Duration::from_millis(500);
/// Least time between two leases that ended calls cause.
const RENEW_AFTER_CALL: Duration = Duration::from_millis(50);

impl RateLimits {
    pub fn new(config: Config) -> Self {
        Self {
            config,
            worker: Uuid::new_v4(),
            state: Mutex::default(),
            renewing: tokio::sync::Mutex::default(),
            n_begun: AtomicU64::new(0),
            freed: Notify::new(),
        }
    }

    pub(super) fn has_rules(&self) -> bool {
        !self.config.rules.is_empty()
    }

    /// Admits a call, which is charged its expected size. `grant`: a task that was served, and what it was charged.
    pub(super) fn admit(
        self: &Arc<Self>,
        call: CallScope<'_>,
        size: CallSize,
        grant: Option<(Uuid, &Grant)>,
    ) -> Result<Permit, LimitRefusal> {
        if !self.has_rules() {
            return Ok(Permit::default());
        }
        let mut state = self.state();
        let Some((limits, amounts)) = state.limits_of(&self.config, call, size) else {
            return Ok(Permit::default());
        };
        // A grant for another model of the agent's chain is left to expire.
        let grant = grant.filter(|(_, grant)| grant.is_for(&limits));
        if grant.is_none()
            && let Some(at) = state.first_without_space(&limits, &amounts)
        {
            let is_awaited = state.share(&limits[at]).is_awaited;
            return Err(LimitRefusal { limits, amounts, at, is_awaited });
        }
        let charges = limits.into_iter().zip(amounts).map(|(limit, amount)| {
            let share = state.share(&limit);
            match grant.and_then(|(_, grant)| grant.amount(&limit.key)) {
                Some(granted) => {
                    share.begin_granted(granted);
                    (limit, granted)
                }
                None => {
                    share.begin(amount);
                    (limit, amount)
                }
            }
        });
        let charges = charges.collect();
        state.begun.extend(grant.map(|(task_id, _)| task_id));
        drop(state);
        Ok(Permit::new(self, call, size, charges))
    }

    /// Admits a call that does not wait: it is charged even without a share, so that later calls wait longer. `Err`: the limit is in debt
    /// for more than a moment, and has space after this time.
    pub(super) fn charge_unadmitted(
        self: &Arc<Self>,
        call: CallScope<'_>,
        size: CallSize,
        must_run: bool,
    ) -> Result<Permit, (RateLimit, Duration)> {
        if !self.has_rules() {
            return Ok(Permit::default());
        }
        let mut state = self.state();
        let Some((limits, amounts)) = state.limits_of(&self.config, call, size) else {
            return Ok(Permit::default());
        };
        if !must_run {
            let in_debt = limits.iter().find_map(|limit| {
                let share = state.share(limit);
                share.asked = share.asked.max(1.0);
                Some((limit.clone(), share.debt()?))
            });
            if let Some(in_debt) = in_debt {
                return Err(in_debt);
            }
        }
        let charges = limits.into_iter().zip(amounts).map(|(limit, amount)| {
            state.share(&limit).begin(amount);
            (limit, amount)
        });
        let charges = charges.collect();
        drop(state);
        Ok(Permit::new(self, call, size, charges))
    }

    /// Returns true if a call that was refused would be admitted by now.
    pub(super) fn has_space(&self, refusal: &LimitRefusal) -> bool {
        let mut state = self.state();
        refusal.limits.iter().all(|limit| state.share(limit).has_space())
    }

    /// Leases shares for the calls that were refused and those that are expected. Callers at the same time share one lease.
    pub(super) async fn renew(
        &self,
        pool: &PgPool,
        clock: &dyn Clock,
    ) -> Result<(), StatementError> {
        let seen = self.n_begun.load(Ordering::SeqCst);
        let _only = self.renewing.lock().await;
        if self.n_begun.load(Ordering::SeqCst) > seen {
            return Ok(());
        }
        self.n_begun.fetch_add(1, Ordering::SeqCst);
        self.lease(pool, clock, false).await
    }

    /// Leases at an interval, until `stop`. Then it returns all shares. Without rules it ends at once.
    pub(super) async fn run(&self, pool: &PgPool, clock: &dyn Clock, stop: &CancellationToken) {
        if !self.has_rules() {
            return;
        }
        let due = async || {
            tokio::select! {
                () = sleep(RENEW_EVERY) => {}
                () = self.freed.notified() => sleep(RENEW_AFTER_CALL).await,
            }
        };
        while stop.run_until_cancelled(due()).await.is_some() {
            if let Err(error) = self.renew(pool, clock).await {
                tracing::warn!(error = causes(&error), "cannot lease shares of rate limits");
            }
        }
        let _only = self.renewing.lock().await;
        if let Err(error) = self.lease(pool, clock, true).await {
            tracing::debug!(error = causes(&error), "cannot return shares of rate limits");
        }
    }

    async fn lease(
        &self,
        pool: &PgPool,
        clock: &dyn Clock,
        is_last: bool,
    ) -> Result<(), StatementError> {
        let (wanted, begun) = self.state().take_wanted(is_last);
        let leased = rate_limits::lease(pool, self.worker, &wanted, &begun, clock.now()).await;
        let mut state = self.state();
        match leased {
            Ok(leases) => {
                for (wanted, lease) in wanted.iter().zip(by_key(&wanted, leases)) {
                    if let (Some(share), Some(lease)) =
                        (state.shares.get_mut(&wanted.limit.key), lease)
                    {
                        share.apply(&lease);
                    }
                }
                state.shares.retain(|_, share| !share.is_unused());
                Ok(())
            }
            Err(error) => {
                // The database may have taken the shares back.
                for wanted in &wanted {
                    if let Some(share) = state.shares.get_mut(&wanted.limit.key) {
                        share.lose(wanted);
                    }
                }
                state.begun.extend(begun);
                Err(error)
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LimitRefusal {
    /// Formats the reason of the wait.
    pub(super) fn describe(&self) -> String {
        self.limits[self.at].describe_wait()
    }
}

impl State {
    /// Lists the limits of a call and what it is charged in each. `None`: it has none.
    fn limits_of(
        &mut self,
        config: &Config,
        call: CallScope<'_>,
        size: CallSize,
    ) -> Option<(Vec<RateLimit>, Vec<f64>)> {
        let model = self.models.get(&model_key(call));
        let told = model.map_or(&[][..], |model| &model.told);
        let limits = config.limits_of(call, told)?;
        let tokens = |ratio: Option<f64>, n: u64| n as f64 * ratio.unwrap_or(1.0);
        let amounts = limits.iter().map(|limit| match limit.measure {
            Measure::Requests | Measure::ConcurrentCalls => 1.0,
            Measure::InputTokens => {
                tokens(model.and_then(|model| model.input_ratio), size.input_tokens)
            }
            Measure::OutputTokens => {
                tokens(model.and_then(|model| model.output_ratio), size.output_tokens)
            }
        });
        let amounts = amounts.collect();
        Some((limits, amounts))
    }

    /// Finds the first limit without a share. The next lease asks for what the call needs.
    fn first_without_space(&mut self, limits: &[RateLimit], amounts: &[f64]) -> Option<usize> {
        let full = limits.iter().position(|limit| !self.share(limit).has_space())?;
        for (limit, amount) in limits.iter().zip(amounts) {
            self.share(limit).asked += amount.max(1.0);
        }
        Some(full)
    }

    fn share(&mut self, limit: &RateLimit) -> &mut Share {
        self.shares.entry(limit.key.clone()).or_insert_with(|| Share::new(limit.clone()))
    }

    fn take_wanted(&mut self, is_last: bool) -> (Vec<WantedShare>, Vec<Uuid>) {
        let mut wanted: Vec<WantedShare> =
            self.shares.values_mut().map(|share| share.take_wanted(is_last)).collect();
        wanted.sort_by(|a, b| a.limit.key.cmp(&b.limit.key));
        (wanted, std::mem::take(&mut self.begun))
    }
}

fn model_key(call: CallScope<'_>) -> ModelKey {
    (call.provider.to_owned(), call.model.to_owned(), call.credential.map(str::to_owned))
}

/// Returns the lease of each wanted share.
fn by_key(
    wanted: &[WantedShare],
    leases: Vec<rate_limits::Lease>,
) -> impl Iterator<Item = Option<rate_limits::Lease>> {
    let mut leases: HashMap<String, rate_limits::Lease> =
        leases.into_iter().map(|lease| (lease.key.clone(), lease)).collect();
    wanted.iter().map(move |wanted| leases.remove(&wanted.limit.key))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        domain::rate_limits::Lease,
        providers::{ToldLimit, ToldLimits, Usage},
    };

    const CALL: CallScope<'_> =
        CallScope { provider: "p", model: "m", credential: None, campaign_id: Uuid::nil() };
    const SIZE: CallSize = CallSize { input_tokens: 100, output_tokens: 1000 };

    fn limits(rule: &serde_json::Value) -> Arc<RateLimits> {
        let config = serde_json::from_value(json!({ "rules": [rule] })).unwrap();
        Arc::new(RateLimits::new(config))
    }

    /// Leases this amount of the only limit.
    fn grant(limits: &RateLimits, amount: f64) {
        let mut state = limits.state();
        let (key, share) = state.shares.iter_mut().next().unwrap();
        let lease = Lease { key: key.clone(), granted: amount, available: 0.0, is_awaited: false };
        share.apply(&lease);
    }

    fn wanted(limits: &RateLimits) -> WantedShare {
        limits.state().take_wanted(false).0.remove(0)
    }

    fn used(input: u64, output: u64) -> CallUse {
        let usage = Usage { input: Some(input), output: Some(output), ..Usage::default() };
        CallUse { n_calls: 1, usage, counts_cached: true }
    }

    #[test]
    fn a_call_takes_its_share_or_is_refused_and_asked_for() {
        let limits = limits(&json!({ "provider": "p", "requests_per_minute": 60 }));
        let refusal = limits.admit(CALL, SIZE, None).unwrap_err();
        assert_eq!(refusal.describe(), "waiting for the provider `p`: 60 requests per minute");
        assert!(limits.admit(CALL, SIZE, None).is_err());
        assert_eq!(wanted(&limits).wanted, 2.0, "one for each call that was refused");
        grant(&limits, 2.0);
        let made =
            [limits.admit(CALL, SIZE, None).unwrap(), limits.admit(CALL, SIZE, None).unwrap()];
        assert!(limits.admit(CALL, SIZE, None).is_err());
        let [mut made, not_made] = made;
        made.charge(used(1, 1));
        drop((made, not_made));
        assert_eq!(wanted(&limits).returned, 1.0, "the call that was not made");
    }

    #[test]
    fn a_call_is_charged_what_it_used_and_the_next_is_estimated_by_it() {
        let limits = limits(&json!({ "model": "m", "input_tokens_per_minute": 600 }));
        assert!(limits.admit(CALL, SIZE, None).is_err());
        grant(&limits, 30.0);
        let mut permit = limits.admit(CALL, SIZE, None).unwrap();
        assert_eq!(wanted(&limits).returned, -70.0);
        permit.charge(used(50, 10));
        permit.charge(CallUse { n_calls: 2, ..used(130, 10) });
        drop(permit);
        assert_eq!(wanted(&limits).returned, -30.0, "beside the debt that was reported");
        let refusal = limits.admit(CALL, SIZE, None).unwrap_err();
        assert_eq!(refusal.amounts, [50.0], "half of its estimate");
    }

    #[test]
    fn a_grant_is_charged_once_and_counts_as_a_running_call() {
        let limits = limits(&json!({ "campaign": "*", "concurrent_calls": 4 }));
        let refusal = limits.admit(CALL, SIZE, None).unwrap_err();
        let granted = Grant {
            keys: refusal.limits.iter().map(|limit| limit.key.clone()).collect(),
            amounts: refusal.amounts,
        };
        let permit = limits.admit(CALL, SIZE, Some((Uuid::from_u128(7), &granted))).unwrap();
        let (wanted, begun) = limits.state().take_wanted(false);
        assert_eq!((wanted[0].in_use, begun), (1.0, vec![Uuid::from_u128(7)]));
        drop(permit);
        let (wanted, begun) = limits.state().take_wanted(false);
        assert_eq!((wanted[0].in_use, begun.len()), (0.0, 0));
    }

    #[test]
    fn a_share_is_not_used_while_a_lease_takes_it_back() {
        let limits = limits(&json!({ "provider": "p", "requests_per_minute": 600 }));
        assert!(limits.admit(CALL, SIZE, None).is_err());
        grant(&limits, 3.0);
        assert_eq!(wanted(&limits).returned, 3.0);
        assert!(limits.admit(CALL, SIZE, None).is_err(), "another worker may have got it");
        grant(&limits, 1.0);
        limits.admit(CALL, SIZE, None).unwrap().charge(used(1, 1));
        assert!(limits.admit(CALL, SIZE, None).is_err());
    }

    #[test]
    fn told_limits_and_pauses_hold_until_the_next_lease_and_after_it() {
        let limits = limits(&json!({ "provider": "p", "requests_per_minute": 60 }));
        assert!(limits.admit(CALL, SIZE, None).is_err());
        grant(&limits, 3.0);
        let permit = limits.admit(CALL, SIZE, None).unwrap();
        permit.pause(Duration::from_secs(10));
        assert!(limits.admit(CALL, SIZE, None).is_err(), "two are left, but it pauses");
        assert_eq!(wanted(&limits).at_most, Some(-9.0));
        let told = ToldLimit { per_minute: 30, remaining: Some(0) };
        permit.learn(&ToldLimits { requests: Some(told), ..ToldLimits::default() });
        let refusal = limits.admit(CALL, SIZE, None).unwrap_err();
        let keys = refusal.limits.iter().map(|limit| limit.key.as_str()).collect::<Vec<_>>();
        assert_eq!(keys, ["p * * * requests", "p m * * requests told"]);
    }

    #[test]
    fn a_call_beside_turns_waits_for_a_large_debt_only() {
        let limits = limits(&json!({ "provider": "p", "requests_per_minute": 60 }));
        let call = |must_run| limits.charge_unadmitted(CALL, SIZE, must_run);
        let mut permits: Vec<Permit> = (0..4).map(|_| call(false).unwrap()).collect();
        for permit in &mut permits {
            permit.charge(used(1, 1));
        }
        let (limit, after) = call(false).unwrap_err();
        assert_eq!((limit.measure, after), (Measure::Requests, Duration::from_secs(4)));
        assert!(call(true).is_ok(), "a turn waits for it");
    }

    #[test]
    fn without_rules_a_call_has_an_empty_permit() {
        let limits = Arc::new(RateLimits::new(Config::default()));
        drop(limits.admit(CALL, SIZE, None).unwrap());
        assert!(limits.state().shares.is_empty());
    }
}
