//! Other systems: they add tasks over HTTP and SQL, use the tools over the Model Context Protocol, and receive
//! webhooks.

mod examples;
mod faults;
pub mod mcp;
pub mod packages;
mod rust;
mod rust_fields;
mod rust_retries;
mod rust_schema;

use dalsegno::domain::{amount::Limit, campaigns};
use serde_json::Value;
use sqlx::PgPool;
use tempfile::TempDir;
use uuid::Uuid;

use crate::{
    app::{TestDatabase, noon},
    cluster::scratch_folder,
    service::{Service, dalsegno},
};

/// A whole service as a process, on a database with tables of other systems.
struct ExternalSystem {
    service: Service,
    pool: PgPool,
    campaign_id: Uuid,
    folder: TempDir,
    // Dropped last.
    database: TestDatabase,
}

impl ExternalSystem {
    async fn new() -> Self {
        Self::with(&[]).await
    }

    /// Starts it with these environment variables.
    async fn with(more: &[(&str, &str)]) -> Self {
        let (database, folder) = (TestDatabase::migrated().await, scratch_folder());
        let url = database.url();
        let environment = [
            ("DATABASE_URL", url.as_str()),
            ("DALSEGNO_SIM__LATENCY_MS", "0"),
            ("DALSEGNO_SIM__CHUNK_DELAY_MS", "0"),
            ("DALSEGNO_WEBHOOKS__ALLOW_PRIVATE", "true"),
        ];
        let environment = [&environment[..], more].concat();
        let service = Service::start(folder.path(), &environment).await;
        let pool = database.pool().await;
        let new = campaigns::New {
            name: "Harbour",
            brief: "Ten parts.",
            client_context: None,
            limit: Limit::default(),
        };
        let mut conn = pool.acquire().await.unwrap();
        let campaign_id = campaigns::create(&mut conn, &new, noon()).await.unwrap().id;
        drop(conn);
        Self { service, pool, campaign_id, folder, database }
    }

    fn url(&self) -> String {
        format!("http://{}", self.service.address)
    }

    /// Runs an operator's command.
    async fn run_operator_command(&self, arguments: &[&str]) -> Value {
        let mut command = dalsegno(self.folder.path());
        command.args(arguments).arg("--json").env("DATABASE_URL", self.database.url());
        command.env("DALSEGNO_WEBHOOKS__ALLOW_PRIVATE", "true");
        let output = command.output().await.unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}
