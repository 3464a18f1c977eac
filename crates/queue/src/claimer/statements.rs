//! The two statements that claim.

use chrono::{DateTime, Utc};
use tokio::time::Instant;
use uuid::Uuid;

use super::{
    super::{
        link::{self, wait_for_answer},
        run::ClaimedJob,
        telemetry,
    },
    Claimer,
    floor::ClaimPosition,
    state::ClaimerState,
};

/// Id of a row that is no job: its group is the last of those without a job for this worker.
const PASSED_GROUPS: i64 = 0;

/// A claimed job.
pub(super) struct Row {
    id: i64,
    lease: i64,
    queue: String,
    pub(super) kind: String,
    lane: Option<String>,
    group_key: Option<String>,
    priority: i16,
    attempt: i16,
    max_attempts: i16,
    run_at: DateTime<Utc>,
    claimed_at: DateTime<Utc>,
    payload: String,
    headers: Option<String>,
    timeout_secs: Option<i32>,
    /// True if its group was served in turn. An urgent job of another group leaves the turns as they are.
    in_turn: bool,
}

impl Row {
    pub(super) fn into_facts(self) -> (ClaimedJob, String) {
        let facts = ClaimedJob {
            job_id: self.id,
            lease: self.lease,
            kind: self.kind,
            queue: self.queue,
            lane: self.lane,
            attempt: self.attempt,
            max_attempts: self.max_attempts,
            timeout_secs: self.timeout_secs,
            headers: self.headers,
        };
        (facts, self.payload)
    }

    fn place(&self) -> ClaimPosition {
        (self.priority, self.run_at, self.id)
    }

    fn waited_secs(&self) -> f64 {
        (self.claimed_at - self.run_at)
            .num_microseconds()
            .map_or(0.0, |micros| micros.max(0) as f64 / 1e6)
    }
}

impl Claimer {
    /// Claims up to `n_slots` jobs.
    pub(super) async fn claim_some(
        &mut self,
        worker_id: Uuid,
        n_slots: u32,
        memory: &mut ClaimerState,
    ) -> Result<Vec<Row>, link::Error> {
        // A claim tries the queues in the given order, so each has to be the first in its turn.
        self.queues.rotate_left(1);
        let patience = self.link.patience();
        let conn = self.link.conn().await?;
        let began = Instant::now();
        let (floor_priority, floor_at, floor_id) = memory.floor.begin(began);
        let fetched = sqlx::query_file_as!(
            Row,
            "src/sql/claim.sql",
            i64::from(n_slots),
            &self.queues,
            worker_id,
            floor_priority,
            floor_at,
            floor_id,
            memory.groups.after(),
            &memory.kinds,
        )
        .fetch_all(conn);
        let fetched = wait_for_answer(patience, fetched).await;
        let mut rows = self.link.check_answer(fetched)?;
        let passed = rows.iter().position(|row| row.id == PASSED_GROUPS);
        let passed = passed.and_then(|at| rows.swap_remove(at).group_key);
        let now = Instant::now();
        let full = rows.len() >= n_slots as usize;
        // Positions of several queues have no order between them.
        let single = self.queues.len() == 1;
        let last =
            rows.iter().filter(|row| single && row.group_key.is_none()).map(Row::place).max();
        memory.floor.end(now, now - began, full, last);
        match passed {
            Some(last) => memory.groups.pass(last),
            None => {
                let served = rows.iter().rev().find(|row| row.in_turn);
                memory.groups.serve(served.and_then(|row| row.group_key.as_deref()));
            }
        }
        telemetry::record_claim(now - began, rows.iter().map(Row::waited_secs));
        Ok(rows)
    }

    /// Claims a job whose run has lost two workers, only while no other job runs here.
    pub(super) async fn claim_alone(
        &mut self,
        worker_id: Uuid,
        memory: &ClaimerState,
    ) -> Result<Vec<Row>, link::Error> {
        let patience = self.link.patience();
        let conn = self.link.conn().await?;
        let fetched = sqlx::query_file_as!(
            Row,
            "src/sql/claim_alone.sql",
            &self.queues,
            worker_id,
            &memory.kinds
        )
        .fetch_all(conn);
        let fetched = wait_for_answer(patience, fetched).await;
        self.link.check_answer(fetched)
    }
}
