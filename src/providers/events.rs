//! Live events of a call, for people who watch.
//!
//! A slow or absent reader must never hold up a turn, so sending never waits. Text for which the channel has no space stays in the sink. It
//! goes out in one piece with the next text that fits. The latest usage waits in the same way. Status changes that do not fit are dropped.
//! The outcome contains the whole text in any case: events are a view, not the record.

use tokio::sync::mpsc;

use super::{ModelSpend, SentRequest, ToldLimits};

#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The request, just before it is sent.
    Sent(Box<SentRequest>),
    /// The limits that the provider tells with its answer.
    Limits(ToldLimits),
    /// The call is being made.
    Started {
        model: String,
    },
    /// More of the answer.
    Text(String),
    Status(Status),
    /// The model uses a tool.
    Calling {
        tool: String,
    },
    /// All called tools have returned, and the model is about to be called again. A stop at this point cuts nothing in two.
    Returned,
    /// A call of the model has ended, and another one follows.
    Used(UsageSoFar),
}

/// Usage of all calls of a turn so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageSoFar {
    pub spent: Vec<ModelSpend>,
    /// Tokens of prompt and answer of the last call, which the prompt of the next one contains.
    pub context_tokens: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// The model thinks; nothing of the answer is there yet.
    Thinking,
    /// The first words of the answer are there.
    Answering,
}

/// Sink for the events of a provider.
#[derive(Debug)]
pub struct EventSink {
    sender: Option<mpsc::Sender<Event>>,
    /// Text that did not fit yet. At most as long as the answer.
    pending: String,
    /// Latest usage that did not fit yet. It must not be lost.
    used: Option<UsageSoFar>,
}

impl EventSink {
    /// Creates a sink whose reader may lag `n_events` behind before events are merged.
    pub fn channel(n_events: usize) -> (Self, mpsc::Receiver<Event>) {
        let (sender, receiver) = mpsc::channel(n_events.max(1));
        let sink = Self { sender: Some(sender), pending: String::new(), used: None };
        (sink, receiver)
    }

    /// Creates a sink for calls without a reader.
    pub fn discard() -> Self {
        Self { sender: None, pending: String::new(), used: None }
    }

    /// Sends the request of the call. It is the first event, so there is space for it.
    pub fn send_request(&mut self, sent: SentRequest) {
        self.send(Event::Sent(Box::new(sent)));
    }

    pub fn send_started(&mut self, model: &str) {
        let model = model.to_owned();
        self.send(Event::Started { model });
    }

    /// Sends the limits that the provider tells, if it tells any.
    pub fn send_limits(&mut self, told: ToldLimits) {
        if told != ToldLimits::default() {
            self.send(Event::Limits(told));
        }
    }

    pub fn send_status(&mut self, status: Status) {
        self.send(Event::Status(status));
    }

    pub fn send_call(&mut self, tool: &str) {
        let tool = tool.to_owned();
        self.send(Event::Calling { tool });
    }

    pub fn send_returned(&mut self) {
        self.send(Event::Returned);
    }

    pub fn send_usage(&mut self, used: UsageSoFar) {
        self.used = Some(used);
        self.flush();
    }

    pub fn send_text(&mut self, delta: &str) {
        if self.sender.is_some() && !delta.is_empty() {
            self.pending.push_str(delta);
            self.flush();
        }
    }

    fn send(&mut self, event: Event) {
        // Text goes first, or a reader would see it after what followed it.
        self.flush();
        if self.pending.is_empty()
            && let Some(sender) = &self.sender
        {
            _ = sender.try_send(event);
        }
    }

    fn flush(&mut self) {
        let Some(sender) = &self.sender else { return };
        if sender.is_closed() {
            self.sender = None;
            self.pending = String::new();
            return;
        }
        if !self.pending.is_empty()
            && let Ok(place) = sender.try_reserve()
        {
            place.send(Event::Text(std::mem::take(&mut self.pending)));
        }
        if self.used.is_some()
            && let Ok(place) = sender.try_reserve()
            && let Some(used) = self.used.take()
        {
            place.send(Event::Used(used));
        }
    }
}

impl Drop for EventSink {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lagging_reader_gets_the_text_in_larger_chunks() {
        let (mut sink, mut events) = EventSink::channel(2);
        sink.send_started("m");
        for piece in ["a", "b", "c"] {
            sink.send_text(piece);
        }
        sink.send_status(Status::Thinking);
        assert_eq!(events.try_recv().unwrap(), Event::Started { model: "m".to_owned() });
        assert_eq!(events.try_recv().unwrap(), Event::Text("a".to_owned()));
        sink.send_text("d");
        drop(sink);
        assert_eq!(events.try_recv().unwrap(), Event::Text("bcd".to_owned()));
        assert!(events.try_recv().is_err());
    }

    #[test]
    fn a_lagging_reader_gets_the_latest_usage() {
        let (mut sink, mut events) = EventSink::channel(1);
        let used = |context_tokens| UsageSoFar { spent: Vec::new(), context_tokens };
        sink.send_started("m");
        sink.send_usage(used(1));
        sink.send_usage(used(2));
        assert_eq!(events.try_recv().unwrap(), Event::Started { model: "m".to_owned() });
        sink.send_status(Status::Thinking);
        assert_eq!(events.try_recv().unwrap(), Event::Used(used(2)));
    }

    #[test]
    fn a_disconnected_reader_costs_nothing() {
        let (mut sink, events) = EventSink::channel(1);
        drop(events);
        sink.send_text("lost");
        assert!(sink.sender.is_none() && sink.pending.is_empty());
    }
}
