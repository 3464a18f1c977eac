//! Check for paused credentials, whose conversations wait.

use chrono::{DateTime, Utc};
use sqlx::PgPool;

use super::Finding;
use crate::{
    config::Config,
    domain::{credentials, text::count, transaction::begin},
};

const CHECK: &str = "claude pause";
const WHY: &str = "a conversation keeps its credential, and waits while that is paused";

/// Returns nothing without credentials.
pub(in crate::doctor) async fn paused(
    config: &Config,
    pool: &PgPool,
    now: DateTime<Utc>,
) -> Option<Finding> {
    let configured: Vec<_> = config.credentials().collect();
    let looked = async {
        let mut tx = begin(pool).await?;
        credentials::list(&mut tx, &configured, now).await
    };
    let credentials = match looked.await {
        Ok(credentials) => credentials,
        Err(error) => {
            return Some(Finding::warn(CHECK, error.to_string(), WHY, "dalsegno migrate up"));
        }
    };
    let paused: Vec<String> = credentials
        .iter()
        .filter_map(|credential| {
            let until = credential.paused_until?.format("%F %T");
            Some(format!(
                "{} until {until} UTC, with {}",
                credential.name,
                count(credential.sessions, "session", "sessions")
            ))
        })
        .collect();
    let fix = "wait, or resume it with `dalsegno credential resume NAME`; `dalsegno credential ls` shows the reason";
    match (credentials.is_empty(), paused.is_empty()) {
        (true, _) => None,
        (_, true) => Some(Finding::ok(CHECK, "no credential is paused", WHY)),
        (_, false) => Some(Finding::warn(CHECK, paused.join("; "), WHY, fix)),
    }
}
