//! Checks before a call that it can be made, and after it that the reply is an answer.

use std::time::Duration;

use super::{Call, Error, Server};
use crate::{
    providers::{
        Durations, Outcome, Request, StopReason, Usage, truncation::is_far_below_estimate,
    },
    transcript::{Message, Role, ToolCall},
};

/// One call, with the facts about its model and server.
#[derive(Debug, Clone)]
pub(in crate::providers) struct Plan<'a> {
    pub(in crate::providers) request: &'a Request,
    pub(in crate::providers) window_tokens: u32,
    pub(in crate::providers) server: Server,
}

/// A reply that the server has ended, without the format of its API.
#[derive(Debug)]
pub(in crate::providers) struct WholeReply {
    pub(in crate::providers) text: String,
    pub(in crate::providers) thinking: String,
    pub(in crate::providers) calls: Vec<ToolCall>,
    /// True if the arguments of a call break off.
    pub(in crate::providers) has_half_a_call: bool,
    pub(in crate::providers) end: ReplyEnd,
    pub(in crate::providers) counts: Counts,
}

/// The server's reason for the end of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::providers) enum ReplyEnd {
    /// The model has finished, or waits for the results of its calls.
    Finished,
    /// The reserve or the window was used up.
    Cut,
    /// A filter, or the model itself, refused to answer.
    Filtered,
    Failed,
}

/// Tokens as the server counts them. Invalid numbers are unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::providers) struct Counts {
    /// The whole prompt, cached tokens included.
    pub(in crate::providers) prompt: Option<u64>,
    pub(in crate::providers) answer: Option<u64>,
    pub(in crate::providers) cache_read: Option<u64>,
    pub(in crate::providers) cache_creation: Option<u64>,
}

impl Plan<'_> {
    pub(in crate::providers) fn call(&self) -> Call<'_> {
        Call { model: &self.request.model, window_tokens: self.window_tokens }
    }

    pub(in crate::providers) fn check(&self) -> Result<(), Error> {
        let request = self.request;
        if request.messages.iter().all(|message| message.text.trim().is_empty()) {
            return Err(Error::NothingToSend);
        }
        match request.estimated_prompt_tokens {
            Some(estimated) if estimated >= self.window_tokens => {
                Err(self.overflow(format!("it has about {estimated} tokens")))
            }
            _ => Ok(()),
        }
    }

    pub(in crate::providers) fn outcome(
        &self,
        reply: WholeReply,
        total: Duration,
        first_byte: Duration,
    ) -> Result<Outcome, Error> {
        let usage = self.usage(&reply.counts, !reply.text.is_empty());
        match reply.end {
            ReplyEnd::Filtered => {
                return Err(Error::Filtered { server: self.server.clone(), usage });
            }
            ReplyEnd::Failed => {
                let message = "the server gave no reason".to_owned();
                return Err(Error::FailedInStream { server: self.server.clone(), message });
            }
            ReplyEnd::Finished | ReplyEnd::Cut => {}
        }
        self.check_truncation(&reply.counts, usage)?;
        self.check_content(&reply, usage)?;
        let stop = match reply.end {
            _ if !reply.calls.is_empty() => StopReason::ToolCalls,
            ReplyEnd::Cut => StopReason::Length,
            _ => StopReason::End,
        };
        Ok(Outcome {
            message: Message {
                text: reply.text,
                tool_calls: reply.calls,
                ..Message::new(Role::Assistant, "")
            },
            thinking: (!reply.thinking.is_empty()).then_some(reply.thinking),
            stop,
            usage,
            window_tokens: Some(self.window_tokens),
            // Servers repeat their ids, so the ledger counts by our own id of the call.
            provider_message_id: None,
            durations: Durations { total, first_byte: Some(first_byte), ..Durations::default() },
            conversation: None,
            files: Default::default(),
            spent: Vec::new(),
        })
    }

    /// Returns the server's counts, except those that cannot be true.
    fn usage(&self, counts: &Counts, has_text: bool) -> Usage {
        let usage = self.plausible_usage(counts, has_text);
        if usage.prompt() != counts.prompt || usage.output != counts.answer {
            tracing::warn!(
                prompt_tokens = counts.prompt,
                completion_tokens = counts.answer,
                server = %self.server,
                "ignored impossible token counts of the server"
            );
        }
        usage
    }

    /// Returns the counts that can be true, and logs nothing.
    pub(super) fn plausible_usage(&self, counts: &Counts, has_text: bool) -> Usage {
        let fits = |tokens: &u64| *tokens <= u64::from(self.window_tokens);
        let prompt = counts.prompt.filter(|n| *n > 0 && fits(n));
        let output = counts.answer.filter(fits).filter(|n| *n > 0 || !has_text);
        let Some(prompt) = prompt else { return Usage { output, ..Usage::default() } };
        let read = counts.cache_read.filter(|read| *read <= prompt);
        let left = prompt - read.unwrap_or(0);
        let written = counts.cache_creation.filter(|written| *written <= left);
        Usage {
            input: Some(left - written.unwrap_or(0)),
            output,
            cache_read: read,
            cache_creation: written,
        }
    }

    fn check_truncation(&self, counts: &Counts, usage: Usage) -> Result<(), Error> {
        let estimated = self.request.estimated_prompt_tokens;
        match (counts.prompt, estimated) {
            (Some(counted @ 1..), Some(estimated))
                if is_far_below_estimate(Some(estimated), self.window_tokens, counted) =>
            {
                Err(Error::Truncated { counted, estimated, usage })
            }
            _ => Ok(()),
        }
    }

    fn check_content(&self, reply: &WholeReply, usage: Usage) -> Result<(), Error> {
        let was_cut = reply.end == ReplyEnd::Cut;
        let has_answer = !reply.text.trim().is_empty() || !reply.calls.is_empty();
        if has_answer && !(was_cut && reply.has_half_a_call) {
            return Ok(());
        }
        // LM Studio answers a prompt that is too long with nothing but its count.
        if reply.counts.prompt.is_some_and(|n| n >= u64::from(self.window_tokens)) {
            return Err(self.overflow("the answer was empty".to_owned()));
        }
        if !was_cut {
            return Err(Error::Empty { usage });
        }
        let reserve_tokens = self.request.reserve_tokens;
        let room = u64::from(self.window_tokens).saturating_sub(usage.prompt().unwrap_or(0));
        match room < u64::from(reserve_tokens) {
            // The window was full before the reserve was used up: a smaller prompt helps, a larger reserve would not.
            true => Err(self.overflow(format!("{room} tokens were left for the answer"))),
            false => Err(Error::NoRoom { reserve_tokens, usage }),
        }
    }

    fn overflow(&self, message: String) -> Error {
        let (server, window_tokens) = (self.server.clone(), self.window_tokens);
        Error::Overflow { server, window_tokens, message }
    }
}
