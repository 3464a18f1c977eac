//! Fourth phase: calls the provider, once or in rounds with tools between them. No transaction.

pub mod batch;
pub mod budget;
pub mod calls;
pub mod conversation;
pub mod grants;
pub mod history_check;
pub mod interruption;
pub mod ledger;
pub mod limits;
pub mod progress;
pub mod provider_call;
pub mod report;
pub mod rounds;
