//! Check that the nightly cleanup still succeeds.

use chrono::{DateTime, Utc};
use sqlx::PgPool;

use super::Finding;
use crate::domain::{
    StatementError, cleanups,
    schedules::{self, Schedule},
};

const CHECK: &str = "cleanup";
const WHY: &str = "without it, expired conversations stay forever, and the database grows";

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
    match cleanups::is_overdue(last, nightly.created_at, now) {
        false => Finding::ok(CHECK, what, WHY),
        true => {
            let fix = "`dalsegno cleanup runs` shows its result; `dalsegno cleanup` starts one now";
            Finding::warn(CHECK, what, WHY, fix)
        }
    }
}
