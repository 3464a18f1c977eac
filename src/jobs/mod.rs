//! The handlers of jobs, one per kind, and their registry.

pub mod budget_waits;
pub mod busy;
pub mod cleanup;
pub mod compact_session;
pub mod deliver_webhook;
pub mod erase_campaign;
pub mod expired_session;
pub mod pool;
pub mod rate_limit_waits;

mod add_task;
mod agent_checks;
mod begin_budget_period;
mod bulk_action;
mod calibrations;
mod cancel_batch;
mod earlier_turns;
mod endpoint;
mod erased_files;
mod extract_facts;
mod folder_removals;
mod histories;
mod index_texts;
mod lost_tasks;
mod make_embeddings;
mod measure;
mod old_folders;
mod ping;
mod price_basis;
mod rate_limits;
mod rerun_turn;
mod route;
mod run_turn;
mod services;
mod side_call;
mod side_context;
mod stored_texts;
#[cfg(feature = "test-fakes")]
pub mod trial;
mod write_attempts;

use std::sync::Arc;

#[cfg(feature = "test-fakes")]
pub use self::run_turn::crash_points::CrashPoint;
pub use self::{
    agent_checks::ignored_key_reasons,
    calibrations::Calibrations,
    endpoint::Endpoint,
    erased_files::{drop_removed_conversations, remove_erased_files, sweep_erased},
    folder_removals::{Error as FolderError, SweepCount},
    lost_tasks::end_lost_tasks,
    make_embeddings::request_embeddings,
    old_folders::{remove_old_folders, sweep_folders},
    ping::Ping,
    pool::Pool,
    rate_limits::RateLimits,
    rerun_turn::rerun_routes,
    run_turn::preview::previews,
    services::{Error, Sections, Services},
};
pub use crate::providers::claude::guard::program;
use crate::{metric::Metric, queue::Registry};

/// Lists the metrics of jobs.
pub fn metrics() -> impl Iterator<Item = Metric> {
    let turns = run_turn::metrics::METRICS.into_iter();
    turns
        .chain(budget_waits::METRICS)
        .chain(busy::METRICS)
        .chain(cleanup::METRICS)
        .chain(deliver_webhook::METRICS)
        .chain(rate_limit_waits::METRICS)
}

/// Registers every kind of job of this service.
pub fn registry(services: Arc<Services>) -> Registry<Arc<Services>> {
    cleanup::begin_counts();
    let registry = Registry::new(services)
        .with(ping::run)
        .with(run_turn::run)
        .with(run_turn::run_joined)
        .with(compact_session::job::run)
        .with(extract_facts::run)
        .with(rerun_turn::run)
        .with(make_embeddings::run)
        .with(index_texts::run)
        .with(cleanup::run)
        .with(erase_campaign::run)
        .with(add_task::run)
        .with(begin_budget_period::run)
        .with(bulk_action::run)
        .with(cancel_batch::run)
        .with(deliver_webhook::run);
    #[cfg(feature = "test-fakes")]
    let registry = trial::register(registry);
    registry
}
