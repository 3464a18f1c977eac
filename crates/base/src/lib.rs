//! Basics that all crates of Dalsegno use: settings, the two-step shutdown, an error in one line.

pub mod causes;
pub mod settings;
pub mod shutdown;
