//! The trace that a request belongs to, as the caller says, and our part in it: that a task was asked for.

use axum::http::HeaderMap;
use chrono::{DateTime, Utc};

use crate::{
    app::App,
    domain::tasks::Task,
    traces::{Context, Kind, Span},
};

/// A request for a task.
pub(super) struct Asked {
    caller: Option<Context>,
    own: Option<Context>,
    began_at: DateTime<Utc>,
}

impl Asked {
    pub(super) fn begin(app: &App, headers: &HeaderMap) -> Self {
        let header = headers.get("traceparent").and_then(|header| header.to_str().ok());
        let caller = header.and_then(Context::parse);
        let own = || caller.map_or_else(Context::new, |caller| caller.sibling());
        Self { caller, own: app.traces.are_wanted().then(own), began_at: app.clock.now() }
    }

    /// What the task's turns are linked to: our own span, or the caller's where nobody collects ours.
    pub(super) fn context(&self) -> Option<Context> {
        self.own.or(self.caller)
    }

    pub(super) fn end(self, app: &App, task: &Task) {
        let Some(context) = self.own else { return };
        app.traces.record(Span {
            context,
            parent: self.caller.map(|caller| caller.span),
            name: "send turns".to_owned(),
            kind: Kind::Producer,
            started_at: self.began_at,
            ended_at: app.clock.now(),
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
