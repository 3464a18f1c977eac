//! The scheduler: fires each schedule at its moments.
//!
//! An alarm per schedule wakes it at the schedule's next moment. A notification wakes it when a schedule has changed,
//! so that it sets the alarms again. [`schedules::fire_due`] decides from rows and the database's clock which schedules
//! are due and which process fires them.
//!
//! It also looks without being woken, every `scheduler.look_secs`: a notification or an alarm may be lost. It looks
//! more often where notifications do not arrive, where alarms cannot be set, and after an error of the database.

mod alarms;
mod ledger;

use std::{sync::Arc, time::Duration};

use metrics::{counter, gauge};
use serde_json::json;
use sqlx::PgPool;
use tokio::{sync::Notify, time::sleep};
use tokio_util::sync::CancellationToken;

use self::{alarms::Alarms, ledger::LedgerSums};
use crate::{
    causes::causes,
    clock::Clock,
    domain::{
        budgets,
        cleanups::{self, Cleanup},
        installation,
        schedules::{self, Config, Error, New, Source},
        text_search,
        transaction::{begin, commit},
    },
    jobs::{budget_waits, busy, cleanup, rate_limit_waits},
    metric::Metric,
    queue::{self, Notices},
};

/// Wait after a look that failed.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// Longest time between two looks where no notification or alarm wakes the scheduler. docs/how-to/pgbouncer.md names it, too.
const POLL_EVERY: Duration = Duration::from_secs(15);

const FIRINGS: Metric = Metric::counter(
    "dalsegno_schedule_firings_total",
    &[],
    "Moments of schedules for which this process enqueued a job.",
);
const LAST_CHECK: Metric = Metric::gauge(
    "dalsegno_scheduler_last_check_timestamp_seconds",
    &[],
    "Unix time in seconds at which this process last fired all schedules that were due.",
);

/// All metrics of the scheduler.
pub const METRICS: [Metric; 2] = [FIRINGS, LAST_CHECK];

/// Runs the scheduler until `stop`, unless `scheduler.enabled` is false. `notices` wake it when a schedule changes.
pub async fn run(
    config: &Config,
    pool: &PgPool,
    clock: &dyn Clock,
    notices: &Notices,
    stop: &CancellationToken,
) {
    if !config.enabled {
        return;
    }
    describe();
    cleanup::describe();
    let wake = Arc::default();
    let mut scheduler = Scheduler { config, pool, clock, notices, wake, alarms: None };
    let _: Option<()> = stop.run_until_cancelled(scheduler.watch()).await;
    scheduler.drop_alarms().await;
}

struct Scheduler<'a> {
    config: &'a Config,
    pool: &'a PgPool,
    clock: &'a dyn Clock,
    notices: &'a Notices,
    wake: Arc<Notify>,
    /// None after an error of the library, until the next look.
    alarms: Option<Alarms>,
}

impl Scheduler<'_> {
    async fn watch(&mut self) {
        let (mut is_installed, mut is_dated) = (false, false);
        let mut ledger = LedgerSums::default();
        loop {
            is_installed = is_installed || install(self.config, self.pool, self.clock).await;
            is_dated = is_dated || publish_age(self.pool).await;
            let has_looked = fire_due(self.pool, self.clock).await;
            let is_set = self.set_alarms(has_looked).await;
            publish(self.pool).await;
            busy::publish(self.pool, self.clock).await;
            budget_waits::publish(self.pool).await;
            rate_limit_waits::publish(self.pool).await;
            request_search_index(self.pool).await;
            if is_installed {
                ledger.add_up(self.pool, &self.config.time_zone, self.clock.now()).await;
            }
            let is_well = is_installed && is_dated && has_looked;
            let is_woken = is_set && self.notices.is_hearing();
            tokio::select! {
                () = self.wake.notified() => {}
                () = self.notices.wait() => {}
                () = sleep(longest_wait(self.config.look_interval(), is_well, is_woken)) => {}
            }
        }
    }

    /// Sets the alarms of the next moments. Returns false where alarms are missing.
    async fn set_alarms(&mut self, has_looked: bool) -> bool {
        let now = self.clock.now();
        let moments = match schedules::next_moments(self.pool, now).await {
            // After a failed look, moments that have passed get no alarm: it would ring at once, again and again. The
            // next look takes them.
            Ok(mut moments) => {
                moments.retain(|_, moment| has_looked || *moment > now);
                moments
            }
            Err(error) => {
                let error = causes(&error);
                tracing::warn!(error, "cannot read the next times of the schedules");
                return false;
            }
        };
        let set = async {
            // Stored in `self` first, so that `drop_alarms` finds them when this future is dropped.
            let alarms = match &mut self.alarms {
                Some(alarms) => alarms,
                none => none.insert(Alarms::start(Arc::clone(&self.wake)).await?),
            };
            alarms.set(&moments, self.clock).await
        };
        let set: Result<(), alarms::Error> = set.await;
        if let Err(error) = &set {
            tracing::error!(
                error = causes(error),
                "cannot set the timers of the schedules: polling until they are set"
            );
            self.drop_alarms().await;
        }
        set.is_ok()
    }

    async fn drop_alarms(&mut self) {
        if let Some(alarms) = self.alarms.take()
            && let Err(error) = alarms.end().await
        {
            tracing::debug!(error = causes(&error), "cannot stop the timers of the schedules");
        }
    }
}

