//! Tool calls of a turn over the endpoint of its worker, as made by Claude's CLI.

use std::{net::SocketAddr, time::Instant};

use serde_json::{Value, json};

use crate::{
    at,
    common::size,
    connection::Connection,
    fixture::{Fixture, N_CLIENTS},
};

/// The first calls open connections and plan statements.
fn n_warm_up() -> usize {
    size::of(50, 1)
}

fn n_measured() -> usize {
    size::of(1_000, 32)
}

const BAR_P50_MS: f64 = 4.0;
const BAR_P99_MS: f64 = 15.0;

/// Two tools that read, and two that write.
fn tools() -> [(&'static str, Value); 4] {
    let entry = json!({ "title": "Tides", "text": "High water is at six." });
    [
        ("status", json!({})),
        ("board_history", json!({ "limit": 5 })),
        ("board_post", json!({ "text": "The part about tides is done." })),
        ("journals_write", entry),
    ]
}

/// Measures from the sent request to the last byte of its answer: one turn alone, and sixteen at once.
pub async fn over_loopback(ground: &Fixture) -> anyhow::Result<Vec<Value>> {
    let (worker, endpoint) = (ground.work()?, ground.endpoint().await?);
    let mut tokens = Vec::with_capacity(N_CLIENTS);
    for _ in 0..N_CLIENTS {
        tokens.push(ground.token("main").await?);
    }
    let mut figures = Vec::new();
    for (tool, arguments) in tools() {
        for n_clients in [1, N_CLIENTS] {
            let clients = tokens.iter().take(n_clients).map(|token| {
                let asked = (tool, arguments.clone(), n_measured() / n_clients);
                tokio::spawn(calls(endpoint.address, token.clone(), asked))
            });
            let (began, mut millis) = (Instant::now(), Vec::new());
            for client in clients.collect::<Vec<_>>() {
                millis.extend(client.await??);
            }
            let n_calls = millis.len() + n_warm_up() * n_clients;
            // Sixteen clients without pauses share the processors and wait for each other.
            let is_alone = n_clients == 1;
            figures.push(json!({
                "scenario": "calls", "tool": tool, "clients": n_clients, "calls": millis.len(),
                "p50_ms": at(&mut millis, 0.5), "p99_ms": at(&mut millis, 0.99), "max_ms": at(&mut millis, 1.0),
                "bar_p50_ms": is_alone.then_some(BAR_P50_MS), "bar_p99_ms": is_alone.then_some(BAR_P99_MS),
                "calls_per_s": (n_calls as f64 / began.elapsed().as_secs_f64()).round(),
            }));
        }
    }
    worker.stop().await?;
    endpoint.stop().await?;
    Ok(figures)
}

async fn calls(
    address: SocketAddr,
    token: String,
    (tool, arguments, n_calls): (&'static str, Value, usize),
) -> anyhow::Result<Vec<f64>> {
    let mut connection = Connection::open(address).await?;
    let headers = format!(
        "Authorization: Bearer {token}\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\n"
    );
    let mut millis = Vec::with_capacity(n_calls);
    for number in 0..n_warm_up() + n_calls {
        let mut arguments = arguments.clone();
        if let Some(text) = arguments.get_mut("text") {
            *text = format!("{} {number}", text.as_str().unwrap_or_default()).into();
        }
        let body = json!({
            "jsonrpc": "2.0", "id": number, "method": "tools/call", "params": { "name": tool, "arguments": arguments },
        });
        let asked = Instant::now();
        let answer = connection.post("/mcp", &headers, &body.to_string(), 200).await?;
        let took = asked.elapsed();
        let answer: Value = serde_json::from_slice(answer)?;
        anyhow::ensure!(answer["result"]["isError"] == false, "{tool}: {answer}");
        if number >= n_warm_up() {
            millis.push(took.as_secs_f64() * 1e3);
        }
    }
    Ok(millis)
}
