//! Findings of the doctor that are cheap to make: queues without a worker, dead letters, webhooks, the nightly cleanup, old transactions.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::{Attention, Error, FAILED_WITHIN, Kind};
use crate::{
    domain::{
        cleanups,
        schedules::{self, Schedule},
        text::count,
        webhooks::{self, FailedDeliveries, Webhook},
    },
    queue::admin::{Health, QueueView},
};

/// The queue of turns, and the pool of its workers. Its dead letters are failed tasks, which are listed one by one.
const TURNS: &str = "turns";

/// Lists the findings, the most urgent kind first. `n_broken` counts the agent files, skills and nodes that were refused.
pub(super) async fn list(
    conn: &mut PgConnection,
    queues: &[QueueView],
    health: &Health,
    n_broken: usize,
    now: DateTime<Utc>,
) -> Result<Vec<Attention>, Error> {
    let webhooks = webhooks::list(&mut *conn).await?;
    let given_up = webhooks::failed_since(&mut *conn, now - FAILED_WITHIN).await?;
    let schedules = schedules::list(&mut *conn, now).await?;
    let last_cleanup = cleanups::last_success(&mut *conn).await?;
    let nightly = schedules.iter().find(|it| it.name == schedules::NIGHTLY_CLEANUP);
    let queues = queues.iter().flat_map(|queue| [of_deserted(queue), of_dead(queue)]).flatten();
    let cleanup = nightly.and_then(|nightly| of_cleanup(nightly, last_cleanup, now));
    Ok(queues
        .chain(of_files(n_broken))
        .chain(webhooks.iter().filter_map(of_webhook))
        .chain(given_up.iter().map(of_failed_deliveries))
        .chain(cleanup)
        .chain(of_transactions(health))
        .collect())
}

fn of_deserted(queue: &QueueView) -> Option<Attention> {
    let name = &queue.queue;
    let because = format!("no worker serves this queue: {} ready to run", jobs(queue.ready));
    let pool = if name == TURNS { TURNS } else { "upkeep" };
    let command = format!("dalsegno worker {pool}");
    let attention = Attention::of(Kind::DesertedQueue, name, because, command);
    let is_deserted = queue.workers == 0 && queue.ready > 0 && queue.paused_at.is_none();
    is_deserted.then_some(Attention { count: Some(queue.ready), ..attention })
}

fn of_dead(queue: &QueueView) -> Option<Attention> {
    let name = &queue.queue;
    let because = format!("{} failed for good", jobs(queue.dead));
    let command = format!("dalsegno job ls --state dead --queue {name}");
    let attention = Attention::of(Kind::DeadJobs, name, because, command);
    let is_dead = queue.dead > 0 && name != TURNS;
    is_dead.then_some(Attention { count: Some(queue.dead), ..attention })
}

fn of_files(n_broken: usize) -> Option<Attention> {
    let because =
        "tasks of these agents wait until the files are corrected, and no new ones are added"
            .to_owned();
    let command = "dalsegno agent check".to_owned();
    let name = count(n_broken, "agent file is refused", "agent files are refused");
    let attention = Attention::of(Kind::BrokenAgentFiles, &name, because, command);
    (n_broken > 0).then_some(attention)
}

fn of_webhook(webhook: &Webhook) -> Option<Attention> {
    let since = webhook.failing_since?;
    let id = webhook.id;
    let attention = match &webhook.disabled_because {
        Some(reason) => Attention::of(
            Kind::DisabledWebhook,
            &id.to_string(),
            format!("it was disabled, and its deliveries are held: {reason}"),
            format!("dalsegno webhook enable {id}"),
        ),
        None => Attention::of(
            Kind::FailingWebhook,
            &id.to_string(),
            "its deliveries fail, and are retried".to_owned(),
            format!("dalsegno webhook deliveries --webhook {id}"),
        ),
    };
    let (name, campaign_id) = (webhook.url.clone(), webhook.campaign_id);
    Some(Attention { name, campaign_id, since: Some(since), ..attention })
}

