//! State of the router. Before the database is reachable, it answers probes only.

use std::sync::{Arc, OnceLock};

use axum::{extract::FromRequestParts, http::request::Parts};

use super::{Problem, health::Readiness};
use crate::{app::App, shutdown::Shutdown, telemetry::Metrics};

/// State of the router. Cheap to clone; the parts are shared.
#[derive(Debug, Clone)]
pub struct RouterState {
    pub metrics: Metrics,
    pub shutdown: Shutdown,
    pub(super) readiness: Readiness,
    app: Arc<OnceLock<App>>,
}

impl RouterState {
    pub fn new(metrics: Metrics, shutdown: Shutdown) -> Self {
        Self { metrics, shutdown, readiness: Readiness::default(), app: Arc::default() }
    }

    /// Returns the app, or 503 until the service is open.
    pub(super) fn app(&self) -> Result<App, Problem> {
        self.app.get().cloned().ok_or_else(|| {
            let detail =
                "the service is waiting for its database or its schema: its log shows the cause";
            Problem::unavailable("starting", detail)
        })
    }

    /// Opens the service to requests. A second call changes nothing.
    pub fn open(&self, app: App) {
        let _ = self.app.set(app);
    }
}

/// Extracts the app; handlers that need it answer 503 until the service is open.
impl FromRequestParts<RouterState> for App {
    type Rejection = Problem;

    async fn from_request_parts(_: &mut Parts, front: &RouterState) -> Result<Self, Problem> {
        front.app()
    }
}
