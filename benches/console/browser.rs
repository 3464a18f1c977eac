//! A connection of a browser, with so little overhead that the figures are those of the service.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

pub struct Browser {
    stream: TcpStream,
    address: SocketAddr,
    received: Vec<u8>,
}

/// A response, and the time until its first byte.
pub struct Response {
    pub first_byte: Duration,
    /// Bytes of head and body, as sent.
    pub bytes: usize,
    pub body: String,
}

impl Browser {
    pub async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, address, received: Vec::new() })
    }

    /// Requests a page or a file, as a browser that takes compressed bodies.
    pub async fn get(&mut self, path: &str) -> anyhow::Result<Response> {
        self.request(path, "Accept-Encoding: gzip, deflate, br\r\n").await
    }

    /// Requests a file without compression.
    pub async fn get_plain(&mut self, path: &str) -> anyhow::Result<Response> {
        self.request(path, "").await
    }

    async fn request(&mut self, path: &str, header: &str) -> anyhow::Result<Response> {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAccept: text/html\r\n{header}\r\n",
            self.address
        );
        let asked = Instant::now();
        self.stream.write_all(request.as_bytes()).await?;
        self.received.clear();
        self.read().await?;
        let first_byte = asked.elapsed();
        let head_len = loop {
            if let Some(end) = self.received.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            self.read().await?;
        };
        let head = String::from_utf8_lossy(&self.received[..head_len]).into_owned();
        anyhow::ensure!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.context("a response without its length")?.parse()?;
        while self.received.len() < head_len + length {
            self.read().await?;
        }
        let body = String::from_utf8_lossy(&self.received[head_len..]).into_owned();
        Ok(Response { first_byte, bytes: self.received.len(), body })
    }

    async fn read(&mut self) -> anyhow::Result<()> {
        let n_read = self.stream.read_buf(&mut self.received).await?;
        anyhow::ensure!(n_read > 0, "the service has closed the connection");
        Ok(())
    }
}
