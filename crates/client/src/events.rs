//! A stream of server-sent events, read one at a time.

use reqwest::{Response, StatusCode};
use serde_json::Value;

use super::{Client, Error, error::refused_by_event, request::Request};

/// The last event of a task.
const END: &str = "end";
/// A refusal after the stream has begun.
const ERROR: &str = "error";

/// An event of a task. The last one is `end`, with the task as its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Id to pass as `after`, to continue after this event, also in another process.
    pub id: String,
    /// Name of the event, such as `turn.progress`.
    pub kind: String,
    pub data: Value,
}

/// A stream of events. If it breaks, it is opened again after the last event.
#[derive(Debug)]
pub struct Events {
    client: Client,
    request: Request,
    /// `None`: the stream broke.
    response: Option<Response>,
    /// Received bytes that are not yet a complete event.
    rest: Vec<u8>,
    /// Tries since the service was last heard.
    retries: u32,
    is_over: bool,
}

impl Events {
    pub(super) async fn open(client: Client, request: Request) -> Result<Self, Error> {
        let response = Some(client.send(&request).await?);
        Ok(Self { client, request, response, rest: Vec::new(), retries: 0, is_over: false })
    }

    /// Returns the next event, or `None` at the end of the stream.
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        while !self.is_over {
            match self.read().await {
                Ok(Some(event)) => {
                    self.is_over = event.kind == END;
                    self.request.last_event_id = Some(event.id.clone());
                    return Ok(Some(event));
                }
                Ok(None) => self.is_over = true,
                Err(error) => {
                    self.response = None;
                    self.rest.clear();
                    self.client.wait_or_fail(error, &self.request, &mut self.retries).await?;
                }
            }
        }
        Ok(None)
    }

    /// Reads until the next event. `None`: the stream had ended before it was opened.
    async fn read(&mut self) -> Result<Option<Event>, Error> {
        let action = self.request.action;
        let response = match &mut self.response {
            Some(response) => response,
            none => none.insert(self.client.send_once(&self.request).await?),
        };
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        loop {
            while let Some(end) = self.rest.windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<u8> = self.rest.drain(..end + 2).collect();
                let parsed = parse(&String::from_utf8_lossy(&block));
                if let Some((event, data)) = &parsed
                    && event.kind == ERROR
                {
                    return Err(refused_by_event(action, data));
                }
                // Also a ping shows that the service is there.
                self.retries = 0;
                if let Some((event, _)) = parsed {
                    return Ok(Some(event));
                }
            }
            let chunk = response.chunk().await;
            match chunk.map_err(|source| Error::Http { action, source })? {
                Some(chunk) => self.rest.extend_from_slice(&chunk),
                None => return Err(Error::BrokenStream),
            }
        }
    }
}

/// Parses a block, and returns the event with its data as text. `None`: a comment, which only keeps the connection open.
fn parse(block: &str) -> Option<(Event, String)> {
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
    let value = serde_json::from_str(&data).unwrap_or(Value::Null);
    Some((Event { id, kind: kind?, data: value }, data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_parsed_and_a_comment_is_skipped() {
        let (event, _) = parse("event: turn.done\nid: 7\ndata: {\"a\":1}\n\n").unwrap();
        assert_eq!((event.id.as_str(), event.kind.as_str()), ("7", "turn.done"));
        assert_eq!(event.data, serde_json::json!({ "a": 1 }));
        assert_eq!(parse(":\n\n"), None);
    }
}
