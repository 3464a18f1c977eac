//! Where the demo plays: a folder, a Postgres in it, and worker processes on that. All of it is the demo's own.

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::{folder::Folder, settings::Settings, troupe::Troupe};
use crate::{
    cli::{Context, Failure},
    db::{Database, Use},
};

/// Dropped in this order: nothing is taken away from under somebody who uses it.
pub(super) struct Stage {
    pub(super) troupe: Troupe,
    pub(super) settings: Settings,
    database: Database,
    folder: Folder,
}

impl Stage {
    /// Brings the server up; what was begun is ended if `stop` comes first.
    pub(super) async fn open(
        folder: Folder,
        settings: Settings,
        stop: &CancellationToken,
    ) -> Result<Self, Failure> {
        // As a service, because workers join the server of a service and wait for one of a command.
        let opened = Box::pin(Database::open(&settings.config.database, Use::Serve, stop)).await;
        Ok(Self { troupe: Troupe::default(), settings, database: opened?, folder })
    }

    pub(super) fn pool(&self) -> &PgPool {
        &self.database.pool
    }

    pub(super) fn describe_database(&self) -> String {
        self.database.describe()
    }

    pub(super) async fn start_workers(&mut self, context: &Context) -> Result<usize, Failure> {
        self.database.migrate().await?;
        self.troupe = Troupe::start(&self.settings, self.folder.path(), context)?;
        Ok(self.troupe.n_workers())
    }

    /// Ends the workers, then the server, then the folder.
    pub(super) async fn strike(mut self) -> Result<(), Failure> {
        self.troupe.stop().await;
        Ok(self.database.close().await?)
    }
}
