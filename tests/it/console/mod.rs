//! The web console: its pages in Chromium, its sign-in, its forms.

mod actions;
mod assets;
pub mod browser;
mod campaign;
mod catalogue;
mod cost;
mod every_action;
mod find;
mod flow;
mod interruption;
mod keyboard;
mod live;
mod long;
mod looks;
mod overview;
mod pages;
mod pictures;
mod scenery;
mod selection;
mod session;
mod sign_in;
mod task;
mod turn;
mod upkeep;
mod upkeep_scenery;
mod versions;
mod work;
