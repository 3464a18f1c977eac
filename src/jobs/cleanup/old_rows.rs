//! The removal of old rows that belong to no session. Neither the preview nor the record of the run counts them.

use chrono::TimeDelta;

use super::{Error, metrics, pause};
use crate::{
    domain::{
        audit, batches, campaigns, operation_keys, task_files,
        transaction::{begin, commit},
        webhooks,
    },
    jobs::Services,
    queue::Run,
};

/// Idempotency keys of operations of one transaction.
const KEYS: i64 = 2_000;
/// Replaced versions of campaigns of one transaction, each with two texts.
const VERSIONS: i64 = 500;
/// Contents of files of one transaction.
const CONTENTS: i64 = 100;
/// Orphaned message batches of one transaction.
const BATCHES: usize = 100;
/// Lines of the audit log of one transaction.
const AUDIT_BATCH: i64 = 5_000;

/// Removes old webhook deliveries, in batches of their own.
pub(super) async fn remove_old_deliveries(run: &Run, services: &Services) -> Result<(), Error> {
    let before = services.clock.now() - services.webhooks.config().keep();
    let batch = i64::from(services.sessions.cleanup_batch_sessions);
    while !run.cancel().is_cancelled() {
        let n_removed = webhooks::remove_old(run.pool(), before, batch).await?;
        metrics::removed_deliveries(n_removed);
        if n_removed.cast_signed() < batch {
            return Ok(());
        }
        pause(run, services).await;
    }
    Err(Error::Stopped)
}

/// Removes old idempotency keys of operations. They are kept as long as those of the queue.
pub(super) async fn remove_old_keys(run: &Run, services: &Services) -> Result<(), Error> {
    let keep = TimeDelta::days(services.keep.idempotency_keys_days.into());
    let before = services.clock.now() - keep;
    while !run.cancel().is_cancelled() {
        let n_removed = operation_keys::remove_old(run.pool(), before, KEYS).await?;
        metrics::removed_keys(n_removed);
        if n_removed.cast_signed() < KEYS {
            return Ok(());
        }
        pause(run, services).await;
    }
    Err(Error::Stopped)
}

/// Removes versions of campaigns that were replaced long enough ago.
pub(super) async fn remove_old_versions(run: &Run, services: &Services) -> Result<(), Error> {
    let keep_days = services.sessions.keep_campaign_versions_days;
    if keep_days == 0 {
        return Ok(());
    }
    let before = services.clock.now() - TimeDelta::days(keep_days.into());
    while !run.cancel().is_cancelled() {
        let n_removed = campaigns::remove_old_versions(run.pool(), before, VERSIONS).await?;
        metrics::removed_versions(n_removed);
        if n_removed < VERSIONS {
            return Ok(());
        }
        pause(run, services).await;
    }
    Err(Error::Stopped)
}

/// Removes old lines of the audit log in transactions of their own: they belong to no session and to no preview.
pub(super) async fn remove_old_audit(run: &Run, services: &Services) -> Result<(), Error> {
    let moment = services.clock.now() - services.audit.keep();
    loop {
        if run.cancel().is_cancelled() {
            return Err(Error::Stopped);
        }
        let removed = audit::remove_before(run.pool(), moment, AUDIT_BATCH).await?;
        metrics::removed_audit(removed);
        if removed > 0 {
            tracing::info!(lines = removed, "removed old lines of the audit log");
        }
        if removed < AUDIT_BATCH {
            return Ok(());
        }
        pause(run, services).await;
    }
}

/// Removes contents of files that no task has: those that a later turn has replaced.
pub(super) async fn remove_unused_contents(run: &Run, services: &Services) -> Result<(), Error> {
    while !run.cancel().is_cancelled() {
        let n_removed = task_files::remove_unused(run.pool(), CONTENTS).await?;
        metrics::removed_contents(n_removed);
        if n_removed < CONTENTS {
            return Ok(());
        }
        pause(run, services).await;
    }
    Err(Error::Stopped)
}

/// Gives up message batches that no turn waits for. Jobs cancel them.
pub(super) async fn give_up_orphaned_batches(run: &Run, services: &Services) -> Result<(), Error> {
    while !run.cancel().is_cancelled() {
        let mut tx = begin(run.pool()).await?;
        let n_given_up = batches::give_up_orphaned(&mut tx, BATCHES).await?;
        commit(tx).await?;
        if n_given_up > 0 {
            tracing::warn!(
                batches = n_given_up,
                "gave up batches whose turns had ended without them"
            );
        }
        if n_given_up < BATCHES {
            return Ok(());
        }
        pause(run, services).await;
    }
    Err(Error::Stopped)
}
