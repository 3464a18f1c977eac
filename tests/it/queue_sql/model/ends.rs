//! Ends of runs. Each names a job and a lease, and has no effect unless that lease is the current one.

use super::{DeadJob, Job, Model, State};

impl Model {
    /// Returns the job, if it runs under this lease.
    fn run(&mut self, id: i64, lease: i64) -> Option<&mut Job> {
        let job = self.jobs.get_mut(&id)?;
        matches!(job.state, State::Running { lease: current, .. } if current == lease)
            .then_some(job)
    }

    /// `end_done`. Returns the job that ended, and whether its lane is owed a promotion.
    pub fn end_done(&mut self, id: i64, lease: i64) -> Option<(i64, bool)> {
        self.run(id, lease)?;
        let job = self.jobs.remove(&id)?;
        self.record(id, lease, "done");
        self.ended.insert(id, "done");
        let Some(lane) = job.spec.lane else {
            return Some((id, false));
        };
        let next = self.first_blocked(lane);
        let busy = self.lane_is_locked(lane);
        if busy || !self.lanes[lane].held && next.is_some_and(|next| self.job_is_locked(next)) {
            self.owed.insert(lane);
            return Some((id, true));
        }
        if let (Some(next), false) = (next, self.lanes[lane].held) {
            self.promote(next);
        }
        Some((id, false))
    }

    /// `end_retry`, with a backoff that does not end by itself.
    pub fn end_retry(&mut self, id: i64, lease: i64) -> bool {
        self.postpone(id, lease, "retry", false)
    }

    /// `end_snooze`, for a time that does not come by itself.
    pub fn end_snooze(&mut self, id: i64, lease: i64) -> bool {
        self.postpone(id, lease, "snooze", true)
    }

    fn postpone(&mut self, id: i64, lease: i64, reason: &'static str, unburned: bool) -> bool {
        let Some(job) = self.run(id, lease) else {
            return false;
        };
        job.state = State::Scheduled(reason);
        job.crash_count = 0;
        job.attempt -= i16::from(unburned);
        self.record(id, lease, reason);
        true
    }

    /// `end_fail`. Returns the new state.
    pub fn end_fail(
        &mut self,
        id: i64,
        lease: i64,
        reason: &'static str,
        hold: bool,
    ) -> Option<&'static str> {
        let lane = self.run(id, lease)?.spec.lane;
        self.record(id, lease, "failed");
        Some(self.give_up(id, lease, reason, lane.is_some() && hold))
    }

    /// Ends a job without another attempt: held at the head of its lane if the lane or the handler requires it.
    pub fn give_up(
        &mut self,
        id: i64,
        lease: i64,
        reason: &'static str,
        hold: bool,
    ) -> &'static str {
        let job = self.jobs.get_mut(&id).expect("the job ran");
        let lane = job.spec.lane;
        if hold || lane.is_some_and(|lane| self.lanes[lane].hold_on_failure) {
            (job.state, job.hold_by) = (State::Held, Some("failure"));
            return "held";
        }
        self.bury(id, lease, reason);
        self.owed.extend(lane);
        "dead"
    }

    pub fn bury(&mut self, id: i64, lease: i64, reason: &'static str) {
        let Job { spec, attempt, crash_count, .. } =
            self.jobs.remove(&id).expect("the job is live");
        self.dead.insert(id, DeadJob { spec, attempt, crash_count, lease, reason });
    }

    /// `end_cancelled`.
    pub fn end_cancelled(&mut self, id: i64, lease: i64) -> Option<bool> {
        self.run(id, lease)?;
        let job = self.jobs.remove(&id)?;
        self.record(id, lease, "cancelled");
        self.ended.insert(id, "cancelled");
        self.owed.extend(job.spec.lane);
        Some(job.spec.lane.is_some())
    }

    /// `give_back`.
    pub fn give_back(&mut self, id: i64, lease: i64) -> Option<(i64, bool)> {
        let job = self.run(id, lease)?;
        let lane = job.spec.lane;
        job.state = if lane.is_some() { State::Blocked } else { State::Ready };
        job.attempt -= 1;
        job.crash_count = 0;
        self.owed.extend(lane);
        self.record(id, lease, "given_back");
        Some((id, lane.is_some()))
    }

    /// `end_hold`.
    pub fn end_hold(&mut self, id: i64, lease: i64) -> bool {
        let Some(job) = self.run(id, lease) else {
            return false;
        };
        (job.state, job.hold_by) = (State::Held, Some("person"));
        job.attempt -= 1;
        job.crash_count = 0;
        self.record(id, lease, "given_back");
        true
    }
}
