//! The steps of a round: runs the tools that the model has called, and decides what follows.

use std::{collections::HashSet, mem, time::Duration};

use tokio::time::{Instant, timeout};

use crate::{
    causes::causes,
    context::{Checkpoint, Entry, rounds::Last},
    domain::{Amount, ids, tasks, usage},
    jobs::{
        Services, measure,
        rate_limits::CallUse,
        run_turn::{
            begin::{open_turn::OpenTurn, request},
            call::{
                budget, ledger,
                progress::Progress,
                report::CallReport,
                rounds::{
                    caller,
                    limits::{self, CallCounts, LAST_CALL, ToolReply, Verdict},
                    record::{ModelCall, Outcome, Rounds, ToolUse},
                    window::{self, Window},
                },
            },
            load::{assignment::Assignment, tools::max_rounds},
        },
    },
    providers::{self, Class, Request, StopReason, Usage},
    queue::Run,
    tools::{self, Answer, Caller, Tools},
    transcript::{Message, Role, ToolCall},
};

/// The step after a round.
pub enum Next {
    Ask(Box<Request>),
    /// The turn ends before another call.
    End(Box<CallReport>),
}

/// The state of a turn between its calls.
pub struct Steps<'a> {
    run: &'a Run,
    services: &'a Services,
    assignment: &'a Assignment<'a>,
    opened: &'a mut OpenTurn,
    tools: Tools,
    caller: Caller,
    window: Window,
    rounds: Rounds,
    /// Messages since the first call, as the next call sends them.
    entries: Vec<Entry>,
    /// Index of the last round in `entries`.
    last_round_at: usize,
    made: CallCounts,
    ids: HashSet<String>,
    /// True if the model repeats the same calls.
    is_stuck: bool,
}

/// Characters of a tool's name that people are shown.
const SHOWN_NAME_CHARS: usize = 100;
const ENDS_IN_CALLS: &str = "turn.no_words";
/// Tokens of room per character of one result, so that other results fit, too. A token has some four characters, or one
/// or two in numbers. So a result takes between an eighth and a third of the room.
const ROOM_TOKENS_PER_RESULT_CHAR: u64 = 2;

impl<'a> Steps<'a> {
    pub fn begin(
        run: &'a Run,
        services: &'a Services,
        assignment: &'a Assignment<'a>,
        opened: &'a mut OpenTurn,
        request: &Request,
    ) -> Self {
        let (tools, caller) = caller::tools_and_caller(run, services, assignment, opened);
        Self {
            tools,
            caller,
            window: Window::of(opened, request),
            run,
            services,
            assignment,
            opened,
            rounds: Rounds::default(),
            entries: Vec::new(),
            last_round_at: 0,
            made: CallCounts::default(),
            ids: HashSet::new(),
            is_stuck: false,
        }
    }

    pub fn has_acted(&self) -> bool {
        !self.rounds.tools.is_empty()
    }

    /// Runs the tools that the model has called, and returns the next step.
    pub async fn process_report(
        &mut self,
        called: CallReport,
        progress: &mut Progress<'_>,
    ) -> Next {
        let CallReport { called_at, took, .. } = called;
        let (outcome, sent, batch_call) = match called.result {
            Ok(outcome) => (outcome, called.sent, called.batch_call),
            Err(_) => return Next::End(Box::new(called)),
        };
        self.learn(outcome.usage);
        self.rounds.calls.push(ModelCall {
            context: self.opened.context.clone(),
            is_refused: false,
            sent,
            estimated_tokens: self.opened.estimated_tokens,
            usage: outcome.usage,
            provider_message_id: outcome.provider_message_id,
            batch_call,
            first_byte: outcome.durations.first_byte,
            called_at,
            took,
        });
        self.last_round_at = self.entries.len();
        let message = self.with_own_ids(outcome.message);
        let calls = message.tool_calls.clone();
        self.add_message(message);
        for (at, call) in calls.into_iter().enumerate() {
            let Some(told) = self.run_tool_call(&call, at, progress).await else { break };
            self.add_message(result(&call, told));
        }
        self.next().await
    }

    /// Charges the rate limits with the calls so far and the next one. A turn that has begun does not wait for them: later turns do.
    pub fn charge_limits(&mut self) {
        let calls = &self.rounds.calls;
        let n_calls = u64::try_from(calls.len() + 1).unwrap_or(u64::MAX);
        let usage = calls.iter().map(|call| call.usage).fold(Usage::default(), Usage::plus);
        let counts_cached = self.assignment.route.provider.limits_count_cached_tokens();
        self.opened.permit.charge(CallUse { n_calls, usage, counts_cached });
    }

