//! Turns from their jobs to their committed answers, on real workers, on the simulation and on a fake Ollama.

mod budgets;
mod busy;
mod campaign_versions;
pub mod claude;
pub mod contexts;
mod crashes;
mod dead_letters;
mod evals;
mod failover;
mod faults;
mod fidelity;
pub mod fixture;
pub mod forks;
mod handovers;
pub mod heavy;
mod instances;
mod lead;
mod lost_turns;
mod ollama;
mod ollama_rounds;
mod parameters;
mod partial_output;
mod pressure;
mod previews;
mod random_contexts;
mod rejected;
mod reruns;
mod roles;
mod rollover;
mod rounds;
mod side_contexts;
mod stored_rows;
mod stretch_summaries;
mod turn_details;
mod without_faults;

use self::fixture::Fixture;
