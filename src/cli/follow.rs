//! Commands that follow something to its end: the events of a stream, or a task until it has ended.
//!
//! The server may restart meanwhile. The command then reopens the stream after the last event, or waits again. It gives
//! up after [`PATIENCE`] without an answer.

use std::time::Duration;

use anyhow::anyhow;
use reqwest::Response;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::{
    Exit, Failure,
    output::Output,
    remote::Remote,
    server::{Server, ServerConnection},
};
use crate::{
    domain::tasks::Detail,
    operations::{EventStream, Events, ShowTask, Spec, StreamEvent, WaitLimit},
};

/// Time for which a server may be unavailable before a command gives up.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(250);
/// Longest wait of one request, below the servers' own limit for requests.
const LONGEST_WAIT: Duration = Duration::from_secs(20);
/// Time without data after which a connection counts as lost. Servers send a sign of life every 15 seconds.
const SILENCE: Duration = Duration::from_secs(45);

/// A reader of a stream.
pub(super) enum Follower<'a> {
    Local(Option<Events>),
    Remote(Box<RemoteStream<'a>>),
}

pub(super) struct RemoteStream<'a> {
    remote: &'a Remote,
    spec: Spec,
    fields: Value,
    last_id: Option<String>,
    connection: Option<Connection>,
    away: Absence,
}

/// An open response with its unread bytes.
struct Connection {
    response: Response,
    buffer: Vec<u8>,
}

/// Time since which the server has been unavailable.
#[derive(Default)]
struct Absence(Option<Instant>);

impl Server {
    pub(super) async fn follow<S: EventStream>(&self, stream: S) -> Result<Follower<'_>, Failure> {
        Ok(match &self.way {
            ServerConnection::Local(call) => Follower::Local(stream.open(None, call).await?),
            ServerConnection::Remote(remote) => {
                let fields = serde_json::to_value(&stream);
                let fields = fields.map_err(|error| Failure::failed(error.into()))?;
                let (spec, away) = (S::SPEC, Absence::default());
                let connection = None;
                let stream = RemoteStream { remote, spec, fields, last_id: None, connection, away };
                Follower::Remote(Box::new(stream))
            }
        })
    }

    /// Waits for the end of a task, for at most `limit`, and returns the task as it is then.
    pub(super) async fn wait_for(&self, id: Uuid, limit: Duration) -> Result<Detail, Failure> {
        let (begin, mut away) = (Instant::now(), Absence::default());
        loop {
            let left = limit.saturating_sub(begin.elapsed());
            let wait = Some(WaitLimit(left.min(LONGEST_WAIT)));
            match self.call(ShowTask { id, wait }).await {
                Ok(detail) if detail.task.ended_at.is_some() || left.is_zero() => {
                    return Ok(detail);
                }
                Ok(_) => away = Absence::default(),
                Err(failure)
                    if matches!(self.way, ServerConnection::Local(_)) || left.is_zero() =>
                {
                    return Err(failure);
                }
                Err(failure) => away.tolerate(failure)?,
            }
            sleep(PAUSE.min(left)).await;
        }
    }
}

impl Follower<'_> {
    /// Waits for the next event. `None`: the stream has ended.
    pub(super) async fn next(&mut self) -> Result<Option<StreamEvent>, Failure> {
        match self {
            Self::Local(None) => Ok(None),
            Self::Local(Some(events)) => {
                Ok(futures_util::StreamExt::next(events).await.transpose()?)
            }
            Self::Remote(stream) => stream.next().await,
        }
    }
}

/// Parses the data of an event.
pub(super) fn data_of<T: DeserializeOwned>(event: &StreamEvent) -> Result<T, Failure> {
    serde_json::from_str(&event.data).map_err(|error| {
        let words = format!("cannot read the event `{}`: {error}", event.name);
        Failure::failed(anyhow!(words))
    })
}

impl RemoteStream<'_> {
    async fn next(&mut self) -> Result<Option<StreamEvent>, Failure> {
        loop {
            match self.read().await {
                Ok(event) => {
                    self.last_id = event.as_ref().map(|event| event.id.clone());
                    return Ok(event);
                }
                Err(failure) => {
                    self.connection = None;
                    self.away.tolerate(failure)?;
                    sleep(PAUSE).await;
                }
            }
        }
    }

    async fn read(&mut self) -> Result<Option<StreamEvent>, Failure> {
        if self.connection.is_none() {
            let last_id = self.last_id.as_deref();
            let opened = self.remote.open(&self.spec, self.fields.clone(), last_id).await?;
            let Some(response) = opened else { return Ok(None) };
            self.connection = Some(Connection { response, buffer: Vec::new() });
            self.away = Absence::default();
        }
        let Some(connection) = &mut self.connection else { return Ok(None) };
        loop {
            if let Some(event) = connection.buffered() {
                return match event.name.as_str() {
                    "error" => Err(self.remote.failure_of_event(&self.spec, event.data.as_bytes())),
                    _ => Ok(Some(event)),
                };
            }
            match timeout(SILENCE, connection.response.chunk()).await {
                Ok(Ok(Some(bytes))) => connection.buffer.extend_from_slice(&bytes),
                Ok(Ok(None)) | Err(_) => return Err(self.remote.ended_stream_failure()),
                Ok(Err(error)) => return Err(self.remote.unreachable_failure(error)),
            }
        }
    }
}

