//! `dalsegno health`: probes a running service and answers with an exit code.
//!
//! Uses a bare socket, because the probe runs every few seconds in each container and sends one fixed line.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use anyhow::{Context as _, anyhow};
use chrono::TimeDelta;
use clap::Args;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{
    Context, Exit, Failure,
    words::{parse_period, secs},
};

#[derive(Debug, Args)]
pub(super) struct Health {
    /// Checks only that the process is alive, not that it is ready.
    #[arg(long)]
    live: bool,
    /// Checks the worker process on worker.listen instead of the service.
    #[arg(long)]
    worker: bool,
    /// Time to wait for the answer: 3s, 1m.
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = parse_period)]
    timeout: TimeDelta,
}

pub(super) async fn run(health: &Health, context: &Context) -> Result<Exit, Failure> {
    let config = context.load()?;
    let address = match health.worker {
        true => config.worker.listen.ok_or_else(|| {
            let words = "worker.listen is empty, so no worker answers probes: set it to an address such as 127.0.0.1:7771";
            Failure::new(Exit::Usage, anyhow!(words))
        })?,
        false => config.http.listen,
    };
    let address = reachable(address);
    let path = if health.live { "/livez" } else { "/readyz" };
    let wait = Duration::from_secs(secs(health.timeout).into());
    let answer = tokio::time::timeout(wait, get(address, path))
        .await
        .map_err(|_elapsed| Failure::new(Exit::TimedOut, anyhow!("no answer from {address}")))?
        .with_context(|| format!("no service answers on {address}"))
        .map_err(|error| Failure::new(Exit::Unavailable, error))?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    context.output.print_text(body);
    match head.split(' ').nth(1) {
        Some("200") => Ok(Exit::Ok),
        _ => Ok(Exit::Unavailable),
    }
}

/// Replaces an unspecified address with loopback, where the service can be reached.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

async fn get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
