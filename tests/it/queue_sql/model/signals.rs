//! Jobs that wait for a signal of the application.

use std::collections::BTreeSet;

use super::{Model, Spec, State};

const AWAITS_SIGNAL: State = State::Scheduled("signal");

impl Model {
    pub fn waiting(&self) -> Vec<i64> {
        let waiting = self.jobs.iter().filter(|(_, job)| job.state == AWAITS_SIGNAL);
        waiting.map(|(id, _)| *id).collect()
    }

    /// `dalsegno.enqueue` without a time, and `dalsegno.await_signal`.
    pub fn enqueue_waiting(&mut self, id: i64, spec: &Spec) {
        self.enqueue(id, spec);
        self.jobs.get_mut(&id).expect("the job was just enqueued").state = AWAITS_SIGNAL;
    }

    /// `dalsegno.signal`: skips locked jobs. Returns how many were signalled, and those that were postponed because
    /// their lane was busy.
    pub fn signal(&mut self, ids: &[i64], later: bool) -> (i32, Vec<i64>) {
        let told: BTreeSet<i64> = ids
            .iter()
            .copied()
            .filter(|id| self.jobs.get(id).is_some_and(|job| job.state == AWAITS_SIGNAL))
            .filter(|id| !self.job_is_locked(*id))
            .collect();
        for id in &told {
            let job = self.jobs.get_mut(id).expect("the job waits");
            (job.state, job.due) = (State::Scheduled("later"), !later);
            // After those that were due before, because its time is now.
            job.run_at = i64::MAX;
        }
        let put_off = match later || told.is_empty() {
            true => Vec::new(),
            // Together with all other due jobs.
            false => self.promote_due().1,
        };
        (i32::try_from(told.len()).expect("few"), put_off)
    }

    /// `dalsegno.put_aside`: jobs that have not begun, are not held and not locked lose their place and wait.
    pub fn put_aside(&mut self, ids: &[i64]) -> i32 {
        let ids: BTreeSet<i64> = ids.iter().copied().collect();
        let (mut n_aside, mut lanes) = (0, BTreeSet::new());
        for id in ids {
            if self.job_is_locked(id) {
                continue;
            }
            let Some(job) = self.jobs.get_mut(&id).filter(|job| job.hold_by.is_none()) else {
                continue;
            };
            match job.state {
                State::Ready => lanes.extend(job.spec.lane),
                State::Blocked | State::Scheduled("later") => {}
                _ => continue,
            }
            (job.state, job.place, job.due) = (AWAITS_SIGNAL, None, false);
            n_aside += 1;
        }
        self.owed.extend(&lanes);
        self.promote_lanes(lanes);
        n_aside
    }

    /// `give_back`, then `dalsegno.put_aside`. False: the lease is not the current one.
    pub fn end_aside(&mut self, id: i64, lease: i64) -> bool {
        if self.give_back(id, lease).is_none() {
            return false;
        }
        self.put_aside(&[id]);
        true
    }
}
