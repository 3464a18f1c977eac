//! Check for paused credentials, whose conversations wait.

use chrono::{DateTime, Utc};
use sqlx::PgPool;

use super::Finding;
use crate::{
    config::Config,
    domain::{logins, transaction::begin},
};

const CHECK: &str = "claude rest";
const WHY: &str = "a conversation keeps its credential, and waits while that is paused";

/// Returns nothing without credentials.
pub(in crate::doctor) async fn resting(
    config: &Config,
    pool: &PgPool,
    now: DateTime<Utc>,
) -> Option<Finding> {
    let configured: Vec<_> = config.logins().collect();
    let looked = async {
        let mut tx = begin(pool).await?;
        logins::list(&mut tx, &configured, now).await
    };
    let logins = match looked.await {
        Ok(logins) => logins,
        Err(error) => {
            return Some(Finding::warn(CHECK, error.to_string(), WHY, "dalsegno migrate up"));
        }
    };
    let resting: Vec<String> = logins
        .iter()
        .filter_map(|login| {
            let until = login.rests_until?.format("%F %T");
            Some(format!("{} until {until} UTC, with {} sessions", login.login, login.sessions))
        })
        .collect();
    let mend = "wait, or resume it with `dalsegno login resume NAME`; `dalsegno login ls` shows the reason";
    match (logins.is_empty(), resting.is_empty()) {
        (true, _) => None,
        (_, true) => Some(Finding::ok(CHECK, "no credential is paused", WHY)),
        (_, false) => Some(Finding::warn(CHECK, resting.join("; "), WHY, mend)),
    }
}
