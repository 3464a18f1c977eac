//! The critical path of a flow: the chain of steps that determines its end.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::domain::{flows::StepTask, tasks::State};

/// Seconds that a step counts of which nothing is known yet.
const UNKNOWN_SECS: i64 = 60;

/// The steps of the path, first to last, by their places in the list, and how long they take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CriticalPath {
    pub(super) places: Vec<usize>,
    pub(super) secs: i64,
    /// True: steps that have not begun count the mean of those that have ended.
    pub(super) is_estimate: bool,
}

/// Finds the chain of steps with the longest time. Steps that have not begun count as long as the mean of those that have ended.
pub(super) fn critical_path(steps: &[StepTask], now: DateTime<Utc>) -> CriticalPath {
    let ended: Vec<i64> = steps.iter().filter_map(|step| secs_of(step, now)).collect();
    let n = i64::try_from(ended.len()).unwrap_or(1).max(1);
    let mean = if ended.is_empty() { UNKNOWN_SECS } else { ended.iter().sum::<i64>() / n };
    let weight = |step: &StepTask| secs_of(step, now).unwrap_or(mean.max(1));
    let place_of: HashMap<Uuid, usize> =
        steps.iter().enumerate().map(|(place, step)| (step.task_id, place)).collect();
    let mut finish: Vec<i64> = steps.iter().map(weight).collect();
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
    CriticalPath {
        secs: last.map_or(0, |place| finish[place]),
        is_estimate: places.iter().any(|place| !has_ended(&steps[*place])),
        places,
    }
}

pub(super) fn has_ended(step: &StepTask) -> bool {
    matches!(step.state, State::Done | State::Failed | State::Cancelled)
}

/// Returns how long a step took, or has taken so far.
pub(super) fn secs_of(step: &StepTask, now: DateTime<Utc>) -> Option<i64> {
    let begin = step.started_at?;
    let end = match step.state {
        State::Running => now,
        _ => step.ended_at?,
    };
    Some((end - begin).num_seconds().max(0))
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
            ended_at: secs.map(|secs| begin + chrono::TimeDelta::seconds(secs)),
        }
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
        assert_eq!((path.places, path.secs, path.is_estimate), (vec![0, 1, 3], 65, false));
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
        assert_eq!((path.places, path.secs, path.is_estimate), (vec![0, 1, 2], 110, true));
    }

    #[test]
    fn a_circle_and_an_empty_flow_end() {
        let circle = [step(1, &[2], Some(1)), step(2, &[1], Some(1))];
        assert!(critical_path(&circle, DateTime::UNIX_EPOCH).places.len() <= 2);
        assert!(critical_path(&[], DateTime::UNIX_EPOCH).places.is_empty());
    }
}
