//! Dalsegno: durable conversations for LLM agents on a Postgres job queue.
//!
//! `ARCHITECTURE.md` is the map of this tree.

pub mod app;
pub mod cli;
pub mod clock;
pub mod config;
pub mod console;
pub mod db;
pub mod doctor;
pub mod domain;
pub mod http;
pub mod jobs;
pub mod mcp;
pub mod metric_catalogue;
pub mod operations;
pub mod outbound;
pub mod providers;
pub mod scheduler;
pub mod serve;
pub mod telemetry;
pub mod tools;
pub mod traces;
pub mod worker;

pub use dalsegno_base::{causes, metric, settings, shutdown};
pub use dalsegno_context::{self as context, transcript};
pub use dalsegno_queue as queue;
