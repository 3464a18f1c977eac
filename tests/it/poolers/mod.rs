//! Connections through a transaction pooler.

pub mod bouncer;
mod recognised;
mod refused;
mod served;
