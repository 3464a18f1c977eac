//! Providers: Ollama with a fake server, Claude with both CLIs, and the simulated model.

pub mod claude;
pub mod fake_ollama;
mod ollama_answers;
mod ollama_faults;
mod ollama_host;
mod requests;
mod sim;
pub mod summaries;
mod tools;
