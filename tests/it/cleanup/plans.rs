//! Plans of a cleanup's statements, among many unrelated sessions.

use chrono::TimeDelta;
use dalsegno::domain::{cleanups, tasks};
use sqlx::{Connection as _, PgConnection};

use super::{after_expiry, fill, walk};
use crate::{app::noon, conversations::world::World};

/// Most rows that a batch of ten sessions with six messages each may read, including foreign-key checks.
const MAX_ROWS: i64 = 1_500;

#[tokio::test]
async fn no_statement_of_a_cleanup_scans_all_sessions() {
    let world = World::new().await;
    let (pool, campaign) = (&world.pool, world.campaign.id);
    fill(pool, campaign, "old", "sim", 30, 6, noon()).await;
    fill(pool, campaign, "young", "sim", 20_000, 6, after_expiry() + TimeDelta::days(5)).await;
    fill(pool, campaign, "closed", "sim", 10_000, 2, after_expiry() - TimeDelta::days(5)).await;
    let close = "update dalsegno.sessions set state = 'closed', closed_because = 'reset', closed_at = expires_at
                  where agent_type = 'closed'";
    sqlx::query(close).execute(pool).await.unwrap();
    // Many waiting tasks in the same campaign.
    let live = "insert into dalsegno.tasks (id, campaign_id, job_id, agent, instance, prompt)
                select gen_random_uuid(), $1, -n, 'young', 'i' || n, 'Wait.' from generate_series(1, 20000) as n";
    sqlx::query(live).bind(campaign).execute(pool).await.unwrap();
    // Texts of contexts: one that all sessions use, and one of each.
    let texts = "with shared as (
                   insert into dalsegno.context_texts (kind, sha256, content) values ('skill', sha256('all'), 'all') returning sha256),
                 own as (
                   insert into dalsegno.context_texts (kind, sha256, content)
                   select 'notice', sha256(id::text::bytea), id::text from dalsegno.sessions returning sha256, content)
                 insert into dalsegno.context_text_uses (session_id, sha256)
                 select s.id, shared.sha256 from dalsegno.sessions as s, shared
                 union all select content::uuid, sha256 from own";
    sqlx::query(texts).execute(pool).await.unwrap();
    let side_calls = "insert into dalsegno.usage_contexts (usage_id, session_id, manifest)
                      select row_number() over (), id, '{}' from dalsegno.sessions";
    sqlx::query(side_calls).execute(pool).await.unwrap();
    let reruns = "insert into dalsegno.reruns (id, session_id, campaign_id, created_at, turn, call, number, provider, model)
                  select gen_random_uuid(), id, campaign_id, now(), 1, 1, 1, 'sim', 'sim-1' from dalsegno.sessions";
    sqlx::query(reruns).execute(pool).await.unwrap();
    world.add_new(&tasks::New { instance: "i3", ..world.ask("Wait.") }).await.unwrap();
    let url = world.url();
    let mut conn = PgConnection::connect(&url).await.unwrap();
    sqlx::query("vacuum analyze").execute(&mut conn).await.unwrap();

    // With the generic plan that a prepared statement gets after some calls.
    sqlx::query("set plan_cache_mode = force_generic_plan").execute(&mut conn).await.unwrap();
    let mut tx = conn.begin().await.unwrap();
    let mut walk = walk();
    let page = walk.page(&mut tx, 10).await.unwrap().unwrap();
    let batch = cleanups::remove(&mut tx, &walk, page.going).await.unwrap();
    assert_eq!((batch.sessions, batch.messages), (10, 60));
    let read = "select relname::text, coalesce(seq_scan, 0)::bigint, (seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint
                  from pg_stat_xact_user_tables where schemaname = 'dalsegno' order by 1";
    let read: Vec<(String, i64, i64)> = sqlx::query_as(read).fetch_all(&mut *tx).await.unwrap();
    // These are nearly empty here, so their plans mean nothing.
    let empty = [
        "batches",
        "failovers",
        "transcript_files",
        "transcript_chunks",
        "compactions",
        "session_nodes",
        "tool_calls",
        "turn_tokens",
        "partial_outputs",
        "campaign_users",
        "campaigns",
        "session_summaries",
    ];
    let looked: Vec<_> =
        read.iter().filter(|(table, ..)| !empty.contains(&table.as_str())).collect();
    for (table, n_whole, n_rows) in &looked {
        assert_eq!(*n_whole, 0, "{table} was read as a whole: {looked:?}");
        assert!(*n_rows <= MAX_ROWS, "{n_rows} rows of {table} were read: {looked:?}");
    }
    assert!(looked.iter().any(|(table, _, n_rows)| table == "messages" && *n_rows >= 60));
    tx.rollback().await.unwrap();
}
