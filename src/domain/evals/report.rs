//! The results of a run, from its answers.

use std::collections::HashSet;

use serde::Serialize;
use uuid::Uuid;

use super::{Answer, Eval, FailedAnswer, Place, VariantResult};

/// A run to report.
#[derive(Debug, Clone, Copy)]
pub struct ReportedRun<'a> {
    pub campaign_id: Uuid,
    pub id: &'a str,
    pub answers: &'a [Answer],
    /// True if the run belongs to the present text of the file.
    pub is_current: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunReport {
    pub eval: String,
    pub run: String,
    pub campaign_id: Uuid,
    /// False if the file was changed since the run: it does not go on, and its answers are checked as the file says now.
    pub is_current: bool,
    /// Answers that are missing, or that the judge has not read yet.
    pub unfinished: usize,
    pub variants: Vec<VariantReport>,
    /// Answers that failed a check, in order.
    pub failures: Vec<FailedAnswer>,
    /// Cost of the judge, in millionths.
    pub judge_micros: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VariantReport {
    pub variant: String,
    pub agent: String,
    #[serde(flatten)]
    pub totals: Totals,
    /// Totals of the variant in the run before.
    pub before: Option<Totals>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Totals {
    pub answers: usize,
    /// Answers that passed all checks.
    pub passed: usize,
    pub tokens: i64,
    /// Cost in millionths, without the judge.
    pub micros: i64,
    /// Answers whose cost counts as 0 only because no price was set for their model.
    pub answers_without_price: usize,
    /// Median time from the start of a task or of a call to its end.
    pub median_ms: Option<i64>,
}

impl RunReport {
    /// Adds up a run. `before` is the run before it.
    pub fn of(eval: &Eval, reported: ReportedRun<'_>, before: &[Answer]) -> Self {
        let ReportedRun { campaign_id, id, answers, is_current } = reported;
        let known: HashSet<&Place> = answers.iter().map(|answer| &answer.place).collect();
        let n_missing = match is_current {
            true => eval.places().iter().filter(|place| !known.contains(place)).count(),
            false => 0,
        };
        let mut failures = Vec::new();
        let mut n_open = 0;
        for answer in answers {
            let Some(case) = eval.case(&answer.place) else { continue };
            match (answer.is_finished(case), answer.faults(case)) {
                (false, _) => n_open += 1,
                (true, faults) if faults.is_empty() => {}
                (true, faults) => failures.push(FailedAnswer {
                    place: answer.place.clone(),
                    source: answer.source,
                    faults,
                }),
            }
        }
        let judged = answers.iter().flat_map(|answer| answer.judged.values());
        let variants = eval.variants.iter().map(|variant| VariantReport {
            variant: variant.name.clone(),
            agent: variant.agent.clone(),
            totals: Totals::of(eval, &variant.name, answers).unwrap_or_default(),
            before: Totals::of(eval, &variant.name, before),
        });
        Self {
            eval: eval.name.clone(),
            run: id.to_owned(),
            campaign_id,
            is_current,
            unfinished: n_missing + n_open,
            variants: variants.collect(),
            failures,
            judge_micros: judged.map(|task| task.spent_micros).sum(),
        }
    }
}

impl VariantReport {
    /// Returns the results of the variant in the form that is stored.
    pub fn result(&self) -> VariantResult {
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let Totals { answers, passed, tokens, micros, median_ms, .. } = self.totals;
        VariantResult {
            variant: self.variant.clone(),
            agent: self.agent.clone(),
            answers: count(answers),
            passed: count(passed),
            tokens,
            micros,
            median_ms,
        }
    }
}

impl Totals {
    /// Adds up the finished answers of a variant. `None`: there are none.
    fn of(eval: &Eval, variant: &str, answers: &[Answer]) -> Option<Self> {
        let mut totals = Self::default();
        let mut times_ms = Vec::new();
        for answer in answers.iter().filter(|answer| answer.place.variant == variant) {
            let Some(case) = eval.case(&answer.place).filter(|case| answer.is_finished(case))
            else {
                continue;
            };
            totals.answers += 1;
            totals.passed += usize::from(answer.faults(case).is_empty());
            totals.tokens += answer.tokens;
            totals.micros += answer.micros;
            totals.answers_without_price += usize::from(answer.is_unpriced);
            times_ms.extend(answer.took_ms);
        }
        times_ms.sort_unstable();
        totals.median_ms = times_ms.get(times_ms.len() / 2).copied();
        (totals.answers > 0).then_some(totals)
    }

    /// Returns true if nothing is known of the cost, because no answer had a price.
    pub fn is_unpriced(&self) -> bool {
        self.answers_without_price > 0 && self.micros == 0
    }

    /// Returns the share of answers that passed, in percent.
    pub fn percent(&self) -> usize {
        (self.passed * 100).checked_div(self.answers).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta};

    use super::*;
    use crate::domain::{
        evals::rubric_key,
        tasks::{State, Task},
    };

    const FILE: &str = r#"
        name = "short"
        judge = "reviewer"
        variants = [{ name = "now", agent = "copywriter" }]
        [[cases]]
        name = "launch"
        prompt = "Write."
        checks = [{ contains = "LH" }, { judge = "One line?" }]
    "#;

    fn task(state: State, result: &str) -> Task {
        let ended_at =
            (!matches!(state, State::Queued | State::Running)).then_some(DateTime::UNIX_EPOCH);
        let started_at = ended_at.map(|at| at - TimeDelta::milliseconds(1500));
        let result = Some(result.to_owned());
        Task { state, result, started_at, ended_at, spent_tokens: 7, ..Task::example() }
    }

    fn report(task: &Task, judged: Option<Task>) -> RunReport {
        report_by(FILE, task, judged, true)
    }

    /// Reports an answer by the checks of a file. Its verdict is on the rubric of [`FILE`].
    fn report_by(file: &str, task: &Task, judged: Option<Task>, is_current: bool) -> RunReport {
        let eval = Eval::read("short.toml", file, |_| unreachable!()).unwrap();
        let judged = judged.into_iter().map(|task| (rubric_key("One line?"), task)).collect();
        let answer = Answer { judged, ..Answer::of_task(eval.places().remove(0), task, true) };
        let answers = &[answer];
        let campaign_id = task.campaign_id;
        RunReport::of(&eval, ReportedRun { campaign_id, id: "run", answers, is_current }, &[])
    }

    #[test]
    fn an_answer_passes_if_all_checks_and_the_judge_pass_it() {
        let passed = report(
            &task(State::Done, "LH"),
            Some(task(State::Done, "{\"pass\": true, \"reason\": \"\"}")),
        );
        let totals = passed.variants[0].totals;
        assert_eq!((totals.passed, totals.percent(), totals.tokens), (1, 100, 7));
        assert_eq!((totals.median_ms, passed.unfinished), (Some(1500), 0));
        assert_eq!((totals.answers_without_price, totals.is_unpriced()), (1, true));
        assert!(passed.failures.is_empty() && passed.variants[0].before.is_none());
    }

    #[test]
    fn each_reason_of_a_failure_is_listed() {
        let faults = |task: Task, judged| report(&task, judged).failures.remove(0).faults;
        let no = task(State::Done, "{\"pass\": false, \"reason\": \"Two lines.\"}");
        assert_eq!(
            faults(task(State::Done, "x"), Some(no)),
            ["does not contain `LH`", "judge: Two lines. (One line?)"]
        );
        let vague = faults(task(State::Done, "LH"), Some(task(State::Done, "It is fine.")));
        assert!(vague[0].contains("has no verdict"), "{vague:?}");
        let failed = faults(task(State::Failed, ""), None);
        assert!(failed[0].starts_with("the task is failed"), "{failed:?}");
    }

    #[test]
    fn a_verdict_belongs_to_its_rubric_when_the_checks_of_the_file_change() {
        let verdict = || Some(task(State::Done, "{\"pass\": true, \"reason\": \"\"}"));
        let (first, last) = ("{ contains = \"LH\" }, ", "{ judge = \"One line?\" }");
        let moved = FILE.replace(first, "").replace(last, &format!("{last}, {{ max_words = 9 }}"));
        let told = report_by(&moved, &task(State::Done, "LH"), verdict(), true);
        assert_eq!((told.unfinished, told.variants[0].totals.passed), (0, 1));
        let other = FILE.replace("One line?", "Two lines?");
        let told = report_by(&other, &task(State::Done, "LH"), verdict(), true);
        assert_eq!((told.unfinished, told.variants[0].totals.answers), (1, 0));
    }

    #[test]
    fn a_run_of_another_text_of_the_file_misses_no_answers() {
        let more = format!(
            "{FILE}\n[[cases]]\nname = \"second\"\nprompt = \"Write.\"\nchecks = [{{ max_words = 9 }}]"
        );
        let failed = task(State::Failed, "");
        let unfinished = |is_current| report_by(&more, &failed, None, is_current).unfinished;
        assert_eq!((unfinished(true), unfinished(false)), (1, 0));
    }

    #[test]
    fn an_answer_without_its_verdict_is_unfinished() {
        for (task, judged) in [
            (task(State::Queued, ""), None),
            (task(State::Done, "LH"), None),
            (task(State::Done, "LH"), Some(task(State::Running, ""))),
        ] {
            let told = report(&task, judged);
            assert_eq!((told.unfinished, told.variants[0].totals.answers), (1, 0));
            assert!(told.failures.is_empty());
        }
    }
}
