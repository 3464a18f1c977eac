//! Leases that end on demand of a test, and not because a machine is slow.
//!
//! The workers of most tests have long leases. When such a worker's process dies, the test ends its lease in the
//! database, as time would, so that another worker can take over its jobs at once. The tests of the queue show that
//! leases expire by themselves.

use std::sync::Mutex;

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open},
};
use sqlx::PgPool;
use tokio::{sync::oneshot, task::JoinSet};
use uuid::Uuid;

use crate::queue_sql::statements::{LANE_SWEEP, RESCUE};

/// Far longer than any pause of a running process on a busy machine.
pub const LONG: [(&str, &str); 4] = [
    ("queue.lease_secs", "600"),
    ("queue.heartbeat_secs", "1"),
    ("queue.lease_margin_secs", "120"),
    ("queue.cancel_grace_secs", "120"),
];

/// [`LONG`] as environment variables of a process.
pub const LONG_LEASE_VARIABLES: [(&str, &str); 4] = [
    ("DALSEGNO_QUEUE__LEASE_SECS", "600"),
    ("DALSEGNO_QUEUE__HEARTBEAT_SECS", "1"),
    ("DALSEGNO_QUEUE__LEASE_MARGIN_SECS", "120"),
    ("DALSEGNO_QUEUE__CANCEL_GRACE_SECS", "120"),
];

/// Watches worker processes, and ends their leases when they die. Works as long as this value exists.
#[derive(Debug, Default)]
pub struct LeaseEnder(Mutex<JoinSet<()>>);

impl LeaseEnder {
    /// Ends the lease of this process as soon as it is dead.
    pub fn watch(&self, pool: &PgPool, pid: u32) {
        let pool = pool.clone();
        self.0.lock().unwrap().spawn(async move { end_with(&pool, pid).await });
    }

    /// Like `watch`; also takes its jobs back and makes them due.
    pub fn watch_and_rescue(&self, pool: &PgPool, pid: u32) {
        let pool = pool.clone();
        self.0.lock().unwrap().spawn(async move {
            end_with(&pool, pid).await;
            rescue(&pool).await.unwrap();
        });
    }
}

async fn end_with(pool: &PgPool, pid: u32) {
    wait_for_death(pid).await;
    // The server may be unavailable for a moment: a pool reconnects, and hands out each broken connection once.
    while end(pool, pid).await.is_err() {
        tokio::task::yield_now().await;
    }
}

/// Waits for the end of a process. A pidfd is readable then, even before its parent has waited for it.
async fn wait_for_death(pid: u32) {
    let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
    let (sender, death) = oneshot::channel();
    // A separate thread, because a runtime would wait for its blocking tasks after a failed test.
    std::thread::spawn(move || {
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(process) => drop(poll(&mut [PollFd::new(&process, PollFlags::IN)], None).unwrap()),
            Err(error) => assert_eq!(error, Errno::SRCH, "pidfd_open"),
        }
        sender.send(())
    });
    death.await.unwrap();
}

/// Ends the leases of one process's workers. From then on each worker counts as one that has renewed for a whole lease,
/// and may declare others lost.
pub async fn end(pool: &PgPool, pid: u32) -> sqlx::Result<()> {
    let sql = format!(
        "select pg_advisory_xact_lock(hashtext('may_rescue'));
         create or replace function public.may_rescue() returns trigger language plpgsql as $body$
         begin new.renewing_since := now() - interval '1 day'; return new; end $body$;
         create or replace trigger may_rescue before insert on dalsegno.workers for each row execute function public.may_rescue();
         update dalsegno.workers set renewing_since = now() - interval '1 day' where gone_at is null;
         update dalsegno.workers set lease_until = now() - interval '1 second' where pid = {pid} and gone_at is null"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(pool).await.map(drop)
}

/// Takes back the jobs of lost workers, like a worker does every few seconds.
pub async fn rescue(pool: &PgPool) -> sqlx::Result<()> {
    let (me, mut tx) = (Uuid::new_v4(), pool.begin().await?);
    let register = "insert into dalsegno.workers (id, lease_until, slots, queues) values ($1, now() + interval '1 hour', 1, '{}')";
    sqlx::query(register).bind(me).execute(&mut *tx).await?;
    let rescue = sqlx::query(RESCUE).bind(me).bind(600_f64).bind(0_f64).bind(1_000_i32);
    rescue.execute(&mut *tx).await?;
    sqlx::query(LANE_SWEEP).bind(1_000_i32).execute(&mut *tx).await?;
    sqlx::query("delete from dalsegno.workers where id = $1").bind(me).execute(&mut *tx).await?;
    tx.commit().await
}
