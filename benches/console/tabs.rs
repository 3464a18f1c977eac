//! Open tabs that follow the feed. The browsers are a process of their own, so that processor time and memory are those of the service.

use std::{
    net::SocketAddr,
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use chrono::Utc;
use serde_json::{Value, json};
use sqlx::{ConnectOptions as _, PgPool};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    net::TcpStream,
    process::ChildStdout,
    sync::mpsc,
    task::JoinSet,
};

use crate::{
    common::{cpu, size},
    fixture::Fixture,
    quantile,
};

const EVENTS_PER_SECOND: u64 = 10;
/// The argument of the process of browsers.
const BROWSERS: &str = "--browsers";
/// Time for the streams to begin.
const SETTLE: Duration = Duration::from_secs(2);

fn n_tabs() -> usize {
    size::of(500, 5)
}

fn measured_for() -> Duration {
    size::of(Duration::from_secs(30), Duration::from_secs(1))
}

/// Opens the tabs, and measures the service while events are written.
pub async fn measure(ground: &Fixture) -> anyhow::Result<Value> {
    let before_tabs = resident_kib()?;
    let arguments = [
        BROWSERS.to_owned(),
        ground.address.to_string(),
        n_tabs().to_string(),
        measured_for().as_secs().to_string(),
        ground.pool.connect_options().to_url_lossy().to_string(),
    ];
    #[expect(clippy::disallowed_methods, reason = "starts this program again")]
    let mut child = tokio::process::Command::new(std::env::current_exe()?)
        .args(arguments)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let stdout = child.stdout.take().context("the output of the browsers")?;
    let mut lines = BufReader::new(stdout).lines();
    next_line(&mut lines).await?;
    let (began, used) = (Instant::now(), cpu::used(&ground.pool).await);
    let figures: Value = serde_json::from_str(&next_line(&mut lines).await?)?;
    let (took, used_after) = (began.elapsed(), cpu::used(&ground.pool).await);
    let resident = resident_kib()?;
    child.wait().await?;
    let share = |micros: u64| micros as f64 / took.as_micros() as f64;
    let server = used_after.server_micros.zip(used.server_micros);
    Ok(json!({
        "scenario": "tabs", "tabs": n_tabs(), "events_per_s": EVENTS_PER_SECOND, "secs": took.as_secs(),
        "cores_of_service": share(used_after.worker_micros - used.worker_micros),
        "cores_of_postgres": server.map(|(after, before)| share(after.saturating_sub(before))),
        "rss_mib": resident / 1024, "rss_mib_before": before_tabs / 1024, "browsers": figures,
    }))
}

async fn next_line(lines: &mut Lines<BufReader<ChildStdout>>) -> anyhow::Result<String> {
    lines.next_line().await?.context("the browsers have ended early")
}

/// Returns the memory of this process. Linux only.
fn resident_kib() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.context("/proc has no memory of this process")?.parse()?)
}

/// The process of the browsers, which also writes the events.
pub struct Browsers {
    address: SocketAddr,
    n_tabs: usize,
    measured_for: Duration,
    database: String,
}

impl Browsers {
    /// Returns `None` in the process of the bench itself.
    pub fn of_arguments() -> anyhow::Result<Option<Self>> {
        let mut arguments = std::env::args().skip(1);
        if arguments.next().as_deref() != Some(BROWSERS) {
            return Ok(None);
        }
        let mut next = || arguments.next().context("the browsers lack an argument");
        let (address, n_tabs, secs) = (next()?.parse()?, next()?.parse()?, next()?.parse()?);
        let measured_for = Duration::from_secs(secs);
        Ok(Some(Self { address, n_tabs, measured_for, database: next()? }))
    }

    pub async fn run(self) -> anyhow::Result<()> {
        let (sender, mut delays) = mpsc::unbounded_channel();
        let mut tabs = JoinSet::new();
        for _ in 0..self.n_tabs {
            tabs.spawn(follow(self.address, sender.clone()));
        }
        drop(sender);
        let pool = PgPool::connect(&self.database).await?;
        tokio::time::sleep(SETTLE).await;
        println!("ready");
        let n_events = self.write_events(&pool).await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        tabs.shutdown().await;
        let mut millis = Vec::new();
        while let Ok(delay) = delays.try_recv() {
            millis.push(delay);
        }
        let expected = n_events * self.n_tabs;
        anyhow::ensure!(millis.len() == expected, "{} of {expected} events arrived", millis.len());
        let figures = json!({
            "events": n_events, "arrived": millis.len(), "p50_ms": quantile(&mut millis, 0.5),
            "p99_ms": quantile(&mut millis, 0.99), "max_ms": quantile(&mut millis, 1.0),
        });
        println!("{figures}");
        Ok(())
    }

    /// Writes events at a constant rate. Each has the time at which it was written.
    async fn write_events(&self, pool: &PgPool) -> anyhow::Result<usize> {
        let mut clock = tokio::time::interval(Duration::from_millis(1_000 / EVENTS_PER_SECOND));
        let (began, mut n_events) = (Instant::now(), 0);
        while began.elapsed() < self.measured_for {
            clock.tick().await;
            let data =
                json!({ "agent": "copywriter", "instance": "main", "sent_at": now_micros() });
            let insert = sqlx::query(
                "insert into dalsegno.feed (created_at, kind, data) values (now(), 'turn.progress', $1)",
            );
            insert.bind(data).execute(pool).await?;
            n_events += 1;
        }
        Ok(n_events)
    }
}

/// Follows the feed as a tab does, and reports the age of each event.
async fn follow(address: SocketAddr, delays: mpsc::UnboundedSender<f64>) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    let request =
        format!("GET /events HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut lines = BufReader::new(stream).lines();
    while let Some(line) = lines.next_line().await? {
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let event: Value = serde_json::from_str(data)?;
        if let Some(sent_at) = event["data"]["sent_at"].as_i64() {
            delays.send((now_micros() - sent_at) as f64 / 1e3)?;
        }
    }
    anyhow::bail!("the service has ended a stream")
}

#[expect(clippy::disallowed_methods, reason = "two processes compare their times")]
fn now_micros() -> i64 {
    Utc::now().timestamp_micros()
}
