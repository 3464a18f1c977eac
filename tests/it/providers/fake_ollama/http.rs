//! The part of HTTP/1.1 that the fake server needs.

use std::{
    io,
    sync::atomic::{AtomicUsize, Ordering},
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Reads a request: `POST /api/chat` and the body.
pub async fn read_request(socket: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let (named, _, body) = read_request_with_head(socket).await?;
    Ok((named, body))
}

/// Reads a request: `POST /api/chat`, the head and the body.
pub async fn read_request_with_head(
    socket: &mut TcpStream,
) -> io::Result<(String, String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let head_ends = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if socket.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    let head = String::from_utf8(bytes[..head_ends].to_vec()).unwrap();
    let named = head.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let headers = head.lines().filter_map(|line| line.split_once(": "));
    let mut lengths = headers.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: usize = lengths.next().map_or(0, |(_, length)| length.parse().unwrap());
    while bytes.len() < head_ends + length {
        if socket.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok((named, head, bytes.split_off(head_ends)))
}

/// Sends the head. `headers` is empty, or lines that each end with `\r\n`.
pub async fn send_head(socket: &mut TcpStream, status: u16, headers: &str) -> io::Result<()> {
    let head = format!("HTTP/1.1 {status} Fake\r\nconnection: close\r\n{headers}\r\n");
    socket.write_all(head.as_bytes()).await
}

pub async fn send(
    socket: &mut TcpStream,
    status: u16,
    headers: &str,
    body: &str,
) -> io::Result<()> {
    let headers = format!("{headers}content-length: {}\r\n", body.len());
    send_head(socket, status, &headers).await?;
    socket.write_all(body.as_bytes()).await
}

pub async fn send_json(socket: &mut TcpStream, status: u16, body: &Value) -> io::Result<()> {
    send(socket, status, "content-type: application/json\r\n", &body.to_string()).await
}

pub async fn send_chunk(
    socket: &mut TcpStream,
    bytes: &[u8],
    n_sent: &AtomicUsize,
) -> io::Result<()> {
    socket.write_all(format!("{:x}\r\n", bytes.len()).as_bytes()).await?;
    socket.write_all(bytes).await?;
    socket.write_all(b"\r\n").await?;
    n_sent.fetch_add(bytes.len(), Ordering::Relaxed);
    Ok(())
}

pub async fn send_end(socket: &mut TcpStream) -> io::Result<()> {
    socket.write_all(b"0\r\n\r\n").await
}

pub async fn closed_by_client(socket: &mut TcpStream) {
    let mut bytes = [0; 1024];
    while socket.read(&mut bytes).await.is_ok_and(|n| n > 0) {}
}
