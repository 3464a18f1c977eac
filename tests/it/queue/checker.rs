//! The invariants of the queue, checked against a journal. Each fault test ends here.
//!
//! An effect is *committed* if it is part of an end: written in one transaction with it, or by a run that the queue
//! records as done. Other effects are allowed by at-least-once, and must come from runs that did not succeed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::journal::{Effect, Journal};

/// Failed attempts that the kinds of the trial allow.
const MAX_ATTEMPTS: i16 = 5;
/// Lost workers after which a job is dead.
const MAX_LOST: usize = 3;

/// Results that a trial may leave besides jobs that are done.
#[derive(Debug, Clone, Default)]
pub struct Expected {
    /// Most runs that may be lost with their workers, over all jobs.
    pub lost_runs: usize,
    /// Jobs that have to be dead, with the reason.
    pub dead: BTreeMap<i64, &'static str>,
    /// Further jobs that may be dead after three lost workers in a row, as happens with random kills.
    pub unlucky: usize,
    pub cancelled: BTreeSet<i64>,
    /// Jobs that the test leaves on the queue.
    pub live: BTreeSet<i64>,
}

/// Returns all violations.
pub fn violations(journal: &Journal, expected: &Expected) -> Vec<String> {
    let mut found = fates(journal, expected);
    found.extend(stale_commits(journal));
    found.extend(lane_order(journal));
    found.extend(attempts(journal, expected));
    found.extend(vanished_runs(journal));
    found
}

/// Checks that each job has exactly one fate, the expected one.
fn fates(journal: &Journal, expected: &Expected) -> Vec<String> {
    let mut fates: HashMap<i64, Vec<String>> = HashMap::new();
    for run in &journal.runs {
        if run.outcome == "done" || run.outcome == "cancelled" {
            fates.entry(run.job_id).or_default().push(run.outcome.clone());
        }
    }
    for dead in &journal.dead {
        let told = if dead.error.is_some() { "" } else { " without an error" };
        fates.entry(dead.id).or_default().push(format!("dead: {}{told}", dead.reason));
    }
    for live in &journal.live {
        fates.entry(live.id).or_default().push("live".to_owned());
    }
    let mut n_unlucky = 0;
    let mut found = Vec::new();
    for job in &journal.enqueued {
        let fate = fates.remove(&job.job_id).unwrap_or_default();
        let wanted = match expected.dead.get(&job.job_id) {
            Some(reason) => format!("dead: {reason}"),
            None if expected.cancelled.contains(&job.job_id) => "cancelled".to_owned(),
            None if expected.live.contains(&job.job_id) => "live".to_owned(),
            None => "done".to_owned(),
        };
        if fate == ["dead: worker_lost"] && wanted == "done" {
            n_unlucky += 1;
        } else if fate != [wanted.clone()] {
            let id = job.job_id;
            found.push(format!("job {id} ({}) should be {wanted} and is {fate:?}", job.kind));
        }
    }
    if n_unlucky > expected.unlucky {
        found.push(format!("{n_unlucky} jobs died with their workers, {} may", expected.unlucky));
    }
    found.extend(fates.keys().map(|id| format!("job {id} was never enqueued")));
    found
}

/// Checks that an effect committed with an end belongs to a run with that end, and that no run has ended without its
/// effect.
fn stale_commits(journal: &Journal) -> Vec<String> {
    let mut found = Vec::new();
    let outcomes = outcomes(journal);
    for effect in &journal.effects {
        let (id, lease) = (effect.job_id, effect.lease);
        let outcome = outcomes.get(&(id, lease)).copied().unwrap_or("not ended");
        let fitting = match effect.what.as_str() {
            "done" => outcome == "done",
            "snooze" => outcome == "snooze",
            "death" => outcome == "failed",
            _ => true,
        };
        if !fitting {
            found.push(format!(
                "job {id} committed `{}` under lease {lease}, which {outcome}",
                effect.what
            ));
        }
    }
    let with_effect: HashSet<_> =
        journal.effects.iter().map(|effect| (effect.job_id, effect.lease)).collect();
    let notes: HashSet<i64> = journal
        .enqueued
        .iter()
        .filter(|job| job.kind == "trial.note")
        .map(|job| job.job_id)
        .collect();
    for run in journal.runs.iter().filter(|run| run.outcome == "done") {
        if notes.contains(&run.job_id) && !with_effect.contains(&(run.job_id, run.lease)) {
            found.push(format!("job {} is done without an effect", run.job_id));
        }
    }
    for refused in &journal.refusals {
        if outcomes.get(refused) == Some(&"done") {
            found.push(format!("a commit of {refused:?} was refused and counted"));
        }
    }
    found
}

