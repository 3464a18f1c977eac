//! The statements of all pages on a large database: no page reads a large table as a whole, nor very many rows of one by an index.
//!
//! The rows are those that Postgres counts, so statements that functions run are among them, and no list of statements can become incomplete.

use std::collections::BTreeMap;

use dalsegno::domain::costs;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgPool};
use uuid::Uuid;

use super::upkeep_scenery::UpkeepScenery;
use crate::{
    app::{TestDatabase, defaults, eventually},
    required_packages::RequiredPackage,
};

const POSTGRES: RequiredPackage =
    RequiredPackage { package: "PostgreSQL 15 or later", command: "apt-get install postgresql" };

/// The database of the bench of the console, at a fiftieth of its size.
const FILL: &str = include_str!("../../../benches/console/fill.sql");
const SCALE: [(&str, &str); 3] =
    [(":tasks", "20000"), (":campaigns", "100"), (":conversations", "40")];
/// Before all rows of the scenery, which its pages list first.
const FILLED_AT: &str = "timestamptz '2026-11-20 11:00+00'";

/// Tables of which the bench has few rows, because they do not grow with the tasks.
const MORE: [&str; 6] = [
    "insert into dalsegno.boards (campaign_id, last_seq) select id, 60 from dalsegno.campaigns on conflict do nothing",
    "insert into dalsegno.posts (campaign_id, seq, id, posted_at, origin, sender, audience, text)
     select c.id, n, gen_random_uuid(), '2026-11-19 12:00+00'::timestamptz + n * interval '1 second', 'agent', 'planner', '{copywriter}',
            'The quay is open again.' from dalsegno.campaigns as c, generate_series(1, 60) as n on conflict do nothing",
    "insert into dalsegno.memory_items (id, campaign_id, created_at, written_at, version, kind, name, origin, author, trust, title, body)
     select gen_random_uuid(), c.id, '2026-11-19 12:00+00', '2026-11-19 12:00+00', 1, 'record', 'note-' || n, 'operator', 'operator', 'operator',
            'Note ' || n, 'Oil of 1887.' from dalsegno.campaigns as c, generate_series(1, 60) as n",
    "insert into dalsegno.jobs (run_at, enqueued_at, state, queue, kind, wait_reason)
     select '2026-11-21 12:00+00', '2026-11-19 12:00+00', 'scheduled', 'upkeep', 'send_webhook', 'later' from generate_series(1, 5000) as n",
    "insert into dalsegno.job_payloads (job_id, payload)
     select id, '{}' from dalsegno.jobs where kind = 'send_webhook' and not exists (select from dalsegno.job_payloads where job_id = id)",
    "insert into dalsegno.facts (id, recorded_at, valid_from, user_name, source, trust, author, attribute, attribute_key, text, text_key)
     select gen_random_uuid(), '2026-11-19 12:00+00', '2026-11-19 12:00+00', 'reader-' || n, 'stated', 'operator', 'operator', 'Diet', 'diet',
            'Eats no meat.', 'eats no meat.' from generate_series(1, 5000) as n",
];

/// Tables that have to be large here, so that a plan which reads one as a whole is noticed.
const LARGE: [&str; 15] = [
    "audit",
    "facts",
    "feed",
    "job_payloads",
    "jobs",
    "lanes",
    "manifests",
    "memory_items",
    "messages",
    "posts",
    "runs",
    "sessions",
    "tasks",
    "turns",
    "usage",
];
/// The fewest rows of a large table.
const MIN_LARGE: f32 = 4_000.0;
/// The most rows of one large table that a page may read without an index. None has so few.
const MAX_SEQUENTIAL: i64 = 1_000;
/// The most rows of one large table that a page may read by indexes. Lists look at 2,000 tasks for a word, the overview at the newest 5,000 and at the
/// runs of its range.
const MAX_BY_INDEX: i64 = 9_000;

