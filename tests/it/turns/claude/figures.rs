//! The overhead of a turn on the real CLI beyond the CLI itself. Prints; fails only where a turn does.
//!
//! `cargo test --release --test it -- --ignored --nocapture figures_of_claude`, on an otherwise idle machine.

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::Command,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Setup, WRITER, warm_processes::warm};
use crate::{
    app::eventually,
    providers::claude::{
        api::{Api, Play},
        cli::Cli,
        host::{Host, SECRET, StoredConversation},
    },
};

const N_PAIRS: usize = 11;
const LARGE: usize = 10 << 20;

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1e3
}

/// Runs the CLI alone, as fast as possible for one prompt.
async fn run_cli_alone(cli: &Cli, api: &Api) -> Duration {
    let home = tempfile::tempdir().unwrap();
    let system = home.path().join("system");
    std::fs::write(&system, "You write.").unwrap();
    let began = Instant::now();
    let mut child = Command::new(cli.program())
        .args(["-p", "--verbose", "--input-format=stream-json", "--output-format=stream-json"])
        .args(["--include-partial-messages", "--bare", "--strict-mcp-config", "--setting-sources="])
        .args(["--disable-slash-commands", "--tools=", "--permission-mode=dontAsk"])
        .args(["--model=claude-sonnet-5", r#"--mcp-config={"mcpServers":{}}"#])
        .arg(format!("--session-id={}", Uuid::new_v4()))
        .arg(format!("--system-prompt-file={}", system.display()))
        .env_clear()
        .envs([("ANTHROPIC_API_KEY", SECRET), ("ANTHROPIC_BASE_URL", &api.url())])
        .envs([("PATH", "/usr/bin:/bin"), ("CLAUDE_CODE_MAX_RETRIES", "0")])
        .envs([("DISABLE_TELEMETRY", "1"), ("DISABLE_AUTOUPDATER", "1")])
        .envs([("DISABLE_ERROR_REPORTING", "1"), ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")])
        .env("HOME", home.path())
        .env("CLAUDE_CONFIG_DIR", home.path())
        .current_dir(home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let prompt = json!({"type": "user", "uuid": Uuid::new_v4(), "message": {"role": "user", "content": "Hello."}});
    let mut input = child.stdin.take().unwrap();
    input.write_all(format!("{prompt}\n").as_bytes()).await.unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.contains(r#""type":"result""#) {
            break;
        }
    }
    drop(input);
    assert!(child.wait().await.unwrap().success());
    began.elapsed()
}

async fn overhead(cli: &Cli) {
    let setup = Setup::on(cli, &[]).await.unwrap();
    let host = Host::new(cli, &setup.api);
    let worker = setup.fixture.start_worker().await;
    let (mut calls, mut turns, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..=N_PAIRS {
        let bare = millis(run_cli_alone(cli, &setup.api).await);
        let began = Instant::now();
        StoredConversation::new().turn(&host, "Hello.").await;
        let call = millis(began.elapsed());
        // A new conversation each time: all three begin empty.
        let began = Instant::now();
        setup.ended("Hello.", &format!("p{pair}")).await;
        let turn = millis(began.elapsed());
        // The first run reads the program from the disk.
        if pair > 0 {
            alone.push(bare);
            calls.push(call - bare);
            turns.push(turn - bare);
        }
    }
    worker.stop().await;
    println!("bare CLI run                          {:8.1} ms", median(alone));
    println!("a call of the provider above it       {:8.1} ms", median(calls));
    println!("a task from enqueue to end above it   {:8.1} ms", median(turns));
}

impl Setup {
    /// Runs a task of an instance of the writer, polling without a pause.
    async fn ended(&self, prompt: &str, instance: &str) {
        let task = self.fixture.add_for("writer", instance, prompt).await;
        while self.fixture.task(&task).await.ended_at.is_none() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn number(&self, sql: &'static str) -> i64 {
        self.fixture.count(sql).await
    }

    /// Adds ten megabytes to the stored transcript, in lines that the CLI reads and skips.
    async fn grow(&self) {
        let pool = &self.fixture.pool;
        let stored = "select bytes from dalsegno.transcript_chunks order by from_byte";
        let chunks: Vec<Vec<u8>> = sqlx::query_scalar(stored).fetch_all(pool).await.unwrap();
        let mut bytes = Vec::with_capacity(LARGE + (1 << 20));
        while bytes.len() < LARGE {
            let line = json!({ "type": "noise", "text": "The tide comes in. ".repeat(500) });
            bytes.extend_from_slice(format!("{line}\n").as_bytes());
        }
        bytes.extend(chunks.concat());
        let sha256 = Sha256::digest(&bytes).to_vec();
        for (sql, with_bytes) in [
            ("delete from dalsegno.transcript_chunks where from_byte > 0", false),
            ("update dalsegno.transcript_chunks set bytes = $1 where from_byte = 0", true),
        ] {
            let query = sqlx::query(sql);
            let query = if with_bytes { query.bind(&bytes) } else { query };
            query.execute(pool).await.unwrap();
        }
        sqlx::query("update dalsegno.transcript_files set n_bytes = $1, sha256 = $2")
            .bind(i64::try_from(bytes.len()).unwrap())
            .bind(sha256)
            .execute(pool)
            .await
            .unwrap();
    }
}

async fn large_transcript(cli: &Cli) {
    const SIZE: &str = "select n_bytes from dalsegno.transcript_files";
    const STORED: &str = "select sum(octet_length(bytes))::bigint from dalsegno.transcript_chunks";
    let setup = Setup::on(cli, &[]).await.unwrap();
    let fixture = &setup.fixture;
    let worker = fixture.start_worker().await;
    setup.ended("Hello.", "main").await;
    fixture.settled().await;
    worker.stop().await;
    setup.grow().await;
    let (mut without, mut above, mut sent) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..=N_PAIRS {
        let host = fixture.folder().join(format!("host-{pair}")).display().to_string();
        let worker = fixture.start_worker_with(&[("service.data_dir", &host)]).await;
        let mut took = [0.0; 2];
        for took in &mut took {
            let (size, stored) = (setup.number(SIZE).await, setup.number(STORED).await);
            let began = Instant::now();
            setup.ended("And on.", "main").await;
            *took = millis(began.elapsed());
            fixture.settled().await;
            let grown = setup.number(SIZE).await - size;
            sent.push((setup.number(STORED).await - stored) as f64 / grown as f64);
        }
        worker.stop().await;
        if pair > 0 {
            without.push(took[0]);
            above.push(took[0] - took[1]);
        }
    }
    let began = setup.session_starts().await;
    assert_eq!(began[1..3], ["restored", "resumed"], "{began:?}");
    println!("a turn on a host without 10 MB        {:8.1} ms", median(without));
    println!("above one with them                   {:8.1} ms", median(above));
    println!("bytes stored of what grew             {:8.2} x", median(sent));
}

/// Measures the time from a task to its request when a process waits for it.
async fn ahead(cli: &Cli) {
    let setup = Setup::on(cli, &[]).await.unwrap();
    setup.fixture.write_agent("writer", &warm(""));
    let worker = setup.fixture.start_worker().await;
    setup.ended("Hello.", "main").await;
    let mut took = Vec::new();
    for _ in 0..N_PAIRS {
        // Its preparation takes half a second before it waits.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let n_requests = setup.api.requests().len();
        let began = Instant::now();
        let task = setup.fixture.add("And on.").await;
        while setup.api.requests().len() == n_requests {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        took.push(millis(began.elapsed()));
        setup.fixture.done(&task).await;
    }
    let was_ahead = setup.ahead().await;
    assert!(was_ahead[1..].iter().all(|ahead| *ahead), "{was_ahead:?}");
    worker.stop().await;
    println!("from a task to its request, ahead     {:8.1} ms", median(took));
}

async fn kills(cli: &Cli) {
    let api = Api::start().await;
    let host = Host::new(cli, &api);
    let mut took = Vec::new();
    for n in 0..N_PAIRS {
        api.plays([Play::Hangs]);
        let (stored, cancel) = (StoredConversation::new(), CancellationToken::new());
        let stopped = async {
            eventually("the model is called", async || (api.requests().len() > n).then_some(()))
                .await;
            cancel.cancel();
            Instant::now()
        };
        let (_, stopped) =
            tokio::join!(host.ask_with(stored.request("Hello.", false), cancel.clone()), stopped);
        host.is_quiet().await;
        took.push(millis(stopped.elapsed()));
    }
    println!("cancelled to no process left          {:8.1} ms", median(took));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "prints figures, and wants a quiet machine"]
async fn figures_of_claude() {
    let Some(cli) = Cli::real() else { return };
    assert!(WRITER.contains("claude-sonnet-5"), "the bare run calls the same model");
    overhead(&cli).await;
    large_transcript(&cli).await;
    ahead(&cli).await;
    kills(&cli).await;
}
