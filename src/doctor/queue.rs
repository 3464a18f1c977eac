//! Checks of the queue: workers, notifications, dead letters, holds, and transactions that block its cleanup.

use std::time::Duration;

use sqlx::PgPool;
use uuid::Uuid;

use super::Finding;
use crate::{
    db::Database,
    domain::{
        Page, StatementError,
        agent_pauses::{self, Pause},
        campaigns, flows,
    },
    queue::{
        self,
        admin::{self, Cause, Health, JobFilter, PauseScope},
    },
};

const WHY_WORKERS: &str = "jobs of a queue without a worker wait forever";
const WHY_NOTIFICATIONS: &str = "without them workers find new jobs only when they poll";
const WHY_DEAD: &str = "a dead letter is a job that does not run again by itself";
const WHY_HELD: &str = "held and paused jobs wait until a person releases them";
const WHY_TRANSACTIONS: &str = "an open transaction keeps Postgres from vacuuming ended jobs";

const WHY_WRITERS: &str =
    "readers of the feed get no events newer than the oldest open transaction with writes";

const NOTIFICATION_PATIENCE: Duration = Duration::from_secs(3);

const HELD: &str = "held";
/// Maximum number of paused agents, paused flows and held jobs that are described one by one.
const MAX_NAMED: usize = 5;
/// Maximum number of held jobs that are read. Those of paused agents are among them.
const MAX_HELD_JOBS: i64 = 200;

/// A hold or pause that keeps jobs waiting, and the command that ends it.
struct Hold {
    what: String,
    fix: String,
}

