//! A queue so full that a plan which reads all of it is noticed.

use sqlx::Executor as _;

use super::statements::worker_session;
use crate::app::TestDatabase;

/// Number of blocked jobs, and of ready jobs.
const N_JOBS: i64 = if cfg!(feature = "chaos") { 1_000_000 } else { 100_000 };
/// Number of jobs that each of the two workers runs.
pub const N_RUNNING: i64 = 500;
const N_LANES: i64 = 50_000;
/// A worker with jobs, a lost worker, and a worker without jobs.
pub const WORKER: &str = "00000000-0000-0000-0000-000000000001";
const LOST_WORKER: &str = "00000000-0000-0000-0000-000000000002";
pub const IDLE_WORKER: &str = "00000000-0000-0000-0000-000000000003";

/// Fills an empty queue, with the constraints and indexes as they are.
///
/// - `default`: ready jobs without groups, and some that may only run alone
/// - `grouped`: ready jobs of a thousand groups
/// - `urgent`: ready jobs of a thousand groups, and many urgent ones of a group that is paused
/// - ten lanes with all the blocked jobs, their heads running
/// - retries that keep their place in a lane, and jobs for later that have none; of both, a thousand are due
pub async fn fill(database: &TestDatabase) {
    run(database, workers_and_lanes()).await;
    // The two halves are independent, and this is most of the test's time.
    tokio::join!(run(database, ready()), run(database, in_lanes()));
    run(database, around_jobs()).await;
}

/// Fills an empty queue with jobs of two lanes: `lane-1` has only jobs for later, `lane-2` a head with blocked jobs. The other lanes are old and have
/// none; two are held. So the planner expects most rows to belong to the lane that it looks for.
pub async fn fill_two_lanes(database: &TestDatabase) {
    let statements = [
        "INSERT INTO dalsegno.lanes (key, next_seq, used_at)
         SELECT 'lane-' || i, 30000, now() - interval '1 year' FROM generate_series(1, 500) AS i ORDER BY i",
        "INSERT INTO dalsegno.jobs (run_at, state, queue, kind, lane_id, wait_reason)
         SELECT now() + interval '1 day', 'scheduled', 'default', 'k', 1, 'later' FROM generate_series(1, 20000)",
        "INSERT INTO dalsegno.jobs (run_at, state, queue, kind, lane_id, lane_seq)
         SELECT now(), CASE i WHEN 1 THEN 'ready' ELSE 'blocked' END, 'default', 'k', 2, i FROM generate_series(1, 20000) AS i",
        "UPDATE dalsegno.lanes SET hold_reason = 'a look', held_at = now() WHERE key IN ('lane-1', 'lane-3')",
        "ANALYZE",
    ];
    run(database, statements.map(str::to_owned).to_vec()).await;
}

async fn run(database: &TestDatabase, statements: Vec<String>) {
    let mut conn = worker_session(database).await;
    conn.execute("SET statement_timeout = 0").await.unwrap();
    for statement in statements {
        conn.execute(sqlx::AssertSqlSafe(statement)).await.unwrap();
    }
}

fn workers_and_lanes() -> Vec<String> {
    vec![
        format!(
            "INSERT INTO dalsegno.workers (id, lease_until, slots, queues, kinds, renewing_since)
             SELECT id::uuid, now() + until::interval, {N_RUNNING}, '{{default,grouped}}', '{{k}}', now() - interval '1 day'
               FROM (VALUES ('{WORKER}', '1 day'), ('{LOST_WORKER}', '-1 minute'), ('{IDLE_WORKER}', '1 day')) AS w (id, until)"
        ),
        format!(
            "INSERT INTO dalsegno.lanes (key, next_seq) SELECT 'lane-' || i, {N_JOBS} FROM generate_series(1, {N_LANES}) AS i"
        ),
        // The oldest jobs: lists of waits look for the causes of these.
        "INSERT INTO dalsegno.jobs (run_at, state, queue, kind, wait_reason)
         SELECT now() + interval '1 day', 'scheduled', 'default', 'k', 'snooze' FROM generate_series(1, 2000) AS i"
            .to_owned(),
    ]
}

