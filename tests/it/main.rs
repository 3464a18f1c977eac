//! The only integration test binary. `tidy/mod.rs` finds files here that are not modules of it.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test stops where it cannot go on, starts the programs it looks at, and prints its seeds"
)]

mod app;
mod board;
mod campaign_files;
mod cancel_many_tasks;
mod cleanup;
mod cli;
mod clients;
mod cluster;
mod compaction;
mod config;
mod console;
mod context;
mod control;
mod conversations;
mod costs;
mod demo;
mod dependencies;
mod deploy;
mod disk_full;
mod doctor;
mod documents;
mod embedded;
mod erased_files;
mod erasure;
mod estimates;
mod facts;
mod flows;
mod forged_receipts;
mod health;
mod http;
mod leases;
mod memory;
mod mentions;
mod migrations;
mod poolers;
mod process;
mod providers;
mod queue;
mod queue_runtime;
mod queue_sql;
mod required_packages;
mod restore;
mod schedules;
mod service;
mod shared_cluster;
mod standby;
mod tidy;
mod tools;
mod traces;
mod turns;
mod volume;
mod webhooks;
mod wrong_clocks;
