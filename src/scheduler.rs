//! The scheduler: looks again and again what is due.
//!
//! tokio-cron-scheduler wakes it up; what is due, and who takes care of it, is decided by [`schedules::fire_due`] from rows
//! and from our clock. The timetables are not given to tokio-cron-scheduler: it keeps the offset that a time zone had when a job was
//! added, forgets what it missed, and knows of no other process.
//!
//! Whatever happens, it goes on looking: after an error of the database, and also where nothing wakes it up any more.

use std::{sync::Arc, time::Duration};

use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};
use serde_json::json;
use sqlx::PgPool;
use tokio::sync::Notify;
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};
use tokio_util::sync::CancellationToken;

use crate::{
    causes::causes,
    clock::Clock,
    domain::{
        cleanups::{self, Purge},
        installation,
        schedules::{self, Config, New, Source},
    },
    jobs::{busy, purge},
    queue,
};

/// After so many looks that did not come, it looks without having been woken.
const LOOKS_MISSED: u32 = 3;

/// Looks until `stop`, unless it is switched off.
pub async fn run(config: &Config, pool: &PgPool, clock: &dyn Clock, stop: &CancellationToken) {
    if !config.enabled {
        return;
    }
    describe();
    purge::describe();
    let wake = Arc::new(Notify::new());
    let mut waker = match waker(config, &wake).await {
        Ok(waker) => Some(waker),
        Err(error) => {
            tracing::error!(
                error = causes(&error),
                "nothing wakes the scheduler up; it looks all the same, less often"
            );
            None
        }
    };
    let watched = async {
        let (mut is_installed, mut is_dated) = (false, false);
        loop {
            is_installed = is_installed || install(config, pool, clock).await;
            is_dated = is_dated || publish_age(pool).await;
            look(pool, clock).await;
            publish(pool).await;
            busy::publish(pool, clock).await;
            wait(config, &wake).await;
        }
    };
    let _: Option<()> = stop.run_until_cancelled(watched).await;
    if let Some(waker) = &mut waker
        && let Err(error) = waker.shutdown().await
    {
        tracing::debug!(error = causes(&error), "stopping the waker");
    }
}

async fn waker(config: &Config, wake: &Arc<Notify>) -> Result<JobScheduler, JobSchedulerError> {
    let scheduler = JobScheduler::new().await?;
    let (every, wake) = (format!("*/{} * * * * *", config.look_secs), Arc::clone(wake));
    let job = Job::new_async(every, move |_, _| {
        let wake = Arc::clone(&wake);
        Box::pin(async move { wake.notify_one() })
    })?;
    scheduler.add(job).await?;
    scheduler.start().await?;
    Ok(scheduler)
}

async fn wait(config: &Config, wake: &Notify) {
    let patience = Duration::from_secs(u64::from(config.look_secs * LOOKS_MISSED).max(10));
    if tokio::time::timeout(patience, wake.notified()).await.is_err() {
        tracing::warn!(
            waited_secs = patience.as_secs(),
            "the scheduler was not woken up; it looks all the same"
        );
    }
}

/// Writes the built-in schedules down as the configuration has them. False: to be tried again.
async fn install(config: &Config, pool: &PgPool, clock: &dyn Clock) -> bool {
    let policy = <Purge as queue::Job>::policy();
    let nightly = New {
        name: schedules::NIGHTLY_CLEANUP,
        source: Source::BuiltIn,
        cron: &config.purge,
        time_zone: &config.time_zone,
        catch_up_secs: config.catch_up_secs,
        kind: <Purge as queue::Job>::KIND,
        queue: policy.queue,
        lane: Some(cleanups::LANE),
        payload: &json!({}),
    };
    match schedules::put(pool, &nightly, clock.now()).await {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(
                error = causes(&error),
                "the built-in schedules could not be written down"
            );
            false
        }
    }
}

async fn look(pool: &PgPool, clock: &dyn Clock) {
    match schedules::fire_due(pool, clock.now()).await {
        Ok(fired) => {
            counter!("dalsegno_schedule_slots_total").increment(fired.len() as u64);
            gauge!("dalsegno_scheduler_last_look_timestamp_seconds")
                .set(clock.now().timestamp() as f64);
        }
        Err(error) => {
            tracing::warn!(
                error = causes(&error),
                "the scheduler could not look what is due; it tries again"
            );
        }
    }
}

/// Whichever process it was: a graph of one that was started since has to show it, too.
async fn publish(pool: &PgPool) {
    match cleanups::last_success(pool).await {
        Ok(at) => at.into_iter().for_each(purge::succeeded_at),
        Err(error) => tracing::debug!(error = causes(&error), "the last cleanup could not be read"),
    }
}

/// Publishes when the database was made: no restart changes it. False: to be tried again.
async fn publish_age(pool: &PgPool) -> bool {
    match installation::get(pool).await {
        Ok(installation) => {
            purge::installed_at(installation.created_at);
            true
        }
        Err(error) => {
            tracing::debug!(
                error = causes(&error),
                "the age of the installation could not be read"
            );
            false
        }
    }
}

fn describe() {
    describe_counter!(
        "dalsegno_schedule_slots_total",
        "Moments of schedules that this process took care of."
    );
    describe_gauge!(
        "dalsegno_scheduler_last_look_timestamp_seconds",
        Unit::Seconds,
        "When this process last looked what is due, and could."
    );
    counter!("dalsegno_schedule_slots_total").increment(0);
}
