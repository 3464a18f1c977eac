//! The domain of conversations on a real Postgres: its rows after each event.

mod add_in_sql;
mod agents;
mod append_only;
mod bad_input;
mod budget;
mod compactions;
mod digests;
mod feed;
mod inheritance;
mod options;
mod sessions;
mod task_keys;
mod tasks;
mod turns;
pub mod world;

use self::world::{
    TurnSettings, World, call, done, files, inheritance, limits, measured, message, opening,
    shipped, wanted,
};
