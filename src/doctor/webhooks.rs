//! Check for webhooks whose deliveries fail.

use sqlx::PgPool;

use super::Finding;
use crate::domain::{
    text::count,
    webhooks::{self, Webhook},
};

const CHECK: &str = "webhooks";
const WHY: &str = "subscribers are not notified of the end of their tasks";

/// Returns nothing without webhooks. A webhook that a person has disabled is reported only if deliveries to it had
/// failed.
pub(super) async fn examine(pool: &PgPool) -> Vec<Finding> {
    let webhooks = match webhooks::list(pool).await {
        Ok(webhooks) => webhooks,
        Err(error) => {
            return vec![Finding::warn(CHECK, error.to_string(), WHY, "dalsegno migrate up")];
        }
    };
    let failing: Vec<Finding> = webhooks.iter().filter_map(judge).collect();
    match (webhooks.is_empty(), failing.is_empty()) {
        (true, _) => Vec::new(),
        (false, true) => {
            let all = count(webhooks.len(), "webhook", "webhooks");
            vec![Finding::ok(CHECK, format!("none of {all} fails"), WHY)]
        }
        (false, false) => failing,
    }
}

fn judge(webhook: &Webhook) -> Option<Finding> {
    let (id, since) = (webhook.id, webhook.failing_since?);
    let (what, fix) = match &webhook.disabled_because {
        Some(reason) => (
            format!("webhook {id} was disabled: {reason}"),
            format!(
                "fix the receiver, run `dalsegno webhook enable {id}`, then `dalsegno webhook replay --webhook {id} --since TIME` for the held deliveries"
            ),
        ),
        None => (
            format!("webhook {id} has failed since {} UTC", since.format("%F %T")),
            format!("`dalsegno webhook deliveries --webhook {id}` says why"),
        ),
    };
    Some(Finding::warn(CHECK, what, WHY, fix))
}
