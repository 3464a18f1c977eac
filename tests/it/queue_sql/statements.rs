//! The statements of the service, and a connection with the settings of its worker.

use sqlx::{Connection as _, Executor as _, PgConnection, Row as _};
use uuid::Uuid;

use crate::app::TestDatabase;

pub const CANCEL_SWEEP: &str = include_str!("../../../crates/queue/src/sql/cancel_sweep.sql");
pub const CHANGE_PRIORITY: &str = include_str!("../../../crates/queue/src/sql/change_priority.sql");
pub const CLAIM: &str = include_str!("../../../crates/queue/src/sql/claim.sql");
pub const CLAIM_ALONE: &str = include_str!("../../../crates/queue/src/sql/claim_alone.sql");
pub const COUNTERS_ROLL_UP: &str =
    include_str!("../../../crates/queue/src/sql/counters_roll_up.sql");
pub const END_CANCELLED: &str = include_str!("../../../crates/queue/src/sql/end_cancelled.sql");
pub const END_DONE: &str = include_str!("../../../crates/queue/src/sql/end_done.sql");
pub const END_FAIL: &str = include_str!("../../../crates/queue/src/sql/end_fail.sql");
pub const END_HOLD: &str = include_str!("../../../crates/queue/src/sql/end_hold.sql");
pub const END_RETRY: &str = include_str!("../../../crates/queue/src/sql/end_retry.sql");
pub const END_SNOOZE: &str = include_str!("../../../crates/queue/src/sql/end_snooze.sql");
pub const GIVE_BACK: &str = include_str!("../../../crates/queue/src/sql/give_back.sql");
pub const HELD_LANES: &str = include_str!("../../../crates/queue/src/sql/held_lanes.sql");
pub const LANE_AUDIT: &str = include_str!("../../../crates/queue/src/sql/lane_audit.sql");
pub const LANE_MEMBERS: &str = include_str!("../../../crates/queue/src/sql/lane_members.sql");
pub const LIST_LANES: &str = include_str!("../../../crates/queue/src/sql/list_lanes.sql");
pub const WAITS: &str = include_str!("../../../crates/queue/src/sql/waits.sql");
pub const RUNS_BY_MINUTE: &str = include_str!("../../../crates/queue/src/sql/runs_by_minute.sql");
pub const WORKER_RUNS: &str = include_str!("../../../crates/queue/src/sql/worker_runs.sql");
pub const LANE_SWEEP: &str = include_str!("../../../crates/queue/src/sql/lane_sweep.sql");
pub const PROMOTE: &str = include_str!("../../../crates/queue/src/sql/promote.sql");
pub const DELETE_OLD_LANES: &str =
    include_str!("../../../crates/queue/src/sql/delete_old_lanes.sql");
pub const DELETE_OLD_WORKERS: &str =
    include_str!("../../../crates/queue/src/sql/delete_old_workers.sql");
pub const RESCUE: &str = include_str!("../../../crates/queue/src/sql/rescue.sql");
pub const UNMARK_CRASHES: &str = include_str!("../../../crates/queue/src/sql/unmark_crashes.sql");
pub const WORKER_DRAIN: &str = include_str!("../../../crates/queue/src/sql/worker_drain.sql");
pub const WORKER_REGISTER: &str = include_str!("../../../crates/queue/src/sql/worker_register.sql");
pub const WORKER_RENEW: &str = include_str!("../../../crates/queue/src/sql/worker_renew.sql");
pub const WORKER_STOP: &str = include_str!("../../../crates/queue/src/sql/worker_stop.sql");

/// Opens a connection on which statements are planned as on the worker's.
pub async fn worker_session(database: &TestDatabase) -> PgConnection {
    let mut conn = PgConnection::connect_with(&database.options).await.unwrap();
    set_like_a_worker(&mut conn).await;
    conn
}

pub async fn set_like_a_worker(conn: &mut PgConnection) {
    let settings =
        "SET statement_timeout = '20 s'; SET plan_cache_mode = force_generic_plan; SET jit = off";
    conn.execute(settings).await.unwrap();
}

/// Registers a worker of the queue `default` with handlers for these kinds.
pub async fn register(conn: &mut PgConnection, kinds: &[&str]) -> Uuid {
    register_at(conn, "default", kinds).await
}

/// Registers a worker of this queue.
pub async fn register_at(conn: &mut PgConnection, queue: &str, kinds: &[&str]) -> Uuid {
    let id = Uuid::new_v4();
    let registered = sqlx::query(WORKER_REGISTER)
        .bind(id)
        .bind(3600.0_f64)
        .bind(500_i32)
        .bind([queue].as_slice())
        .bind("host")
        .bind(1_i32)
        .bind("test")
        .bind(kinds);
    registered.execute(conn).await.unwrap();
    id
}

/// Claims all jobs that such a worker can get. Returns ids and leases.
pub async fn claim(conn: &mut PgConnection, worker: Uuid, kinds: &[&str]) -> Vec<(i64, i64)> {
    claim_at(conn, "default", worker, kinds).await
}

/// Like [`claim`], in this queue.
pub async fn claim_at(
    conn: &mut PgConnection,
    queue: &str,
    worker: Uuid,
    kinds: &[&str],
) -> Vec<(i64, i64)> {
    let claimed = sqlx::query(CLAIM)
        .bind(100_i64)
        .bind([queue].as_slice())
        .bind(worker)
        .bind(-1_i16)
        .bind("-infinity")
        .bind(0_i64)
        .bind("")
        .bind(kinds);
    let rows = claimed.fetch_all(conn).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}
