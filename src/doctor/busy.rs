//! Check for providers that refuse calls or cannot be reached.

use chrono::{DateTime, Utc};
use sqlx::PgPool;

use super::Finding;
use crate::{
    config::Config,
    domain::{
        StatementError,
        attention::{self, WaitingModel},
        busy_models::{self, BusyModel, format_moment},
        tasks,
        text::count,
    },
};

const CHECK: &str = "busy";
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
    /// Models whose tasks wait one by one.
    waiting: Vec<WaitingModel>,
    /// Begin of the longest wait of a task.
    since: Option<DateTime<Utc>>,
}

pub(super) async fn examine(config: &Config, pool: &PgPool, now: DateTime<Utc>) -> Finding {
    match load(pool, now).await {
        Ok(waits) => waits.report(&config.providers),
        Err(error) => Finding::warn(CHECK, error.to_string(), WHY, "dalsegno migrate up"),
    }
}

async fn load(pool: &PgPool, now: DateTime<Utc>) -> Result<Waits, attention::Error> {
    let connected = pool.acquire().await;
    let failed = |source| StatementError { action: "look for waits for providers", source };
    let mut conn = connected.map_err(failed)?;
    Ok(Waits {
        busy: busy_models::list(&mut *conn, now).await?,
        since: tasks::longest_busy_since(&mut *conn, now).await?,
        waiting: attention::waiting_models(&mut conn, now).await?,
    })
}

impl Waits {
    fn report(&self, config: &busy_models::Config) -> Finding {
        let mut found: Vec<String> = self.busy.iter().map(BusyModel::describe).collect();
        found.extend(self.waiting.iter().map(describe));
        if let Some(since) = self.since {
            let end = config.deadline(since).map(format_moment);
            let end = end.map_or_else(String::new, |end| format!(" and fails at {end}"));
            found
                .push(format!("the longest wait of a task began at {}{end}", format_moment(since)));
        }
        let refused = (!self.busy.is_empty()).then_some(REFUSED);
        let unreachable = (!self.waiting.is_empty()).then_some(UNREACHABLE);
        let fix: Vec<&str> = refused.into_iter().chain(unreachable).chain([LIST]).collect();
        match found.is_empty() {
            true => Finding::ok(CHECK, "no provider refuses calls", WHY),
            false => Finding::warn(CHECK, found.join("; "), WHY, fix.join("; ")),
        }
    }
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
        let waits = Waits { busy: Vec::new(), waiting: vec![waiting], since: Some(at) };
        let config =
            busy_models::Config { busy_first_secs: 5, busy_max_wait_secs: 300, busy_max_secs: 0 };
        let found = waits.report(&config);
        assert!(
            found.what.starts_with("2 tasks wait for deadbox (m1) since 1970-01-01"),
            "{found:?}"
        );
        assert!(
            found.fix.starts_with("if the error names a server") && !found.fix.contains("slots"),
            "{found:?}"
        );
    }
}
