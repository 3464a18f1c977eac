//! Fourth phase: the provider is asked, once or in rounds between which tools are called. No transaction.

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
