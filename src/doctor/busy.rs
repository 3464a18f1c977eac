//! Check for models whose provider refuses calls for now.

use chrono::{DateTime, Utc};
use sqlx::PgPool;

use super::Finding;
use crate::{
    config::Config,
    domain::{
        StatementError,
        busy_models::{self, format_moment},
        tasks,
    },
};

const CHECK: &str = "busy";
const WHY: &str =
    "tasks wait while a provider refuses calls, and fail after providers.busy_max_secs";

pub(super) async fn examine(config: &Config, pool: &PgPool, now: DateTime<Utc>) -> Finding {
    let looked = async {
        let busy = busy_models::list(pool, now).await?;
        Ok::<_, StatementError>((busy, tasks::longest_busy_since(pool, now).await?))
    };
    let (busy, since) = match looked.await {
        Ok(looked) => looked,
        Err(error) => return Finding::warn(CHECK, error.to_string(), WHY, "dalsegno migrate up"),
    };
    let mut found: Vec<String> = busy.iter().map(busy_models::BusyModel::describe).collect();
    if let Some(since) = since {
        let end = config.providers.deadline(since).map(format_moment);
        let end = end.map_or_else(String::new, |end| format!(" and fails at {end}"));
        found.push(format!("the longest wait of a task began at {}{end}", format_moment(since)));
    }
    let fix = "raise the limits at the provider, lower worker.turns_slots, or list further models in the agents' files; \
                `dalsegno job ls --waits-for provider` lists the tasks that wait, and `dalsegno task explain ID` says until when";
    match found.is_empty() {
        true => Finding::ok(CHECK, "no provider refuses calls", WHY),
        false => Finding::warn(CHECK, found.join("; "), WHY, fix),
    }
}
