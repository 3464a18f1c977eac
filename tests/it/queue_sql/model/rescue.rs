//! Workers that vanish, and workers that return.

use uuid::Uuid;

use super::{Model, State};

impl Model {
    pub fn worker(&self, id: Uuid) -> &super::Worker {
        self.workers.iter().find(|worker| worker.id == id).expect("the worker is registered")
    }

    pub fn worker_mut(&mut self, id: Uuid) -> &mut super::Worker {
        self.workers.iter_mut().find(|worker| worker.id == id).expect("the worker is registered")
    }

    /// `worker_renew`. False: the worker was declared lost.
    pub fn renew(&mut self, id: Uuid) -> bool {
        let worker = self.worker_mut(id);
        if worker.gone.is_some() {
            return false;
        }
        // A gap in its heartbeats restarts the period.
        worker.seasoned &= worker.leased;
        worker.leased = true;
        true
    }

    /// `rescue`. Returns the jobs taken back, with the lost lease and the new state.
    pub fn rescue(&mut self, me: Uuid) -> Vec<(i64, i64, &'static str)> {
        let caller = self.worker(me);
        if caller.gone.is_some() || !caller.leased || !caller.seasoned {
            return Vec::new();
        }
        for worker in &mut self.workers {
            if worker.gone.is_none() && !worker.leased && worker.id != me {
                worker.gone = Some("lost");
            }
        }
        let mut rescued = Vec::new();
        for (id, lease) in self.running() {
            let job = self.jobs.get_mut(&id).expect("the job runs");
            let State::Running { worker, .. } = job.state else { continue };
            if !self.workers.iter().any(|w| w.id == worker && w.gone.is_some()) {
                continue;
            }
            job.crash_count += 1;
            let state = if job.crash_count < 3 {
                job.state = State::Scheduled("crash");
                job.attempt -= 1;
                "scheduled"
            } else {
                self.give_up(id, lease, "worker_lost", false)
            };
            self.record(id, lease, "lost");
            rescued.push((id, lease, state));
        }
        rescued
    }

    /// `unmark_crashes` for one run. Returns whether the job was revived; `None`: the run was not lost.
    pub fn unmark_crash(&mut self, id: i64, lease: i64) -> Option<bool> {
        let runs = self.runs.get_mut(&id)?;
        let run = runs.iter_mut().find(|run| **run == (lease, "lost"))?;
        run.1 = "interrupted";
        if let Some(job) = self.jobs.get_mut(&id) {
            job.crash_count = (job.crash_count - 1).max(0);
            job.due |= job.state == State::Scheduled("crash");
        }
        let dead = self.dead.get(&id);
        let revived = dead.is_some_and(|dead| dead.lease == lease && dead.reason == "worker_lost");
        if revived {
            self.retry(id).expect("the job is dead");
        }
        Some(revived)
    }
}
