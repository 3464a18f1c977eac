//! The bytes of scripted servers on the wire, with faults on demand. It writes raw bytes to the socket, so that it can break the protocol in
//! ways that HTTP libraries do not allow.

use std::{io, sync::atomic::AtomicUsize, time::Duration};

use tokio::{net::TcpStream, sync::watch};

use super::fake_ollama::http;

/// Deadline of each wait.
const DEADLINE: Duration = crate::app::SOON;

pub enum Step {
    Bytes(Vec<u8>),
    /// Each byte in a packet of its own.
    ByteByByte(Vec<u8>),
    /// The same bytes repeatedly, up to `n_bytes` in all.
    Flood {
        bytes: Vec<u8>,
        n_bytes: usize,
    },
    /// These pieces at intervals, as a model writes; [`State::n_trickled`] counts them.
    Trickle {
        pieces: Vec<Vec<u8>>,
        every: Duration,
    },
    /// Waits until the test [opens](FakeOllama::open) the gate.
    Gate,
    /// Waits until the client disconnects.
    Stall,
    /// Ends the stream properly.
    End,
    /// Closes the connection in the middle of the stream.
    HangUp,
}

/// The state of all connections of a server.
pub struct Transport {
    pub n_bytes_sent: AtomicUsize,
    pub n_trickled: watch::Sender<usize>,
    is_open: watch::Sender<bool>,
    /// Number of clients that disconnected early.
    n_gone: watch::Sender<usize>,
}

impl Default for Transport {
    fn default() -> Self {
        Self {
            n_bytes_sent: AtomicUsize::default(),
            n_trickled: watch::Sender::new(0),
            is_open: watch::Sender::new(false),
            n_gone: watch::Sender::new(0),
        }
    }
}

impl Transport {
    /// Releases all answers that wait at a gate.
    pub fn open(&self) {
        self.is_open.send_replace(true);
    }

    /// Waits until `n` clients have disconnected.
    pub async fn wait_for_disconnects(&self, n: usize) {
        let mut n_gone = self.n_gone.subscribe();
        let gone = n_gone.wait_for(|gone| *gone >= n);
        tokio::time::timeout(DEADLINE, gone).await.expect("the client disconnects").unwrap();
    }

    /// Waits until the client disconnects.
    pub async fn stall(&self, socket: &mut TcpStream) -> io::Result<()> {
        http::closed_by_client(socket).await;
        self.n_gone.send_modify(|n| *n += 1);
        Ok(())
    }

    /// Answers with status 200 and these steps.
    pub async fn stream(&self, socket: &mut TcpStream, steps: Vec<Step>) -> io::Result<()> {
        http::send_head(socket, 200, "transfer-encoding: chunked\r\n").await?;
        for step in steps {
            let sent = &self.n_bytes_sent;
            match step {
                Step::Bytes(bytes) => http::send_chunk(socket, &bytes, sent).await?,
                Step::ByteByByte(bytes) => {
                    for byte in bytes {
                        http::send_chunk(socket, &[byte], sent).await?;
                    }
                }
                Step::Flood { bytes, n_bytes } => {
                    for _ in 0..n_bytes / bytes.len() {
                        http::send_chunk(socket, &bytes, sent).await?;
                    }
                }
                Step::Trickle { pieces, every } => {
                    for piece in pieces {
                        tokio::time::sleep(every).await;
                        http::send_chunk(socket, &piece, sent).await?;
                        self.n_trickled.send_modify(|n| *n += 1);
                    }
                }
                Step::Gate => drop(self.is_open.subscribe().wait_for(|is_open| *is_open).await),
                Step::Stall => return self.stall(socket).await,
                Step::End => http::send_end(socket).await?,
                Step::HangUp => return Ok(()),
            }
        }
        Ok(())
    }
}