#[derive(Debug, thiserror::Error)]
enum HoldError {
    #[error(transparent)]
    Statement(#[from] StatementError),
    #[error(transparent)]
    Queue(#[from] queue::Error),
}

pub(super) async fn examine(database: &Database) -> Vec<Finding> {
    let health = match admin::health(&database.pool).await {
        Ok(health) => health,
        Err(error) => {
            let fix = "dalsegno migrate up";
            return vec![Finding::fail("queue", error.to_string(), WHY_WORKERS, fix)];
        }
    };
    vec![
        workers(&health),
        notifications(database).await,
        dead(&health),
        held(&database.pool, &health).await,
        transactions(&health),
        writers(&health),
    ]
}

fn workers(health: &Health) -> Finding {
    match &health.deserted {
        None => Finding::ok("workers", "every queue with jobs has a worker", WHY_WORKERS),
        Some(queues) => {
            let what = format!("without a worker: {queues}");
            let fix = "start `dalsegno serve`, worker-turns or worker-upkeep";
            Finding::warn("workers", what, WHY_WORKERS, fix)
        }
    }
}

async fn notifications(database: &Database) -> Finding {
    const CHECK: &str = "notify";
    let Some(session) = &database.session_options else {
        let what =
            "workers poll: database.pooler is `transaction`, and database.direct_url is not set";
        return Finding::skipped(CHECK, what, WHY_NOTIFICATIONS);
    };
    let heard = admin::notifications_arrive(&database.pool, session, NOTIFICATION_PATIENCE).await;
    let fix = "point database.url, or with PgBouncer database.direct_url, at the server itself; otherwise set queue.listen = false";
    match heard {
        Ok(true) => Finding::ok(CHECK, "notifications arrive", WHY_NOTIFICATIONS),
        Ok(false) => {
            let what = "a test notification did not arrive: a transaction pooler may be in front of the server";
            Finding::warn(CHECK, what, WHY_NOTIFICATIONS, fix)
        }
        Err(error) => Finding::warn(CHECK, error.to_string(), WHY_NOTIFICATIONS, fix),
    }
}

fn dead(health: &Health) -> Finding {
    match health.dead {
        0 => Finding::ok("dead letters", "none", WHY_DEAD),
        n => {
            let fix = "`dalsegno job ls --state dead`, then `dalsegno job explain ID`; after the fix, `dalsegno job retry ID`, which also retries its task";
            Finding::warn("dead letters", n.to_string(), WHY_DEAD, fix)
        }
    }
}

async fn held(pool: &PgPool, health: &Health) -> Finding {
    match find_holds(pool, health).await {
        Ok(holds) => report_holds(&holds),
        Err(error) => Finding::warn(HELD, error.to_string(), WHY_HELD, "dalsegno migrate up"),
    }
}

async fn find_holds(pool: &PgPool, health: &Health) -> Result<Vec<Hold>, HoldError> {
    let pauses = agent_pauses::list_all(pool).await?;
    let mut holds = Vec::new();
    for name in health.paused.iter().flat_map(|paused| paused.split(", ")) {
        holds.push(describe_pause(pool, name).await);
    }
    holds.extend(agent_holds(&pauses));
    holds.extend(flow_holds(pool).await?);
    if health.held_lanes > 0 {
        holds.push(Hold {
            what: format!("lanes held: {}", health.held_lanes),
            fix: "`dalsegno lane ls --held`, then `dalsegno lane release LANE`".to_owned(),
        });
    }
    holds.extend(job_holds(pool, &pauses).await?);
    Ok(holds)
}

/// Describes a pause of the queue: `queue NAME` or `group NAME`. The group of a paused campaign is described by the campaign's name.
async fn describe_pause(pool: &PgPool, scope_and_name: &str) -> Hold {
    let Some(group) = scope_and_name.strip_prefix("group ") else {
        let name = scope_and_name.strip_prefix("queue ").unwrap_or(scope_and_name);
        let what = format!("queue `{name}` is paused");
        return Hold { what, fix: format!("`dalsegno queue resume {name}`") };
    };
    let campaign = match group.parse::<Uuid>() {
        Ok(id) => campaigns::get(pool, id).await.ok(),
        Err(_) => None,
    };
    match campaign.filter(|campaign| campaign.status == campaigns::Status::Paused) {
        Some(campaign) => {
            let reason = admin::pause_reason(pool, PauseScope::Group, group).await.ok().flatten();
            let reason = reason.filter(|reason| !reason.is_empty());
            let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            Hold {
                what: format!("campaign `{}` is paused{reason}", campaign.name),
                fix: format!("`dalsegno campaign resume {group}`"),
            }
        }
        None => Hold {
            what: format!("group `{group}` is paused"),
            fix: format!("`dalsegno queue resume --group {group}`"),
        },
    }
}

fn agent_holds(pauses: &[Pause]) -> Vec<Hold> {
    let mut holds: Vec<Hold> = pauses
        .iter()
        .take(MAX_NAMED)
        .map(|pause| Hold { what: pause.describe(), fix: pause.resume_command() })
        .collect();
    if pauses.len() > MAX_NAMED {
        holds.push(Hold {
            what: format!("more pauses of agents: {}", pauses.len() - MAX_NAMED),
            fix: "`dalsegno agent status` for the others".to_owned(),
        });
    }
    holds
}

async fn flow_holds(pool: &PgPool) -> Result<Vec<Hold>, StatementError> {
    let filter = flows::Filter { state: Some(flows::State::Paused), ..flows::Filter::default() };
    let paused =
        flows::list(pool, filter, Page { after: None, limit: MAX_NAMED as i64 + 1 }).await?;
    let mut holds: Vec<Hold> = paused
        .iter()
        .take(MAX_NAMED)
        .map(|flow| Hold {
            what: format!("flow {} (`{}`) is paused", flow.id, flow.template),
            fix: format!("`dalsegno flow resume {}`", flow.id),
        })
        .collect();
    if paused.len() > MAX_NAMED {
        holds.push(Hold {
            what: "more flows are paused".to_owned(),
            fix: "`dalsegno flow ls --state paused` for the others".to_owned(),
        });
    }
    Ok(holds)
}

/// Describes jobs that are held one by one. Those of paused agents are left out: the pause is described.
async fn job_holds(pool: &PgPool, pauses: &[Pause]) -> Result<Vec<Hold>, queue::Error> {
    let state = Some(HELD.to_owned());
    let filter = JobFilter { state, limit: Some(MAX_HELD_JOBS), ..JobFilter::default() };
    let mut holds = Vec::new();
    for job in admin::list_jobs(pool, &filter).await? {
        let Cause::Hold { reason, .. } = admin::explain(pool, job.id).await?.cause else {
            continue;
        };
        if pauses.iter().any(|pause| pause.hold_reason() == reason) {
            continue;
        }
        if holds.len() == MAX_NAMED {
            holds.push(Hold {
                what: "more jobs are held".to_owned(),
                fix: "`dalsegno job ls --state held` for the others".to_owned(),
            });
            break;
        }
        holds.push(Hold {
            what: format!("job {} is held: {reason}", job.id),
            fix: format!("`dalsegno job release {}`", job.id),
        });
    }
    Ok(holds)
}

fn report_holds(holds: &[Hold]) -> Finding {
    if holds.is_empty() {
        return Finding::ok(HELD, "nothing is held or paused", WHY_HELD);
    }
    let join = |text: fn(&Hold) -> &str| holds.iter().map(text).collect::<Vec<_>>().join("; ");
    Finding::warn(HELD, join(|hold| &hold.what), WHY_HELD, join(|hold| &hold.fix))
}

fn transactions(health: &Health) -> Finding {
    const CHECK: &str = "transactions";
    let secs = health.oldest_transaction_secs;
    let what = format!("the oldest transaction has been open for {secs:.0} s");
    match health.has_old_transaction() {
        false => Finding::ok(CHECK, what, WHY_TRANSACTIONS),
        true => {
            let fix = "find it in pg_stat_activity by xact_start, and end it";
            Finding::warn(CHECK, what, WHY_TRANSACTIONS, fix)
        }
    }
}

fn writers(health: &Health) -> Finding {
    const CHECK: &str = "writers";
    let secs = health.oldest_writer_secs;
    let what = format!("the oldest transaction with writes has been open for {secs:.0} s");
    match health.has_old_writer() {
        false => Finding::ok(CHECK, what, WHY_WRITERS),
        true => {
            let fix = "find it in pg_stat_activity (backend_xid is not null, in any database) or pg_prepared_xacts, and end it";
            Finding::warn(CHECK, what, WHY_WRITERS, fix)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;

    #[test]
    fn a_transaction_that_blocks_followers_is_a_warning() {
        let health = |oldest_writer_secs| Health {
            deserted: None,
            paused: None,
            dead: 0,
            held_lanes: 0,
            oldest_transaction_secs: 0.0,
            oldest_writer_secs,
        };
        assert_eq!(writers(&health(179.0)).status, Status::Ok);
        let found = writers(&health(181.0));
        assert_eq!(found.status, Status::Warn);
        assert!(found.what.contains("181 s") && found.fix.contains("backend_xid"), "{found:?}");
    }
}
