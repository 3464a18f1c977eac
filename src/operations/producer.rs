//! The trace span of a request that adds a task.

use super::Call;
use crate::{
    domain::tasks::Task,
    traces::{Context, Kind, Span},
};

/// A request that adds a task.
pub(super) struct Producer<'a> {
    call: &'a Call,
    own: Option<Context>,
}

impl<'a> Producer<'a> {
    pub(super) fn begin(call: &'a Call) -> Self {
        let own = || call.trace.map_or_else(Context::random, |caller| caller.sibling());
        Self { call, own: call.traces.is_enabled().then(own) }
    }

    /// Returns the span that the task's turns are linked to: its own, or the caller's if spans are not collected.
    pub(super) fn traceparent(&self) -> Option<String> {
        self.own.or(self.call.trace).map(|context| context.to_string())
    }

    pub(super) fn end(self, task: &Task) {
        let Some(context) = self.own else { return };
        self.call.traces.record(Span {
            context,
            parent: self.call.trace.map(|caller| caller.span),
            name: "send turns".to_owned(),
            kind: Kind::Producer,
            started_at: self.call.now,
            ended_at: self.call.clock.now(),
            attributes: vec![
                ("messaging.system", "dalsegno".into()),
                ("messaging.operation.name", "send".into()),
                ("messaging.operation.type", "send".into()),
                ("messaging.destination.name", "turns".into()),
                ("messaging.message.id", task.job_id.to_string().into()),
                ("dalsegno.task.id", task.id.to_string().into()),
                ("dalsegno.campaign.id", task.campaign_id.to_string().into()),
            ],
            links: Vec::new(),
            error: None,
        });
    }
}
