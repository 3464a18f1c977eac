//! The database for the length of one command.

use tokio_util::sync::CancellationToken;

use super::{Context, Failure};
use crate::{
    db::{Database, Use},
    telemetry,
};

/// Opens the database, works on it, and closes it on every way out.
pub(super) async fn with_database<T>(
    context: &Context,
    work: impl AsyncFnOnce(&Database) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let config = context.load()?;
    let _telemetry = telemetry::init(&config.log)?;
    let stop = CancellationToken::new();
    let database = Database::open(&config.database, Use::Visit, &stop).await?;
    let ended = work(&database).await;
    database.close().await;
    ended
}
