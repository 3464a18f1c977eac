//! Compaction: folds older conversation into a checked summary.
//!
//! ```text
//! plan ─▶ pins ─▶ prompt ─▶ (a summariser answers) ─▶ accept ─▶ a new generation
//!                   ▲                                   │ refused
//!                   └── retry · other model ◀── ladder ─┴─▶ extract ─▶ park for a person
//! ```
//!
//! [`folding::FoldDraft`] walks through this picture and asks its caller for answers; it does no IO itself.
//!
//! Invariants:
//! - The last two turns stay word for word while they take at most half of the room. Fewer stay if they take more or
//!   would push out a pin of a person, and none if the coming turn needs the room. A tool call is never separated from
//!   its results.
//! - There is a plan whenever the coming turn fits by itself (the last resort is a reference).
//! - What people wrote stays word for word up to its share of the window ([`prompts`]); no summariser can lose it.
//! - A summary that misses a pin, a section or its size limit is never applied.
//! - A model is asked at most three times in ten turns ([`ladder::Breaker`]); the deterministic extract needs none.
//! - If the session is at a node, only that node's exchanges are summarised. Earlier messages are in the archive, which
//!   is the transcript. People's pins from there are kept all the same, and [`Flow`] records the state of the work.
//! - The input of a summary is data to the summariser, and its answer is data to all later readers.

pub mod accept;
pub mod archive_reference;
pub mod batches;
mod cut;
pub mod expiry;
pub mod extract;
pub mod flow;
pub mod folding;
pub mod generations;
pub mod groups;
pub mod ladder;
pub mod pins;
pub mod plan;
pub mod policy;
pub mod prompt;
pub mod prompts;
mod reference;
pub mod requirements;
pub mod sections;

mod division;

pub use flow::Flow;
pub use folding::{FoldDraft, Step};
pub use generations::{Compaction, View};
pub use policy::{Keep, Policy};
pub use prompts::Prompts;
pub use reference::REFERENCE;