impl Connection {
    /// Takes the next complete event from the buffer. Comments have no data and are skipped.
    fn buffered(&mut self) -> Option<StreamEvent> {
        loop {
            let end = self.buffer.windows(2).position(|two| two == b"\n\n")?;
            let block: Vec<u8> = self.buffer.drain(..end + 2).collect();
            let event = event_of(&String::from_utf8_lossy(&block));
            if event.is_some() {
                return event;
            }
        }
    }
}

fn event_of(block: &str) -> Option<StreamEvent> {
    let field = |name: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(|value| value.strip_prefix(' ').unwrap_or(value).to_owned())
    };
    let (id, name) = (field("id").unwrap_or_default(), field("event").unwrap_or_default());
    Some(StreamEvent { id, name, data: field("data")? })
}

impl Absence {
    /// Returns the failure if its cause is not an unavailable server, or if the server has been unavailable for too
    /// long.
    fn tolerate(&mut self, failure: Failure) -> Result<(), Failure> {
        let is_away = failure.exit == Exit::Unavailable;
        let since = self.0.get_or_insert_with(Instant::now);
        if is_away && since.elapsed() < PATIENCE { Ok(()) } else { Err(failure) }
    }
}

/// Waits for a task until Ctrl-C, which leaves the task alone: a note then says how to wait again. `None`: interrupted.
pub(super) async fn until_interrupted<T>(
    id: Uuid,
    output: Output,
    wait: impl Future<Output = Result<T, Failure>>,
) -> Result<Option<T>, Failure> {
    let mut note = InterruptionNote { id, output, is_over: false };
    tokio::select! {
        ended = wait => {
            note.is_over = true;
            ended.map(Some)
        }
        received = tokio::signal::ctrl_c() => match received {
            Ok(()) => Ok(None),
            Err(error) => {
                note.is_over = true;
                Err(Failure::failed(anyhow!(error).context("cannot receive signals")))
            }
        },
    }
}

/// Prints its note when it is dropped: the connection to the database drops the whole command at a signal.
struct InterruptionNote {
    id: Uuid,
    output: Output,
    is_over: bool,
}

impl Drop for InterruptionNote {
    fn drop(&mut self) {
        let Self { id, output, is_over } = *self;
        if is_over {
            return;
        }
        let words =
            format!("task {id} continues; `dalsegno task show {id} --wait 10m` waits for it");
        match output.is_structured() {
            true => output.print_failure(&Failure::new(Exit::Interrupted, anyhow!(words))),
            false => output.print_note(&words),
        }
    }
}

/// Adds to the failure which task the command was following.
pub(super) fn with_task_hint(failure: Failure, id: Uuid) -> Failure {
    if failure.exit != Exit::Unavailable {
        return failure;
    }
    let words = format!(
        "the connection was lost before the end of task {id}, which may still run: `dalsegno task show {id} --wait 10m` waits for it"
    );
    Failure { error: failure.error.context(words), ..failure }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;
    use crate::{cli::target::Target, operations::FollowFeed};

    #[tokio::test]
    async fn a_server_that_reopens_the_stream_was_not_unreachable() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let remote = Remote::new(&Target::new(None, url, None)).unwrap();
        tokio::spawn(async move {
            for events in ["", "id: 1\nevent: task.queued\ndata: {}\n\n"] {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut asked = [0; 4096];
                assert!(stream.read(&mut asked).await.unwrap() > 0);
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n{events}"
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        // It broke off, and was not to be reached until now.
        let mut stream = RemoteStream {
            remote: &remote,
            spec: FollowFeed::SPEC,
            fields: serde_json::json!({}),
            last_id: None,
            connection: None,
            away: Absence(Instant::now().checked_sub(PATIENCE)),
        };
        assert_eq!(stream.next().await.unwrap().unwrap().id, "1");
    }

    #[test]
    fn fields_of_an_event_come_in_any_order_and_a_comment_is_skipped() {
        let event = event_of("event: turn.done\nid: 7\ndata: {\"a\":1}\n\n").unwrap();
        assert_eq!((event.id.as_str(), event.name.as_str()), ("7", "turn.done"));
        assert_eq!(event.data, "{\"a\":1}");
        assert_eq!(event_of("data:x\nid:1\n").unwrap().data, "x");
        assert_eq!(event_of(":\n\n"), None);
    }
}
