//! The process of a demo: its command, its log and its signals.

use super::settings::Settings;
use crate::{
    cli::{Context, Failure},
    shutdown::Shutdown,
    telemetry::{self, Telemetry},
};

/// The parts that all steps of a demo share.
pub(super) struct Demo<'a> {
    pub(super) context: &'a Context,
    pub(super) telemetry: Telemetry,
    pub(super) shutdown: Shutdown,
}

impl<'a> Demo<'a> {
    /// Sets up the log. The display shows the events; the log adds warnings only.
    pub(super) fn of(context: &'a Context, settings: &Settings) -> Result<Self, Failure> {
        let log = telemetry::Config {
            filter: "warn,sqlx=error,dalsegno::jobs::services=error,dalsegno::domain::feed=error"
                .to_owned(),
            ..settings.config.log.clone()
        };
        Ok(Self { context, telemetry: telemetry::init(&log)?, shutdown: Shutdown::new() })
    }
}
