//! The critical path of a flow: the chain of steps that determines its end.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use super::StepTask;
use crate::domain::tasks::State;

/// The rank of a step in a flow without an ended one. It is used to choose the path, and never shown.
const UNKNOWN: TimeDelta = TimeDelta::minutes(1);
const SHORTEST: TimeDelta = TimeDelta::milliseconds(1);

/// The steps of the path, first to last, by their places in the list, and how long they take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CriticalPath {
    pub places: Vec<usize>,
    /// `None`: steps that have not begun are on the path, and no step has ended by which their time could be estimated.
    pub took: Option<TimeDelta>,
    /// True: the path has steps that have not ended. Those that have not begun count the mean of those that have ended.
    pub is_estimate: bool,
}

/// Finds the chain of steps with the longest time. Steps that have not begun count as long as the mean of those that have ended.
pub fn critical_path(steps: &[StepTask], now: DateTime<Utc>) -> CriticalPath {
    let mean = mean_of_ended(steps, now);
    let weight =
        |step: &StepTask| step.duration(now).unwrap_or(mean.unwrap_or(UNKNOWN).max(SHORTEST));
    let place_of: HashMap<Uuid, usize> =
        steps.iter().enumerate().map(|(place, step)| (step.task_id, place)).collect();
    let mut finish: Vec<TimeDelta> = steps.iter().map(weight).collect();
    let mut before: Vec<Option<usize>> = vec![None; steps.len()];
    // Each round moves ends behind those of the steps before. A circle, which no template has, would end with the rounds.
    for _ in 0..steps.len() {
        let mut has_moved = false;
        for (place, step) in steps.iter().enumerate() {
            let others = step.after.iter().filter_map(|id| place_of.get(id).copied());
            let Some(last) = others.max_by_key(|other| finish[*other]) else { continue };
            let end = finish[last] + weight(step);
            if end != finish[place] || before[place].is_none() {
                (finish[place], before[place], has_moved) = (end, Some(last), true);
            }
        }
        if !has_moved {
            break;
        }
    }
    let last = (0..steps.len()).max_by_key(|place| finish[*place]);
    let mut places: Vec<usize> =
        std::iter::successors(last, |place| before[*place]).take(steps.len()).collect();
    places.reverse();
    let is_known =
        mean.is_some() || places.iter().all(|place| steps[*place].duration(now).is_some());
    CriticalPath {
        took: is_known.then(|| last.map_or(TimeDelta::zero(), |place| finish[place])),
        is_estimate: places.iter().any(|place| !steps[*place].state.has_ended()),
        places,
    }
}

impl CriticalPath {
    /// Returns true for the place of a step on the path. A path of one step says nothing, and has none.
    pub fn contains(&self, place: usize) -> bool {
        self.places.len() > 1 && self.places.contains(&place)
    }
}

impl StepTask {
    /// Returns how long a step took, or has taken so far.
    pub fn duration(&self, now: DateTime<Utc>) -> Option<TimeDelta> {
        let begin = self.started_at?;
        let end = match self.state {
            State::Running => now,
            _ => self.ended_at?,
        };
        Some((end - begin).max(TimeDelta::zero()))
    }
}

/// Returns the mean time of the steps that ran and have ended.
fn mean_of_ended(steps: &[StepTask], now: DateTime<Utc>) -> Option<TimeDelta> {
    let ended = steps.iter().filter(|step| step.state.has_ended());
    let times: Vec<TimeDelta> = ended.filter_map(|step| step.duration(now)).collect();
    let n = i32::try_from(times.len()).ok().filter(|n| *n > 0)?;
    Some(times.iter().sum::<TimeDelta>() / n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(n: u128, after: &[u128], secs: Option<i64>) -> StepTask {
        let begin = DateTime::UNIX_EPOCH;
        StepTask {
            step: format!("step {n}"),
            task_id: Uuid::from_u128(n),
            agent: "writer".to_owned(),
            instance: "main".to_owned(),
            node: None,
            state: if secs.is_some() { State::Done } else { State::Queued },
            after: after.iter().copied().map(Uuid::from_u128).collect(),
            started_at: secs.map(|_| begin),
            ended_at: secs.map(|secs| begin + TimeDelta::seconds(secs)),
        }
    }

    fn secs(n: i64) -> Option<TimeDelta> {
        Some(TimeDelta::seconds(n))
    }

    #[test]
    fn parts_of_seconds_count() {
        let mut steps = [step(1, &[], Some(0)), step(2, &[1], Some(1))];
        for step in &mut steps {
            step.ended_at = step.ended_at.map(|at| at + TimeDelta::milliseconds(890));
        }
        let path = critical_path(&steps, DateTime::UNIX_EPOCH);
        assert_eq!(path.took, Some(TimeDelta::milliseconds(2_780)));
    }

    #[test]
    fn nothing_is_estimated_before_a_step_has_ended() {
        let mut steps = [step(1, &[], None), step(2, &[1], None)];
        let path = critical_path(&steps, DateTime::UNIX_EPOCH);
        assert_eq!((path.places, path.took), (vec![0, 1], None));
        (steps[0].state, steps[0].started_at) = (State::Running, Some(DateTime::UNIX_EPOCH));
        let now = DateTime::UNIX_EPOCH + TimeDelta::seconds(5);
        assert_eq!(critical_path(&steps, now).took, None);
    }

    #[test]
    fn the_longest_chain_is_critical() {
        let steps = [
            step(1, &[], Some(10)),
            step(2, &[1], Some(50)),
            step(3, &[1], Some(20)),
            step(4, &[2, 3], Some(5)),
        ];
        let path = critical_path(&steps, DateTime::UNIX_EPOCH);
        assert_eq!((path.places, path.took, path.is_estimate), (vec![0, 1, 3], secs(65), false));
    }

    #[test]
    fn steps_that_have_not_begun_count_the_mean() {
        let steps = [
            step(1, &[], Some(30)),
            step(2, &[1], None),
            step(3, &[2], None),
            step(4, &[1], Some(50)),
        ];
        let path = critical_path(&steps, DateTime::UNIX_EPOCH);
        assert_eq!((path.places, path.took, path.is_estimate), (vec![0, 1, 2], secs(110), true));
    }

    #[test]
    fn a_circle_and_an_empty_flow_end() {
        let circle = [step(1, &[2], Some(1)), step(2, &[1], Some(1))];
        assert!(critical_path(&circle, DateTime::UNIX_EPOCH).places.len() <= 2);
        assert!(critical_path(&[], DateTime::UNIX_EPOCH).places.is_empty());
    }
}
