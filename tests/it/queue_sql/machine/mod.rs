//! Runs each step on a real database and in the model, and compares the two.
//!
//! The sequence is driven by hand, without proptest's state-machine crate: ids and leases are known only from the
//! database's answers, from which the model learns them step by step.

mod callers;
mod drain;
mod runs;
mod signals;
mod workers;

use proptest::{prop_assert, prop_assert_eq, test_runner::TestCaseError};
use sqlx::{Executor as _, PgConnection, Row as _};
use uuid::Uuid;

use super::{
    model::Model,
    snapshot,
    statements::{CANCEL_SWEEP, COUNTERS_ROLL_UP, LANE_SWEEP, PROMOTE, worker_session},
    steps::{N_PROCESSES, Pick, Step},
};
use crate::app::TestDatabase;

type StepResult = Result<(), TestCaseError>;

pub struct Machine {
    conn: PgConnection,
    /// Connection of the application with the open transaction.
    open: PgConnection,
    model: Model,
    /// Latest incarnation of each process.
    processes: [Option<Uuid>; N_PROCESSES],
}

impl Machine {
    pub async fn new(database: &TestDatabase) -> Self {
        Self {
            conn: worker_session(database).await,
            open: worker_session(database).await,
            model: Model::default(),
            processes: [None; N_PROCESSES],
        }
    }

    /// Runs one sequence on an empty queue, and then until nothing is left.
    pub async fn run(&mut self, steps: &[Step]) -> StepResult {
        self.reset().await;
        for step in [Step::Register(0), Step::Register(1), Step::Season(0)].iter().chain(steps) {
            self.step(step).await?;
        }
        self.drain().await
    }

    /// Runs one step, and compares everything.
    async fn step(&mut self, step: &Step) -> StepResult {
        if waits_for_locks(step) {
            // Its statement may wait for the application's transaction, which therefore commits first.
            self.finish_open(true).await;
        }
        self.make(step).await?;
        snapshot::compare(&mut self.conn, &mut self.model).await
    }

    async fn make(&mut self, step: &Step) -> StepResult {
        match step {
            Step::Enqueue(spec) => self.enqueue(spec).await,
            Step::EnqueueMany(specs) => self.enqueue_many(specs).await,
            Step::OpenEnqueue(spec) => self.open_with_enqueue(spec).await,
            Step::OpenCancel(pick) => self.open_with_cancel(*pick).await,
            Step::FinishOpen { commit } => {
                self.finish_open(*commit).await;
                Ok(())
            }
            Step::EnqueueWaiting(spec) => self.enqueue_waiting(spec).await,
            Step::Signal { picks, later } => self.signal(picks, *later).await,
            Step::PutAside(picks) => self.put_aside(picks).await,
            Step::Cancel(pick) => self.cancel(*pick).await,
            Step::HoldJob(pick) => self.hold_job(*pick).await,
            Step::ReleaseJob(pick) => self.release_job(*pick).await,
            Step::RetryJob(pick) => self.retry_job(*pick).await,
            Step::HoldLane(lane) => self.hold_lane(*lane).await,
            Step::ReleaseLane(lane) => self.release_lane(*lane).await,
            Step::LanePolicy(lane, hold) => self.lane_policy(*lane, *hold).await,
            Step::PauseQueue(queue) => self.pause("queue", super::model::QUEUES[*queue]).await,
            Step::PauseGroup(group) => self.pause("group", super::model::GROUPS[*group]).await,
            Step::Resume(pick) => self.resume(*pick).await,

            Step::Register(process) => self.register(*process).await,
            Step::Renew(process) => self.renew(*process).await,
            Step::Expire(process) => self.expire(*process).await,
            Step::Season(process) => self.season(*process).await,
            Step::Drain(process) => self.drain_worker(*process).await,
            Step::Stop(process) => self.stop(*process).await,
            Step::Rescue(process) => self.rescue(*process).await,
            Step::UnmarkCrash(pick) => self.unmark_crash(*pick).await,

            Step::Claim { process, n_slots, turned, after_group } => {
                self.claim(*process, *n_slots, *turned, *after_group).await
            }
            Step::ClaimAlone(process) => self.claim_alone(*process).await,
            Step::EndDone(picks) => self.end_done(picks).await,
            Step::EndRetry(pick, fence) => self.end_retry(*pick, *fence).await,
            Step::EndSnooze(pick, fence) => self.end_snooze(*pick, *fence).await,
            Step::EndHold(pick, fence) => self.end_hold(*pick, *fence).await,
            Step::EndFail(pick, fence, hold) => self.end_fail(*pick, *fence, *hold).await,
            Step::EndCancelled(pick, fence) => self.end_cancelled(*pick, *fence).await,
            Step::GiveBack(picks) => self.give_back(picks).await,
            Step::EndAside(pick, fence) => self.end_aside(*pick, *fence).await,

            Step::Due(pick) => self.due(*pick).await,
            Step::Promote => self.promote().await,
            Step::Sweep => self.sweep().await,
            Step::CancelSweep => self.cancel_sweep().await,
            Step::RollUp => self.roll_up().await,
        }
    }

