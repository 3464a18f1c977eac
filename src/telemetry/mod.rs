//! Logs and metrics of the process. The rules of logging are in `docs/reference/logging.md`.
//!
//! Logs go to stderr, so that stdout stays free for data. Each line is written at once and nothing is buffered, so
//! there is nothing to flush on the way out.

mod page;
mod process;

use std::{io::IsTerminal as _, thread, time::Duration};

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use serde::Deserialize;
use tracing_subscriber::{
    EnvFilter, filter::ParseError, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

use crate::{metric::Metric, settings::Checks};

pub use self::page::{IN_MILLIONTHS, Metrics};

const BUILD_INFO: Metric =
    Metric::gauge("dalsegno_build_info", &["version"], "Always 1; its label names the build.");

/// Buckets of all duration histograms: from a claim's millisecond to a turn's hour.
const DURATION_BUCKETS_SECS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0];

/// Interval at which samples are merged. At ten thousand samples a second, half a megabyte collects in it.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub filter: String,
    pub format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    Auto,
    Pretty,
    Json,
}

/// Filter directive that silences sqlx about unknown parameters of a database URL: it logs their values, which may be
/// secrets.
const NO_CONNECT_PARAMETERS: &str = "sqlx_postgres::options::parse=off";

/// Access to the metrics of the process.
#[derive(Debug)]
pub struct Telemetry {
    pub metrics: Metrics,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("log.filter is not valid; use for example \"info,dalsegno=debug\"")]
    Filter(#[source] ParseError),
    #[error("cannot set up the metrics recorder")]
    Metrics(#[source] BuildError),
    #[error("cannot start the upkeep thread of the metrics recorder")]
    Upkeep(#[source] std::io::Error),
}

/// Starts telemetry for the process. A second call in one process (tests) keeps the first subscriber.
pub fn init(config: &Config) -> Result<Telemetry, Error> {
    let filter = EnvFilter::try_new(&config.filter).map_err(Error::Filter)?;
    let filter = filter.add_directive(NO_CONNECT_PARAMETERS.parse().map_err(Error::Filter)?);
    let registry = tracing_subscriber::registry().with(filter);
    let mut layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    // On a terminal the layer itself decides, by NO_COLOR.
    if !std::io::stderr().is_terminal() {
        layer.set_ansi(false);
    }
    // An already installed subscriber is not an error: in tests many services share one process.
    let _ = match config.format.is_json() {
        true => registry.with(layer.json().flatten_event(true)).try_init(),
        false => registry.with(layer).try_init(),
    };
    Ok(Telemetry { metrics: Metrics::new(recorder()?) })
}

impl Config {
    pub fn check(&self, checks: &mut Checks<'_>) {
        if let Err(error) = EnvFilter::try_new(&self.filter) {
            checks.fail("log.filter", error.to_string(), "\"info\", or \"info,dalsegno=debug\"");
        }
    }
}

impl Format {
    fn is_json(self) -> bool {
        match self {
            Self::Json => true,
            Self::Pretty => false,
            Self::Auto => !std::io::stderr().is_terminal(),
        }
    }
}

/// Returns the process-wide metrics recorder. `metrics` allows one; later callers get a handle of the same.
fn recorder() -> Result<PrometheusHandle, Error> {
    static HANDLE: std::sync::Mutex<Option<PrometheusHandle>> = std::sync::Mutex::new(None);
    let mut slot = HANDLE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(handle) = slot.as_ref() {
        return Ok(handle.clone());
    }
    let buckets = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &DURATION_BUCKETS_SECS)
        .map_err(Error::Metrics)?;
    let handle = buckets.install_recorder().map_err(Error::Metrics)?;
    start_upkeep(handle.clone())?;
    describe();
    Ok(slot.insert(handle).clone())
}

/// Merges recorded samples into their histograms as long as the process lives. Otherwise only a scrape does, and the
/// samples of a process that is not scraped fill its memory. A thread, because recorders outlive runtimes.
fn start_upkeep(handle: PrometheusHandle) -> Result<(), Error> {
    let upkeep = move || {
        loop {
            handle.run_upkeep();
            tracing::trace!("merged recorded samples into histograms");
            thread::sleep(UPKEEP_EVERY);
        }
    };
    let thread = thread::Builder::new().name("metrics-upkeep".to_owned());
    thread.spawn(upkeep).map(drop).map_err(Error::Upkeep)
}

fn describe() {
    BUILD_INFO.describe();
    metrics::gauge!(BUILD_INFO.name, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
}

/// Lists the metrics of the process and of its build.
pub fn metrics() -> impl Iterator<Item = Metric> {
    [BUILD_INFO].into_iter().chain(process::METRICS)
}