/// Checks that the committed effects of a lane do not overlap and have the order of the enqueues.
fn lane_order(journal: &Journal) -> Vec<String> {
    let outcomes = outcomes(journal);
    let mut lanes: BTreeMap<&str, Vec<&Effect>> = BTreeMap::new();
    for effect in &journal.effects {
        let committed = effect.what != "batched"
            || outcomes.get(&(effect.job_id, effect.lease)) == Some(&"done");
        if let (Some(lane), true) = (&effect.lane, committed) {
            lanes.entry(lane).or_default().push(effect);
        }
    }
    let mut found = Vec::new();
    for (lane, mut effects) in lanes {
        effects.sort_by_key(|effect| effect.ended_at);
        for pair in effects.windows(2) {
            let [before, after] = pair else { continue };
            let (first, second) = (before.job_id, after.job_id);
            if after.started_at < before.ended_at {
                found.push(format!("in lane {lane}, jobs {first} and {second} overlap"));
            }
            if after.lane_no < before.lane_no {
                found.push(format!("in lane {lane}, job {second} came after job {first}"));
            }
        }
    }
    found
}

fn attempts(journal: &Journal, expected: &Expected) -> Vec<String> {
    let mut failed: HashMap<i64, i16> = HashMap::new();
    // In a row: a successful end shows that the job does not kill workers.
    let mut lost: HashMap<i64, usize> = HashMap::new();
    let mut n_lost = 0;
    let mut found = Vec::new();
    for run in &journal.runs {
        if run.attempt > MAX_ATTEMPTS {
            found.push(format!("job {} reached attempt {}", run.job_id, run.attempt));
        }
        match run.outcome.as_str() {
            "retry" | "failed" => *failed.entry(run.job_id).or_default() += 1,
            "lost" => {
                n_lost += 1;
                let in_a_row = lost.entry(run.job_id).or_default();
                *in_a_row += 1;
                if *in_a_row > MAX_LOST {
                    found.push(format!("job {} lost {in_a_row} workers in a row", run.job_id));
                }
                continue;
            }
            "interrupted" => continue,
            _ => {}
        }
        lost.remove(&run.job_id);
    }
    let too_often = failed.iter().filter(|(_, n)| **n > MAX_ATTEMPTS);
    found.extend(too_often.map(|(id, n)| format!("job {id} failed {n} times")));
    if n_lost > expected.lost_runs {
        found.push(format!("{n_lost} runs were lost, {} may be", expected.lost_runs));
    }
    found
}

/// Checks that each begun run has ended or is the current one, and that none begins after its job is done.
fn vanished_runs(journal: &Journal) -> Vec<String> {
    let ended = outcomes(journal);
    let current: HashSet<_> =
        journal.live.iter().filter_map(|live| Some((live.id, live.lease?))).collect();
    let done = journal.runs.iter().filter(|run| run.outcome == "done");
    let done_at: HashMap<_, _> = done.map(|run| (run.job_id, run.ended_at)).collect();
    let mut found = Vec::new();
    for start in &journal.starts {
        let run = (start.job_id, start.lease);
        if !ended.contains_key(&run) && !current.contains(&run) {
            found.push(format!("the run of job {} under lease {} has no end", run.0, run.1));
        }
        if done_at.get(&start.job_id).is_some_and(|at| *at < start.started_at) {
            found.push(format!("job {} began again after it was done", start.job_id));
        }
    }
    found
}

