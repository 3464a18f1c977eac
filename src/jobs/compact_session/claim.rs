//! The claim of the one run that makes a summary of a session.
//!
//! It is stored beside the attempts, on the session's row. It is valid while its run holds its job: a run that crashed,
//! was overtaken or has ended has lost it. So the claim needs no expiry.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::sleep;
use uuid::Uuid;

use super::{Error, Folder};
use crate::{
    domain::sessions,
    providers::{self, Class},
    queue::{self, Run},
};

/// A run of a job, by its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claimant {
    pub job_id: i64,
    pub lease: i64,
}

/// Key of the claim in the stored attempts.
const KEY: &str = "claimed_by";
const LOOK_EVERY: Duration = Duration::from_millis(200);

impl From<&Run> for Claimant {
    fn from(run: &Run) -> Self {
        Self { job_id: run.job_id(), lease: run.lease() }
    }
}

/// Claims the session for this run. Returns false if another run has the claim.
pub(super) async fn take(folder: &Folder<'_>, id: Uuid) -> Result<bool, Error> {
    let own = folder.claimant;
    let mut tx = folder.pool.begin().await.map_err(Error::Transaction)?;
    let stored = sessions::lock_breaker(&mut *tx, id).await?;
    if let Some(other) = claimed_by(stored.as_ref()).filter(|other| *other != own)
        && queue::is_run_by(&mut *tx, other.job_id, other.lease).await.map_err(Error::Queue)?
    {
        return Ok(false);
    }
    let stored = with(stored, Some(own));
    sessions::store_breaker(&mut *tx, id, &stored).await?;
    tx.commit().await.map_err(Error::Transaction)?;
    Ok(true)
}

/// Releases the claim of this run. After a failure it ends with the run.
pub(super) async fn release(folder: &Folder<'_>, id: Uuid) -> Result<(), Error> {
    let mut tx = folder.pool.begin().await.map_err(Error::Transaction)?;
    let stored = sessions::lock_breaker(&mut *tx, id).await?;
    if claimed_by(stored.as_ref()) == Some(folder.claimant) {
        sessions::store_breaker(&mut *tx, id, &with(stored, None)).await?;
    }
    tx.commit().await.map_err(Error::Transaction)
}

/// Waits before another look at the claim of the other run.
pub(super) async fn wait(folder: &Folder<'_>) -> Result<(), Error> {
    tokio::select! {
        () = sleep(LOOK_EVERY) => Ok(()),
        () = folder.cancel.cancelled() => {
            let why = "the run was stopped while it waited for the summary of another run";
            let error = providers::Error::new("compaction.stopped", Class::Cancelled, why);
            Err(Error::NotAsked(error.before_call()))
        }
    }
}

/// Keeps the claim when attempts are stored again.
pub(super) fn carry_over(from: Option<&Value>, to: Value) -> Value {
    with(Some(to), claimed_by(from))
}

fn claimed_by(stored: Option<&Value>) -> Option<Claimant> {
    serde_json::from_value(stored?.get(KEY)?.clone()).ok()
}

fn with(stored: Option<Value>, claimant: Option<Claimant>) -> Value {
    let mut stored = stored.filter(Value::is_object).unwrap_or_else(|| json!({ "attempts": [] }));
    if let Some(fields) = stored.as_object_mut() {
        fields.remove(KEY);
        fields.extend(claimant.map(|it| (KEY.to_owned(), json!(it))));
    }
    stored
}
