//! Connections through a transaction pooler.

pub mod bouncer;
mod refused;
mod served;
