//! The transactions of requests that are no operations yet; the limits are those of `operations`.

use std::time::Duration;

use sqlx::{Postgres, Transaction};

use super::Problem;
use crate::{
    app::App,
    domain::Failed,
    operations::{self, Limits, OpenTransaction},
};

pub(super) async fn begin(app: &App) -> Result<OpenTransaction, Problem> {
    Ok(operations::begin(&app.pool, Some(&limits(app))).await?)
}

/// For a read that takes no locks.
pub(super) async fn begin_read(app: &App) -> Result<Transaction<'static, Postgres>, Failed> {
    operations::begin_read(&app.pool, Some(&limits(app))).await
}

pub(super) fn limits(app: &App) -> Limits {
    let longest = Duration::from_secs(app.config.request_timeout_secs);
    Limits { places: app.places.clone(), longest }
}
