//! The nightly cleanup: removed and kept rows, and its surroundings.

mod boards;
mod expiry;
mod files;
pub mod folders;
mod interfaces;
pub mod job;
mod plans;
mod races;
mod removal;
mod size;

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use dalsegno::domain::{
    cleanups::{self, Batch, KeptCounts, Page, Preview, Progress, Walk},
    memory,
    sessions::Config,
    transaction::{begin, commit},
};
use sqlx::PgPool;
use uuid::Uuid;

use crate::{
    app::{defaults, noon},
    conversations::world::TurnSettings,
};

fn config() -> Config {
    Config { rotate_at_tokens: 0, ..defaults().sessions }
}

/// Returns a time at which sessions used at noon have expired.
fn after_expiry() -> DateTime<Utc> {
    noon() + TimeDelta::days(8)
}

fn settings_after_expiry() -> TurnSettings {
    TurnSettings { at: after_expiry(), ..TurnSettings::default() }
}

fn memory_config() -> memory::Config {
    crate::memory::config()
}

fn walk() -> Walk {
    Walk::new(after_expiry(), &config(), &memory_config())
}

/// Runs a cleanup without its record, in batches of this size and without pauses.
async fn cleanup(pool: &PgPool, walk: Walk, n_sessions: i64) -> Progress {
    paced_cleanup(pool, walk, n_sessions, Duration::ZERO).await
}

async fn paced_cleanup(
    pool: &PgPool,
    mut walk: Walk,
    n_sessions: i64,
    pause: Duration,
) -> Progress {
    let mut progress = Progress::default();
    while let Some(Page { going, kept }) = next_page(pool, &mut walk, n_sessions).await {
        let reasons: Vec<_> = kept.iter().map(|(_, kept)| *kept).collect();
        progress.count_kept(&reasons);
        let mut left = going;
        while !left.is_empty() {
            let mut tx = begin(pool).await.unwrap();
            let batch: Batch = cleanups::remove(&mut tx, &walk, left).await.unwrap();
            commit(tx).await.unwrap();
            progress.add(&batch);
            left = batch.left;
            tokio::time::sleep(pause).await;
        }
    }
    progress
}

async fn next_page(pool: &PgPool, walk: &mut Walk, n_sessions: i64) -> Option<Page> {
    let mut conn = pool.acquire().await.unwrap();
    walk.page(&mut conn, n_sessions).await.unwrap()
}

async fn preview(pool: &PgPool) -> Preview {
    let mut conn = pool.acquire().await.unwrap();
    cleanups::preview(&mut conn, walk()).await.unwrap()
}

/// Creates sessions of `agent` with `n_messages` messages each, a turn for each two messages, and a manifest for each
/// turn.
pub async fn fill(
    pool: &PgPool,
    campaign_id: Uuid,
    agent: &str,
    provider: &str,
    n_sessions: i32,
    n_messages: i32,
    expires_at: DateTime<Utc>,
) {
    let sql = "with s as (
                 insert into dalsegno.sessions (id, campaign_id, agent_type, instance, provider, model, prompt_hash, fence_seed,
                        created_at, used_at, expires_at, last_seq, turn_count)
                 select gen_random_uuid(), $1, $2, 'i' || n, $3, 'm', repeat('a', 64), decode(repeat('00', 32), 'hex'),
                        $6 - interval '7 days', $6 - interval '7 days', $6 - n * interval '1 second', $5, $5 / 2
                   from generate_series(1, $4) as n
                 returning id),
               t as (
                 insert into dalsegno.turns (session_id, task_id, number, attempt, job_id, lease, started_at, ended_at, state)
                 select s.id, gen_random_uuid(), n, 1, 1, 1, $6, $6, 'done' from s, generate_series(1, $5 / 2) as n),
               p as (
                 insert into dalsegno.manifests (session_id, turn, call, created_at, estimated_tokens, sha256, manifest)
                 select s.id, n, 0, $6, 100, decode(repeat('03', 32), 'hex'), '{}' from s, generate_series(1, $5 / 2) as n)
               insert into dalsegno.messages (session_id, seq, id, created_at, weight, turn, role, text, digest)
               select s.id, n, gen_random_uuid(), $6, 1000, (n + 1) / 2, case n % 2 when 1 then 'user' else 'assistant' end,
                      repeat('What was said. ', 20), decode(repeat('01', 32), 'hex')
                 from s, generate_series(1, $5) as n";
    let filled = sqlx::query(sql).bind(campaign_id).bind(agent).bind(provider).bind(n_sessions);
    filled.bind(n_messages).bind(expires_at).execute(pool).await.unwrap();
}

/// Returns the number of rows left, by table.
async fn rows(pool: &PgPool) -> BTreeMap<&'static str, i64> {
    let tables = [
        "sessions",
        "messages",
        "turns",
        "compactions",
        "manifests",
        "transcript_files",
        "transcript_chunks",
        "session_nodes",
        "usage",
        "tasks",
        "campaigns",
        "feed",
    ];
    let mut rows = BTreeMap::new();
    for table in tables {
        let sql = sqlx::AssertSqlSafe(format!("select count(*) from dalsegno.{table}"));
        rows.insert(table, sqlx::query_scalar(sql).fetch_one(pool).await.unwrap());
    }
    rows
}

fn kept_reasons(counts: &KeptCounts) -> Vec<(cleanups::KeepReason, i64)> {
    counts.iter().map(|(kept, n)| (*kept, *n)).collect()
}
