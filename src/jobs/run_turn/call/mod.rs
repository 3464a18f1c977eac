//! Fourth phase: calls the provider, once or in rounds with tools between them. No transaction.

pub mod ask;
pub mod budget;
pub mod conversation;
pub mod grants;
pub mod interruption;
pub mod ledger;
pub mod progress;
pub mod provider_call;
pub mod report;
pub mod rounds;
pub mod witness;
