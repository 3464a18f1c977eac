//! What the model sees: a pure function from rows to a request, and the rules that keep it within a window.
//!
//! Nothing here reads a clock, a file, a socket or a database. Callers load, call, and store what comes back.
//!
//! Order of one assembled call:
//!
//! ```text
//! system    agent prompt · fence rules · skills · campaign (brief, client context) · edicts · facts · roster
//! messages  summary of what was folded away
//!           tail of the transcript, in groups (an assistant message with all its tool results), with the posts that
//!           earlier turns have shown
//!           context notice · posts since the cursor · agents' status · blackboard · results it waited for
//!           the task
//!           what the model has called since, with the results: in the second call of a turn and later ones ([`rounds`])
//! ```
//!
//! Invariants:
//! - What changes often stands with the turn, behind the history, and is not stored with it: a provider's prefix cache
//!   stays warm, and no history holds an old state of it.
//! - The system part is made anew for every call and is never part of the history.
//! - Foreign text is escaped and stands inside an element that carries a fence, so it can neither close
//!   our elements nor pose as one ([`xml`]). Who said something comes from the row, never from the text.
//! - No assembled context holds a tool result without its call or a call without its result
//!   ([`compaction::groups`]).
//! - A transcript entry is rendered the same way on every call: the fence depends on the session's seed and
//!   the entry's id only. A provider's prefix cache therefore stays warm.
//! - Everything that was sent, and everything that was not, has a line in the [`manifest`], whose size
//!   does not grow with the transcript.
//! - Token counts are never sums over turns: they are the last real count plus a calibrated difference
//!   ([`calibration`]).
//! - Compaction changes the view, never the transcript; any earlier view can be had back
//!   ([`compaction::generations`]).

pub mod assemble;
pub mod budget;
pub mod calibration;
pub mod compaction;
pub mod digest;
pub mod entry;
pub mod facts;
pub mod manifest;
pub mod parts;
pub mod posts;
pub mod results;
pub mod rounds;
pub mod transcript;
pub mod weight;
pub mod xml;

mod conversation;
mod system_part;

pub use assemble::{Assembled, assemble};
pub use budget::{Budget, Pressure, Thresholds};
pub use calibration::{Calibration, Checkpoint};
pub use digest::Digest;
pub use entry::Entry;
pub use manifest::Manifest;
pub use parts::Parts;
pub use weight::Weight;
