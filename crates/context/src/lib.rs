//! The context of a call: a pure function from rows to a request, and the rules that keep it within a window.
//!
//! The crate reads no clock, file, socket or database. Callers load the rows, call it, and store the result.
//!
//! The parts of one assembled call, in order:
//!
//! ```text
//! system    agent prompt · fence rules · skills · campaign (brief, client context) · edicts · facts · roster
//! messages  summary of the folded messages
//!           tail of the transcript, in groups (an assistant message with all its tool results), with the posts that
//!           earlier turns have shown
//!           context notice · posts since the cursor · agents' status · parameters · blackboard · results of awaited tasks
//!           the task, with its files
//!           this turn's calls so far, with their results: from the second call of the turn on ([`rounds`])
//! ```
//!
//! Invariants:
//! - Parts that change often are placed with the turn, after the history, and are not stored with it. So a provider's
//!   prefix cache stays warm, and no history holds an outdated copy of them.
//! - The system part is rendered anew for every call and is never part of the history.
//! - Foreign text is escaped and placed inside an element that carries a fence, so it can neither close our elements
//!   nor imitate one ([`xml`]). The speaker comes from the row, never from the text.
//! - No assembled context holds a tool result without its call or a call without its result
//!   ([`compaction::groups`]).
//! - A transcript entry is rendered the same way on every call: the fence depends on the session's seed and
//!   the entry's id only. A provider's prefix cache therefore stays warm.
//! - All parts, sent or not, have a line in the [`manifest`], whose size does not grow with the transcript.
//! - A manifest, the stored texts and the rows of the session yield the call again, byte for byte ([`replay`], and [`prompt_manifest`] for
//!   calls beside turns).
//! - Token counts are never sums over turns: they are the last real count plus a calibrated difference
//!   ([`calibration`]).
//! - Compaction changes the view, never the transcript; any earlier view can be restored ([`compaction::generations`]).

pub mod assemble;
pub mod attachments;
pub mod budget;
pub mod calibration;
pub mod compaction;
pub mod digest;
pub mod entry;
pub mod facts;
pub mod manifest;
pub mod parts;
pub mod posts;
pub mod prompt_manifest;
pub mod replay;
pub mod results;
pub mod rounds;
pub mod transcript;
pub mod weight;
pub mod xml;

mod conversation;
mod system_part;

pub use assemble::{AssembledContext, assemble};
pub use attachments::AttachmentRules;
pub use budget::{Budget, Pressure, Thresholds};
pub use calibration::{Calibration, Checkpoint};
pub use digest::Digest;
pub use entry::Entry;
pub use manifest::Manifest;
pub use parts::Parts;
pub use system_part::fixed_weight;
pub use weight::Weight;
