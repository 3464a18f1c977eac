//! The web console: its pages in Chromium, its sign-in, its forms.

mod actions;
mod assets;
pub mod browser;
mod find;
mod interruption;
mod keyboard;
mod live;
mod long;
mod overview;
mod pages;
mod pictures;
mod scenery;
mod selection;
mod sign_in;
