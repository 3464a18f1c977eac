//! Runs the statements of a turn with pgbench: the upper limit of what this server can do.
//!
//! Their text is captured from a turn, so it is always that of the service; [`steps`] has their parameters. A turn with
//! other statements is an error here, not a wrong figure.

mod script;
mod steps;

use std::process::Stdio;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use tokio::process::Command;

use self::script::script;
use crate::{
    capture,
    fixture::{Conversation, Fixture},
};

/// Measures turns per second of `conversations`, of which each client has its own.
pub async fn rate(
    ground: &Fixture,
    conversations: &[Conversation],
    n_each: usize,
) -> anyhow::Result<Value> {
    let n_clients = ground.config.database.max_connections as usize;
    ensure!(conversations.len().is_multiple_of(n_clients), "each client has as many lanes");
    let captured = {
        let spare = ground.conversations(1, 1).await?;
        // The second turn is captured, because the first one opens the session.
        ground.run(&spare, 1).await?;
        tokio::task::block_in_place(|| capture::statements_of_a_turn(ground, &spare[0]))?
    };
    let n_statements = captured.len();
    let file = ground.settings.with_file_name("turn.sql");
    std::fs::write(&file, script(captured)?)?;
    ground.add(&ground.pool, conversations, n_each).await?;
    number_the_lanes(ground, conversations).await?;
    ground.settle().await?;
    let n_lanes = conversations.len() / n_clients;
    let tps = pgbench(ground, &file, n_clients, n_lanes, n_lanes * n_each).await?;
    let left: i64 = sqlx::query_scalar("select count(*) from dalsegno.tasks where state <> 'done'")
        .fetch_one(&ground.pool)
        .await?;
    ensure!(left == 0, "pgbench has left {left} tasks undone");
    Ok(
        json!({ "turns_per_s": tps.round(), "clients": n_clients, "statements_of_a_turn": n_statements }),
    )
}

/// Numbers the lanes, so that a client finds its lanes by arithmetic.
async fn number_the_lanes(ground: &Fixture, conversations: &[Conversation]) -> anyhow::Result<()> {
    sqlx::query("create table bench_lanes (n bigint primary key, lane_id bigint not null)")
        .execute(&ground.pool)
        .await?;
    let lanes: Vec<String> = conversations.iter().map(Conversation::lane).collect();
    sqlx::query(
        "insert into bench_lanes
         select k.ord - 1, l.id from unnest($1::text[]) with ordinality as k (key, ord) join dalsegno.lanes as l using (key)",
    )
    .bind(&lanes)
    .execute(&ground.pool)
    .await?;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "pgbench is wanted as it is, in our environment")]
async fn pgbench(
    ground: &Fixture,
    file: &std::path::Path,
    n_clients: usize,
    n_lanes: usize,
    n_transactions: usize,
) -> anyhow::Result<f64> {
    let manifest: String =
        sqlx::query_scalar("select manifest::text from dalsegno.manifests limit 1")
            .fetch_one(&ground.pool)
            .await?;
    let answer: String =
        sqlx::query_scalar("select text from dalsegno.messages where role = 'assistant' limit 1")
            .fetch_one(&ground.pool)
            .await?;
    // libpq does not know this parameter of sqlx.
    let (url, _) = ground.url.split_once("&statement-cache-capacity").unwrap_or((&ground.url, ""));
    let mut command = Command::new("pgbench");
    command.args(["--no-vacuum", "--protocol=prepared", "--jobs=2"]);
    command.arg(format!("--client={n_clients}")).arg(format!("--transactions={n_transactions}"));
    command.arg("--file").arg(file).arg(format!("--define=n_clients={n_clients}"));
    command.arg(format!("--define=n_lanes={n_lanes}")).arg("--define=k=0");
    command.arg(format!("--define=manifest={manifest}")).arg(format!("--define=answer={answer}"));
    command.arg(url).env("PGOPTIONS", "-c plan_cache_mode=force_generic_plan -c jit=off");
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = command.output().await.context("starting pgbench, which comes with PostgreSQL")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "pgbench: {complaint}");
    let tps = said.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next());
    tps.and_then(|tps| tps.parse().ok()).with_context(|| format!("pgbench gave no rate: {said}"))
}
