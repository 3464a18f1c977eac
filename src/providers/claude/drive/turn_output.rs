//! Record of a turn's output.

use std::time::Duration;

use tokio::time::Instant;

use super::{Answer, input};
use crate::providers::{
    Call, Usage, UsageSoFar,
    claude::{meter, secrets::Secrets},
    stream_json::{
        AssistantLine, Change, ControlResponse, Event, Init, McpServer, StreamLine, Text, Tokens,
        TurnResult,
    },
};

/// Stop reasons of a reply after which the CLI calls the model again.
const CONTINUING_STOP_REASONS: [&str; 3] = ["tool_use", "max_tokens", "pause_turn"];

#[derive(Debug, Default)]
pub(in crate::providers::claude) struct TurnOutput {
    pub answer: Answer,
    pub calls: Vec<Call>,
    /// The first result. A second one would belong to a turn that was not requested.
    pub result: Option<Box<TurnResult>>,
    /// The CLI's own code of the last API error.
    pub api_error: Option<String>,
    /// Text that the CLI gave with that error.
    pub api_message: String,
    /// End of the rate limit in seconds since 1970.
    pub rate_limit_resets_at: Option<u64>,
    /// Tool servers that were not connected when the turn began, or before it.
    pub missing_servers: Vec<String>,
    /// True once the CLI has answered the request for its servers, or declined it.
    pub has_told_servers: bool,
    /// Tools that the model was offered.
    pub tools: Vec<String>,
    /// Distinct ids of sessions in the output; any but ours is an error.
    pub sessions: Vec<String>,
    pub is_compacted: bool,
    pub n_lines: usize,
    pub stderr: Vec<u8>,
    pub first_line: Option<Duration>,
    pub first_word: Option<Duration>,
    pub total: Duration,
    /// True if the last event ended a call after which the model is called again.
    is_between_calls: bool,
    /// Number of tokens that [`used`](Self::usage_if_changed) has reported last.
    n_told_tokens: u64,
}

impl TurnOutput {
    pub(super) fn apply_event(&mut self, event: Event<'_>, began: Instant) {
        self.n_lines += 1;
        self.is_between_calls = false;
        self.first_line.get_or_insert_with(|| began.elapsed());
        match event {
            Event::Init(init) => self.init(&init),
            Event::Controlled(controlled) => self.apply_control_response(&controlled),
            Event::Assistant(said) => self.said(&said, began),
            Event::Exchange(exchange) if exchange.parent_tool_use_id.is_none() => {
                self.answer.add_results(&exchange);
                self.is_between_calls = true;
            }
            Event::Stream(shown) => self.apply_stream_event(&shown, began),
            Event::RateLimit(limit) if limit.status.as_deref() == Some("rejected") => {
                self.rate_limit_resets_at = limit.resets_at;
            }
            Event::Compacted => self.is_compacted = true,
            Event::Result(result) => self.result(result),
            Event::Garbage(line) => {
                tracing::debug!(n_bytes = line.len(), "ignored a line that is not an event");
            }
            Event::Other { kind, .. } => {
                tracing::trace!(kind = &*kind, "ignored an unknown event")
            }
            Event::Exchange(_) | Event::RateLimit(_) | Event::Retry(_) => {}
        }
    }

    /// Returns the usage of all calls so far. Only between two calls, and only if it has changed.
    pub(super) fn usage_if_changed(&mut self) -> Option<UsageSoFar> {
        let n_tokens = self.calls.iter().map(|call| meter::n_tokens_of(&call.usage)).sum();
        if !self.is_between_calls || n_tokens == self.n_told_tokens {
            return None;
        }
        self.n_told_tokens = n_tokens;
        let own = self.calls.iter().rfind(|call| !call.is_subagent);
        let context_tokens = own.and_then(|call| call.usage.context()).unwrap_or(0);
        Some(UsageSoFar { spent: meter::of_calls(&self.calls), context_tokens })
    }

