//! The installation: its health, its settings, its schema and its size.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Call, Operation, Refusal, Spec};
use crate::domain::{
    findings::Finding,
    installation::{self, AppliedMigration, DatabaseSize, Setting, TableSize},
    keys::Scope,
};

const TAG: &str = "installation";
const ADMIN: &[Scope] = &[Scope::Admin];

/// Checks the installation from the process that answers, as `dalsegno doctor` does. Takes some seconds.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunDoctor {}

/// Findings in the order of the checks.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Findings {
    pub items: Vec<Finding>,
}

/// Shows version, settings, migrations and sizes of the installation.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowInstallation {}

/// The installation, as the process that answers sees it.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Installation)]
pub struct InstallationView {
    pub id: Uuid,
    pub created_at: DateTime<Utc>,
    /// Of the process.
    pub version: String,
    pub database: DatabaseSize,
    /// The largest first.
    pub tables: Vec<TableSize>,
    /// The newest first.
    pub migrations: Vec<AppliedMigration>,
    /// Of the process, without secrets.
    pub settings: Vec<Setting>,
}

impl Operation for RunDoctor {
    const SPEC: Spec = Spec::read("run_doctor", "/v1/doctor", "")
        .tag(TAG)
        .needs(ADMIN)
        .without_command("`dalsegno doctor` checks the host on which it runs");
    type Output = Findings;

    async fn run(self, call: &Call) -> Result<Findings, Refusal> {
        Ok(Findings { items: call.examination.run().await })
    }
}

impl Operation for ShowInstallation {
    const SPEC: Spec =
        Spec::read("show_installation", "/v1/installation", "installation").tag(TAG).needs(ADMIN);
    type Output = InstallationView;

    async fn run(self, call: &Call) -> Result<InstallationView, Refusal> {
        let mut transaction = call.begin_read().await?;
        let report = installation::report(&mut transaction, call.now.date_naive()).await?;
        Ok(InstallationView {
            id: report.installation.id,
            created_at: report.installation.created_at,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            database: report.database,
            tables: report.tables,
            migrations: report.migrations,
            settings: call.config.settings.clone(),
        })
    }
}
