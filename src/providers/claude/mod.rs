//! Claude: the real Claude Code CLI as a supervised child, one process for each turn.
//!
//! The CLI is more forgiving than a durable conversation allows. It reports success even if output was cut off, a turn was not stored, or a
//! transcript could not be read. So a turn counts only if its result has no error *and* the answer is a line of the session's transcript.
//! The next turn continues after the id of that line, even if a killed turn has left lines behind it.
//!
//! | module | contents |
//! |---|---|
//! | `ahead` | processes that are started before their turn |
//! | `launch` | flags, variables, folders, and the guard that ends everything the CLI leaves |
//! | `drive` | the prompt, the output, timeouts, cancellation |
//! | `verdict` | answer or error, and which |
//! | `input_files` | the files of tasks in `in/` |
//! | `output` | the files that the agent has written to `out/` |
//! | `meter` | tokens and money as differences |
//! | `rates` | prices of models, if the CLI does not report a cost |
//! | `secrets` | removal of secrets from what the CLI says |
//! | `space` | check of this host's disk space before a turn |
//! | `program` | location and version of the CLI |
//! | `removal` | removal of what agents have left in folders |
//! | `transcript` | the CLI's own file: repaired before a turn, stored after it |
//!
//! Races: for each session only one call at a time may run in the whole service. The CLI has no lock, and two calls fork the transcript.
//! The caller's lease prevents that. On one host the lock of the session's folder does, too, for a call whose worker has not noticed that
//! its lease is lost.
//!
//! The reserve of a request is not passed on as an output limit: the CLI counts thinking as output and gives the turn up at the limit.

mod config;
mod credential;
mod drive;
mod envelope;
mod error;
mod folders;
mod input_files;
mod launch;
mod meter;
mod neutralise;
mod output;
mod prestart;
mod program;
mod rates;
mod removal;
mod secrets;
mod space;
mod transcript;
mod turn;
mod verdict;
mod windows;

use std::{ffi::OsString, future::ready, path::PathBuf, sync::Arc, time::Duration};

use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

pub use self::{
    config::{Config, HistoryCheck},
    credential::{Credential, CredentialConfig, Error as CredentialError, Kind},
    envelope::Envelope,
    error::{Error, ROOT_REFUSED},
    launch::guard,
    program::{NoVersion, NotFound, TESTED, Version},
    rates::is_same_model,
    space::is_full,
};
use self::{
    launch::CallFolder, prestart::PrestartPool, rates::Rates, secrets::Secrets, windows::Windows,
};
use super::{
    Capabilities, Conversation, EventSink, Meter, ModelSpend, Outcome, Provider, ProviderFuture,
    Request, TurnFuture, Variables,
};
use crate::{
    clock::Clock,
    context::{AttachmentRules, manifest::PartReason},
    providers,
};

/// Name of this provider in settings, files and sessions.
pub const NAME: &str = "claude";

/// The CLI with its credentials and folders.
#[derive(Debug)]
pub struct Claude {
    config: Config,
    surroundings: HostEnvironment,
    secrets: Arc<Secrets>,
    windows: Windows,
    rates: Rates,
    ahead: PrestartPool,
}

/// Environment in which the CLI runs on this machine.
#[derive(Debug, Clone)]
pub struct HostEnvironment {
    /// Credentials in order of preference.
    pub credentials: Vec<Credential>,
    /// Other secrets: values that agents' files refer to by name.
    pub secrets: Vec<SecretString>,
    /// Folder in which each session gets a folder.
    pub sessions: PathBuf,
    /// Program that is started as a guard and calls [`guard::intercept`] first: this one.
    pub guard: PathBuf,
    /// Variables of the service that the CLI may see besides its own.
    pub passed: Vec<(OsString, OsString)>,
    pub clock: Arc<dyn Clock>,
}

