//! The outcome of a turn, and its bill.

use serde_json::Value;

use super::{
    super::{
        drive::{EndReason, TurnOutput},
        meter,
        rates::is_same_model,
    },
    Turn,
    files::TurnState,
};
use crate::{
    providers::{
        ConversationUpdate, Durations, Flag, Grants, Meter, ModelSpend, Outcome, OutputFiles,
        StopReason, TurnStart, stream_json::TurnResult,
    },
    transcript::{Message, Role},
};

impl Turn<'_> {
    pub(super) fn bill(&self, heard: &TurnOutput) -> (Vec<ModelSpend>, Meter) {
        let called: u64 = heard.calls.iter().map(|call| meter::n_tokens_of(&call.usage)).sum();
        let by_calls = || {
            let mut spent = meter::of_calls(&heard.calls);
            self.rates.fill_in(&mut spent, &self.conversation.meter);
            (spent, self.conversation.meter.clone())
        };
        let Some(result) = &heard.result else {
            // A turn that was killed reports no total, but its answers were paid.
            return by_calls();
        };
        // A transcript that was written from messages contains no totals.
        let before = match self.began {
            TurnStart::New | TurnStart::Rewritten => &Meter::default(),
            TurnStart::Resumed | TurnStart::Restored => &self.conversation.meter,
        };
        let (spent, meter) = meter::spent(result, before, called);
        self.rates.learn(&spent);
        // The totals of a turn that was cut off lack the request that was under way.
        match meter::n_tokens_of(&meter::total(&spent)) < called && result.is_error != Some(false) {
            true => by_calls(),
            false => (spent, meter),
        }
    }

    pub(super) fn outcome(
        &self,
        heard: &TurnOutput,
        ended: EndReason,
        (result, kept, files): (&TurnResult, Option<TurnState>, OutputFiles),
        spent: Vec<ModelSpend>,
        meter: Meter,
    ) -> Outcome {
        let text = match &result.structured_output {
            Some(value) if **value != Value::Null => value.to_string(),
            _ => heard.answer.text(),
        };
        let message = Message::new(Role::Assistant, text);
        let own = spent.iter().find(|spent| is_same_model(&self.request.model, &spent.model));
        let window_tokens = own.and_then(|spent| spent.window_tokens);
        let mut flags = flags(self.grants(), heard, ended, result, &spent);
        flags.extend(kept.as_ref().and_then(|kept| kept.not_stored.clone()));
        Outcome {
            message,
            thinking: heard.answer.thinking(),
            stop: StopReason::End,
            usage: meter::total(&spent),
            spent,
            window_tokens,
            provider_message_id: heard.answer.last_message_id().map(str::to_owned),
            durations: Durations {
                total: heard.total,
                first_byte: heard.first_word,
                load: heard.first_line,
                ..Durations::default()
            },
            conversation: kept.map(|TurnState { head, grown, .. }| {
                Box::new(ConversationUpdate {
                    head,
                    began: self.began,
                    was_ahead: self.was_ahead,
                    messages: heard.answer.messages(),
                    grown,
                    meter,
                    calls: heard.calls.clone(),
                    flags,
                })
            }),
            files,
        }
    }
}

fn flags(
    grants: &Grants,
    heard: &TurnOutput,
    ended: EndReason,
    result: &TurnResult,
    spent: &[ModelSpend],
) -> Vec<Flag> {
    let mut flags: Vec<Flag> =
        heard.missing_servers.iter().cloned().map(Flag::ServerMissing).collect();
    // Measured: the CLI ignores the name of a tool that it does not know.
    let missing = grants.built_in.iter().filter(|tool| !heard.tools.contains(tool));
    flags.extend(missing.cloned().map(Flag::ToolMissing));
    flags.extend(
        result.permission_denials.iter().map(|denial| Flag::Denied(denial.tool_name.clone())),
    );
    if heard.is_compacted {
        flags.push(Flag::Compacted);
    }
    if ended == EndReason::Hung {
        flags.push(Flag::Hung);
    }
    if spent.is_empty() || spent.iter().any(|spent| spent.cost_micros.is_none()) {
        flags.push(Flag::CostUnknown);
    }
    flags
}
