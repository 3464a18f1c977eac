//! Removal of files of erased campaigns on this host: folders of sessions, workspaces, and conversations in the memory
//! of this process. The processes that share a data folder record together that its files are gone. So each looks for its conversations
//! itself.

use std::time::Duration;

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{FolderError, Services, SweepCount, folder_removals::FolderRemovals};
use crate::{
    causes::causes,
    domain::erasures::{self, PendingErasure},
};

const EVERY: Duration = Duration::from_secs(30);

/// Sweeps at an interval, until `stop`.
pub async fn remove_erased_files(
    services: &Services,
    pool: &PgPool,
    host: &str,
    stop: &CancellationToken,
) {
    while stop.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_some() {
        if let Err(error) = sweep_erased(services, pool, host).await {
            tracing::warn!(error = causes(&error), "cannot remove the files of erased campaigns");
        }
    }
}

/// Drops cached conversations of removed sessions at an interval, until `stop`. For a process that runs no turns: its previews cache
/// conversations, too, and the files are removed by other processes.
pub async fn drop_removed_conversations(
    services: &Services,
    pool: &PgPool,
    stop: &CancellationToken,
) {
    let round = async || {
        tokio::time::sleep(EVERY).await;
        if let Err(error) = services.histories.remove_without_session(pool).await {
            tracing::warn!(error = causes(&error), "cannot look for removed conversations");
        }
    };
    while stop.run_until_cancelled(round()).await.is_some() {}
}

/// Sweeps once. Returns the number of erasures whose files are now gone from this host.
pub async fn sweep_erased(
    services: &Services,
    pool: &PgPool,
    host: &str,
) -> Result<usize, FolderError> {
    services.histories.remove_without_session(pool).await?;
    let (mut n_rid, mut after) = (0, None);
    loop {
        let now = services.clock.now();
        let left = erasures::list_pending_on_host(pool, host, after, now).await?;
        let Some(last) = left.last() else { return Ok(n_rid) };
        after = Some(last.position());
        for erasure in &left {
            n_rid += usize::from(sweep_and_record(services, pool, host, erasure).await?);
        }
    }
}

/// Returns true if the files of an erasure are gone, which is then recorded.
async fn sweep_and_record(
    services: &Services,
    pool: &PgPool,
    host: &str,
    erasure: &PendingErasure,
) -> Result<bool, FolderError> {
    let SweepCount { folders, bytes } = match sweep(services, erasure).await {
        Ok(removed) => removed,
        // A failed erasure does not stop the others. The next round retries it.
        Err(error) => {
            tracing::warn!(error = causes(&error), campaign.id = %erasure.campaign_id, "cannot remove a folder of an erased campaign");
            return Ok(false);
        }
    };
    let now = services.clock.now();
    erasures::record_swept(pool, erasure.erasure_id, host, (folders, bytes), now).await?;
    tracing::info!(
        campaign.id = %erasure.campaign_id,
        folders,
        bytes,
        "removed the files of an erased campaign from this host"
    );
    Ok(true)
}

/// Removes all folders that it can, and fails if one is left.
async fn sweep(services: &Services, erasure: &PendingErasure) -> Result<SweepCount, FolderError> {
    services.histories.remove_sessions(&erasure.sessions);
    let (claude, mut removals) = (services.providers.claude(), FolderRemovals::default());
    for folder in erasure.folders.iter().filter_map(|name| name.parse::<Uuid>().ok()) {
        removals.add(claude.remove_folder(folder).await);
    }
    let workspace = claude.remove_folder_in(&services.workspaces, erasure.campaign_id).await;
    removals.add(workspace);
    removals.finish()
}
