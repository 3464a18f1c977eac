//! Folding older conversation into a summary without losing what matters.
//!
//! ```text
//! plan ─▶ pins ─▶ prompt ─▶ (a summariser answers) ─▶ accept ─▶ a new generation
//!                   ▲                                   │ refused
//!                   └── retry · other model ◀── ladder ─┴─▶ extract ─▶ park for a person
//! ```
//!
//! [`folding::Folding`] walks this picture and asks its caller for answers; it does no IO itself.
//!
//! Invariants:
//! - The last two turns stay word for word while they take no more than half of the room; fewer stay where they take more
//!   or would push out a pin of a person, and none where the coming turn needs the room. No tool call is parted from its results.
//! - There is a plan whenever the coming turn fits by itself (a reference is the last one).
//! - What people wrote stays word for word up to its share of the window ([`prompts`]); no summariser can lose it.
//! - A summary that misses a pin, a section or the goal for its size is never applied.
//! - A model is asked at most three times in ten turns ([`ladder::Breaker`]); the deterministic extract needs none.
//! - Of a session that is at a node, the summary is made of that node's exchanges alone. What came before is in the archive,
//!   which is the transcript; what people pinned there is kept all the same, and [`Flow`] says where the work stands.
//! - What stands in a summary's input is data to the summariser, and what it answers is data to everybody after.

pub mod accept;
pub mod archive_reference;
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
pub use folding::{Folding, Step};
pub use generations::{Compaction, View};
pub use policy::{Keep, Policy};
pub use prompts::Prompts;
