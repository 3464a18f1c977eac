//! Claude: the real Claude Code CLI as a supervised child, one process for each turn.
//!
//! The CLI is forgiving where a durable conversation must not be: it says success for output that was cut off, for a turn
//! that it did not store, and for a transcript that it could not read. So a turn counts only if its result says no
//! error *and* the answer is a line of the session's transcript; the name of that line is the place where the next
//! turn goes on, whatever a turn that was killed in between has left there.
//!
//! | room | what |
//! |---|---|
//! | `ahead` | processes that were started before their turn |
//! | `launch` | flags, variables, folders, and the guard that lets nothing outlive us |
//! | `drive` | the prompt in, the lines out, watchdogs, the way down |
//! | `verdict` | answer or error, and which |
//! | `meter` | tokens and money as differences |
//! | `rates` | what a model costs, where the CLI does not say |
//! | `secrets` | what nobody may see, taken out of what the CLI says |
//! | `space` | whether this host has disk space for a turn |
//! | `program` | where it is, and which version |
//! | `transcript` | the CLI's own file: put right before, given back after |
//!
//! Races: one call at a time may run for a session on the whole service, because the CLI has no lock and two of them fork
//! the transcript. The caller's lease sees to it, and on one host the lock of the session's folder, for a call whose worker
//! has not heard yet that its lease is gone.
//!
//! The reserve of a request is not passed on as a limit of the output: the CLI counts thinking into it and gives the
//! turn up when it is reached.

mod ahead;
mod config;
mod credential;
mod drive;
mod error;
mod folders;
mod launch;
mod meter;
mod neutralise;
mod program;
mod rates;
mod secrets;
mod space;
mod transcript;
mod turn;
mod verdict;
mod windows;

use std::{ffi::OsString, path::PathBuf, sync::Arc};

use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use self::{ahead::Ahead, launch::Ground, rates::Rates, secrets::Secrets, windows::Windows};
pub use self::{
    config::{Config, Witness},
    credential::{Credential, CredentialConfig, Error as CredentialError, Kind},
    error::{Error, ROOT_REFUSED},
    launch::guard,
    program::{NoVersion, NotFound, TESTED, Version},
    rates::is_same_model,
    space::is_full,
};
use super::{Conversation, EventSink, Meter, Outcome, Provider, Request, Running, Spent};
use crate::clock::Clock;

/// The CLI with its logins and its folders.
#[derive(Debug)]
pub struct Claude {
    config: Config,
    surroundings: Surroundings,
    secrets: Arc<Secrets>,
    windows: Windows,
    rates: Rates,
    ahead: Ahead,
}

/// What the CLI is run with on this machine.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// In order of preference.
    pub credentials: Vec<Credential>,
    /// What else nobody may see: values that agents' files only name.
    pub secrets: Vec<SecretString>,
    /// One folder for each session is made in it.
    pub sessions: PathBuf,
    /// A program that calls [`guard::intercept`] first: this one.
    pub guard: PathBuf,
    /// Variables that the CLI may see besides its own.
    pub passed: Vec<(OsString, OsString)>,
    pub clock: Arc<dyn Clock>,
}

impl Claude {
    /// Starts nothing yet.
    pub fn new(config: Config, surroundings: Surroundings) -> Self {
        let windows = Windows::new(config.window_tokens);
        let ahead = Ahead::new(config.ahead_max, config.ahead_idle());
        let logins = surroundings.credentials.iter().map(|credential| &credential.secret);
        let secrets = Arc::new(Secrets::new(logins, &surroundings.secrets));
        Self { config, surroundings, secrets, windows, rates: Rates::default(), ahead }
    }

    /// What its calls have, prompt and answer together.
    pub fn window_tokens(&self, model: &str) -> u32 {
        self.windows.of(model)
    }

    /// The most that a call of these sizes costs, as far as earlier ones have told.
    pub fn ceiling_micros(
        &self,
        model: &str,
        prompt_tokens: u64,
        answer_tokens: u64,
    ) -> Option<u64> {
        self.rates.ceiling_micros(model, prompt_tokens, answer_tokens)
    }

    /// Puts a cost where the CLI has not said one, as far as earlier calls have told what the model costs.
    pub fn estimate_costs(&self, spent: &mut [Spent], so_far: &Meter) {
        self.rates.fill_in(spent, so_far);
    }

    /// The names of its logins, in order of preference.
    pub fn logins(&self) -> impl Iterator<Item = &str> {
        self.surroundings.credentials.iter().map(|credential| credential.name.as_str())
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether the transcript's bytes have to be in the request, because what this host has is not enough. To be asked
    /// before they are fetched; without them the call would end with the session lost.
    pub async fn lacks_transcript(&self, conversation: &Conversation) -> Result<bool, Error> {
        let project = Ground::project_of(&self.surroundings.sessions, conversation.external_id);
        let held = conversation.transcript.clone();
        turn::blocking("read the transcript", &self.surroundings.sessions, move || {
            transcript::is_missing(&project, &held)
        })
        .await
    }
}

impl Provider for Claude {
    fn run(
        &self,
        request: Request,
        mut events: EventSink,
        cancel: CancellationToken,
    ) -> Running<'_> {
        Box::pin(async move {
            let call = turn::Turn::prepare(self, &request).await;
            match call {
                Ok(turn) => {
                    let outcome = turn.run(&mut events, &cancel).await;
                    if let Ok(Outcome { window_tokens: Some(tokens), .. }) = &outcome {
                        self.windows.learn(&request.model, *tokens);
                    }
                    outcome
                }
                Err(error) => Err(error.costing(Vec::new()).not_made()),
            }
        })
    }
}
