//! Connections through a transaction pooler.

pub mod bouncer;
mod direct;
mod recognised;
mod refused;
mod served;
