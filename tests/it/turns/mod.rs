//! Turns from their jobs to their committed answers, on real workers, on the simulation and on a fake Ollama.

mod busy;
pub mod claude;
mod crashes;
mod dead_letters;
mod failover;
mod faults;
pub mod ground;
mod handovers;
mod happy;
pub mod heavy;
mod instances;
mod lead;
mod lost;
mod ollama;
mod ollama_rounds;
mod partial_output;
mod pressure;
mod rejected;
mod roles;
mod rotation;
mod rounds;
mod rows;
mod stretches;

use self::ground::Ground;