/// Returns the time that the scheduler sleeps unless it is woken.
fn longest_wait(look: Duration, is_well: bool, is_woken: bool) -> Duration {
    match (is_well, is_woken) {
        (true, true) => look,
        (true, false) => look.min(POLL_EVERY),
        (false, _) => look.min(RETRY_AFTER),
    }
}

/// Stores the built-in schedules as the configuration has them. Returns false after an error, to be retried.
async fn install(config: &Config, pool: &PgPool, clock: &dyn Clock) -> bool {
    let policy = <Cleanup as queue::Job>::policy();
    let nightly = New {
        name: schedules::NIGHTLY_CLEANUP,
        source: Source::BuiltIn,
        cron: &config.cleanup,
        time_zone: &config.time_zone,
        catch_up_secs: config.catch_up_secs,
        kind: <Cleanup as queue::Job>::KIND,
        queue: policy.queue,
        lane: Some(cleanups::LANE),
        payload: &json!({}),
    };
    if let Err(error) = budgets::set_time_zone(pool, &config.time_zone).await {
        tracing::warn!(error = causes(&error), "cannot set the time zone of the budget of a day");
        return false;
    }
    match schedules::put(pool, &nightly, clock.now()).await {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(error = causes(&error), "cannot store the built-in schedules");
            false
        }
    }
}

/// Fires the schedules that are due. Returns false after an error that a retry may cure.
async fn fire_due(pool: &PgPool, clock: &dyn Clock) -> bool {
    match schedules::fire_due(pool, clock.now()).await {
        Ok(fired) => {
            counter!(FIRINGS.name).increment(fired.len() as u64);
            gauge!(LAST_CHECK.name).set(clock.now().timestamp() as f64);
            true
        }
        Err(errors) => {
            for error in &errors {
                tracing::warn!(error = causes(error), "cannot fire due schedules, trying again");
            }
            // A timetable that cannot be parsed stays so until a person changes it.
            errors.iter().all(|error| matches!(error, Error::Invalid { .. }))
        }
    }
}

/// Publishes the time of the last successful cleanup, of any process: metrics of a process that was started later need
/// it, too.
async fn publish(pool: &PgPool) {
    match cleanups::last_success(pool).await {
        Ok(at) => at.into_iter().for_each(cleanup::succeeded_at),
        Err(error) => tracing::debug!(error = causes(&error), "cannot read the last cleanup"),
    }
}

/// Publishes the creation time of the database, once per process. Returns false after an error, to be retried.
async fn publish_age(pool: &PgPool) -> bool {
    match installation::get(pool).await {
        Ok(installation) => {
            cleanup::installed_at(installation.created_at);
            true
        }
        Err(error) => {
            tracing::debug!(error = causes(&error), "cannot read the age of the installation");
            false
        }
    }
}

/// Enqueues the computation of words for the search, if tasks have ended since.
async fn request_search_index(pool: &PgPool) {
    let requested = async {
        let mut tx = begin(pool).await?;
        text_search::request_index(&mut tx).await?;
        commit(tx).await
    };
    if let Err(error) = requested.await {
        tracing::debug!(
            error = causes(&error),
            "cannot enqueue the computation of words for the search"
        );
    }
}

fn describe() {
    METRICS.iter().for_each(Metric::describe);
    counter!(FIRINGS.name).increment(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_polls_more_often_without_notifications_and_after_an_error() {
        let long = Duration::from_secs(180);
        assert_eq!(longest_wait(long, true, true), long);
        assert_eq!(longest_wait(long, true, false), POLL_EVERY);
        assert_eq!(longest_wait(long, false, true), RETRY_AFTER);
        let short = Duration::from_secs(1);
        assert_eq!(longest_wait(short, true, false), short);
        assert_eq!(longest_wait(short, false, false), short);
    }
}
