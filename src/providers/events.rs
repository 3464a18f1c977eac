//! The live side of a call, for people who watch.
//!
//! A slow or absent reader must never hold up a turn, so nothing here waits. Text that the channel has no room for
//! stays in the sink and goes out in one piece with the next that fits, and so does the latest of what was used; status changes that do
//! not fit are dropped.
//! The outcome carries the whole text in any case: events are a view, not the record.

use tokio::sync::mpsc;

use super::Spent;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
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
    /// All tools that it has called have answered, and it is about to be asked again: stopped here, nothing is cut in two.
    Returned,
    /// A call of the model is over, and another one follows.
    Used(Used),
}

/// What all calls of a turn have used so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Used {
    pub spent: Vec<Spent>,
    /// Prompt and answer of the last call: the next one has them in its prompt.
    pub context_tokens: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// The model thinks; nothing of the answer is there yet.
    Thinking,
    /// The first words of the answer are there.
    Answering,
}

/// Where a provider puts its events.
#[derive(Debug)]
pub struct EventSink {
    sender: Option<mpsc::Sender<Event>>,
    /// Text that found no room yet. No longer than the answer.
    pending: String,
    /// The latest that found no room yet: no reader may miss it.
    used: Option<Used>,
}

impl EventSink {
    /// A sink whose reader may lag `n_events` behind before events are merged.
    pub fn channel(n_events: usize) -> (Self, mpsc::Receiver<Event>) {
        let (sender, receiver) = mpsc::channel(n_events.max(1));
        let sink = Self { sender: Some(sender), pending: String::new(), used: None };
        (sink, receiver)
    }

    /// For calls that nobody watches.
    pub fn discard() -> Self {
        Self { sender: None, pending: String::new(), used: None }
    }

    pub fn started(&mut self, model: &str) {
        let model = model.to_owned();
        self.send(Event::Started { model });
    }

    pub fn status(&mut self, status: Status) {
        self.send(Event::Status(status));
    }

    pub fn calling(&mut self, tool: &str) {
        let tool = tool.to_owned();
        self.send(Event::Calling { tool });
    }

    pub fn returned(&mut self) {
        self.send(Event::Returned);
    }

    pub fn used(&mut self, used: Used) {
        self.used = Some(used);
        self.flush();
    }

    pub fn text(&mut self, delta: &str) {
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
    fn a_reader_that_lags_gets_the_text_in_bigger_pieces() {
        let (mut sink, mut events) = EventSink::channel(2);
        sink.started("m");
        for piece in ["a", "b", "c"] {
            sink.text(piece);
        }
        sink.status(Status::Thinking);
        assert_eq!(events.try_recv().unwrap(), Event::Started { model: "m".to_owned() });
        assert_eq!(events.try_recv().unwrap(), Event::Text("a".to_owned()));
        sink.text("d");
        drop(sink);
        assert_eq!(events.try_recv().unwrap(), Event::Text("bcd".to_owned()));
        assert!(events.try_recv().is_err());
    }

    #[test]
    fn a_reader_that_lags_gets_the_latest_of_what_was_used() {
        let (mut sink, mut events) = EventSink::channel(1);
        let used = |context_tokens| Used { spent: Vec::new(), context_tokens };
        sink.started("m");
        sink.used(used(1));
        sink.used(used(2));
        assert_eq!(events.try_recv().unwrap(), Event::Started { model: "m".to_owned() });
        sink.status(Status::Thinking);
        assert_eq!(events.try_recv().unwrap(), Event::Used(used(2)));
    }

    #[test]
    fn a_reader_that_went_away_costs_nothing() {
        let (mut sink, events) = EventSink::channel(1);
        drop(events);
        sink.text("lost");
        assert!(sink.sender.is_none() && sink.pending.is_empty());
    }
}
