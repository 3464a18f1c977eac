//! Turns from their jobs to their committed answers, on real workers, on the simulation and on a fake Ollama.

pub mod claude;
mod crashes;
mod failover;
mod faults;
pub mod ground;
mod handovers;
mod happy;
mod instances;
mod lead;
mod lost;
mod ollama;
mod ollama_rounds;
mod pressure;
mod roles;
mod rounds;

use self::ground::Ground;
