//! Removal of files of erased campaigns on this host: folders of sessions, workspaces, and conversations in the memory
//! of this process.

use std::{io, path::PathBuf, time::Duration};

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{FolderError, Services};
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

/// Sweeps once. Returns the number of erasures whose files are now gone from this host.
pub async fn sweep_erased(
    services: &Services,
    pool: &PgPool,
    host: &str,
) -> Result<usize, FolderError> {
    let left = erasures::list_pending_on_host(pool, host, services.clock.now()).await?;
    let mut n_rid = 0;
    for erasure in &left {
        let removed = match sweep(services, erasure).await {
            Ok(removed) => removed,
            // A failed erasure does not stop the others. The next round retries it.
            Err(error) => {
                tracing::warn!(error = causes(&error), campaign.id = %erasure.campaign_id, "cannot remove a folder of an erased campaign");
                continue;
            }
        };
        n_rid += 1;
        let now = services.clock.now();
        erasures::record_swept(pool, erasure.erasure_id, host, removed, now).await?;
        tracing::info!(
            campaign.id = %erasure.campaign_id,
            folders = removed.0,
            bytes = removed.1,
            "removed the files of an erased campaign from this host"
        );
    }
    Ok(n_rid)
}

/// Returns the number of removed folders, and their bytes.
async fn sweep(services: &Services, erasure: &PendingErasure) -> Result<(i64, i64), FolderError> {
    services.histories.remove_sessions(&erasure.sessions);
    let (mut n_folders, mut n_bytes) = (0, 0);
    for folder in erasure.folders.iter().filter_map(|name| name.parse::<Uuid>().ok()) {
        let bytes = services.providers.claude().remove_folder(folder).await?;
        n_folders += i64::from(bytes > 0);
        n_bytes += i64::try_from(bytes).unwrap_or(i64::MAX);
    }
    let workspace = services.workspaces.join(erasure.campaign_id.to_string());
    if remove(workspace).await? {
        n_folders += 1;
    }
    Ok((n_folders, n_bytes))
}

async fn remove(folder: PathBuf) -> Result<bool, FolderError> {
    let shown = folder.clone();
    let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(folder)).await;
    match removed.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(FolderError::Workspace { folder: shown, source }),
    }
}
