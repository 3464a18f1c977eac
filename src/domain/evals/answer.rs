//! Answers of a run, from its tasks and reruns.

use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, Utc};
use serde::Serialize;
use uuid::Uuid;

use super::{AnswerResult, Case, Check, Place, Verdict, rubric_key};
use crate::domain::{
    reruns::{self, Rerun},
    tasks::{State, Task},
};

/// The answer to a case, with the tasks in which the judge has read it.
#[derive(Debug, Clone)]
pub struct Answer {
    pub place: Place,
    pub source: AnswerSource,
    pub state: State,
    pub text: Option<String>,
    pub error: Option<String>,
    pub tokens: i64,
    pub micros: i64,
    /// True if the cost is 0 only because no price was set for the model.
    pub is_unpriced: bool,
    pub took_ms: Option<i64>,
    pub created_at: DateTime<Utc>,
    /// By the [key of the rubric](rubric_key).
    pub judged: HashMap<String, Task>,
}

/// The task or rerun that an answer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum AnswerSource {
    Task { task_id: Uuid },
    Rerun { rerun_id: Uuid, session_id: Uuid, turn: i32, number: i32 },
}

/// An answer that failed a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedAnswer {
    #[serde(flatten)]
    pub place: Place,
    #[serde(flatten)]
    pub source: AnswerSource,
    pub faults: Vec<String>,
}

impl Answer {
    pub fn of_task(place: Place, task: &Task, is_unpriced: bool) -> Self {
        let times = task.started_at.zip(task.ended_at);
        Self {
            place,
            source: AnswerSource::Task { task_id: task.id },
            state: task.state,
            text: task.result.clone(),
            error: task.error.clone(),
            tokens: task.spent_tokens,
            micros: task.spent_micros,
            is_unpriced,
            took_ms: times.map(|(from, to)| (to - from).num_milliseconds()),
            created_at: task.created_at,
            judged: HashMap::new(),
        }
    }

    pub fn of_rerun(place: Place, rerun: &Rerun) -> Self {
        let (session_id, turn, number) = (rerun.session_id, rerun.turn, rerun.number);
        Self {
            place,
            source: AnswerSource::Rerun { rerun_id: rerun.id, session_id, turn, number },
            state: match rerun.state {
                reruns::State::Queued => State::Queued,
                reruns::State::Done => State::Done,
                reruns::State::Failed => State::Failed,
            },
            text: rerun.answer.clone(),
            error: rerun.error.clone(),
            tokens: rerun.input_tokens.unwrap_or(0) + rerun.output_tokens.unwrap_or(0),
            micros: rerun.cost_micros,
            is_unpriced: rerun.is_unpriced,
            took_ms: rerun.took_ms.map(i64::from),
            created_at: rerun.created_at,
            judged: HashMap::new(),
        }
    }

    /// Lists the rubrics by which the judge has still to decide.
    pub fn open_rubrics<'a>(&self, case: &'a Case) -> BTreeSet<&'a str> {
        let is_open =
            |rubric: &&str| self.verdict_on(rubric).is_none_or(|task| task.ended_at.is_none());
        match self.state {
            State::Done => case.checks.iter().filter_map(Check::rubric).filter(is_open).collect(),
            _ => BTreeSet::new(),
        }
    }

    fn verdict_on(&self, rubric: &str) -> Option<&Task> {
        self.judged.get(&rubric_key(rubric))
    }

    pub(super) fn is_finished(&self, case: &Case) -> bool {
        !matches!(self.state, State::Queued | State::Running) && self.open_rubrics(case).is_empty()
    }

    /// Returns the result of the answer without its texts.
    pub fn result(&self, case: &Case) -> AnswerResult {
        let faults = self.faults(case);
        let (task_id, session_id, turn) = match self.source {
            AnswerSource::Task { task_id } => (Some(task_id), None, None),
            AnswerSource::Rerun { session_id, turn, .. } => (None, Some(session_id), Some(turn)),
        };
        let is_finished = self.is_finished(case);
        AnswerResult {
            variant: self.place.variant.clone(),
            case: self.place.case.clone(),
            repetition: self.place.repetition,
            passed: is_finished.then_some(faults.is_empty()),
            failed_checks: if is_finished {
                faults.len().try_into().unwrap_or(u32::MAX)
            } else {
                0
            },
            task_id,
            session_id,
            turn,
            tokens: self.tokens,
            micros: self.micros,
            took_ms: self.took_ms,
        }
    }

    /// Lists everything that is wrong with the answer.
    pub(super) fn faults(&self, case: &Case) -> Vec<String> {
        let (Some(answer), State::Done) = (&self.text, self.state) else {
            let error = self.error.as_deref().unwrap_or("it has no answer");
            let what = match self.source {
                AnswerSource::Task { .. } => "task",
                AnswerSource::Rerun { .. } => "rerun",
            };
            return vec![format!("the {what} is {}: {error}", self.state.as_str())];
        };
        let fault = |check: &Check| match check.rubric() {
            Some(rubric) => judge_fault(rubric, self.verdict_on(rubric)),
            None => check.fault(answer),
        };
        case.checks.iter().filter_map(fault).collect()
    }
}

impl AnswerSource {
    /// Returns the id of the task or rerun.
    pub fn id(self) -> Uuid {
        match self {
            Self::Task { task_id } => task_id,
            Self::Rerun { rerun_id, .. } => rerun_id,
        }
    }
}

/// Returns the reason why the judge has not passed an answer, if it has not.
fn judge_fault(rubric: &str, judged: Option<&Task>) -> Option<String> {
    let verdict = match judged?.state {
        State::Done => Verdict::read(judged?.result.as_deref().unwrap_or_default()),
        State::Failed | State::Cancelled => None,
        State::Queued | State::Running => return None,
    };
    match verdict {
        Some(Verdict { pass: true, .. }) => None,
        Some(Verdict { pass: false, reason }) => Some(format!("judge: {reason} ({rubric})")),
        None => Some(format!("judge: task {} has no verdict ({rubric})", judged?.id)),
    }
}
