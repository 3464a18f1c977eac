//! Surroundings of the demo: a folder, a Postgres in it and worker processes, all private to the demo.

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::{folder::Folder, settings::Settings, workers::DemoWorkers};
use crate::{
    cli::{Context, Failure},
    db::{Database, Use},
};

/// The demo's workers, database and folder. The fields drop in this order: users of a thing go before the thing.
pub(super) struct DemoSetup {
    pub(super) troupe: DemoWorkers,
    pub(super) settings: Settings,
    database: Database,
    folder: Folder,
}

impl DemoSetup {
    /// Starts the server. If `stop` comes first, it is stopped again.
    pub(super) async fn open(
        folder: Folder,
        settings: Settings,
        stop: &CancellationToken,
    ) -> Result<Self, Failure> {
        // Opened as a service: workers join the server of a service, but wait for the end of a command's server.
        let opened = Box::pin(Database::open(&settings.config.database, Use::Serve, stop)).await;
        Ok(Self { troupe: DemoWorkers::default(), settings, database: opened?, folder })
    }

    pub(super) fn pool(&self) -> &PgPool {
        &self.database.pool
    }

    pub(super) fn describe_database(&self) -> String {
        self.database.describe()
    }

    pub(super) async fn start_workers(&mut self, context: &Context) -> Result<usize, Failure> {
        self.database.migrate().await?;
        self.troupe = DemoWorkers::start(&self.settings, self.folder.path(), context)?;
        Ok(self.troupe.n_workers())
    }

    /// Stops the workers, then the server, then removes the folder.
    pub(super) async fn tear_down(mut self) -> Result<(), Failure> {
        self.troupe.stop().await;
        Ok(self.database.close().await?)
    }
}