    async fn reset(&mut self) {
        self.open.execute("ROLLBACK").await.unwrap();
        let tables =
            "jobs job_payloads lanes lane_sweeps runs dead_jobs workers pauses cancel_requests
                      idempotency_keys transition_deltas transition_totals";
        for table in tables.split_whitespace() {
            // Faster than `truncate`: the tables are nearly empty, and no files are created.
            let sql = format!("DELETE FROM dalsegno.{table}");
            self.conn.execute(sqlx::AssertSqlSafe(sql)).await.unwrap();
        }
        let newest = "SELECT nextval('dalsegno.leases')";
        self.model = Model {
            last_lease: sqlx::query_scalar(newest).fetch_one(&mut self.conn).await.unwrap(),
            ..Model::default()
        };
        self.processes = [None; N_PROCESSES];
    }

    /// Makes a scheduled job due.
    async fn due(&mut self, pick: Pick) -> StepResult {
        let scheduled = self.model.jobs.iter().filter(|(id, job)| {
            job.state.word() == "scheduled" && !job.due && !self.model.job_is_locked(**id)
        });
        let Some(id) = pick_one(&scheduled.map(|(id, _)| *id).collect::<Vec<_>>(), pick) else {
            return Ok(());
        };
        self.set_run_at(id, "clock_timestamp()").await;
        self.model.jobs.get_mut(&id).expect("the job is scheduled").due = true;
        Ok(())
    }

    async fn promote(&mut self) -> StepResult {
        let row = sqlx::query(PROMOTE).bind(1000_i32).fetch_one(&mut self.conn).await.unwrap();
        // A due job that stays because it is locked is no reason to look again at once.
        let later = |job: &super::model::Job| job.state.word() == "scheduled" && !job.due;
        let waits = self.model.jobs.values().any(later);
        let (moved, put_off) = self.model.promote_due();
        let promoted = self.model.sweep();
        prop_assert_eq!((row.get::<i32, _>(0), row.get::<i32, _>(1)), (moved, promoted));
        prop_assert_eq!(row.get::<Option<f64>, _>(2).is_some(), waits, "next_run_in_secs");
        self.extend_delays(put_off).await
    }

    /// Extends delays of a second, which could end between two steps, to an hour.
    pub(super) async fn extend_delays(&mut self, put_off: Vec<i64>) -> StepResult {
        for id in put_off {
            let was_put_off = "SELECT run_at > enqueued_at FROM dalsegno.jobs WHERE id = $1";
            let was: bool =
                sqlx::query_scalar(was_put_off).bind(id).fetch_one(&mut self.conn).await.unwrap();
            prop_assert!(was);
            self.set_run_at(id, "clock_timestamp() + interval '1 hour'").await;
        }
        Ok(())
    }

    async fn set_run_at(&mut self, id: i64, moment: &str) {
        let sql = format!("UPDATE dalsegno.jobs SET run_at = {moment} WHERE id = {id}");
        self.conn.execute(sqlx::AssertSqlSafe(sql)).await.unwrap();
    }

    async fn sweep(&mut self) -> StepResult {
        let promoted: i32 = self.number(LANE_SWEEP, 1000).await;
        prop_assert_eq!(promoted, self.model.sweep());
        Ok(())
    }

    async fn cancel_sweep(&mut self) -> StepResult {
        let applied: i32 = self.number(CANCEL_SWEEP, 1000).await;
        prop_assert_eq!(applied, self.model.apply_cancel_requests());
        Ok(())
    }

    /// Moves the counts to another table, without changing them.
    async fn roll_up(&mut self) -> StepResult {
        let rolled = sqlx::query(COUNTERS_ROLL_UP).bind(7_i32).fetch_one(&mut self.conn).await;
        prop_assert!(rolled.unwrap().get::<i64, _>(0) <= 7);
        Ok(())
    }

    async fn number(&mut self, sql: &'static str, limit: i32) -> i32 {
        sqlx::query_scalar(sql).bind(limit).fetch_one(&mut self.conn).await.unwrap()
    }
}

/// Returns true for statements that wait for a locked lane or job; all others skip it.
fn waits_for_locks(step: &Step) -> bool {
    matches!(
        step,
        Step::Enqueue(_)
            | Step::EnqueueMany(_)
            | Step::EnqueueWaiting(_)
            | Step::OpenEnqueue(_)
            | Step::OpenCancel(_)
            | Step::Cancel(_)
            | Step::CancelSweep
            | Step::HoldJob(_)
            | Step::ReleaseJob(_)
            | Step::RetryJob(_)
            | Step::HoldLane(_)
            | Step::ReleaseLane(_)
            | Step::LanePolicy(..)
            | Step::UnmarkCrash(_)
    )
}

fn pick_one<T: Copy>(from: &[T], pick: Pick) -> Option<T> {
    from.get(usize::from(pick) % from.len().max(1)).copied()
}
