//! Leaves that every crate of Dalsegno stands on: settings, the two-step shutdown, an error in one line.

pub mod causes;
pub mod settings;
pub mod shutdown;
