//! Removal of old local files: of closed or removed sessions, and workspaces of closed campaigns without sessions. Each
//! process that runs turns sweeps the folders of its host. Two processes that find the same folder do no harm.
//!
//! A session's folder is a cache of the database: one that is removed too early is written again. A folder in use
//! stays: its session is open, or, for a call without a session, its files have changed lately.

use std::{collections::HashSet, time::Duration};

use chrono::TimeDelta;
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{FolderError as Error, Services, SweepCount, folder_removals::FolderRemovals};
use crate::{
    causes::causes,
    domain::{StatementError, campaigns, cleanups, sessions},
};

const FIRST_AFTER: Duration = Duration::from_secs(60);
const EVERY: Duration = Duration::from_secs(3_600);
/// Folders with changes in this time stay, regardless of their sessions.
const QUIET_PERIOD: Duration = Duration::from_secs(24 * 3_600);
/// Time that a session has to be closed. Its successor has a folder of its own.
const CLOSED_PERIOD: TimeDelta = TimeDelta::days(1);
/// Folders of one query.
const BATCH: usize = 500;

/// Sweeps every hour, until `stop`.
pub async fn remove_old_folders(
    services: &Services,
    pool: &PgPool,
    host: &str,
    stop: &CancellationToken,
) {
    let mut wait = FIRST_AFTER;
    while stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_some() {
        wait = EVERY;
        match sweep_folders(services, pool, host).await {
            Ok(SweepCount { folders: 0, .. }) => {}
            Ok(swept) => tracing::info!(
                folders = swept.folders,
                bytes = swept.bytes,
                "removed local folders of removed sessions"
            ),
            Err(error) => {
                tracing::warn!(
                    error = causes(&error),
                    "cannot remove local folders of removed sessions"
                )
            }
        }
    }
}

/// Sweeps once. Removes what it can before it reports an error.
pub async fn sweep_folders(
    services: &Services,
    pool: &PgPool,
    host: &str,
) -> Result<SweepCount, Error> {
    let started_at = services.clock.now();
    let mut removals = FolderRemovals::default();
    let sessions = sweep_sessions(services, pool, &mut removals).await;
    let workspaces = sweep_workspaces(services, pool, &mut removals).await;
    let SweepCount { folders, bytes } = removals.count();
    if folders > 0 {
        let now = services.clock.now();
        cleanups::record_removed_folders(pool, host, folders, bytes, started_at, now).await?;
    }
    sessions.and(workspaces)?;
    removals.finish()
}

/// Removes folders of sessions that are closed long enough or removed.
async fn sweep_sessions(
    services: &Services,
    pool: &PgPool,
    removals: &mut FolderRemovals,
) -> Result<(), Error> {
    let claude = services.providers.claude();
    for quiet in claude.quiet_folders(QUIET_PERIOD).await?.chunks(BATCH) {
        for session in list_abandoned(services, pool, quiet).await? {
            removals.add(claude.remove_folder(session).await);
        }
    }
    Ok(())
}

/// Removes workspaces of campaigns that were closed long enough ago and have no session.
async fn sweep_workspaces(
    services: &Services,
    pool: &PgPool,
    removals: &mut FolderRemovals,
) -> Result<(), Error> {
    let (claude, all) = (services.providers.claude(), &services.workspaces);
    let closed_since = services.clock.now() - CLOSED_PERIOD;
    for quiet in claude.quiet_folders_in(all, QUIET_PERIOD).await?.chunks(BATCH) {
        let closed = campaigns::closed_before(pool, quiet, closed_since).await?;
        let in_use = sessions::filter_with_sessions(pool, &closed).await?;
        for campaign in closed.into_iter().filter(|campaign| !in_use.contains(campaign)) {
            removals.add(claude.remove_folder_in(all, campaign).await);
        }
    }
    Ok(())
}

async fn list_abandoned(
    services: &Services,
    pool: &PgPool,
    folders: &[Uuid],
) -> Result<Vec<Uuid>, StatementError> {
    let names: Vec<String> = folders.iter().map(Uuid::to_string).collect();
    let closed_since = services.clock.now() - CLOSED_PERIOD;
    let needed = sessions::needed_folders(pool, &names, closed_since).await?;
    let needed: HashSet<String> = needed.into_iter().collect();
    let all = folders.iter().zip(names);
    Ok(all.filter(|(_, name)| !needed.contains(name)).map(|(folder, _)| *folder).collect())
}
