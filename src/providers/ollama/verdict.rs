//! Checks before a call that it can be made, and after it that the reply is an answer.

use std::time::Duration;

use super::{
    error::Error,
    reply::{End, Reply},
};
use crate::{
    providers::{
        Durations, Outcome, OutputFiles, Request, StopReason, Usage,
        truncation::is_far_below_estimate,
    },
    transcript::{Message, Role},
};

/// One call, with the facts about its model and server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan<'a> {
    pub(super) request: &'a Request,
    pub(super) num_ctx: u32,
    /// True if the server counts prompt tokens from its cache. Older ones leave them out.
    pub(super) counts_all: bool,
}

impl Plan<'_> {
    pub(super) fn check(&self) -> Result<(), Error> {
        let request = self.request;
        // The server takes a call without text for a request to load the model, and answers nothing.
        if request.messages.iter().all(|message| message.text.trim().is_empty()) {
            return Err(Error::NothingToSend);
        }
        match request.estimated_prompt_tokens {
            Some(estimated) if estimated >= self.num_ctx => Err(Error::Overflow {
                num_ctx: self.num_ctx,
                message: format!("it has about {estimated} tokens"),
            }),
            _ => Ok(()),
        }
    }

    pub(super) fn outcome(
        &self,
        reply: Reply,
        total: Duration,
        first_byte: Duration,
    ) -> Result<Outcome, Error> {
        let end = reply.end.clone().unwrap_or_default();
        let usage = self.usage(&end, !reply.text.is_empty());
        self.check_truncation(&end, usage)?;
        self.check_content(&reply, &end, usage)?;
        let stop = match end.reason.as_str() {
            _ if !reply.tool_calls.is_empty() => StopReason::ToolCalls,
            "length" => StopReason::Length,
            _ => StopReason::End,
        };
        Ok(Outcome {
            message: Message {
                role: Role::Assistant,
                text: reply.text,
                tool_calls: reply.tool_calls,
                tool_call_id: None,
                tool_name: None,
                media: Vec::new(),
            },
            thinking: (!reply.thinking.is_empty()).then_some(reply.thinking),
            stop,
            usage,
            window_tokens: Some(self.num_ctx),
            provider_message_id: None,
            durations: Durations {
                total,
                first_byte: Some(first_byte),
                load: end.load,
                prompt: end.prompt,
                answer: end.answer,
            },
            conversation: None,
            files: OutputFiles::default(),
            spent: Vec::new(),
        })
    }

    /// Returns the server's counts, except those that cannot be true.
    fn usage(&self, end: &End, has_text: bool) -> Usage {
        let fits = |tokens: &u64| *tokens <= u64::from(self.num_ctx);
        let prompt = end.prompt_tokens.filter(|n| *n > 0).filter(fits);
        let prompt = prompt.filter(|n| self.counts_all || !self.is_far_below_estimate(*n));
        let cached = end.cached_tokens.filter(|cached| prompt.is_some_and(|n| *cached <= n));
        let output = end.answer_tokens.filter(fits).filter(|n| *n > 0 || !has_text);
        if prompt != end.prompt_tokens || output != end.answer_tokens {
            tracing::warn!(
                prompt_eval_count = end.prompt_tokens,
                eval_count = end.answer_tokens,
                "ignored impossible token counts of the server"
            );
        }
        Usage {
            input: prompt.map(|n| n - cached.unwrap_or(0)),
            output,
            cache_read: cached,
            cache_creation: None,
        }
    }

    fn check_truncation(&self, end: &End, usage: Usage) -> Result<(), Error> {
        let Some(estimated) = self.request.estimated_prompt_tokens else {
            return Ok(());
        };
        match end.prompt_tokens {
            Some(counted) if counted > 0 && self.is_far_below_estimate(counted) => {
                // An old server does not count cached tokens, so a low count there says little. The exception is a prompt so near to the
                // window that it may have been cut.
                let near_window = u64::from(estimated) * 10 > u64::from(self.num_ctx) * 9;
                match self.counts_all || near_window {
                    true => Err(Error::Truncated { counted, estimated, usage }),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn is_far_below_estimate(&self, counted: u64) -> bool {
        is_far_below_estimate(self.request.estimated_prompt_tokens, self.num_ctx, counted)
    }

    fn check_content(&self, reply: &Reply, end: &End, usage: Usage) -> Result<(), Error> {
        if !reply.text.trim().is_empty() || !reply.tool_calls.is_empty() {
            return Ok(());
        }
        if end.reason != "length" {
            return Err(Error::Empty { usage });
        }
        let reserve_tokens = self.request.reserve_tokens;
        let room = u64::from(self.num_ctx).saturating_sub(usage.prompt().unwrap_or(0));
        match room < u64::from(reserve_tokens) {
            // The window was full before the reserve was used up: a smaller prompt helps, a larger reserve would not.
            true => Err(Error::Overflow {
                num_ctx: self.num_ctx,
                message: format!("{room} tokens were left for the answer"),
            }),
            false => Err(Error::NoRoom { reserve_tokens, usage }),
        }
    }
}
