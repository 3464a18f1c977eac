//! Live view of a turn, for people who watch while the answer comes.

use crate::providers::{
    EventSink, Status, UsageSoFar,
    claude::secrets::{SecretFilter, Secrets},
    stream_json::{AssistantLine, Block, Event, Exchange, StreamLine},
};

pub(super) struct LiveEvents<'e> {
    events: &'e mut EventSink,
    secrets: &'e Secrets,
    veil: SecretFilter<'e>,
    /// Id of the reply that is streamed.
    streamed: Option<String>,
    status: Option<Status>,
    /// Ids of tool calls that have no result yet.
    called: Vec<String>,
}

impl<'e> LiveEvents<'e> {
    pub(super) fn new(events: &'e mut EventSink, secrets: &'e Secrets) -> Self {
        Self {
            events,
            secrets,
            veil: SecretFilter::new(secrets),
            streamed: None,
            status: None,
            called: Vec::new(),
        }
    }

    pub(super) fn show(&mut self, event: &Event<'_>) {
        match event {
            Event::Init(init) => {
                self.events.send_started(init.model.as_deref().unwrap_or_default())
            }
            Event::Stream(shown) if shown.parent_tool_use_id.is_none() => self.piece(shown),
            Event::Assistant(said) if said.parent_tool_use_id.is_none() => {
                let called = said.message.content.iter().filter(|block| &*block.kind == "tool_use");
                self.called
                    .extend(called.filter_map(|block| block.id.as_deref().map(str::to_owned)));
                self.whole(said);
            }
            Event::Exchange(exchange) if exchange.parent_tool_use_id.is_none() => {
                self.returned(exchange);
            }
            _ => {}
        }
    }

    pub(super) fn used(&mut self, used: UsageSoFar) {
        self.events.send_usage(used);
    }

    fn piece(&mut self, shown: &StreamLine<'_>) {
        if let Some(reply) = &shown.event.message {
            self.streamed = reply.id.as_deref().map(str::to_owned);
        }
        if let Some(block) = &shown.event.content_block {
            match &*block.kind {
                "thinking" => self.status(Status::Thinking),
                "tool_use" => self.calling(block.name.as_deref()),
                _ => {}
            }
        }
        if let Some(text) = shown.event.delta.as_ref().and_then(|delta| delta.text.as_deref()) {
            self.status(Status::Answering);
            self.text(text);
        }
    }

    /// Shows a reply that was not streamed, for instance after a stream that broke off.
    fn whole(&mut self, said: &AssistantLine<'_>) {
        let id = said.message.id.as_deref();
        if said.error.is_some() || (id.is_some() && self.streamed.as_deref() == id) {
            return;
        }
        for block in &said.message.content {
            match &*block.kind {
                "text" => {
                    self.status(Status::Answering);
                    self.text(block.text.as_deref().unwrap_or_default());
                }
                "tool_use" => self.calling(block.name.as_deref()),
                _ => {}
            }
        }
    }

    /// Reports that the tools have returned. Calls that were made together return one by one.
    fn returned(&mut self, exchange: &Exchange<'_>) {
        let blocks: Vec<Block<'_>> =
            serde_json::from_str(exchange.message.content.get()).unwrap_or_default();
        let n_open = self.called.len();
        self.called
            .retain(|id| !blocks.iter().any(|block| block.tool_use_id.as_deref() == Some(id)));
        if n_open > 0 && self.called.is_empty() {
            self.events.send_returned();
        }
    }

    fn text(&mut self, text: &str) {
        let text = self.veil.push(text);
        self.events.send_text(&text);
    }

    fn calling(&mut self, tool: Option<&str>) {
        self.status = None;
        self.events.send_text(&self.veil.finish());
        self.events.send_call(&self.secrets.clean_text(tool.unwrap_or_default()));
    }

    fn status(&mut self, status: Status) {
        if self.status != Some(status) {
            self.status = Some(status);
            self.events.send_status(status);
        }
    }
}

impl Drop for LiveEvents<'_> {
    fn drop(&mut self) {
        self.events.send_text(&self.veil.finish());
    }
}
