//! Probes and the metrics page.
//!
//! `/livez` reports that the process schedules work. It never touches the database, because a restart would not repair
//! a database; it also answers while the start waits for one. `/readyz` reports that requests can be served now.

use std::{sync::Arc, time::Duration};

use axum::{Json, extract::State, http::header::CONTENT_TYPE, response::IntoResponse};
use serde::Serialize;
use sqlx::PgPool;
use tokio::{sync::Mutex, time::Instant};

use super::{Problem, RouterState};
use crate::{
    app::App,
    causes::causes,
    db::{self, MigrationState},
};

/// Probes usually give up after a second or two; the answer with the reason must come before.
const READY_TIMEOUT: Duration = Duration::from_millis(900);

/// Time for which a good answer is cached. Probes need no key, and must not keep the database busy.
const STATE_TTL: Duration = Duration::from_secs(1);

/// Cached state of the database. One request reads it for all that arrive meanwhile.
#[derive(Debug, Clone, Default)]
pub(super) struct Readiness(Arc<Mutex<Option<(Instant, DatabaseState)>>>);

#[derive(Debug, Clone, Copy)]
struct DatabaseState {
    migrations: MigrationState,
    is_writable: bool,
    has_space: bool,
}

#[derive(Debug, Serialize, utoipa::ToSchema)]
struct Ready {
    status: &'static str,
    migrations: MigrationState,
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(livez, readyz, metrics))]
pub(super) struct ApiDoc;

/// Reports that the process is alive. Does not use the database.
#[utoipa::path(
    get,
    path = "/livez",
    tag = "probes",
    security(()),
    responses(
        (status = 200, body = String, content_type = "text/plain"),
    ),
)]
pub(super) async fn livez() -> &'static str {
    "ok"
}

/// Reports if this process can serve requests now.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "probes",
    security(()),
    responses(
        (status = 200, body = Ready),
        (status = 503, description = "`starting`, `shutting_down`, `database_unreachable`, `database_read_only`, `database_full`, `migrations_pending`"),
    ),
)]
pub(super) async fn readyz(
    State(front): State<RouterState>,
    app: Result<App, Problem>,
) -> Result<impl IntoResponse, Problem> {
    if front.shutdown.soft.is_cancelled() {
        return Err(Problem::unavailable("shutting_down", "the service is shutting down"));
    }
    let app = app?;
    let state = tokio::time::timeout(READY_TIMEOUT, front.readiness.read_state(&app.pool)).await;
    let detail = "the database does not answer: `dalsegno doctor` finds the cause";
    let DatabaseState { migrations, is_writable, has_space } = match state {
        Ok(Ok(state)) => state,
        Ok(Err(error)) => {
            tracing::warn!(error = causes(&error), "not ready");
            return Err(Problem::unavailable("database_unreachable", detail));
        }
        Err(_elapsed) => return Err(Problem::unavailable("database_unreachable", detail)),
    };
    if !is_writable {
        let detail = "the database accepts no writes: promote the standby, point database.url at the primary, or turn off default_transaction_read_only";
        return Err(Problem::unavailable("database_read_only", detail));
    }
    if !has_space {
        let detail = "the disk of the database is full: free space there; docs/how-to/recover.md lists the places to check";
        return Err(Problem::unavailable("database_full", detail));
    }
    if let MigrationState::Pending { n_pending } = migrations {
        let detail = format!("{n_pending} migrations are missing: run `dalsegno migrate up`");
        return Err(Problem::unavailable("migrations_pending", detail));
    }
    Ok(Json(Ready { status: "ready", migrations }))
}

impl Readiness {
    async fn read_state(&self, pool: &PgPool) -> Result<DatabaseState, db::Error> {
        let mut seen = self.0.lock().await;
        if let Some((at, state)) = *seen
            && at.elapsed() < STATE_TTL
        {
            return Ok(state);
        }
        *seen = None;
        let migrations = db::migration_state(pool).await?;
        let is_writable = db::is_writable(pool).await?;
        let state =
            DatabaseState { migrations, is_writable, has_space: db::has_space(pool).await? };
        // Only good answers are cached, so that a recovery is seen at once.
        if is_writable && state.has_space && !matches!(migrations, MigrationState::Pending { .. }) {
            *seen = Some((Instant::now(), state));
        }
        Ok(state)
    }
}

/// Metrics of this process, for Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "probes",
    responses(
        (status = 200, body = String, content_type = "text/plain"),
    ),
)]
pub(super) async fn metrics(State(front): State<RouterState>) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], front.metrics.render())
}
