//! Actions of people: cancel, hold, release, retry.

use super::{Model, State};

impl Model {
    /// `dalsegno.cancel`.
    pub fn cancel(&mut self, id: i64) -> &'static str {
        let Some(job) = self.jobs.get(&id) else {
            return self.state_of(id);
        };
        if matches!(job.state, State::Running { .. }) {
            self.requests.insert(id);
            return "requested";
        }
        let was_head = job.place.is_some() && job.state != State::Blocked;
        let lane = job.spec.lane.filter(|_| was_head);
        self.jobs.remove(&id);
        self.requests.remove(&id);
        self.ended.insert(id, "cancelled");
        self.record(id, 0, "cancelled");
        if let Some(lane) = lane {
            self.owed.insert(lane);
            self.promote_lanes([lane]);
        }
        "cancelled"
    }

    /// `dalsegno.apply_cancel_requests`.
    pub fn apply_cancel_requests(&mut self) -> i32 {
        let mut n_applied = 0;
        for id in self.requests.clone() {
            match self.jobs.get(&id).map(|job| job.state) {
                Some(State::Running { .. }) => continue,
                Some(_) => _ = self.cancel(id),
                None => _ = self.requests.remove(&id),
            }
            n_applied += 1;
        }
        n_applied
    }

    /// `dalsegno.hold_job`: returns the new state, or the code of the refusal.
    pub fn hold_job(&mut self, id: i64) -> Result<&'static str, &'static str> {
        let job = self.jobs.get_mut(&id).ok_or("DS404")?;
        match job.state {
            State::Running { .. } => return Err("DS409"),
            State::Held => {}
            State::Ready => (job.state, job.hold_by) = (State::Held, Some("person")),
            State::Scheduled(_) | State::Blocked => job.hold_by = Some("person"),
        }
        Ok(job.state.word())
    }

    /// `dalsegno.release_job`.
    pub fn release_job(&mut self, id: i64) -> Result<&'static str, &'static str> {
        let job = self.jobs.get_mut(&id).ok_or("DS404")?;
        if job.hold_by.is_none() {
            return Err("DS409");
        }
        if job.hold_by.take() == Some("failure") {
            (job.attempt, job.crash_count) = (0, 0);
        }
        let lane = job.spec.lane;
        if job.state == State::Held {
            job.state = if lane.is_some() { State::Blocked } else { State::Ready };
        }
        if job.state == State::Blocked {
            // Also for a job that was only marked, because its lane may be owed a promotion.
            self.owed.extend(lane);
            self.promote_lanes(lane);
        }
        Ok(self.state_of(id))
    }

    /// `dalsegno.retry`.
    pub fn retry(&mut self, id: i64) -> Result<&'static str, &'static str> {
        if let Some(dead) = self.dead.remove(&id) {
            let spec = super::Spec { later: false, ..dead.spec };
            self.enqueue(id, &spec);
            self.requests.remove(&id);
            if let Some(lane) = spec.lane {
                // It joins the lane like other jobs, and the order decides.
                self.jobs.get_mut(&id).expect("just enqueued").state = State::Blocked;
                self.promote_lanes([lane]);
            }
            return Ok(self.state_of(id));
        }
        let job = self.jobs.get_mut(&id).ok_or("DS404")?;
        match (job.state, job.hold_by) {
            (State::Held, Some("failure")) => return self.release_job(id),
            (State::Scheduled(_), _) => {
                (job.due, job.run_at) = (true, i64::MAX);
                self.promote_due();
            }
            _ => {}
        }
        Ok(self.state_of(id))
    }

    /// `dalsegno.hold_lane`. False: the lane does not exist.
    pub fn hold_lane(&mut self, lane: usize) -> bool {
        if self.lanes[lane].exists {
            self.lanes[lane].held = true;
            if let Some(head) = self.head(lane) {
                let job = self.jobs.get_mut(&head).expect("a head");
                if job.state == State::Ready {
                    job.state = State::Blocked;
                }
            }
        }
        self.lanes[lane].exists
    }

    /// `dalsegno.release_lane`.
    pub fn release_lane(&mut self, lane: usize) -> bool {
        if self.lanes[lane].exists {
            self.lanes[lane].held = false;
            let failed = self.head(lane).filter(|id| {
                let job = &self.jobs[id];
                job.state == State::Held && job.hold_by == Some("failure")
            });
            if let Some(failed) = failed {
                let lease = self.runs[&failed].iter().map(|run| run.0).max().unwrap_or(0);
                self.bury(failed, lease, "failed");
            }
            self.promote_lanes([lane]);
        }
        self.lanes[lane].exists
    }
}
