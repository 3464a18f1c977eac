//! What HTTP can answer before there is a database: that the process lives, and that it is not ready yet.

use std::sync::{Arc, OnceLock};

use axum::{extract::FromRequestParts, http::request::Parts};
use metrics_exporter_prometheus::PrometheusHandle;

use super::{Problem, health::Readiness};
use crate::{app::App, shutdown::Shutdown};

/// The router's state. Cheap to clone; the parts are shared.
#[derive(Debug, Clone)]
pub struct Front {
    pub metrics: PrometheusHandle,
    pub shutdown: Shutdown,
    pub(super) readiness: Readiness,
    app: Arc<OnceLock<App>>,
}

impl Front {
    pub fn new(metrics: PrometheusHandle, shutdown: Shutdown) -> Self {
        Self { metrics, shutdown, readiness: Readiness::default(), app: Arc::default() }
    }

    /// What requests are served with, once there is something.
    pub(super) fn app(&self) -> Result<App, Problem> {
        self.app.get().cloned().ok_or_else(|| {
            let detail = "the service is waiting for its database or its schema; the log says why";
            Problem::unavailable("starting", detail)
        })
    }

    /// From now on requests reach the service. Opening twice changes nothing.
    pub fn open(&self, app: App) {
        let _ = self.app.set(app);
    }
}

/// A handler that takes the `App` answers 503 as long as there is none.
impl FromRequestParts<Front> for App {
    type Rejection = Problem;

    async fn from_request_parts(_: &mut Parts, front: &Front) -> Result<Self, Problem> {
        front.app()
    }
}
