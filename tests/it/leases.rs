//! Leases that end when a test wants it, and never because a machine is slow.
//!
//! The workers of most tests have long leases. When the process of such a worker dies, the test ends its lease in the database, as time
//! would, and another worker may take its jobs back at once. The tests of the queue show that leases end by themselves.

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

/// Far longer than any pause of a process that runs, however busy its machine is.
pub const LONG: [(&str, &str); 4] = [
    ("queue.lease_secs", "600"),
    ("queue.heartbeat_secs", "1"),
    ("queue.lease_margin_secs", "120"),
    ("queue.cancel_grace_secs", "120"),
];

/// [`LONG`] as variables of a process.
pub const LONG_VARIABLES: [(&str, &str); 4] = [
    ("DALSEGNO_QUEUE__LEASE_SECS", "600"),
    ("DALSEGNO_QUEUE__HEARTBEAT_SECS", "1"),
    ("DALSEGNO_QUEUE__LEASE_MARGIN_SECS", "120"),
    ("DALSEGNO_QUEUE__CANCEL_GRACE_SECS", "120"),
];

/// Worker processes whose leases end with them, as long as this value exists.
#[derive(Debug, Default)]
pub struct Mortal(Mutex<JoinSet<()>>);

impl Mortal {
    /// Ends the lease of this process as soon as it is dead.
    pub fn watch(&self, pool: &PgPool, pid: u32) {
        let pool = pool.clone();
        self.0.lock().unwrap().spawn(async move { end_with(&pool, pid).await });
    }

    /// The same, and its jobs are taken back and due at once.
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
    // The server may be away for a moment: a pool waits until it can connect again, and hands broken connections out once.
    while end(pool, pid).await.is_err() {
        tokio::task::yield_now().await;
    }
}

/// A pidfd is readable as soon as its process has ended, also before its parent has waited for it.
async fn wait_for_death(pid: u32) {
    let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
    let (sender, death) = oneshot::channel();
    // A thread of its own: a runtime would wait for its blocking tasks when a test has failed.
    std::thread::spawn(move || {
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(process) => drop(poll(&mut [PollFd::new(&process, PollFlags::IN)], None).unwrap()),
            Err(error) => assert_eq!(error, Errno::SRCH, "pidfd_open"),
        }
        sender.send(())
    });
    death.await.unwrap();
}

/// Ends the leases of the workers of one process. From then on every worker counts as one that has renewed for a whole lease, and may
/// declare others lost.
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

/// Takes the jobs of lost workers back as another worker would, which looks for them every few seconds.
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
