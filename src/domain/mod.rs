//! One noun, one module: its types and its SQL. Only that module names its table.
//!
//! Functions take an executor or a connection; the caller owns the transaction, so that a write and the job that follows from it are one
//! commit. A write that must change one row returns an error when it changes none.
//!
//! A turn always takes its locks in this order, so that no two turns deadlock: session, its messages and turns, task, budget of the
//! campaign, board, job. Budget and board are rows that turns of one campaign share, and are therefore held for the shortest time.

pub mod agent_pauses;
pub mod agents;
pub mod amount;
pub mod attention;
pub mod audit;
pub mod batches;
pub mod blackboard;
pub mod budgets;
pub mod bulk_actions;
pub mod busy_models;
pub mod campaign_control;
pub mod campaign_files;
pub mod campaign_overview;
pub mod campaigns;
pub mod class;
pub mod cleanups;
pub mod compactions;
pub mod context_previews;
pub mod context_texts;
pub mod contexts;
pub mod conversations;
pub mod costs;
pub mod credentials;
pub mod csv;
pub mod embeddings;
pub mod erasures;
pub mod estimates;
pub mod evals;
pub mod explanations;
pub mod facts;
pub mod failovers;
pub mod feed;
pub mod fidelity;
pub mod files;
pub mod findings;
pub mod flows;
pub mod ids;
pub mod installation;
mod json_rows;
pub mod keys;
pub mod labels;
pub mod limits;
pub mod manifests;
pub mod memory;
pub mod mentions;
pub mod messages;
pub mod nodes;
pub mod objects;
pub mod operation_keys;
pub mod parameters;
pub mod period_edge;
pub mod posts;
pub mod prices;
pub mod prompt_versions;
pub mod rate_limits;
pub mod reruns;
pub mod result_schemas;
pub mod schedules;
pub mod search;
pub mod session_summaries;
pub mod sessions;
pub mod sign_ins;
pub mod statement_error;
pub mod statuses;
pub mod task_files;
pub mod tasks;
pub mod text;
pub mod text_query;
pub mod text_search;
pub mod timestamp;
pub mod tool_calls;
pub mod transaction;
pub mod transcripts;
pub mod turn_phases;
pub mod turn_tokens;
pub mod turns;
pub mod usage;
pub mod webhooks;

pub use self::{amount::Amount, statement_error::StatementError};

/// The position and the size of a page of a list.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// The last id of the previous page.
    pub after: Option<uuid::Uuid>,
    pub limit: i64,
}

impl Default for Page {
    fn default() -> Self {
        Self { after: None, limit: 50 }
    }
}
