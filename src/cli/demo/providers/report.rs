//! The report of the demo as data, derived from the tables and from the counts of the servers.

use serde::Serialize;

use super::{
    cast::Cast,
    evidence::Evidence,
    script::{self, AGENTS},
};
use crate::{
    cli::demo::{checks::Check, evidence::Work},
    domain::{tasks, turns},
};

#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) ok: bool,
    pub(super) took_secs: f64,
    pub(super) campaign: &'static str,
    pub(super) models: Vec<Model>,
    /// The reason why the Claude Code CLI took no part.
    pub(super) left_out: Option<String>,
    pub(super) answers: Vec<Answer>,
    pub(super) checks: Vec<Check>,
}

/// Calls of a model.
#[derive(Debug, Serialize)]
pub(super) struct Model {
    pub(super) provider: &'static str,
    pub(super) entry: String,
    /// Failure of its calls.
    pub(super) failure: &'static str,
    /// Calls that its server has received. Null: the simulation has none.
    pub(super) answered: Option<usize>,
    pub(super) failed: Option<usize>,
    pub(super) in_ledger: i64,
}

/// The answer of an agent in a round.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    pub(super) agent: &'static str,
    /// From 1. In the last round, agents return to their first models.
    pub(super) round: usize,
    pub(super) due: String,
    /// The model that answered: `provider/model`.
    pub(super) answered_by: Option<String>,
    pub(super) facts_told: usize,
    pub(super) facts_known: usize,
    /// Turns of the task; each but the last one has failed.
    pub(super) turns: usize,
    pub(super) failed_turns: usize,
    /// Number of the attempt that answered.
    pub(super) attempt: Option<i16>,
    /// True if a prompt count shows that a model did not see the history.
    pub(super) lost_history: bool,
    /// Why this model answered.
    pub(super) because: Option<String>,
    pub(super) result: Option<String>,
}

impl Report {
    pub(super) fn of(evidence: &Evidence, cast: &Cast, took_secs: f64) -> Self {
        let answers = evidence.agents.iter().enumerate().flat_map(|(agent, works)| {
            works.iter().enumerate().map(move |(round, work)| answer(cast, agent, round, work))
        });
        let mut report = Self {
            ok: false,
            took_secs,
            campaign: script::CAMPAIGN,
            models: models(evidence, cast),
            left_out: cast.left_out.clone(),
            answers: answers.collect(),
            checks: Vec::new(),
        };
        report.checks = checks(&report, evidence, cast.models.len());
        report.ok = report.checks.iter().all(|check| check.holds);
        report
    }
}

fn models(evidence: &Evidence, cast: &Cast) -> Vec<Model> {
    let models = cast.models.iter().map(|model| {
        let counts = cast.server(model.provider).map(|server| server.counts());
        let lines = evidence.ledger.iter().filter(|total| total.provider == model.provider);
        Model {
            provider: model.provider,
            entry: model.entry(),
            failure: model.failure,
            answered: counts.map(|counts| counts.answered),
            failed: counts.map(|counts| counts.failed),
            in_ledger: lines.map(|total| total.calls).sum(),
        }
    });
    models.collect()
}

fn answer(cast: &Cast, agent: usize, round: usize, work: &Work) -> Answer {
    let n_models = cast.models.len();
    let facts: Vec<String> =
        (0..n_models.min(round + 1)).map(|round| script::fact(agent, round)).collect();
    let result = work.task.result.as_deref().unwrap_or_default();
    let failed = work.turns.iter().filter(|turn| turn.state == turns::State::Failed);
    let done = work.turns.iter().find(|turn| turn.state == turns::State::Done);
    let choice = done.and_then(|turn| turn.chain.as_ref());
    let is_unseen = |turn: &turns::Turn| turn.history_check == Some(turns::HistoryCheck::NotSeen);
    Answer {
        agent: AGENTS[agent],
        round: round + 1,
        due: cast.models[(agent + round) % n_models].entry(),
        answered_by: choice.map(|choice| choice.entry.clone()),
        facts_told: facts.len(),
        facts_known: facts.iter().filter(|fact| result.contains(fact.as_str())).count(),
        turns: work.turns.len(),
        failed_turns: failed.count(),
        attempt: done.map(|turn| turn.attempt),
        lost_history: work.turns.iter().any(is_unseen),
        because: choice.map(|choice| choice.describe()),
        result: (work.task.state == tasks::State::Done).then(|| result.to_owned()),
    }
}

fn checks(report: &Report, evidence: &Evidence, n_models: usize) -> Vec<Check> {
    let check = |what, holds, figures| Check { holds, what, figures };
    let answers = &report.answers;
    let count = |holds: fn(&Answer) -> bool| answers.iter().filter(|answer| holds(answer)).count();
    let n_due = n_models * (n_models + 1);
    let n_right = count(|answer| answer.answered_by.as_deref() == Some(answer.due.as_str()));
    let (told, known): (usize, usize) = (
        answers.iter().map(|answer| answer.facts_told).sum(),
        answers.iter().map(|answer| answer.facts_known).sum(),
    );
    let n_failures = n_models * (n_models - 1);
    let n_failed: usize = answers.iter().map(|answer| answer.failed_turns).sum();
    let n_on_time = count(|answer| {
        answer.turns == answer.failed_turns + 1
            && answer.attempt.is_some_and(|attempt| usize::try_from(attempt) == Ok(answer.turns))
    });
    let is_back = |answer: &&Answer| {
        answer.round == n_models + 1 && answer.answered_by.as_ref() == Some(&answer.due)
    };
    let n_back = answers.iter().filter(is_back).count();
    let n_unseen = count(|answer| answer.lost_history);
    let served = report.models.iter().filter(|model| model.answered.is_some());
    let n_calls: usize = served
        .clone()
        .map(|model| model.answered.unwrap_or_default() + model.failed.unwrap_or_default())
        .sum();
    let is_charged_once = |model: &Model| {
        let calls = model.answered.zip(model.failed).map(|(answered, failed)| answered + failed);
        calls.is_none_or(|calls| usize::try_from(model.in_ledger) == Ok(calls))
    };
    let n_lines: i64 = served.map(|model| model.in_ledger).sum();
    let n_left = evidence.n_jobs_left;
    vec![
        check(
            "each task was answered by the model that was due",
            n_right == n_due && answers.len() == n_due,
            format!("{n_right} of {n_due}"),
        ),
        check(
            "each answer has every fact that its agent was told",
            told > 0 && told == known,
            format!("{known} of {told}"),
        ),
        check(
            "each failure moved one turn, and used one attempt",
            n_failed == n_failures && n_on_time == n_due,
            format!("{n_failed} failures"),
        ),
        check(
            "each agent returned to its first model",
            n_back == n_models,
            format!("{n_back} of {n_models}"),
        ),
        check("no model missed the history", n_unseen == 0, format!("{n_unseen} did")),
        check(
            "each call of a server is in the ledger once",
            n_calls > 0 && report.models.iter().all(is_charged_once),
            format!("{n_calls} calls, {n_lines} lines"),
        ),
        check(
            "no turn waits, and there are no dead letters",
            n_left == 0,
            format!("{n_left} jobs"),
        ),
    ]
}
