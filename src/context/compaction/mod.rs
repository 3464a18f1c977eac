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
//! - At least two whole turns stay word for word; no tool call is parted from its results.
//! - A summary that misses a pin, a section or the goal for its size is never applied.
//! - A model is asked at most three times in ten turns ([`ladder::Breaker`]); the deterministic extract needs none.
//! - Of a session that is at a node, the summary is made of that node's exchanges alone. What came before is in the archive,
//!   which is the transcript; what people pinned there is kept all the same, and [`Flow`] says where the work stands.
//! - What stands in a summary's input is data to the summariser, and what it answers is data to everybody after.

pub mod accept;
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
pub mod sections;

pub use flow::Flow;
pub use folding::{Folding, Step};
pub use generations::{Compaction, View};
pub use policy::Policy;