fn ready() -> Vec<String> {
    let (n_plain, n_grouped, n_urgent) = (N_JOBS * 8 / 10, N_JOBS * 2 / 10, N_JOBS / 10);
    vec![
        format!(
            "INSERT INTO dalsegno.jobs (run_at, state, queue, kind)
             SELECT now() - interval '1 hour' + i * interval '1 ms', 'ready', 'default', 'k' FROM generate_series(1, {n_plain}) AS i"
        ),
        format!(
            "INSERT INTO dalsegno.jobs (run_at, state, queue, kind, group_key)
             SELECT now() - interval '1 hour' + i * interval '1 ms', 'ready', 'grouped', 'k', 'group-' || i % 1000
               FROM generate_series(1, {n_grouped}) AS i"
        ),
        "INSERT INTO dalsegno.jobs (run_at, state, queue, kind, group_key)
         SELECT now(), 'ready', 'urgent', 'k', 'group-' || i FROM generate_series(1, 1000) AS i"
            .to_owned(),
        format!(
            "INSERT INTO dalsegno.jobs (run_at, state, queue, kind, group_key, priority)
             SELECT now(), 'ready', 'urgent', 'k', 'paused', 10 FROM generate_series(1, {n_urgent}) AS i"
        ),
        "INSERT INTO dalsegno.pauses (scope, name) VALUES ('group', 'paused')".to_owned(),
        "INSERT INTO dalsegno.jobs (run_at, state, queue, kind, crash_count)
         SELECT now(), 'ready', 'default', 'k', 2 FROM generate_series(1, 100)"
            .to_owned(),
    ]
}

fn in_lanes() -> Vec<String> {
    vec![
        format!(
            "INSERT INTO dalsegno.jobs (run_at, state, queue, kind, lane_id, lane_seq)
             SELECT now(), 'blocked', 'default', 'k', 1 + i % 10, 2 + i / 10 FROM generate_series(0, {N_JOBS} - 1) AS i"
        ),
        format!(
            "INSERT INTO dalsegno.jobs (run_at, state, queue, kind, lane_id, lane_seq, lease, worker_id, claimed_at, attempt)
             SELECT now(), 'running', 'default', 'k', i, 1, nextval('dalsegno.leases'),
                    CASE i % 2 WHEN 0 THEN '{WORKER}' ELSE '{LOST_WORKER}' END::uuid, now(), 1
               FROM generate_series(1, 2 * {N_RUNNING}) AS i"
        ),
        "INSERT INTO dalsegno.jobs (run_at, state, queue, kind, lane_id, lane_seq, wait_reason)
         SELECT now() + (i - 1000) * interval '1 s', 'scheduled', 'default', 'k', 5000 + i, 1, 'retry'
           FROM generate_series(1, 40000) AS i"
            .to_owned(),
        format!(
            "INSERT INTO dalsegno.jobs (run_at, state, queue, kind, lane_id, wait_reason)
             SELECT now() + (i - 1000) * interval '1 s', 'scheduled', 'default', 'k', i, 'later' FROM generate_series(1, {N_LANES}) AS i"
        ),
    ]
}

/// Payloads for all jobs that can run. No statement here reads those of blocked jobs.
fn around_jobs() -> Vec<String> {
    [
        "INSERT INTO dalsegno.job_payloads (job_id, payload) SELECT id, '{}' FROM dalsegno.jobs WHERE state <> 'blocked'",
        "INSERT INTO dalsegno.runs (job_id, lease, attempt, outcome, queue, kind)
         SELECT -i, -i, 1, CASE WHEN i > 500 THEN 'done' ELSE 'lost' END, 'default', 'k' FROM generate_series(1, 50000) AS i",
        "INSERT INTO dalsegno.runs (job_id, lease, attempt, outcome, queue, kind, wait_cause)
         SELECT id, n, 1, 'snooze', queue, kind, 'provider' FROM dalsegno.jobs, generate_series(1, 5) AS n WHERE wait_reason = 'snooze'",
        "INSERT INTO dalsegno.runs (job_id, lease, attempt, outcome, queue, kind)
         SELECT -i, -i, 1, 'done', 'rare', 'k' FROM generate_series(50001, 50100) AS i",
        "INSERT INTO dalsegno.lane_sweeps (lane_id) SELECT i FROM generate_series(1, 1000) AS i",
        "ANALYZE",
    ]
    .map(str::to_owned)
    .to_vec()
}
