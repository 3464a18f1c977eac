//! The web console: its pages in Chromium, its sign-in, its forms.

mod actions;
mod assets;
pub mod browser;
mod every_action;
mod find;
mod live;
mod overview;
mod pages;
mod scenery;
mod sign_in;
mod task;
mod turn;
mod versions;
