//! Surroundings of the demo: a folder, a Postgres in it and worker processes, all private to the demo.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{folder::Folder, settings::Settings, workers::DemoWorkers};
use crate::{
    cli::{Context, Failure},
    db::{Database, Use},
    domain::{
        campaigns::{self, Campaign},
        transaction,
    },
    serve,
    shutdown::Shutdown,
    telemetry::Telemetry,
};

/// The demo's workers, database and folder. The fields drop in this order: users of a thing go before the thing.
pub(super) struct DemoSetup {
    pub(super) troupe: DemoWorkers,
    pub(super) settings: Settings,
    console: Option<JoinHandle<()>>,
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
        Ok(Self {
            troupe: DemoWorkers::default(),
            settings,
            console: None,
            database: opened?,
            folder,
        })
    }

    pub(super) fn pool(&self) -> &PgPool {
        &self.database.pool
    }

    /// Creates the campaign that a demo plays.
    pub(super) async fn create_campaign(
        &self,
        new: &campaigns::New<'_>,
        now: DateTime<Utc>,
    ) -> Result<Campaign, Failure> {
        let mut tx = transaction::begin(self.pool()).await?;
        let campaign = campaigns::create(&mut tx, new, now).await?;
        transaction::commit(tx).await?;
        Ok(campaign)
    }

    pub(super) fn describe_database(&self) -> String {
        self.database.describe()
    }

    pub(super) async fn start_workers(&mut self, context: &Context) -> Result<usize, Failure> {
        self.database.migrate().await?;
        self.troupe = DemoWorkers::start(&self.settings, self.folder.path(), context)?;
        Ok(self.troupe.n_workers())
    }

    /// Serves the console on a schema that is current, and returns its address.
    pub(super) async fn open_console(
        &mut self,
        telemetry: &Telemetry,
        shutdown: &Shutdown,
    ) -> Result<String, Failure> {
        let config = Arc::new(self.settings.config.clone());
        let (address, served) =
            serve::serve_pages(config, telemetry, shutdown, &self.database).await?;
        self.console = Some(tokio::spawn(served));
        Ok(address)
    }

    /// Stops the workers and the console, then the server, then removes a temporary folder.
    pub(super) async fn tear_down(mut self, shutdown: &Shutdown) -> Result<(), Failure> {
        shutdown.soft.cancel();
        self.troupe.stop().await;
        if let Some(console) = self.console.take() {
            // It has failed if it cannot be joined, and holds no connection then.
            let _ = console.await;
        }
        Ok(self.database.close().await?)
    }
}
