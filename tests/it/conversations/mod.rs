//! The domain of conversations on a real Postgres: what the rows say after each thing that can happen to them.

mod add_in_sql;
mod agents;
mod append_only;
mod bad_input;
mod budget;
mod compactions;
mod feed;
mod inheritance;
mod sessions;
mod tasks;
mod turns;
pub mod world;

use self::world::{
    Now, World, call, done, files, limits, measured, message, opening, shipped, wanted,
};
