//! Basics that all crates of Dalsegno use: settings, definitions of metrics, the two-step shutdown, an error in
//! one line.

pub mod causes;
pub mod metric;
pub mod settings;
pub mod shutdown;
