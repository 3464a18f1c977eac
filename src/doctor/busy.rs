//! Check for providers that refuse calls or cannot be reached.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgPool;

use super::Finding;
use crate::{
    config::Config,
    domain::{
        StatementError,
        attention::{self, WaitingModel},
        busy_models::{self, BusyModel, format_moment},
        tasks::{self, BusyTasks},
        text::count,
    },
};

const CHECK: &str = "busy";
/// Seconds of refusals that need no person: about ten calls, until the wait between two of them has grown to the longest one. Most peaks of
/// load at a provider are over by then.
const USUAL_RETRIES_SECS: u32 = 600;
const WHY: &str = "tasks wait while a provider refuses calls or cannot be reached, and fail after providers.busy_max_secs";
/// Next step for models that are busy.
const REFUSED: &str = "raise the limits at the provider, lower worker.turns_slots, or list further models in the agents' files";
/// Next step for tasks that wait one by one, in most cases for a server that cannot be reached.
const UNREACHABLE: &str = "if the error names a server that cannot be reached, start it, or correct its address in the settings: its tasks then \
                           continue by themselves, and `dalsegno job retry JOB` tries at once";
const LIST: &str = "`dalsegno job ls --waits-for provider` lists the tasks that wait";

/// The present waits for providers.
struct Waits {
    busy: Vec<BusyModel>,
    /// The tasks that wait, with the begin of the longest wait.
    tasks: BusyTasks,
    /// Models whose tasks wait one by one, and longer than a server takes to start again.
    waiting: Vec<WaitingModel>,
}

pub(super) async fn examine(config: &Config, pool: &PgPool, now: DateTime<Utc>) -> Finding {
    match load(pool, now).await {
        Ok(waits) => waits.report(&config.providers, now),
        Err(error) => Finding::warn(CHECK, error.to_string(), WHY, "dalsegno migrate up"),
    }
}

async fn load(pool: &PgPool, now: DateTime<Utc>) -> Result<Waits, attention::Error> {
    let connected = pool.acquire().await;
    let failed = |source| StatementError { action: "look for waits for providers", source };
    let mut conn = connected.map_err(failed)?;
    Ok(Waits {
        busy: busy_models::list(&mut *conn, now).await?,
        tasks: tasks::count_busy(&mut *conn, now).await?,
        waiting: attention::waiting_models(&mut conn, now).await?,
    })
}

impl Waits {
    fn report(&self, config: &busy_models::Config, now: DateTime<Utc>) -> Finding {
        let usual = usual_retries(config);
        let has_long_task = self.tasks.since.is_some_and(|since| now - since >= usual);
        // Nothing calls a model whose wait has ended, so it is not refused any longer.
        let is_long = |model: &&BusyModel| model.until.min(now) - model.since >= usual;
        let busy: Vec<&BusyModel> =
            self.busy.iter().filter(|model| has_long_task || is_long(model)).collect();
        if busy.is_empty() && self.waiting.is_empty() && !has_long_task {
            return Finding::ok(CHECK, self.describe_usual(usual), WHY);
        }
        let mut found: Vec<String> = busy.iter().map(|model| model.describe()).collect();
        found.extend(self.waiting.iter().map(describe));
        if let Some(since) = self.tasks.since {
            let end = config.deadline(since).map(format_moment);
            let end = end.map_or_else(String::new, |end| format!(" and fails at {end}"));
            found
                .push(format!("the longest wait of a task began at {}{end}", format_moment(since)));
        }
        let refused = (!busy.is_empty()).then_some(REFUSED);
        let unreachable = (!self.waiting.is_empty()).then_some(UNREACHABLE);
        let fix: Vec<&str> = refused.into_iter().chain(unreachable).chain([LIST]).collect();
        Finding::warn(CHECK, found.join("; "), WHY, fix.join("; "))
    }

    /// Describes waits that end by themselves in most cases.
    fn describe_usual(&self, usual: TimeDelta) -> String {
        let begins = self.busy.iter().map(|model| model.since).chain(self.tasks.since);
        let Some(begin) = begins.min() else { return "no provider refuses calls".to_owned() };
        let busy = count(self.busy.len(), "model is busy", "models are busy");
        let tasks = count(self.tasks.n_tasks, "task waits", "tasks wait");
        format!(
            "{busy} and {tasks}; the longest wait began at {}; calls are retried. A warning follows after {} s",
            format_moment(begin),
            usual.num_seconds()
        )
    }
}

/// Returns how long refusals are usual: until two calls have waited for the longest time, but at most half of the time after which tasks fail,
/// so that a person can act before.
fn usual_retries(config: &busy_models::Config) -> TimeDelta {
    let longest_waits = config.busy_max_wait_secs.saturating_mul(2);
    let secs = match config.busy_max_secs {
        0 => USUAL_RETRIES_SECS.max(longest_waits),
        most => USUAL_RETRIES_SECS.max(longest_waits).min(most / 2),
    };
    TimeDelta::seconds(secs.into())
}

fn describe(WaitingModel { provider, model, tasks, longest, error }: &WaitingModel) -> String {
    let waiting = count(*tasks, "task waits", "tasks wait");
    let (since, until) = (format_moment(longest.since), format_moment(longest.until));
    format!(
        "{waiting} for {provider} ({model}) since {since}, with the next try at {until}: {error}"
    )
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::domain::tasks::ProviderWait;

    #[test]
    fn a_server_that_cannot_be_reached_is_named_with_advice_that_fits() {
        let at = DateTime::UNIX_EPOCH;
        let (task_id, session_id) = (Uuid::nil(), Uuid::nil());
        let waiting = WaitingModel {
            provider: "deadbox".to_owned(),
            model: "m1".to_owned(),
            tasks: 2,
            longest: ProviderWait { task_id, job_id: 1, session_id, since: at, until: at },
            error: "cannot connect to endpoint deadbox".to_owned(),
        };
        let waits = Waits {
            busy: Vec::new(),
            tasks: BusyTasks { n_tasks: 2, since: Some(at) },
            waiting: vec![waiting],
        };
        let config =
            busy_models::Config { busy_first_secs: 5, busy_max_wait_secs: 300, busy_max_secs: 0 };
        let found = waits.report(&config, at);
        assert!(
            found.what.starts_with("2 tasks wait for deadbox (m1) since 1970-01-01"),
            "{found:?}"
        );
        assert!(
            found.fix.starts_with("if the error names a server") && !found.fix.contains("slots"),
            "{found:?}"
        );
    }

    #[test]
    fn refusals_are_usual_until_the_longest_waits_and_never_until_tasks_fail() {
        let usual = |busy_max_wait_secs, busy_max_secs| {
            let config =
                busy_models::Config { busy_first_secs: 5, busy_max_wait_secs, busy_max_secs };
            usual_retries(&config).num_seconds()
        };
        assert_eq!([usual(300, 86_400), usual(60, 0), usual(900, 0)], [600, 600, 1800]);
        assert_eq!([usual(300, 600), usual(u32::MAX, 100)], [300, 50]);
    }
}
