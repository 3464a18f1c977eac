//! A kept-alive connection with so little overhead that the figures are those of the service.

use std::net::SocketAddr;

use anyhow::Context as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

pub struct Connection {
    stream: TcpStream,
    address: SocketAddr,
    received: Vec<u8>,
}

impl Connection {
    pub async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, address, received: Vec::new() })
    }

    /// Sends JSON and returns the body of the answer. Each of the additional headers ends its line.
    pub async fn post(
        &mut self,
        path: &str,
        headers: &str,
        body: &str,
        expected: u16,
    ) -> anyhow::Result<&[u8]> {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await?;
        self.received.clear();
        let head_len = loop {
            self.read().await?;
            if let Some(end) = self.received.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
        };
        let head = String::from_utf8_lossy(&self.received[..head_len]).into_owned();
        anyhow::ensure!(head.starts_with(&format!("HTTP/1.1 {expected}")), "{head}");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.context("an answer without its length")?.parse()?;
        while self.received.len() < head_len + length {
            self.read().await?;
        }
        Ok(&self.received[head_len..head_len + length])
    }

    async fn read(&mut self) -> anyhow::Result<()> {
        let n_read = self.stream.read_buf(&mut self.received).await?;
        anyhow::ensure!(n_read > 0, "the service has closed the connection");
        Ok(())
    }
}
