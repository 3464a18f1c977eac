//! Assembles the lines of a stream into a reply, without any IO.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::{error::Error, refusal, verdict::Plan};
use crate::{providers::thinking::ThinkTags, transcript::ToolCall};

/// The reply so far.
#[derive(Debug, Default)]
pub(super) struct Reply {
    pub(super) text: String,
    pub(super) thinking: String,
    pub(super) tool_calls: Vec<ToolCall>,
    pub(super) end: Option<End>,
    tags: ThinkTags,
}

/// Addition of one line, for people who watch.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Delta {
    pub(super) text: String,
    pub(super) began_thinking: bool,
    pub(super) began_answering: bool,
}

/// Content of the last line. Invalid numbers are unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct End {
    pub(super) reason: String,
    pub(super) prompt_tokens: Option<u64>,
    pub(super) cached_tokens: Option<u64>,
    pub(super) answer_tokens: Option<u64>,
    pub(super) load: Option<Duration>,
    pub(super) prompt: Option<Duration>,
    pub(super) answer: Option<Duration>,
}

/// A line of the stream. Numbers are read as any JSON, because a server that counts wrongly must not cost the answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line {
    error: Option<Value>,
    message: Option<LineMessage>,
    done: bool,
    done_reason: Option<String>,
    prompt_eval_count: Option<Value>,
    prompt_eval_cached_count: Option<Value>,
    eval_count: Option<Value>,
    load_duration: Option<Value>,
    prompt_eval_duration: Option<Value>,
    eval_duration: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LineMessage {
    content: Option<String>,
    thinking: Option<String>,
    tool_calls: Option<Vec<LineCall>>,
}

#[derive(Debug, Deserialize)]
struct LineCall {
    #[serde(default)]
    id: Option<String>,
    function: LineFunction,
}

#[derive(Debug, Deserialize)]
struct LineFunction {
    name: String,
    #[serde(default)]
    arguments: Value,
}

impl Reply {
    pub(super) fn is_done(&self) -> bool {
        self.end.is_some()
    }

    pub(super) fn accept(&mut self, line: &[u8], plan: &Plan<'_>) -> Result<Delta, Error> {
        let line: Line = serde_json::from_slice(line).map_err(Error::Malformed)?;
        if let Some(error) = &line.error {
            return Err(refusal::error_of_line(error, plan.num_ctx));
        }
        let (had_thinking, had_text) = (!self.thinking.is_empty(), !self.text.is_empty());
        let n_bytes = self.text.len();
        self.add(line.message.as_ref(), &plan.request.turn);
        if line.done {
            let last = self.tags.finish();
            self.thinking.push_str(&last.thinking);
            self.text.push_str(&last.text);
            self.end = Some(End::of(&line));
        }
        Ok(Delta {
            text: self.text[n_bytes..].to_owned(),
            began_thinking: !had_thinking && !self.thinking.is_empty(),
            began_answering: !had_text && !self.text.is_empty(),
        })
    }

    /// Ends the reply. The rest of the stream may be a last line without its line end, but not half a line.
    pub(super) fn end_of_stream(&mut self, rest: &[u8], plan: &Plan<'_>) -> Result<Delta, Error> {
        match self.accept(rest, plan) {
            Ok(last) if self.is_done() => Ok(last),
            Ok(_) | Err(Error::Malformed(_)) => {
                Err(Error::EndedEarly { n_chars: self.text.chars().count() })
            }
            Err(error) => Err(error),
        }
    }

    fn add(&mut self, message: Option<&LineMessage>, turn: &str) {
        let Some(message) = message else { return };
        self.thinking.push_str(message.thinking.as_deref().unwrap_or_default());
        let split = self.tags.push(message.content.as_deref().unwrap_or_default());
        self.thinking.push_str(&split.thinking);
        self.text.push_str(&split.text);
        for call in message.tool_calls.iter().flatten() {
            let id = call.id.clone().filter(|id| !id.is_empty());
            // Older servers give calls no id, but a result has to name its call.
            let id = id.unwrap_or_else(|| format!("{turn}-{}", self.tool_calls.len()));
            self.tool_calls.push(ToolCall {
                id,
                name: call.function.name.clone(),
                arguments: call.function.arguments.clone(),
                thinking: None,
            });
        }
    }
}

impl End {
    fn of(line: &Line) -> Self {
        let number = |value: &Option<Value>| value.as_ref().and_then(Value::as_u64);
        let duration = |value: &Option<Value>| number(value).map(Duration::from_nanos);
        Self {
            reason: line.done_reason.clone().unwrap_or_default(),
            prompt_tokens: number(&line.prompt_eval_count),
            cached_tokens: number(&line.prompt_eval_cached_count),
            answer_tokens: number(&line.eval_count),
            load: duration(&line.load_duration),
            prompt: duration(&line.prompt_eval_duration),
            answer: duration(&line.eval_duration),
        }
    }
}