/// Ways to read the rows of a table, with the most rows of one large table that a page may read. In the order of [`RowsRead`].
const WAYS: [(&str, i64); 2] = [("without an index", MAX_SEQUENTIAL), ("by indexes", MAX_BY_INDEX)];

/// Rows of a table that were read so far: sequentially, and by indexes.
type RowsRead = BTreeMap<String, [i64; 2]>;

#[tokio::test]
async fn no_page_reads_a_large_table_as_a_whole() {
    let mut database = TestDatabase::migrated().await;
    // The settings of the service's own connections.
    let settings = [("plan_cache_mode", "force_generic_plan"), ("jit", "off")];
    database.options = database.options.clone().options(settings);
    let mut conn = sqlx::PgConnection::connect_with(&database.options).await.unwrap();
    if conn.server_version_num().unwrap_or(0) < 150_000 {
        POSTGRES.skip::<()>("PostgreSQL 14 cannot be asked to report its counts");
        return;
    }
    for statement in fill() {
        let ran = conn.execute(AssertSqlSafe(statement.clone())).await;
        ran.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    conn.close().await.unwrap();
    let furnished = UpkeepScenery::on(database).await;
    let pool = &furnished.scenery.app.pool;
    add_up_ledger(pool).await;
    pool.execute("vacuum analyze").await.unwrap();
    let large = large_tables(pool).await;
    for table in LARGE {
        assert!(large.contains(&table.to_owned()), "{table} is not large: {large:?}");
    }
    let mut findings = Vec::new();
    let mut before = rows_read(pool).await;
    for (name, path) in furnished.all_pages().into_iter().chain(pages_of_fill()) {
        furnished.scenery.page(&path).await;
        let after = rows_read(pool).await;
        for table in &large {
            for ((way, max_rows), n_rows) in
                WAYS.into_iter().zip(difference(&before, &after, table))
            {
                if n_rows > max_rows {
                    findings.push(format!("{name} ({path}): {n_rows} rows of {table} {way}"));
                }
            }
        }
        before = after;
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

/// The statements that fill the database.
fn fill() -> Vec<String> {
    let text = SCALE
        .iter()
        .fold(FILL.replace("now()", FILLED_AT), |text, (name, value)| text.replace(name, value));
    let own = text.split(";\n").map(str::trim).filter(|part| !part.is_empty());
    own.map(str::to_owned).chain(MORE.map(str::to_owned)).collect()
}

/// Pages of things with many rows, which those of the scenery do not have.
fn pages_of_fill() -> Vec<(&'static str, String)> {
    let campaign = "/campaigns/01900000-0000-7000-8000-000000000000";
    let session = "/sessions/01910000-0000-7000-8000-000000000000";
    let webhook = "/webhooks/01970000-0000-7000-8000-000000000000";
    let id = campaign.rsplit('/').next().unwrap();
    let pages = [
        ("large-overview", "/?range=24h".to_owned()),
        ("large-campaign", campaign.to_owned()),
        ("large-campaign-tasks", format!("{campaign}?part=tasks")),
        ("large-campaign-sessions", format!("{campaign}?part=sessions")),
        ("large-campaign-agents", format!("{campaign}?part=agents")),
        (
            "large-campaign-memory",
            "/campaigns/01900000-0000-7000-8000-000000000001?part=memory".to_owned(),
        ),
        ("large-campaign-board", "/campaigns/01900000-0000-7000-8000-000000000001".to_owned()),
        (
            "large-campaign-archive",
            "/campaigns/01900000-0000-7000-8000-000000000001?part=archive".to_owned(),
        ),
        ("large-campaign-blackboard", format!("{campaign}?part=blackboard")),
        ("tasks-failed", "/tasks?state=failed".to_owned()),
        ("tasks-queued", "/tasks?state=queued".to_owned()),
        ("tasks-of-agent", "/tasks?agent=planner".to_owned()),
        ("tasks-with-word", "/tasks?text=nothing+has+this".to_owned()),
        ("tasks-of-campaign", format!("/tasks?campaign_id={id}&state=failed")),
        ("sessions-open", "/sessions?open=true".to_owned()),
        ("sessions-of-campaign", format!("/sessions?campaign_id={id}")),
        ("large-session", session.to_owned()),
        ("large-session-turns", format!("{session}/turns")),
        ("large-compaction", format!("{session}/compactions/3")),
        ("large-turn", format!("{session}/turns/40")),
        ("find-words", "/find?q=letter+from+the+rock".to_owned()),
        ("search-rare", "/search?q=nothing".to_owned()),
        ("cost-by-user", "/cost?by=user&days=90".to_owned()),
        ("calls-costliest", "/cost/calls?order=costliest".to_owned()),
        ("calls-of-agent", "/cost/calls?days=90&agent=planner".to_owned()),
        ("large-user", "/users?name=user-7".to_owned()),
        ("large-user-search", "/users?name=user-7&q=series".to_owned()),
        ("jobs-behind-others", "/work/jobs?waits_for=lane".to_owned()),
        ("bulk-retry", "/work/bulk?action=retry&state=failed".to_owned()),
        ("large-webhook", webhook.to_owned()),
        ("large-webhook-failed", format!("{webhook}?state=failed")),
        ("audit-of-task", format!("/audit?subject={}", Uuid::nil())),
        ("audit-of-caller", "/audit?actor=ann".to_owned()),
    ];
    pages.into()
}

/// Adds up the ledger by day, as the scheduler does it.
async fn add_up_ledger(pool: &PgPool) {
    let time_zone = defaults().scheduler.time_zone;
    let is_done = "select up_to = (select max(id) from dalsegno.usage) from dalsegno.ledger_sums";
    eventually("the ledger is added up", async || {
        costs::add_up_days(pool, &time_zone).await.unwrap();
        let is_done: bool = sqlx::query_scalar(is_done).fetch_one(pool).await.unwrap();
        is_done.then_some(())
    })
    .await;
}

/// Returns the names of the tables with many rows.
async fn large_tables(pool: &PgPool) -> Vec<String> {
    let sql = "select relname::text from pg_class where relnamespace = 'dalsegno'::regnamespace and relkind = 'r' and reltuples >= $1 order by relname";
    sqlx::query_scalar(sql).bind(MIN_LARGE).fetch_all(pool).await.unwrap()
}

/// Returns the counts of Postgres, after each connection of the service has reported its own.
async fn rows_read(pool: &PgPool) -> RowsRead {
    // The connections of a response return to the pool shortly after it.
    let are_idle = async || (pool.num_idle() == pool.size() as usize).then_some(());
    eventually("the connections of the service are idle", are_idle).await;
    let mut held = Vec::new();
    while let Some(mut conn) = pool.try_acquire() {
        // A connection reports at most once a second unless it is asked to.
        conn.execute("select pg_stat_force_next_flush()").await.unwrap();
        held.push(conn);
    }
    // The table's own count lacks the rows of index-only scans, which only the counts of its indexes have.
    let sql = "select t.relname::text, t.seq_tup_read,
                      greatest(coalesce(t.idx_tup_fetch, 0),
                               coalesce((select sum(i.idx_tup_read) from pg_stat_user_indexes as i where i.relid = t.relid), 0))::bigint
                 from pg_stat_user_tables as t where t.schemaname = 'dalsegno'";
    let conn = held.last_mut().expect("the service has a connection");
    let rows: Vec<(String, i64, i64)> = sqlx::query_as(sql).fetch_all(&mut **conn).await.unwrap();
    rows.into_iter().map(|(table, sequential, by_index)| (table, [sequential, by_index])).collect()
}

fn difference(before: &RowsRead, after: &RowsRead, table: &str) -> [i64; 2] {
    let of = |rows: &RowsRead| rows.get(table).copied().unwrap_or_default();
    let (after, before) = (of(after), of(before));
    [after[0] - before[0], after[1] - before[1]]
}
