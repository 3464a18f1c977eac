//! Claims and ends of runs: with the current lease, an old one, or another job's.

use proptest::prop_assert_eq;
use sqlx::{Row as _, postgres::PgRow};

use super::{
    super::{
        model::{ClaimRow, GROUPS, KNOWN, QUEUES},
        statements::{
            CLAIM, CLAIM_ALONE, END_CANCELLED, END_DONE, END_FAIL, END_HOLD, END_RETRY, END_SNOOZE,
            GIVE_BACK,
        },
        steps::{Fence, Pick, Process},
    },
    Machine, StepResult, pick_one,
};

/// So long that nothing becomes due by itself.
const LONG_SECS: f64 = 36_000.0;

impl Machine {
    pub(super) async fn claim(
        &mut self,
        process: Process,
        n_slots: usize,
        turned: bool,
        after_group: Option<usize>,
    ) -> StepResult {
        let Some(worker) = self.processes[process] else {
            return Ok(());
        };
        let queues = if turned { [1, 0] } else { [0, 1] };
        let claim = sqlx::query(CLAIM)
            .bind(i64::try_from(n_slots).expect("few"))
            .bind(queues.map(|queue| QUEUES[queue]))
            .bind(worker)
            .bind(-1_i16)
            .bind("-infinity")
            .bind(0_i64)
            .bind(after_group.map_or("", |group| GROUPS[group]))
            .bind([KNOWN].as_slice());
        let rows = claim.fetch_all(&mut self.conn).await.unwrap();
        let rows: Vec<ClaimRow> = rows.iter().map(claimed).collect();
        self.model.claim(worker, n_slots, &queues, &rows)
    }

    pub(super) async fn claim_alone(&mut self, process: Process) -> StepResult {
        let Some(worker) = self.processes[process] else {
            return Ok(());
        };
        let claim =
            sqlx::query(CLAIM_ALONE).bind(QUEUES.as_slice()).bind(worker).bind([KNOWN].as_slice());
        let rows = claim.fetch_all(&mut self.conn).await.unwrap();
        let rows: Vec<ClaimRow> = rows.iter().map(claimed).collect();
        self.model.claim_alone(worker, &[0, 1], &rows)
    }

    pub(super) async fn end_done(&mut self, picks: &[(Pick, Fence)]) -> StepResult {
        let runs = self.fenced_all(picks);
        let rows = self.call_with_arrays(END_DONE, &runs, None).await;
        let mut expected = Vec::new();
        for (id, lease) in runs {
            expected.extend(self.model.end_done(id, lease));
        }
        expected.sort_unstable();
        prop_assert_eq!(rows, expected);
        Ok(())
    }

    pub(super) async fn give_back(&mut self, picks: &[(Pick, Fence)]) -> StepResult {
        let runs = self.fenced_all(picks);
        let rows = self.call_with_arrays(GIVE_BACK, &runs, Some("drain")).await;
        let mut expected = Vec::new();
        for (id, lease) in runs {
            expected.extend(self.model.give_back(id, lease));
        }
        expected.sort_unstable();
        prop_assert_eq!(rows, expected);
        Ok(())
    }

    pub(super) async fn end_retry(&mut self, pick: Pick, fence: Fence) -> StepResult {
        let Some((id, lease)) = self.fenced(pick, fence) else {
            return Ok(());
        };
        // As the service decides: without attempts left, the job fails.
        let job = self.model.jobs.get(&id);
        if job.is_some_and(|job| job.attempt >= job.spec.max_attempts) {
            return self.fail(id, lease, "exhausted", false).await;
        }
        let asked_secs = if pick.is_multiple_of(2) { Some(LONG_SECS) } else { None };
        let retry = sqlx::query(END_RETRY)
            .bind(id)
            .bind(lease)
            .bind("boom")
            .bind(LONG_SECS)
            .bind(LONG_SECS)
            .bind(asked_secs);
        let ended = retry.fetch_optional(&mut self.conn).await.unwrap().is_some();
        prop_assert_eq!(ended, self.model.end_retry(id, lease));
        Ok(())
    }

    pub(super) async fn end_snooze(&mut self, pick: Pick, fence: Fence) -> StepResult {
        let Some((id, lease)) = self.fenced(pick, fence) else {
            return Ok(());
        };
        let (until, secs) = match pick % 2 {
            0 => (None, Some(LONG_SECS)),
            _ => (Some("2999-01-01T00:00:00Z"), None),
        };
        let snooze = sqlx::query(END_SNOOZE).bind(id).bind(lease).bind(until).bind(secs);
        let snooze = snooze.bind("rate limit").bind("limit");
        let ended = snooze.fetch_optional(&mut self.conn).await.unwrap().is_some();
        prop_assert_eq!(ended, self.model.end_snooze(id, lease));
        Ok(())
    }

