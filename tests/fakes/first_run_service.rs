//! A service that keeps adding rows in its private Postgres, for tests that kill it.
//!
//! `first-run-service <data_dir> <fallback_dir> [once]` prints `READY <server pid> <address>`, then `row <id>` for each
//! committed row, until SIGTERM. With `once` it writes one row and stops.

use std::io::Write;

use dalsegno::db::embedded::{self, Config};
use sqlx::{Connection, PgConnection};
use tokio::signal::unix::{SignalKind, signal};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [data_dir, fallback_dir, mode @ ..] = arguments.as_slice() else {
        return Err("usage: first-run-service <data_dir> <fallback_dir> [once]".into());
    };
    let config = Config {
        data_dir: data_dir.into(),
        fallback_dir: fallback_dir.into(),
        ..Config::default()
    };
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(serve(config, mode.first().is_some_and(|mode| mode == "once")))
}

async fn serve(config: Config, once: bool) -> Result<(), Box<dyn std::error::Error>> {
    let mut terminated = signal(SignalKind::terminate())?;
    let postgres = embedded::start(&config).await?;
    let described = postgres.describe();
    say(&format!("READY {} {}", described.pid, described.address))?;
    let mut connection = PgConnection::connect_with(&postgres.connect_options()).await?;
    sqlx::query("CREATE TABLE IF NOT EXISTS rows (id bigserial PRIMARY KEY)")
        .execute(&mut connection)
        .await?;
    loop {
        let id: i64 = sqlx::query_scalar("INSERT INTO rows DEFAULT VALUES RETURNING id")
            .fetch_one(&mut connection)
            .await?;
        say(&format!("row {id}"))?;
        let stopping = tokio::time::timeout(std::time::Duration::from_millis(1), terminated.recv());
        if once || stopping.await.is_ok() {
            break;
        }
    }
    connection.close().await?;
    postgres.stop().await?;
    say("STOPPED")?;
    Ok(())
}

fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
