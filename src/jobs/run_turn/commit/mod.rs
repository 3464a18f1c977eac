//! Fifth phase: decides the fate of the turn, and writes it in transaction B, with the end of the job.

pub mod busy;
pub mod calibration;
pub mod cancellation;
pub mod contexts;
pub mod decision;
pub mod entries;
pub mod failover;
pub mod fate;
pub mod feed_event;
pub mod ledger;
pub mod measure;
pub mod output_files;
pub mod provider_session;
pub mod spans;
pub mod structured_result;
pub mod transaction;
pub mod turn;
mod turn_end;
