//! Providers: those over HTTP with scripted servers, Claude with both CLIs, and the simulated model.

pub mod certificate;
pub mod claude;
pub mod conformance;
pub mod fake_ollama;
mod ollama_answers;
mod ollama_faults;
mod requests;
mod sim;
pub mod summaries;
mod tools;
pub mod transport;
