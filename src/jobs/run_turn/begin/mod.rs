//! Third phase: transaction A. Finds the session, assembles what the model will see, and writes that the turn has begun.
//!
//! ```text
//! session ─▶ draft (entries ─▶ outlook) ─┬─▶ request
//!                                        └─▶ exact_count ─▶ make_space   older messages are folded, and the phase begins again
//! ```

pub mod arrival;
pub mod board;
pub mod counts;
pub mod draft;
pub mod entries;
pub mod exact_count;
pub mod make_space;
pub mod open_turn;
pub mod outlook;
pub mod permit;
pub mod provider_session;
pub mod request;
pub mod results;
pub mod session;
pub mod stored_turn;
pub mod team;
pub mod trace;
pub mod transaction;
pub mod window;
