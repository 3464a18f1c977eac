//! A stream of server-sent events, read one at a time.

use reqwest::Response;
use serde_json::Value;

use super::http::Error;

/// An event of a task. The last one is `end`, with the task as its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Id to pass as `after`, to continue a broken stream after this event.
    pub id: String,
    /// Name of the event, such as `turn.progress`.
    pub kind: String,
    pub data: Value,
}

/// An open stream of events.
#[derive(Debug)]
pub struct Events {
    response: Response,
    /// Received bytes that are not yet a complete event.
    rest: Vec<u8>,
}

impl Events {
    pub(super) fn of(response: Response) -> Self {
        Self { response, rest: Vec::new() }
    }

    /// Returns the next event, or `None` at the end of the stream.
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            while let Some(end) = self.rest.windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<u8> = self.rest.drain(..end + 2).collect();
                if let Some(event) = parse(&String::from_utf8_lossy(&block)) {
                    return Ok(Some(event));
                }
            }
            let chunk = self.response.chunk().await;
            match chunk.map_err(|source| Error::Http { action: "follow a task", source })? {
                Some(chunk) => self.rest.extend_from_slice(&chunk),
                None => return Ok(None),
            }
        }
    }
}

/// Parses a block. Returns `None` for a comment, which only keeps the connection open.
fn parse(block: &str) -> Option<Event> {
    let (mut id, mut kind, mut data) = (String::new(), None, String::new());
    for line in block.lines() {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" => value.clone_into(&mut id),
            "event" => kind = Some(value.to_owned()),
            "data" => data.push_str(value),
            _ => {}
        }
    }
    Some(Event { id, kind: kind?, data: serde_json::from_str(&data).unwrap_or(Value::Null) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_parsed_and_a_comment_is_skipped() {
        let event = parse("event: turn.done\nid: 7\ndata: {\"a\":1}\n\n").unwrap();
        assert_eq!((event.id.as_str(), event.kind.as_str()), ("7", "turn.done"));
        assert_eq!(event.data, serde_json::json!({ "a": 1 }));
        assert_eq!(parse(":\n\n"), None);
    }
}