    /// Returns the first of these servers that is known to be missing.
    pub(in crate::providers::claude) fn find_missing_server<'a>(
        &self,
        servers: &'a [String],
    ) -> Option<&'a str> {
        servers.iter().find(|server| self.missing_servers.contains(server)).map(String::as_str)
    }

    pub(in crate::providers::claude) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr).trim().to_owned()
    }

    /// Removes secrets, before the record goes to logs, people and the database.
    pub(super) fn clean(&mut self, secrets: &Secrets) {
        self.answer.clean(secrets);
        self.stderr = secrets.clean_text(&self.stderr()).into_bytes();
        self.api_message = secrets.clean_text(&self.api_message);
        let names = [&mut self.sessions, &mut self.missing_servers].into_iter().flatten();
        names.for_each(|name| *name = secrets.cleaned_name(name));
        for call in &mut self.calls {
            call.provider_message_id = secrets.cleaned_name(&call.provider_message_id);
            call.model = secrets.cleaned_name(&call.model);
        }
        if let Some(result) = &mut self.result {
            clean_result(result, secrets);
        }
    }

    fn init(&mut self, init: &Init<'_>) {
        self.servers(&init.mcp_servers);
        self.tools = init.tools.iter().map(|tool| tool.to_string()).collect();
    }

    fn apply_control_response(&mut self, ControlResponse { response }: &ControlResponse<'_>) {
        if &*response.request_id != input::SERVERS {
            return;
        }
        self.has_told_servers = true;
        if let Some(told) = &response.response {
            self.servers(&told.mcp_servers);
        }
    }

    fn servers(&mut self, servers: &[McpServer<'_>]) {
        let missing = servers.iter().filter(|server| &*server.status != "connected");
        self.missing_servers = missing.map(|server| server.name.to_string()).collect();
    }

    fn said(&mut self, said: &AssistantLine<'_>, began: Instant) {
        self.session(said.session_id.as_deref());
        if let Some(error) = &said.error {
            self.api_error = Some(error.to_string());
            let texts = said.message.content.iter().filter_map(|block| block.text.as_deref());
            self.api_message = texts.collect();
            return;
        }
        self.first_word.get_or_insert_with(|| began.elapsed());
        // Adds the call only if it was not streamed: the counts of a stream are better.
        self.call(
            &said.message.id,
            &said.message.model,
            said.message.usage,
            said.parent_tool_use_id.is_some(),
        );
        if said.parent_tool_use_id.is_none() {
            self.answer.add_reply(said);
        }
    }

    fn apply_stream_event(&mut self, shown: &StreamLine<'_>, began: Instant) {
        let Change { message, usage, delta, .. } = &shown.event;
        if let Some(message) = message {
            self.first_word.get_or_insert_with(|| began.elapsed());
            self.call(
                &message.id,
                &message.model,
                message.usage,
                shown.parent_tool_use_id.is_some(),
            );
        }
        let is_subagent = shown.parent_tool_use_id.is_some();
        let call = self.calls.iter_mut().rfind(|call| call.is_subagent == is_subagent);
        if let (Some(usage), Some(call)) = (usage, call) {
            call.usage = merged(call.usage, usage);
        }
        if let Some(reason) = delta.as_ref().and_then(|delta| delta.stop_reason.as_deref()) {
            self.is_between_calls = is_subagent || CONTINUING_STOP_REASONS.contains(&reason);
            if !is_subagent {
                self.answer.set_stop_reason(reason);
            }
        }
    }

    fn call(
        &mut self,
        id: &Option<Text<'_>>,
        model: &Option<Text<'_>>,
        usage: Option<Tokens>,
        is_subagent: bool,
    ) {
        let Some(id) = id.as_deref() else { return };
        if self.calls.iter().all(|call| call.provider_message_id != id) {
            self.calls.push(Call {
                provider_message_id: id.to_owned(),
                model: model.as_deref().unwrap_or_default().to_owned(),
                usage: merged(Usage::default(), &usage.unwrap_or_default()),
                is_subagent,
            });
        }
    }

    fn result(&mut self, result: Box<TurnResult>) {
        self.session(result.session_id.as_deref());
        if self.result.is_some() {
            tracing::warn!("ignored a second result");
            return;
        }
        self.result = Some(result);
    }

    fn session(&mut self, session: Option<&str>) {
        if let Some(session) = session
            && self.sessions.iter().all(|known| known != session)
        {
            self.sessions.push(session.to_owned());
        }
    }
}

fn clean_result(result: &mut TurnResult, secrets: &Secrets) {
    result.errors.iter_mut().for_each(|error| *error = secrets.clean_text(error));
    result.result = result.result.take().map(|text| secrets.clean_text(&text));
    if let Some(value) = &mut result.structured_output {
        secrets.clean_value(value);
    }
    for denial in &mut result.permission_denials {
        denial.tool_name = secrets.cleaned_name(&denial.tool_name);
    }
    let models = std::mem::take(&mut result.model_usage).into_iter();
    result.model_usage = models.map(|(name, usage)| (secrets.cleaned_name(&name), usage)).collect();
}

/// Merges counts: later ones replace earlier ones, and missing ones change nothing.
fn merged(before: Usage, later: &Tokens) -> Usage {
    Usage {
        input: later.input_tokens.or(before.input),
        output: later.output_tokens.or(before.output),
        cache_read: later.cache_read_input_tokens.or(before.cache_read),
        cache_creation: later.cache_creation_input_tokens.or(before.cache_creation),
    }
}
