//! Check that the nightly cleanup still succeeds.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgPool;

use super::Finding;
use crate::domain::{
    StatementError, cleanups,
    schedules::{self, Schedule},
};

const CHECK: &str = "cleanup";
const WHY: &str = "without it, expired conversations stay forever, and the database grows";
/// Age of the last success that is reported: a day, and time for a long run and a late start.
const OVERDUE: TimeDelta = TimeDelta::hours(26);

pub(super) async fn examine(pool: &PgPool, now: DateTime<Utc>) -> Finding {
    let looked = async {
        let listed = schedules::list(pool, now).await?;
        let nightly =
            listed.into_iter().find(|schedule| schedule.name == schedules::NIGHTLY_CLEANUP);
        Ok::<_, StatementError>((nightly, cleanups::last_success(pool).await?))
    };
    match looked.await {
        Ok((Some(nightly), last)) => judge(&nightly, last, now),
        Ok((None, _)) => {
            let what = "it is not scheduled yet; `dalsegno serve` and worker-upkeep schedule it";
            Finding::skipped(CHECK, what, WHY)
        }
        Err(error) => Finding::warn(CHECK, error.to_string(), WHY, "dalsegno migrate up"),
    }
}

fn judge(nightly: &Schedule, last: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Finding {
    if let Some(reason) = &nightly.pause_reason {
        let what = format!("it is paused: {reason}");
        return Finding::warn(CHECK, what, WHY, "dalsegno schedule resume cleanup");
    }
    let what = match last {
        Some(last) => format!("the last complete run was at {} UTC", last.format("%F %T")),
        None => "it has not completed yet".to_owned(),
    };
    // Where it has never succeeded, the age counts from the schedule's creation.
    let since = last.unwrap_or(nightly.created_at);
    match now - since <= OVERDUE {
        true => Finding::ok(CHECK, what, WHY),
        false => {
            let fix = "`dalsegno cleanup runs` shows its result; `dalsegno cleanup` starts one now";
            Finding::warn(CHECK, what, WHY, fix)
        }
    }
}
