//! The call of a turn as a message batch: no worker waits for its answer.
//!
//! ```text
//! first run     begin ─▶ row of the batch ─▶ request ─▶ id of the batch, job put off
//! later runs    ask about the batch ─▶ put off again, in the same place of the lane
//! last run      answer ─▶ tools, if it asks for some ─▶ commit
//! ```
//!
//! The turn stays open meanwhile: it keeps its place in the session, its prompt and its reservation, and is stored with the batch
//! (`begin/stored_turn.rs`).
//!
//! Invariants:
//! - A request is sent under an id that is stored before. If the answer to the sending is lost, or the worker dies, the batch is looked for
//!   in the provider's list. It is sent again only if it is not there.
//! - The answer is charged by that id, in the commit of the turn, which removes the row.
//! - The transaction that ends the turn without the answer gives the batch up: a job cancels it (`jobs/cancel_batch.rs`).
//! - The wait ends with the time of the task. A batch that is not found by then is given up, and an ordinary call follows.
//! - Only the first call of a turn is a batch. If its answer asks for tools, the row is removed before they run, and the turn goes on with
//!   ordinary calls. A worker that dies then leaves an interrupted turn, as always.

pub mod answer;
pub mod look;
pub mod send;
pub mod wait;
