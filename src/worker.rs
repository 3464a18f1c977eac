//! The worker processes: `worker-turns` and `worker-upkeep`.
//!
//! They join a database that a service has prepared, and work until they are told to stop.

use crate::{
    config::Config,
    db::{self, Database, Use},
    shutdown::Shutdown,
};

/// Which jobs a process runs. Two pools, because they fail and scale apart: turns take minutes and drain
/// slowly, upkeep is many short jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pool {
    Turns,
    Upkeep,
}

/// Works until the shutdown.
pub async fn run(config: &Config, shutdown: &Shutdown, pool: Pool) -> Result<(), db::Error> {
    let opened = Database::open(&config.database, Use::Join, &shutdown.soft).await;
    let database = match opened {
        Err(db::Error::Stopped) => return Ok(()),
        opened => opened?,
    };
    tracing::info!(pool = pool.name(), database = database.describe(), "worker ready");
    shutdown.soft.cancelled().await;
    database.close().await;
    tracing::info!(pool = pool.name(), "worker stopped");
    Ok(())
}

impl Pool {
    pub fn name(self) -> &'static str {
        match self {
            Self::Turns => "turns",
            Self::Upkeep => "upkeep",
        }
    }
}
