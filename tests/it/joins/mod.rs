//! Tasks that wait for others, hand work out, and take it up again.

pub mod cascade;
mod crashes;
mod in_sql;
mod many;
mod races;
mod told;
mod waits;
