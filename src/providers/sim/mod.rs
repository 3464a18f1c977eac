//! A simulated model inside the binary: for the first run, for demos, tests and benches.
//!
//! Every answer says that no model was called. The simulation is deterministic: the answer is a function of the request's content. So a
//! call that was cut off and repeated gets the same answer, on any worker. Only faults that count ("once") have a memory, which belongs to
//! this process alone.
//!
//! It counts tokens by rules of its own, refuses prompts that do not fit into its window, and takes time if told to. It summarises its
//! input well, or badly on purpose. It calls tools only as directed.

mod answer;
mod board;
mod calls;
mod config;
mod error;
mod facts;
mod fault;
mod sample;
mod script;
mod summary;
mod tokens;

use std::{future::ready, time::Duration};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::{
    answer::words_with_prefix,
    config::{Config, FactsMode, SummaryMode},
    error::Error,
    tokens::{count as count_tokens, count_prompt as count_prompt_tokens},
};
use self::{fault::Fault, script::Script};
use super::{
    Capabilities, Durations, EventSink, Outcome, OutputFile, OutputFiles, Provider, ProviderFuture,
    Purpose, Request, Status, StopReason, TurnFuture, Usage,
    deadline::{CallDeadline, GaveUp},
};
use crate::transcript::{Message, Role, ToolCall};

/// The simulated model.
#[derive(Debug)]
pub struct Sim {
    config: Config,
    script: Script,
}

/// A call whose prompt fits.
struct Call<'a> {
    request: &'a Request,
    faults: Vec<Fault>,
    prompt_tokens: u32,
    window_tokens: u32,
}

/// Name of this provider in settings, files and sessions.
pub const NAME: &str = "sim";
/// Model that stands for all; the default of `agents.model`.
pub const MODEL: &str = "sim-1";
/// Timeouts of a stalled call, if the request has none.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
const TOTAL_TIMEOUT: Duration = Duration::from_secs(600);

impl Sim {
    pub fn new(config: Config) -> Result<Self, Error> {
        Ok(Self { script: Script::new(&config)?, config })
    }

    async fn call(
        &self,
        request: &Request,
        events: &mut EventSink,
        cancel: &CancellationToken,
    ) -> Result<Outcome, Error> {
        let started = Instant::now();
        let total = request.timeouts.total.unwrap_or(TOTAL_TIMEOUT);
        let patience = CallDeadline::starting_now(total, cancel);
        let call = self.admit(request)?;
        events.send_started(&request.model);
        let extra = call.faults.iter().filter_map(Fault::latency).sum::<Duration>();
        pause(&patience, self.config.latency() + extra).await?;
        call.stall_if_told(&patience).await?;
        let first_byte = started.elapsed();
        let wanted = calls::wanted(request, &call.faults);
        if !wanted.is_empty() {
            return call.outcome(
                (String::new(), wanted),
                StopReason::ToolCalls,
                first_byte,
                started.elapsed(),
            );
        }
        let (text, stop) = self.text(&call)?;
        self.stream(&text, events, &patience, call.has(&Fault::Cut)).await?;
        let outcome = call.outcome((text, Vec::new()), stop, first_byte, started.elapsed())?;
        Ok(Outcome { files: call.files(), ..outcome })
    }

    /// Applies the script and the window, and refuses a call before any time passes.
    fn admit<'a>(&self, request: &'a Request) -> Result<Call<'a>, Error> {
        let faults = self.script.faults_of(request);
        let window_tokens = self.config.window_tokens.min(request.window_tokens);
        let prompt_tokens = tokens::count_prompt(&request.system, &request.messages)
            .saturating_add(tokens::count_tools(&request.tools));
        for fault in &faults {
            match fault {
                Fault::Status(503 | 429 | 529) => return Err(Error::Busy),
                Fault::Status(404) => {
                    return Err(Error::ModelMissing { model: request.model.clone() });
                }
                Fault::Status(status @ 400..=499) => {
                    return Err(Error::Refused { status: *status });
                }
                Fault::Status(status) => return Err(Error::Failed { status: *status }),
                Fault::Overflow => return Err(Error::DirectedOverflow { prompt_tokens }),
                _ => {}
            }
        }
        match prompt_tokens < window_tokens {
            true => Ok(Call { request, faults, prompt_tokens, window_tokens }),
            false => Err(Error::Overflow { prompt_tokens, window_tokens }),
        }
    }

    fn text(&self, call: &Call<'_>) -> Result<(String, StopReason), Error> {
        let request = call.request;
        let room = request.reserve_tokens.min(call.window_tokens - call.prompt_tokens);
        let text = match &request.purpose {
            Purpose::Summary { sections, pinned } => {
                summary::write(self.config.summary, request, sections, pinned, room)
            }
            Purpose::Facts { requests } => {
                let prompt = request.messages.last().map_or("", |message| message.text.as_str());
                facts::write(self.config.facts, requests, prompt)
            }
            Purpose::Turn => answer::write(request, call.prompt_tokens, &call.faults),
        };
        let is_summary = matches!(request.purpose, Purpose::Summary { .. });
        let max_tokens = match self.config.summary {
            _ if call.has(&Fault::Length) => room.min(tokens::count(&text) / 2),
            // With a limit it could not become longer than its input.
            SummaryMode::Bloated if is_summary => u32::MAX,
            _ => room,
        };
        let whole = tokens::count(&text) <= max_tokens;
        let text = tokens::cut(&text, max_tokens).to_owned();
        // An empty summary is an answer like any other: the caller has to notice.
        match call.has(&Fault::Empty) || (text.is_empty() && !is_summary) {
            true => Err(Error::Empty),
            false => Ok((text, if whole { StopReason::End } else { StopReason::Length })),
        }
    }

    async fn stream(
        &self,
        text: &str,
        events: &mut EventSink,
        patience: &CallDeadline<'_>,
        cut: bool,
    ) -> Result<(), Error> {
        events.send_status(Status::Answering);
        let n_chars = text.chars().count();
        let mut n_sent = 0;
        let mut rest = text;
        while !rest.is_empty() {
            if cut && n_sent * 2 >= n_chars {
                return Err(Error::Cut { n_chars: n_sent });
            }
            let end = rest.char_indices().nth(self.config.chunk_chars.max(1));
            let (chunk, later) = rest.split_at(end.map_or(rest.len(), |(at, _)| at));
            events.send_text(chunk);
            n_sent += chunk.chars().count();
            rest = later;
            pause(patience, self.config.chunk_delay()).await?;
        }
        Ok(())
    }
}