    /// Records a call that the provider has refused as too long, and shrinks it.
    pub async fn shrink_call(&mut self, called: CallReport) -> Next {
        let refusal = called.result.as_ref().err().map(ToString::to_string);
        if let Err(error) = called.result
            && !error.is_unasked
        {
            self.rounds.calls.push(ModelCall {
                context: self.opened.context.clone(),
                is_refused: true,
                sent: called.sent,
                estimated_tokens: self.opened.estimated_tokens,
                usage: error.usage.as_deref().copied().unwrap_or_default(),
                provider_message_id: None,
                batch_call: None,
                first_byte: None,
                called_at: called.called_at,
                took: called.took,
            });
        }
        match self.request(refusal.as_deref()).await {
            Ok(request) => Next::Ask(Box::new(request)),
            Err(error) => self.stop(error),
        }
    }

    /// Adds all earlier rounds to the last call.
    pub fn end(&mut self, called: CallReport) -> CallReport {
        let has_acted = self.has_acted();
        let mut rounds = mem::take(&mut self.rounds);
        self.shorten_stored(&mut rounds, called.result.is_ok());
        let result = match called.result {
            Ok(mut outcome)
                if !rounds.calls.is_empty() && outcome.stop == StopReason::ToolCalls =>
            {
                // It was offered no tools. Calls without results must not be in a transcript.
                outcome.message.tool_calls.clear();
                match outcome.message.text.trim().is_empty() {
                    true => Err(no_words(rounds.calls.len() + 1, outcome.usage)),
                    false => Ok(outcome),
                }
            }
            result => result,
        };
        if self.is_stuck {
            rounds.flags.push("same_calls_over_and_over".to_owned());
        } else if self.is_last_call(&rounds) {
            rounds.flags.push("rounds_used_up".to_owned());
        }
        CallReport {
            result: result.map_err(|error| {
                let acted_itself = error.has_acted;
                error.with_has_acted(has_acted || acted_itself)
            }),
            rounds,
            ..called
        }
    }

    /// Shortens the stored messages to what later turns can send.
    fn shorten_stored(&self, rounds: &mut Rounds, has_answer: bool) {
        let said = (self.entries.as_slice(), self.last_round_at);
        let n_shortened = match has_answer {
            true => Some(self.window.n_shortened(said)),
            false => Window::n_shortened_of_stopped(self.opened, said),
        };
        let Some(n_shortened) = n_shortened else {
            rounds.said.clear();
            return;
        };
        window::shorten(&mut rounds.said, n_shortened);
    }

    async fn next(&mut self) -> Next {
        if self.run.cancel().is_cancelled() {
            return self.stop(cancelled("the turn was stopped between two calls"));
        }
        // An unreachable database stops no turn; the next round checks again.
        let asked = tasks::is_asked_to_stop(self.run.pool(), self.assignment.task.id).await;
        let is_asked = asked.unwrap_or_else(|error| {
            tracing::debug!(error = causes(&error), "cannot check whether the turn has to stop");
            false
        });
        if is_asked {
            let why = "the turn was stopped between two calls";
            let called = CallReport::before_call(cancelled(why), self.services.clock.now());
            return Next::End(Box::new(CallReport { is_stopped: true, ..called }));
        }
        match self.request(None).await {
            Ok(request) => Next::Ask(Box::new(request)),
            Err(error) => self.stop(error),
        }
    }

    /// Builds the next call, if it fits and the budget allows it. `refusal` is the provider's reason for refusing the last one as too long.
    async fn request(&mut self, refusal: Option<&str>) -> Result<Request, providers::Error> {
        let is_last = self.is_stuck || self.is_last_call(&self.rounds);
        let last = is_last.then_some(Last {
            notice: LAST_CALL,
            task_id: self.assignment.prompt.entry_id,
            tools: &self.assignment.tools,
        });
        let (run, services, assignment) = (self.run, self.services, self.assignment);
        let said = (self.entries.as_slice(), self.last_round_at);
        let fitted =
            self.window.fit((run, services, assignment), self.opened, said, last, refusal).await?;
        let spent = self.spent();
        let ahead = request::reserve(assignment, self.opened.estimated_tokens);
        let (begun, now) = (&mut self.opened.begun, services.clock.now());
        budget::reserve_for_call(run, assignment, begun, spent, ahead, now).await?;
        Ok(fitted)
    }

