//! Turns from their jobs to their committed answers, on real workers, on the simulation and on a fake Ollama.

mod faults;
mod ground;
mod happy;

use self::ground::Ground;