impl Provider for Sim {
    fn run(
        &self,
        request: Request,
        mut events: EventSink,
        cancel: CancellationToken,
    ) -> TurnFuture<'_> {
        Box::pin(async move {
            let result = self.call(&request, &mut events, &cancel).await;
            result.map_err(super::Error::from)
        })
    }

    fn fixed_temperature_reason(&self) -> Option<&'static str> {
        Some("the simulation has none")
    }

    /// Returns the same window for every model.
    fn window_tokens<'a>(
        &'a self,
        _: &'a str,
        _: &'a CancellationToken,
    ) -> ProviderFuture<'a, u32> {
        Box::pin(ready(self.config.window_tokens))
    }

    fn telemetry_name(&self) -> &'static str {
        "sim"
    }

    /// Returns one name; the simulation accepts any other, too.
    fn default_model(&self) -> Option<&'static str> {
        Some(MODEL)
    }

    fn capabilities(&self) -> Capabilities {
        Config::CAPABILITIES
    }
}

impl Call<'_> {
    fn has(&self, fault: &Fault) -> bool {
        self.faults.contains(fault)
    }

    /// Returns the files that the directions write. The caller limits them.
    fn files(&self) -> OutputFiles {
        let files = self.faults.iter().filter_map(|fault| match fault {
            Fault::File(file) => {
                let (name, content) = (file.name.clone().into(), file.text.clone().into());
                Some(OutputFile { name, content })
            }
            _ => None,
        });
        OutputFiles { files: files.collect(), ..OutputFiles::default() }
    }

    async fn stall_if_told(&self, patience: &CallDeadline<'_>) -> Result<(), Error> {
        if !self.has(&Fault::Stall) {
            return Ok(());
        }
        let idle = self.request.timeouts.idle.unwrap_or(IDLE_TIMEOUT);
        match patience.wait(Instant::now() + idle, std::future::pending::<()>()).await {
            Err(GaveUp::Cancelled) => Err(Error::Cancelled),
            Err(GaveUp::Total { after }) => Err(Error::Silent { after }),
            _ => Err(Error::Silent { after: idle }),
        }
    }

    fn outcome(
        &self,
        (text, tool_calls): (String, Vec<ToolCall>),
        stop: StopReason,
        first_byte: Duration,
        total: Duration,
    ) -> Result<Outcome, Error> {
        let output = u64::from(tokens::count(&text) + tokens::count_calls(&tool_calls));
        let percent = self.faults.iter().find_map(Fault::counted_percent).unwrap_or(100);
        let usage = Usage {
            input: Some(u64::from(self.prompt_tokens) * u64::from(percent) / 100),
            output: Some(output),
            cache_read: Some(0),
            cache_creation: Some(0),
        };
        if self.has(&Fault::Truncate) {
            return Err(Error::Truncated { usage });
        }
        Ok(Outcome {
            message: Message {
                role: Role::Assistant,
                text,
                tool_calls,
                tool_call_id: None,
                tool_name: None,
                media: Vec::new(),
            },
            thinking: None,
            stop,
            usage,
            window_tokens: Some(self.window_tokens),
            provider_message_id: None,
            durations: Durations { total, first_byte: Some(first_byte), ..Durations::default() },
            conversation: None,
            files: OutputFiles::default(),
            spent: Vec::new(),
        })
    }
}

/// Lets simulated time pass.
async fn pause(patience: &CallDeadline<'_>, long: Duration) -> Result<(), Error> {
    if long.is_zero() {
        // A bench without latency still ends at once when it is cancelled.
        return match patience.wait(Instant::now(), ready(())).await {
            Err(GaveUp::Cancelled) => Err(Error::Cancelled),
            Err(GaveUp::Total { after }) => Err(Error::TooLong { after }),
            _ => Ok(()),
        };
    }
    let ends = Instant::now() + long;
    match patience.wait(ends + long, tokio::time::sleep_until(ends)).await {
        Ok(()) | Err(GaveUp::Step) => Ok(()),
        Err(GaveUp::Cancelled) => Err(Error::Cancelled),
        Err(GaveUp::Total { after }) => Err(Error::TooLong { after }),
    }
}
