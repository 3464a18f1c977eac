//! Check for webhooks whose deliveries fail.

use chrono::{DateTime, Utc};
use sqlx::PgPool;

use super::Finding;
use crate::domain::{
    StatementError,
    attention::FAILED_WITHIN,
    text::count,
    webhooks::{self, FailedDeliveries, Webhook},
};

const CHECK: &str = "webhooks";
const WHY: &str = "subscribers are not notified of the end of their tasks";

/// Returns nothing without webhooks. A webhook that a person has disabled is reported only if deliveries to it had
/// failed.
pub(super) async fn examine(pool: &PgPool, now: DateTime<Utc>) -> Vec<Finding> {
    match read(pool, now).await {
        Ok((webhooks, given_up)) => judge_all(&webhooks, &given_up),
        Err(error) => vec![Finding::warn(CHECK, error.to_string(), WHY, "dalsegno migrate up")],
    }
}

async fn read(
    pool: &PgPool,
    now: DateTime<Utc>,
) -> Result<(Vec<Webhook>, Vec<FailedDeliveries>), StatementError> {
    let webhooks = webhooks::list(pool).await?;
    Ok((webhooks, webhooks::failed_since(pool, now - FAILED_WITHIN).await?))
}

fn judge_all(webhooks: &[Webhook], given_up: &[FailedDeliveries]) -> Vec<Finding> {
    let failing = webhooks.iter().filter_map(judge);
    let failing: Vec<Finding> = failing.chain(given_up.iter().map(judge_given_up)).collect();
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

fn judge_given_up(failed: &FailedDeliveries) -> Finding {
    let n_failed = count(failed.count, "delivery", "deliveries");
    let id = failed.webhook_id;
    let n_days = FAILED_WITHIN.num_days();
    let what = format!("{n_failed} to webhook {id} failed for good in the last {n_days} days");
    Finding::warn(CHECK, what, WHY, format!("`{}` sends them again", failed.replay_command()))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::doctor::Status;

    fn webhook(failing_since: Option<DateTime<Utc>>) -> Webhook {
        Webhook {
            id: Uuid::nil(),
            url: "https://receiver.example/hooks".to_owned(),
            kinds: Vec::new(),
            campaign_id: None,
            enabled: true,
            disabled_because: None,
            failing_since,
            rotates_until: None,
            created_at: DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn deliveries_that_were_given_up_are_a_warning_after_the_receiver_recovers() {
        let fine = judge_all(&[webhook(None)], &[]);
        assert_eq!(fine.iter().map(|it| it.status).collect::<Vec<_>>(), [Status::Ok]);
        let given_up = FailedDeliveries {
            webhook_id: Uuid::nil(),
            url: "https://receiver.example/hooks".to_owned(),
            campaign_id: None,
            count: 2,
            first_created_at: DateTime::UNIX_EPOCH,
            last_ended_at: DateTime::UNIX_EPOCH,
        };
        let found = judge_all(&[webhook(None)], &[given_up]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].status, Status::Warn);
        assert!(found[0].what.starts_with("2 deliveries"), "{}", found[0].what);
        assert!(found[0].fix.contains("--since 1970-01-01T00:00:00Z"), "{}", found[0].fix);
    }

    #[test]
    fn an_installation_without_webhooks_has_no_finding() {
        assert!(judge_all(&[], &[]).is_empty());
    }
}