    pub(super) async fn end_hold(&mut self, pick: Pick, fence: Fence) -> StepResult {
        let Some((id, lease)) = self.fenced(pick, fence) else {
            return Ok(());
        };
        let hold = sqlx::query(END_HOLD).bind(id).bind(lease).bind("a person decides");
        let ended = hold.fetch_optional(&mut self.conn).await.unwrap().is_some();
        prop_assert_eq!(ended, self.model.end_hold(id, lease));
        Ok(())
    }

    pub(super) async fn end_fail(&mut self, pick: Pick, fence: Fence, hold: bool) -> StepResult {
        let Some((id, lease)) = self.fenced(pick, fence) else {
            return Ok(());
        };
        let reason = if pick.is_multiple_of(2) { "failed" } else { "bad_payload" };
        self.fail(id, lease, reason, hold).await
    }

    async fn fail(&mut self, id: i64, lease: i64, reason: &'static str, hold: bool) -> StepResult {
        let fail = sqlx::query(END_FAIL).bind(id).bind(lease).bind(reason).bind("boom").bind(hold);
        let row = fail.fetch_optional(&mut self.conn).await.unwrap();
        let state = row.map(|row| row.get::<String, _>(1));
        prop_assert_eq!(state.as_deref(), self.model.end_fail(id, lease, reason, hold));
        Ok(())
    }

    pub(super) async fn end_cancelled(&mut self, pick: Pick, fence: Fence) -> StepResult {
        let Some((id, lease)) = self.fenced(pick, fence) else {
            return Ok(());
        };
        let cancelled = sqlx::query(END_CANCELLED).bind(id).bind(lease).bind(None::<&str>);
        let row = cancelled.fetch_optional(&mut self.conn).await.unwrap();
        let owed = row.map(|row| row.get::<bool, _>(1));
        prop_assert_eq!(owed, self.model.end_cancelled(id, lease));
        Ok(())
    }

    /// Calls a statement that takes ids and leases. Returns its rows, sorted.
    pub(super) async fn call_with_arrays(
        &mut self,
        sql: &'static str,
        runs: &[(i64, i64)],
        reason: Option<&str>,
    ) -> Vec<(i64, bool)> {
        let (ids, leases): (Vec<i64>, Vec<i64>) = runs.iter().copied().unzip();
        let mut call = sqlx::query(sql).bind(ids).bind(leases);
        if reason.is_some() {
            call = call.bind(reason);
        }
        let rows = call.fetch_all(&mut self.conn).await.unwrap();
        let mut rows: Vec<(i64, bool)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        rows.sort_unstable();
        rows
    }

    /// Returns several runs, each job once, as a worker writes them.
    fn fenced_all(&self, picks: &[(Pick, Fence)]) -> Vec<(i64, i64)> {
        let mut runs: Vec<(i64, i64)> =
            picks.iter().filter_map(|(pick, fence)| self.fenced(*pick, *fence)).collect();
        runs.sort_unstable();
        runs.dedup_by_key(|run| run.0);
        // The statements compare sets. That equals comparing pairs unless a call names one job's lease with another
        // job, which no worker can do: it got both from one claim.
        let ids: Vec<i64> = runs.iter().map(|run| run.0).collect();
        let owners = self.model.running();
        runs.retain(|(id, lease)| {
            owners.iter().all(|(owner, held)| held != lease || owner == id || !ids.contains(owner))
        });
        runs
    }

    /// Returns a run to write for, with the lease to name.
    pub(super) fn fenced(&self, pick: Pick, fence: Fence) -> Option<(i64, i64)> {
        let running = self.model.running();
        if fence == Fence::Current {
            return pick_one(&running, pick);
        }
        let ended =
            self.model.runs.iter().flat_map(|(id, runs)| runs.iter().map(|run| (*id, run.0)));
        let stale: Vec<(i64, i64)> = ended.filter(|run| run.1 > 0).collect();
        match fence {
            Fence::Stale => pick_one(&stale, pick)
                .or_else(|| pick_one(&running, pick).map(|(id, lease)| (id, lease + 1_000_000))),
            Fence::Current | Fence::Foreign => {
                let (id, _) = pick_one(&self.model.running(), pick)?;
                let others: Vec<(i64, i64)> =
                    running.into_iter().filter(|run| run.0 != id).collect();
                pick_one(&others, pick).map(|(_, lease)| (id, lease))
            }
        }
    }
}

fn claimed(row: &PgRow) -> ClaimRow {
    ClaimRow {
        id: row.get(0),
        lease: row.get(1),
        attempt: row.get(7),
        lane: row.get(4),
        payload: row.get(11),
    }
}
