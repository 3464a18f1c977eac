//! Promotion: the next job of a lane, and the jobs that wait behind it.

use std::collections::BTreeSet;

use super::{Job, Model, State};

impl Model {
    /// Returns the member that is past `blocked`.
    pub fn head(&self, lane: usize) -> Option<i64> {
        let is_head = |job: &Job| {
            job.spec.lane == Some(lane) && job.place.is_some() && job.state != State::Blocked
        };
        self.jobs.iter().find(|(_, job)| is_head(job)).map(|(id, _)| *id)
    }

    /// Returns the first blocked member.
    pub fn first_blocked(&self, lane: usize) -> Option<i64> {
        let waits = |job: &Job| job.spec.lane == Some(lane) && job.state == State::Blocked;
        let line = self.jobs.iter().filter(|(_, job)| waits(job));
        line.min_by_key(|(_, job)| job.place).map(|(id, _)| *id)
    }

    /// `dalsegno.promote_lanes`: skips lanes whose row is locked.
    pub fn promote_lanes(&mut self, lanes: impl IntoIterator<Item = usize>) -> i32 {
        let lanes: BTreeSet<usize> = lanes.into_iter().collect();
        let mut n_promoted = 0;
        for lane in lanes {
            if self.lane_is_locked(lane) {
                continue;
            }
            self.owed.remove(&lane);
            if self.lanes[lane].held || self.head(lane).is_some() {
                continue;
            }
            match self.first_blocked(lane) {
                Some(first) if self.job_is_locked(first) => _ = self.owed.insert(lane),
                Some(first) => {
                    self.promote(first);
                    n_promoted += 1;
                }
                None => {}
            }
        }
        n_promoted
    }

    /// Makes a job the head of its lane; a job marked for a hold is held now.
    pub fn promote(&mut self, id: i64) {
        let job = self.jobs.get_mut(&id).expect("a member of a lane");
        job.state = if job.hold_by.is_some() { State::Held } else { State::Ready };
    }

    /// `dalsegno.sweep_lanes`.
    pub fn sweep(&mut self) -> i32 {
        self.promote_lanes(self.owed.clone())
    }

    /// `dalsegno.promote_due`. Returns how many jobs it looked at, and those that it postponed because their lane was
    /// busy.
    pub fn promote_due(&mut self) -> (i32, Vec<i64>) {
        let mut due: Vec<i64> = self.jobs.keys().copied().collect();
        due.retain(|id| self.jobs[id].due && !self.job_is_locked(*id));
        due.sort_by_key(|id| (self.jobs[id].run_at, *id));
        let (mut put_off, mut touched) = (Vec::new(), BTreeSet::new());
        for id in &due {
            let job = &self.jobs[id];
            let lane = job.spec.lane;
            let mut place = job.place;
            if let (Some(lane), None) = (lane, place) {
                if self.lane_is_locked(lane) {
                    put_off.push(*id);
                    continue;
                }
                place = Some(self.join(lane).1);
            }
            let job = self.jobs.get_mut(id).expect("the job is due");
            job.place = place;
            job.state = match (lane, job.hold_by) {
                (Some(_), _) => State::Blocked,
                (None, None) => State::Ready,
                (None, Some(_)) => State::Held,
            };
            touched.extend(lane);
        }
        for id in &due {
            self.jobs.get_mut(id).expect("the job was due").due = false;
        }
        self.owed.extend(&touched);
        self.promote_lanes(touched);
        (i32::try_from(due.len()).expect("few"), put_off)
    }
}