fn outcomes(journal: &Journal) -> HashMap<(i64, i64), &str> {
    journal.runs.iter().map(|run| ((run.job_id, run.lease), run.outcome.as_str())).collect()
}

/// Tests of the checker with forged journals.
mod forged {
    use chrono::{DateTime, Duration, Utc};

    use super::{
        super::journal::{DeadLetter, EnqueuedJob, LiveJob, Run, Start},
        *,
    };

    fn at(secs: i64) -> DateTime<Utc> {
        crate::app::noon() + Duration::seconds(secs)
    }

    /// Returns a journal of two jobs in one lane, each done by one run; the second begins after the end of the first.
    fn honest() -> Journal {
        let mut journal = Journal::default();
        for id in [1, 2] {
            let (lane, lease) = (Some("a".to_owned()), id * 10);
            let (began, ended) = (at(id * 10), at(id * 10 + 5));
            let kind = "trial.note".to_owned();
            journal.enqueued.push(EnqueuedJob { job_id: id, kind });
            journal.starts.push(Start { job_id: id, lease, worker: 7, started_at: began });
            let what = "done".to_owned();
            journal.effects.push(Effect {
                job_id: id,
                lease,
                worker: 7,
                lane,
                lane_no: id,
                what,
                started_at: began,
                ended_at: ended,
            });
            let outcome = "done".to_owned();
            journal.runs.push(Run { job_id: id, lease, attempt: 1, outcome, ended_at: ended });
        }
        journal
    }

    fn assert_found(what: &str, forge: impl FnOnce(&mut Journal)) {
        let mut journal = honest();
        forge(&mut journal);
        let found = violations(&journal, &Expected::default());
        assert!(found.iter().any(|line| line.contains(what)), "{what:?} is not in {found:?}");
    }

    #[test]
    fn an_honest_journal_has_no_violation() {
        assert_eq!(violations(&honest(), &Expected::default()), Vec::<String>::new());
    }

    #[test]
    fn forged_journals_are_detected() {
        assert_found("overlap", |journal| journal.effects[1].started_at = at(12));
        assert_found("came after", |journal| journal.effects[1].lane_no = 0);
        assert_found("should be done and is []", |journal| drop(journal.runs.remove(0)));
        assert_found("which lost", |journal| journal.runs[0].outcome = "lost".to_owned());
        assert_found("without an effect", |journal| drop(journal.effects.remove(0)));
        assert_found("has no end", |journal| {
            journal.starts.push(Start { job_id: 1, lease: 11, worker: 7, started_at: at(9) });
        });
        assert_found("began again", |journal| journal.starts[0].started_at = at(16));
        assert_found("refused and counted", |journal| journal.refusals.push((1, 10)));
        assert_found("reached attempt 6", |journal| journal.runs[0].attempt = 6);
        assert_found("never enqueued", |journal| drop(journal.enqueued.remove(0)));
    }

    #[test]
    fn double_ends_and_unexpected_crashes_are_detected() {
        assert_found("\"done\", \"done\"", |journal| {
            let again = Run { lease: 12, ..journal.runs[0].clone() };
            journal.runs.push(again);
        });
        assert_found("\"done\", \"live\"", |journal| {
            let state = "ready".to_owned();
            journal.live.push(LiveJob { id: 1, state, attempt: 0, crash_count: 0, lease: None });
        });
        assert_found("died with their workers", |journal| {
            journal.runs.remove(1);
            journal.effects.remove(1);
            journal.starts.remove(1);
            let (reason, error) = ("worker_lost".to_owned(), Some("lost".to_owned()));
            journal.dead.push(DeadLetter { id: 2, reason, error });
        });
        assert_found("runs were lost", |journal| {
            let lost = "lost".to_owned();
            journal.runs.insert(0, Run { lease: 5, outcome: lost, ..journal.runs[0].clone() });
        });
    }
}
