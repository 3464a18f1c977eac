//! One open transaction of an application, while other processes continue.
//!
//! Its changes are invisible until it commits, and vanish if it rolls back. Other processes wait for its locks or skip
//! them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Job, Lane, Model, Spec};

/// The changes that the open transaction's commit makes.
#[derive(Debug, Clone)]
pub struct OpenTransaction {
    locked_lanes: BTreeSet<usize>,
    locked_jobs: BTreeSet<i64>,
    jobs: Vec<(i64, Option<Job>)>,
    lanes: Vec<(usize, Lane)>,
    ended: BTreeMap<i64, &'static str>,
    requests: BTreeSet<i64>,
    /// Debts that it has paid, or taken over.
    paid: BTreeSet<usize>,
}

impl Model {
    pub fn lane_is_locked(&self, lane: usize) -> bool {
        self.open.as_ref().is_some_and(|open| open.locked_lanes.contains(&lane))
    }

    pub fn job_is_locked(&self, id: i64) -> bool {
        self.open.as_ref().is_some_and(|open| open.locked_jobs.contains(&id))
    }

    /// Enqueues a job in the open transaction.
    pub fn open_with_enqueue(&mut self, id: i64, spec: &Spec) {
        let mut after = self.clone();
        after.enqueue(id, spec);
        // A scheduled job takes no place yet, and blocks no other job from taking one.
        let lane = spec.lane.filter(|_| !spec.later);
        self.open = Some(self.difference(after, lane));
    }

    /// Cancels a job in the open transaction.
    pub fn open_with_cancel(&mut self, id: i64) -> &'static str {
        let mut after = self.clone();
        let answer = after.cancel(id);
        // Only the cancellation of a head promotes the next of its lane, and locks the lane for that.
        let lane = self.jobs.get(&id).and_then(|job| job.spec.lane);
        let lane = lane.filter(|lane| answer == "cancelled" && self.head(*lane) == Some(id));
        self.open = Some(self.difference(after, lane));
        answer
    }

    pub fn finish_open(&mut self, commit: bool) {
        let Some(open) = self.open.take().filter(|_| commit) else {
            return;
        };
        for (id, job) in open.jobs {
            match job {
                Some(job) => _ = self.jobs.insert(id, job),
                None => _ = self.jobs.remove(&id),
            }
        }
        for (lane, row) in open.lanes {
            self.lanes[lane] = row;
        }
        for (id, outcome) in open.ended {
            self.ended.insert(id, outcome);
            self.record(id, 0, outcome);
            self.requests.remove(&id);
        }
        self.requests.extend(open.requests);
        self.owed.retain(|lane| !open.paid.contains(lane));
    }

    fn difference(&self, after: Self, lane: Option<usize>) -> OpenTransaction {
        let ids: BTreeSet<i64> = self.jobs.keys().chain(after.jobs.keys()).copied().collect();
        let mut jobs = Vec::new();
        for id in ids.into_iter().filter(|id| self.jobs.get(id) != after.jobs.get(id)) {
            jobs.push((id, after.jobs.get(&id).cloned()));
        }
        let rows = after.lanes.into_iter().enumerate();
        OpenTransaction {
            locked_lanes: lane.into_iter().collect(),
            locked_jobs: jobs
                .iter()
                .map(|(id, _)| *id)
                .filter(|id| self.jobs.contains_key(id))
                .collect(),
            jobs,
            lanes: rows.filter(|(lane, row)| self.lanes[*lane] != *row).collect(),
            ended: after.ended.into_iter().filter(|(id, _)| !self.ended.contains_key(id)).collect(),
            requests: after.requests.difference(&self.requests).copied().collect(),
            paid: self.owed.difference(&after.owed).copied().collect(),
        }
    }
}
