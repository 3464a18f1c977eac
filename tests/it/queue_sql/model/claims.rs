//! The jobs that a claim may take.

use std::collections::BTreeMap;

use proptest::{prop_assert, prop_assert_eq, test_runner::TestCaseError};
use uuid::Uuid;

use super::{GROUPS, Job, Model, QUEUES, Spec, State};

/// A row of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRow {
    pub id: i64,
    pub lease: i64,
    pub attempt: i16,
    pub lane: Option<String>,
    pub payload: String,
}

/// Jobs that are claimed in the order of their priority: those of one queue and one group, or of no group.
type Line = (usize, Option<usize>);

impl Model {
    /// Checks the jobs that `claim` took, in any order, and takes them.
    pub fn claim(
        &mut self,
        worker: Uuid,
        n_slots: usize,
        queues: &[usize],
        rows: &[ClaimRow],
    ) -> Result<(), TestCaseError> {
        let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
        let lines = self.lines(worker, queues);
        let n_turns = self.n_turns(worker, queues);
        if n_turns == 0 {
            // Without other groups: queue after queue, the most urgent first.
            let in_order = queues.iter().filter_map(|queue| lines.get(&(*queue, None)));
            let mut expected: Vec<i64> = in_order.flatten().copied().take(n_slots).collect();
            let mut taken = ids;
            expected.sort_unstable();
            taken.sort_unstable();
            prop_assert_eq!(taken, expected);
        } else {
            self.check_turns(&lines, n_slots, n_turns, &ids)?;
        }
        self.take(worker, rows)
    }

    /// Checks the jobs that `claim_alone` took, and takes them.
    pub fn claim_alone(
        &mut self,
        worker: Uuid,
        queues: &[usize],
        rows: &[ClaimRow],
    ) -> Result<(), TestCaseError> {
        let idle = !self.jobs.values().any(
            |job| matches!(job.state, State::Running { worker: runner, .. } if runner == worker),
        );
        let mut allowed = None;
        for queue in queues.iter().filter(|_| idle && self.worker(worker).serves()) {
            let suspects = self.jobs.iter().filter(|(id, job)| {
                job.spec.queue == *queue && job.crash_count >= 2 && self.may_run(**id, job)
            });
            let first = suspects.min_by_key(|(id, job)| (job.run_at, **id)).map(|(id, _)| *id);
            allowed = allowed.or(first);
        }
        let taken: Vec<i64> = rows.iter().map(|row| row.id).collect();
        prop_assert_eq!(taken, allowed.into_iter().collect::<Vec<_>>());
        self.take(worker, rows)
    }

    fn take(&mut self, worker: Uuid, rows: &[ClaimRow]) -> Result<(), TestCaseError> {
        let newest = self.last_lease;
        for row in rows {
            prop_assert!(row.lease > newest, "lease {} is not new", row.lease);
            self.last_lease = self.last_lease.max(row.lease);
            let job = self.jobs.get_mut(&row.id).expect("the claim was allowed");
            job.state = State::Running { lease: row.lease, worker };
            job.attempt += 1;
            prop_assert_eq!(row.attempt, job.attempt);
            prop_assert_eq!(&row.payload, &format!("{:?}", payload_of(&job.spec)));
            let lane = job.spec.lane;
            prop_assert_eq!(row.lane.as_deref(), lane.map(|lane| super::LANES[lane]));
            let (id, place) = (row.id, job.place);
            let earlier = self.jobs.iter().find(|(other, job)| {
                **other != id
                    && lane.is_some()
                    && job.spec.lane == lane
                    && job.place.is_some_and(|p| Some(p) < place)
            });
            prop_assert!(earlier.is_none(), "{id} overtook {earlier:?} in its lane");
        }
        Ok(())
    }

    fn may_run(&self, id: i64, job: &Job) -> bool {
        job.state == State::Ready
            && job.spec.known
            && !self.job_is_locked(id)
            && !self.is_paused(job)
    }

    fn is_paused(&self, job: &Job) -> bool {
        self.paused.contains(QUEUES[job.spec.queue])
            || job.spec.group.is_some_and(|group| self.paused.contains(GROUPS[group]))
    }

    /// Returns the jobs that the worker may take, in the order of each line.
    fn lines(&self, worker: Uuid, queues: &[usize]) -> BTreeMap<Line, Vec<i64>> {
        let mut lines: BTreeMap<Line, Vec<i64>> = BTreeMap::new();
        for (id, job) in self.jobs.iter().filter(|_| self.worker(worker).serves()) {
            if queues.contains(&job.spec.queue) && job.crash_count < 2 && self.may_run(*id, job) {
                lines.entry((job.spec.queue, job.spec.group)).or_default().push(*id);
            }
        }
        for line in lines.values_mut() {
            line.sort_by_key(|id| (self.jobs[id].spec.priority, self.jobs[id].run_at, *id));
        }
        lines
    }

    /// Counts the groups that have a turn. Groups whose jobs this worker cannot run count, too.
    fn n_turns(&self, worker: Uuid, queues: &[usize]) -> usize {
        let ready = self.jobs.values().filter(|job| {
            self.worker(worker).serves()
                && queues.contains(&job.spec.queue)
                && job.state == State::Ready
                && job.crash_count < 2
                && !self.is_paused(job)
        });
        let turns = ready.filter_map(|job| Some((job.spec.queue, job.spec.group?)));
        turns.collect::<std::collections::BTreeSet<_>>().len()
    }

    fn check_turns(
        &self,
        lines: &BTreeMap<Line, Vec<i64>>,
        n_slots: usize,
        n_turns: usize,
        ids: &[i64],
    ) -> Result<(), TestCaseError> {
        let n_share = (2 * n_slots).div_ceil(n_turns + 1);
        let n_offered: usize = lines.values().map(|line| line.len().min(n_share)).sum();
        if self.open.is_none() {
            prop_assert_eq!(ids.len(), n_offered.min(n_slots));
        }
        let taken_of = |line: &[i64]| line.iter().filter(|id| ids.contains(id)).count();
        prop_assert_eq!(lines.values().map(|line| taken_of(line)).sum::<usize>(), ids.len());
        for line in lines.values() {
            let n_taken = taken_of(line);
            prop_assert!(line[..n_taken].iter().all(|id| ids.contains(id)), "{ids:?} of {lines:?}");
            let unserved = lines.values().find(|other| {
                let urgency = |id: &i64| self.jobs[id].spec.priority;
                n_taken >= 2 && taken_of(other) == 0 && urgency(&other[0]) <= urgency(&line[1])
            });
            let fair = unserved.is_none() || self.open.is_some();
            prop_assert!(fair, "{ids:?} of {lines:?}: {unserved:?} were never claimed");
        }
        Ok(())
    }
}

/// Returns a payload derived from the spec, so that a payload under the wrong job shows. Jobs with a key have the same
/// payload, so that keys meet.
pub fn payload_of(spec: &Spec) -> String {
    if spec.key.is_some() {
        return "keyed".to_owned();
    }
    format!("{:?} {:?} {} {}", spec.lane, spec.group, spec.queue, spec.priority)
}
