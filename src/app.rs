//! What every part of a running process shares.

use std::sync::Arc;

use metrics_exporter_prometheus::PrometheusHandle;
use sqlx::PgPool;

use crate::{
    clock::Clock, config::Config, domain::agents::Library, shutdown::Shutdown, tools,
    traces::Traces,
};

/// Cheap to clone; the parts are shared.
#[derive(Debug, Clone)]
pub struct App {
    pub config: Arc<Config>,
    pub pool: PgPool,
    pub clock: Arc<dyn Clock>,
    pub agents: Arc<Library>,
    pub tools: Arc<tools::Settings>,
    pub metrics: PrometheusHandle,
    pub traces: Traces,
    pub shutdown: Shutdown,
}
