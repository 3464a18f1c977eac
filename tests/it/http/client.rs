//! A raw HTTP client: one request per connection, responses as received.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
};

use crate::app::SOON;

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// An open stream of server-sent events.
pub struct Stream {
    lines: BufReader<TcpStream>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedEvent {
    pub id: String,
    pub event: String,
    pub data: String,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn request_id(&self) -> &str {
        let id = self.head.lines().find_map(|line| line.strip_prefix("x-request-id: "));
        id.unwrap_or_else(|| panic!("{self:?}"))
    }

    /// Returns the JSON of a response with this status.
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        self.json()
    }

    /// Returns the detail of a problem document with this status and code.
    pub fn problem(&self, status: u16, code: &str) -> String {
        let problem = self.expect(status);
        assert_eq!(problem["code"], code, "{self:?}");
        assert_eq!(problem["status"], status, "{self:?}");
        assert!(self.head.contains("content-type: application/problem+json"), "{self:?}");
        problem["detail"].as_str().unwrap().to_owned()
    }
}

/// Sends a request over HTTP/1.0, so that the response ends with the connection.
pub async fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Reply {
    let mut stream = open(address, method, path, headers, body).await;
    let mut answer = Vec::new();
    tokio::time::timeout(SOON, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
    reply(&String::from_utf8(answer).unwrap())
}

impl Stream {
    /// Opens a stream; other responses are returned as errors.
    pub async fn open(address: SocketAddr, path: &str, last: Option<&str>) -> Result<Self, Reply> {
        let headers: Vec<_> = last.map(|id| ("Last-Event-ID", id)).into_iter().collect();
        Self::open_with(address, path, &headers).await
    }

    pub async fn open_with(
        address: SocketAddr,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<Self, Reply> {
        let mut lines = BufReader::new(open(address, "GET", path, headers, "").await);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let n_read = tokio::time::timeout(SOON, lines.read_line(&mut head)).await;
            assert!(n_read.unwrap().unwrap() > 0, "{head}");
        }
        if head.contains("content-type: text/event-stream") {
            return Ok(Self { lines });
        }
        lines.read_to_string(&mut head).await.unwrap();
        Err(reply(&head))
    }

    /// Reads the next event; `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<ReceivedEvent> {
        let mut sent =
            ReceivedEvent { id: String::new(), event: String::new(), data: String::new() };
        loop {
            let mut line = String::new();
            let read = tokio::time::timeout(SOON, self.lines.read_line(&mut line)).await;
            if read.expect("the stream continues or ends").unwrap() == 0 {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some(("id", id)) => id.clone_into(&mut sent.id),
                Some(("event", event)) => event.clone_into(&mut sent.event),
                Some(("data", data)) => data.clone_into(&mut sent.data),
                _ if line.trim().is_empty() && !sent.event.is_empty() => return Some(sent),
                _ => {}
            }
        }
    }
}

async fn open(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> TcpStream {
    let mut request = format!("{method} {path} HTTP/1.0\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        request.push_str(&format!("Host: {address}\r\n"));
    }
    if !body.is_empty() {
        request.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    if !headers.iter().any(|(name, _)| *name == "Content-Type") {
        request.push_str("Content-Type: application/json\r\n");
    }
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The service may refuse a long body before it is sent.
    let _ = stream.write_all(format!("{request}\r\n{body}").as_bytes()).await;
    stream
}

fn reply(answer: &str) -> Reply {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Reply { status, head: head.to_owned(), body: body.to_owned() }
}
