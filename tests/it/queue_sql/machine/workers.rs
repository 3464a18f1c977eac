//! Workers: their leases, their ends, and rescues between them.

use proptest::prop_assert_eq;
use sqlx::Row as _;
use uuid::Uuid;

use super::{
    super::{
        model::{KNOWN, QUEUES, Worker},
        statements::{
            RESCUE, UNMARK_CRASHES, WORKER_DRAIN, WORKER_REGISTER, WORKER_RENEW, WORKER_STOP,
        },
        steps::{Pick, Process},
    },
    Machine, StepResult, pick_one,
};

/// So long that no lease expires by itself, and no worker becomes seasoned by waiting.
const LEASE_SECS: f64 = 3600.0;

impl Machine {
    /// Registers a new incarnation, if the last one is gone or has lost its lease.
    pub(super) async fn register(&mut self, process: Process) -> StepResult {
        if self.processes[process].is_some_and(|id| self.model.worker(id).serves()) {
            return Ok(());
        }
        let id = Uuid::new_v4();
        let registered = sqlx::query(WORKER_REGISTER)
            .bind(id)
            .bind(LEASE_SECS)
            .bind(5_i32)
            .bind(QUEUES.as_slice())
            .bind("host")
            .bind(1_i32)
            .bind("test")
            .bind([KNOWN].as_slice());
        prop_assert_eq!(registered.fetch_all(&mut self.conn).await.unwrap().len(), 1);
        self.processes[process] = Some(id);
        let (leased, draining, seasoned, gone) = (true, false, false, None);
        self.model.workers.push(Worker { id, leased, draining, seasoned, gone });
        Ok(())
    }

    /// Sends a heartbeat with the jobs that the worker believes to run, some of which it has lost.
    pub(super) async fn renew(&mut self, process: Process) -> StepResult {
        let Some(id) = self.processes[process] else {
            return Ok(());
        };
        let mut believed = self.model.running();
        believed
            .extend(self.model.runs.iter().filter_map(|(id, runs)| Some((*id, runs.last()?.0))));
        let (ids, leases): (Vec<i64>, Vec<i64>) = believed.iter().copied().unzip();
        let renewed = sqlx::query(WORKER_RENEW).bind(id).bind(LEASE_SECS).bind(&ids).bind(&leases);
        let row = renewed.fetch_optional(&mut self.conn).await.unwrap();
        prop_assert_eq!(row.is_some(), self.model.renew(id));
        if let Some(row) = row {
            let running = self.model.running();
            let lost: Vec<i64> =
                believed.iter().filter(|run| !running.contains(run)).map(|run| run.1).collect();
            prop_assert_eq!(row.get::<Vec<i64>, _>(1), lost);
            let asked = believed.iter().filter(|run| self.model.requests.contains(&run.0));
            let asked: Vec<i64> = asked.map(|run| run.1).collect();
            prop_assert_eq!(row.get::<Vec<i64>, _>(2), asked);
        }
        Ok(())
    }

    pub(super) async fn expire(&mut self, process: Process) -> StepResult {
        self.rewrite_worker(process, "lease_until = now() - interval '1 second'").await;
        if let Some(id) = self.processes[process] {
            self.model.worker_mut(id).leased = false;
        }
        Ok(())
    }

    pub(super) async fn season(&mut self, process: Process) -> StepResult {
        self.rewrite_worker(process, "renewing_since = now() - interval '2 hours'").await;
        if let Some(id) = self.processes[process] {
            self.model.worker_mut(id).seasoned = true;
        }
        Ok(())
    }

    async fn rewrite_worker(&mut self, process: Process, set: &str) {
        let sql = format!("UPDATE dalsegno.workers SET {set} WHERE id = $1");
        let rewrite = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(self.processes[process]);
        rewrite.execute(&mut self.conn).await.unwrap();
    }

    pub(super) async fn drain_worker(&mut self, process: Process) -> StepResult {
        let Some(id) = self.processes[process] else {
            return Ok(());
        };
        sqlx::query(WORKER_DRAIN).bind(id).execute(&mut self.conn).await.unwrap();
        let worker = self.model.worker_mut(id);
        worker.draining |= worker.gone.is_none();
        Ok(())
    }

    pub(super) async fn stop(&mut self, process: Process) -> StepResult {
        let Some(id) = self.processes[process] else {
            return Ok(());
        };
        sqlx::query(WORKER_STOP).bind(id).execute(&mut self.conn).await.unwrap();
        let worker = self.model.worker_mut(id);
        worker.gone = worker.gone.or(Some("stopped"));
        Ok(())
    }

    pub(super) async fn rescue(&mut self, process: Process) -> StepResult {
        let Some(id) = self.processes[process] else {
            return Ok(());
        };
        // A backoff that does not end by itself.
        let rescue = sqlx::query(RESCUE).bind(id).bind(LEASE_SECS).bind(1e6).bind(100_i32);
        let rows = rescue.fetch_all(&mut self.conn).await.unwrap();
        let mut rescued: Vec<(i64, i64, String)> =
            rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
        rescued.sort_unstable();
        let expected = self.model.rescue(id);
        let expected: Vec<_> =
            expected.into_iter().map(|(id, lease, state)| (id, lease, state.to_owned())).collect();
        prop_assert_eq!(rescued, expected);
        Ok(())
    }

    /// Reports a run as interrupted, which may have been lost or not.
    pub(super) async fn unmark_crash(&mut self, pick: Pick) -> StepResult {
        let mut runs: Vec<(i64, i64)> = Vec::new();
        let mut lost: Vec<(i64, i64)> = Vec::new();
        for (id, ended) in &self.model.runs {
            runs.extend(ended.iter().map(|run| (*id, run.0)));
            lost.extend(ended.iter().filter(|run| run.1 == "lost").map(|run| (*id, run.0)));
        }
        let Some((id, lease)) = pick_one(&lost, pick).or_else(|| pick_one(&runs, pick)) else {
            return Ok(());
        };
        let (ids, leases) = ([id], [lease]);
        let unmark = sqlx::query(UNMARK_CRASHES).bind(ids.as_slice()).bind(leases.as_slice());
        let row = unmark.fetch_optional(&mut self.conn).await.unwrap();
        let revived = row.map(|row| row.get::<bool, _>(1));
        prop_assert_eq!(revived, self.model.unmark_crash(id, lease));
        Ok(())
    }
}