fn of_failed_deliveries(failed: &FailedDeliveries) -> Attention {
    let n_failed = count(failed.count, "delivery", "deliveries");
    let n_days = FAILED_WITHIN.num_days();
    let because = format!("{n_failed} failed for good in the last {n_days} days");
    let id = failed.webhook_id.to_string();
    let attention = Attention::of(Kind::FailedDeliveries, &id, because, failed.replay_command());
    Attention {
        name: failed.url.clone(),
        campaign_id: failed.campaign_id,
        replay_since: Some(failed.first_created_at),
        since: Some(failed.last_ended_at),
        count: Some(failed.count),
        ..attention
    }
}

fn of_cleanup(
    nightly: &Schedule,
    last: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Option<Attention> {
    let name = "nightly cleanup".to_owned();
    if let Some(reason) = &nightly.pause_reason {
        let command = format!("dalsegno schedule resume {}", nightly.name);
        let attention = Attention::of(Kind::PausedCleanup, &nightly.name, reason.clone(), command);
        return Some(Attention { name, since: nightly.paused_at, ..attention });
    }
    let because = match last {
        Some(_) => "it has not completed for more than a day: expired conversations stay",
        None => "it has not completed yet: expired conversations stay",
    };
    let command = "dalsegno cleanup".to_owned();
    let attention = Attention::of(Kind::OverdueCleanup, &nightly.name, because.to_owned(), command);
    let is_overdue = cleanups::is_overdue(last, nightly.created_at, now);
    is_overdue.then_some(Attention { name, since: last, ..attention })
}

fn of_transactions(health: &Health) -> Option<Attention> {
    let (secs, because) = match (health.has_old_writer(), health.has_old_transaction()) {
        (true, _) => (
            health.oldest_writer_secs,
            "followers of the feed get no newer events until this transaction ends",
        ),
        (false, true) => (
            health.oldest_transaction_secs,
            "Postgres cannot vacuum ended jobs until this transaction ends",
        ),
        (false, false) => return None,
    };
    let name = format!("a transaction has been open for {:.0} min", secs / 60.0);
    let command = "dalsegno doctor".to_owned();
    Some(Attention::of(Kind::OldTransaction, &name, because.to_owned(), command))
}

fn jobs(n: i64) -> String {
    count(n, "job", "jobs")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str, ready: i64, dead: i64, workers: i64) -> QueueView {
        QueueView {
            queue: name.to_owned(),
            paused_at: None,
            pause_reason: None,
            ready,
            running: 0,
            blocked: 0,
            scheduled: 0,
            held: 0,
            dead,
            oldest_ready_secs: None,
            workers,
        }
    }

    #[test]
    fn a_queue_needs_a_worker_only_while_a_job_is_ready() {
        assert!(of_deserted(&queue("turns", 1, 0, 0)).is_some());
        assert_eq!(of_deserted(&queue("turns", 0, 0, 0)), None);
        assert_eq!(of_deserted(&queue("turns", 1, 0, 1)), None);
    }

    #[test]
    fn dead_letters_of_turns_are_listed_as_failed_tasks() {
        assert_eq!(of_dead(&queue("turns", 0, 3, 1)), None);
        let found = of_dead(&queue("webhooks", 0, 3, 1)).unwrap();
        assert_eq!((found.count, found.because.as_str()), (Some(3), "3 jobs failed for good"));
    }

    #[test]
    fn tasks_of_broken_files_wait() {
        assert_eq!(of_files(0), None);
        let found = of_files(2).unwrap();
        assert_eq!(found.name, "2 agent files are refused");
        assert!(found.because.contains("wait until the files are corrected"), "{found:?}");
    }

    #[test]
    fn the_writer_is_named_before_the_reader() {
        let health = |reader, writer| Health {
            deserted: None,
            paused: None,
            dead: 0,
            held_lanes: 0,
            oldest_transaction_secs: reader,
            oldest_writer_secs: writer,
        };
        assert_eq!(of_transactions(&health(60.0, 60.0)), None);
        let found = of_transactions(&health(900.0, 300.0)).unwrap();
        assert!(found.name.contains("5 min") && found.because.contains("feed"), "{found:?}");
    }
}