    /// Runs one call of a tool. `None`: the turn was stopped meanwhile.
    async fn run_tool_call(
        &mut self,
        call: &ToolCall,
        at: usize,
        progress: &mut Progress<'_>,
    ) -> Option<ToolReply> {
        let config = &self.services.agents;
        let (called_at, began) = (self.services.clock.now(), Instant::now());
        // A made-up name may have any length.
        let name: String = call.name.chars().take(SHOWN_NAME_CHARS).collect();
        progress.tool_begins(&name);
        let told = match limits::check_call(call, at, &mut self.made, config.max_same_calls) {
            Verdict::Refuse(told) => told,
            Verdict::Make(arguments) => {
                let limit = Duration::from_secs(config.tool_timeout_secs);
                let page_chars = self.result_max_chars();
                let calling =
                    tools::call_for(&self.tools, &self.caller, &call.name, arguments, page_chars);
                let answer: Option<Answer> = tokio::select! {
                    biased;
                    () = self.run.cancel().cancelled() => return None,
                    answer = progress.run_with_progress(timeout(limit, calling)) => answer.ok(),
                };
                limits::build_reply(answer, limit, page_chars)
            }
        };
        let took = began.elapsed();
        progress.tool_ended(&name, took, told.outcome.is_error());
        // The model was told once that it repeats a call, and repeats it again.
        let repeats = |used: &ToolUse| used.outcome == Outcome::Repeated;
        self.is_stuck |= told.outcome == Outcome::Repeated && self.rounds.tools.iter().any(repeats);
        self.rounds.tools.push(ToolUse {
            name,
            is_offered: self.assignment.tools.iter().any(|tool| tool.name == call.name),
            call_id: call.id.clone(),
            outcome: told.outcome,
            called_at,
            took,
        });
        Some(told)
    }

    fn add_message(&mut self, message: Message) {
        let new = measure::measure_message(ids::new_at(self.services.clock.now()), message);
        self.entries.push(measure::to_entry(&new, 0));
        self.rounds.said.push(new);
    }

    /// Learns from the counts of a call about the model's tokeniser, for the next estimate.
    fn learn(&mut self, usage: Usage) {
        let Some(real_tokens) = usage.prompt() else { return };
        let counted = Checkpoint { weight: self.opened.weight, real_tokens };
        if !self.opened.calibration.looks_truncated(counted) {
            self.opened.calibration.observe(counted);
            self.window.anchor = Some(counted);
        }
    }

    /// Replaces empty and repeated ids of calls: they would assign a result to the wrong call.
    fn with_own_ids(&mut self, mut message: Message) -> Message {
        let round = self.rounds.calls.len();
        for (at, call) in message.tool_calls.iter_mut().enumerate() {
            if call.id.is_empty() || !self.ids.insert(call.id.clone()) {
                call.id = format!("{}-{round}-{at}", self.assignment.task.id);
                self.ids.insert(call.id.clone());
            }
            if let Some(arguments) = limits::arguments(call) {
                call.arguments = arguments;
            }
        }
        message
    }

    fn stop(&self, error: providers::Error) -> Next {
        Next::End(Box::new(CallReport::before_call(error, self.services.clock.now())))
    }

    /// Returns true if the model may be called once more at most. Refused calls do not count.
    fn is_last_call(&self, before: &Rounds) -> bool {
        let n_before = before.calls.iter().filter(|call| !call.is_refused).count();
        let most = max_rounds(self.services, &self.assignment.agent);
        n_before + 1 >= usize::try_from(most).unwrap_or(usize::MAX)
    }

    fn spent(&self) -> Amount {
        let lines = ledger::lines_of_rounds(self.assignment, self.opened, &self.rounds);
        lines.iter().map(usage::Call::amount).sum()
    }

    fn result_max_chars(&self) -> usize {
        let room = self.opened.budget.room_tokens() / ROOM_TOKENS_PER_RESULT_CHAR;
        usize::try_from(room.min(self.services.agents.tool_result_max_chars)).unwrap_or(usize::MAX)
    }
}

fn result(call: &ToolCall, told: ToolReply) -> Message {
    Message {
        role: Role::Tool,
        text: told.text,
        tool_calls: Vec::new(),
        tool_call_id: Some(call.id.clone()),
        tool_name: Some(call.name.clone()),
        media: Vec::new(),
    }
}

fn cancelled(why: &'static str) -> providers::Error {
    providers::Error::new("turn.stopped", Class::Cancelled, why).before_call()
}

fn no_words(n_calls: usize, usage: Usage) -> providers::Error {
    let why = format!(
        "after {n_calls} calls of the model the turn has no final answer, because the model kept calling tools; raise maxTurns in the agent's file, or ask for less at a time"
    );
    providers::Error::new(ENDS_IN_CALLS, Class::Fail, why).with_usage(Some(usage))
}