impl Claude {
    /// Builds the provider. No process is started yet.
    pub fn new(config: Config, surroundings: HostEnvironment) -> Self {
        let windows = Windows::new(config.window_tokens);
        let ahead = PrestartPool::new(config.ahead_max, config.ahead_idle());
        let credentials = surroundings.credentials.iter().map(|credential| &credential.secret);
        let secrets = Arc::new(Secrets::new(credentials, &surroundings.secrets));
        Self { config, surroundings, secrets, windows, rates: Rates::default(), ahead }
    }

    pub fn config(&self) -> &Config {
        &self.config
    }
}

impl Provider for Claude {
    fn run(
        &self,
        request: Request,
        mut events: EventSink,
        cancel: CancellationToken,
    ) -> TurnFuture<'_> {
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
                Err(error) => Err(error.with_cost(Vec::new()).before_call()),
            }
        })
    }

    fn window_tokens<'a>(
        &'a self,
        model: &'a str,
        _: &'a CancellationToken,
    ) -> ProviderFuture<'a, u32> {
        Box::pin(ready(self.windows.of(model)))
    }

    fn envelope(&self, request: &Request) -> Result<Option<providers::Envelope>, providers::Error> {
        let envelope = turn::envelope_of_next(self, request)?;
        Ok(Some(providers::Envelope::Claude(envelope)))
    }

    fn telemetry_name(&self) -> &'static str {
        "anthropic"
    }

    fn capabilities(&self) -> Capabilities {
        self.config.capabilities()
    }

    fn attachment_rules(&self, _: &str, can_read: bool) -> AttachmentRules {
        match can_read {
            true => AttachmentRules::PLACED,
            false => AttachmentRules::described(PartReason::FileNotReadable),
        }
    }

    fn fixed_temperature_reason(&self) -> Option<&'static str> {
        Some("the Claude Code CLI has no option for it")
    }

    fn rollover_percent(&self) -> Option<u64> {
        Some(self.config.rollover_percent.into())
    }

    fn limits_count_cached_tokens(&self) -> bool {
        false
    }

    fn credentials(&self) -> Vec<&str> {
        let credentials = self.surroundings.credentials.iter();
        credentials.map(|credential| credential.name.as_str()).collect()
    }

    fn unusable_reason(
        &self,
        wants_everything: bool,
        variables: &Variables<'_>,
    ) -> Option<&'static str> {
        if self.surroundings.credentials.is_empty() {
            Some("it runs on Claude, but claude.credentials is empty")
        } else if wants_everything && self.config.refuses_bypass(variables) {
            Some(ROOT_REFUSED)
        } else {
            None
        }
    }

    fn reports_costs(&self) -> bool {
        true
    }

    fn prompt_cache(&self) -> Option<Duration> {
        Some(Duration::from_secs(self.config.prompt_cache_secs))
    }

    fn is_same_model(&self, asked: &str, told: &str) -> bool {
        is_same_model(asked, told) || is_same_model(told, asked)
    }

    fn ceiling_micros(&self, model: &str, prompt_tokens: u64, answer_tokens: u64) -> Option<u64> {
        self.rates.ceiling_micros(model, prompt_tokens, answer_tokens)
    }

    fn estimate_costs(&self, spent: &mut [ModelSpend], so_far: &Meter) {
        self.rates.fill_in(spent, so_far);
    }

    fn lacks_transcript<'a>(
        &'a self,
        held: &'a Conversation,
    ) -> ProviderFuture<'a, Result<bool, providers::Error>> {
        let project = CallFolder::project_of(&self.surroundings.sessions, held.external_id);
        let files = held.transcript.clone();
        Box::pin(async move {
            let missing = turn::run_blocking_in(
                "read the transcript",
                &self.surroundings.sessions,
                move || transcript::needs_bytes(&project, &files),
            );
            missing.await.map_err(providers::Error::from)
        })
    }

    fn refuses_unseen_history(&self) -> bool {
        self.config.witness != HistoryCheck::Flag
    }
}
