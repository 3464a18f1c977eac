//! Text output of runs.

use chrono::{DateTime, TimeDelta, Utc};

use crate::{
    cli::{
        output::{format_table, format_wrapped, format_wrapped_fields, time_cell_or_dash},
        turn::list::NO_PRICE,
    },
    domain::{
        amount::format_money,
        evals::{AnswerSource, FailedAnswer, RunReport, Totals, VariantReport},
        prices::incomparable_costs,
        text::count,
    },
};

pub(super) fn format_report(report: &RunReport) -> String {
    let n_failed = report.failures.len();
    let mut fields = vec![
        ("eval", format!("{}, run {}", report.eval, report.run)),
        ("campaign", report.campaign_id.to_string()),
    ];
    if report.judge_micros > 0 {
        fields.push(("judge", format!("cost {}", format_money(report.judge_micros))));
    }
    if !report.is_current {
        let words = "changed since the run, so its answers are checked as the file says now";
        fields.push(("file", words.to_owned()));
    }
    if report.unfinished > 0 {
        let answers = count(report.unfinished, "answer is", "answers are");
        fields.push((
            "unfinished",
            match report.is_current {
                true => format!("{answers} missing: give the command again to go on"),
                false => format!("{answers} not judged or not there yet"),
            },
        ));
    }
    let fields = format_wrapped_fields(&fields);
    let mut text = format!("{fields}\n{}", format_variants(&report.variants));
    if n_failed > 0 {
        let answers = count(n_failed, "answer", "answers");
        text.push_str(&format!("\n{answers} failed; {}:\n", where_to_read(&report.failures)));
        text.extend(report.failures.iter().map(format_failure));
    }
    text
}

pub(super) fn format_runs(reports: &[(Option<DateTime<Utc>>, RunReport)]) -> String {
    let row = |(begun, report): &(Option<DateTime<Utc>>, RunReport)| {
        let totals = report.variants.iter().map(|variant| variant.totals);
        let (passed, answers) =
            totals.fold((0, 0), |(passed, answers), it| (passed + it.passed, answers + it.answers));
        [
            report.run.clone(),
            time_cell_or_dash(*begun),
            format!("{passed} of {answers}"),
            report.unfinished.to_string(),
        ]
    };
    format_table(&["RUN", "BEGUN (UTC)", "PASSED", "UNFINISHED"], reports.iter().map(row))
}

fn format_variants(variants: &[VariantReport]) -> String {
    let before = |it: &VariantReport, cell: fn(&Totals) -> String| match &it.before {
        Some(before) => format!("{} (before {})", cell(&it.totals), cell(before)),
        None => cell(&it.totals),
    };
    let row = |it: &VariantReport| {
        [
            it.variant.clone(),
            format!("{} of {}", it.totals.passed, it.totals.answers),
            before(it, |totals| format!("{} %", totals.percent())),
            it.totals.tokens.to_string(),
            before(it, |totals| match totals.is_unpriced() {
                true => NO_PRICE.to_owned(),
                false => format_money(totals.micros),
            }),
            seconds(it.totals.median_ms),
        ]
    };
    let head = ["VARIANT", "PASSED", "RATE", "TOKENS", "COST", "MEDIAN"];
    let table = format_table(&head, variants.iter().map(row));
    let compared =
        variants.iter().map(|it| (it.variant.as_str(), it.totals.answers_without_price > 0));
    match incomparable_costs(compared) {
        Some(note) => format!("{table}\n{}", format_wrapped("", &note)),
        None => table,
    }
}

/// Names the commands that print failed answers.
fn where_to_read(failures: &[FailedAnswer]) -> &'static str {
    let is_task = |failed: &FailedAnswer| matches!(failed.source, AnswerSource::Task { .. });
    match (failures.iter().any(is_task), failures.iter().all(is_task)) {
        (_, true) => "`dalsegno task show TASK` prints one",
        (false, _) => "`dalsegno turn reruns SESSION --turn TURN` prints them",
        (true, false) => {
            "`dalsegno task show TASK` and `dalsegno turn reruns SESSION --turn TURN` print them"
        }
    }
}

fn format_failure(failed: &FailedAnswer) -> String {
    let FailedAnswer { place, source, faults } = failed;
    let source = match source {
        AnswerSource::Task { task_id } => format!("task {task_id}"),
        AnswerSource::Rerun { session_id, turn, number, .. } => {
            format!("rerun {number} of turn {turn} of session {session_id}")
        }
    };
    let faults: String = faults.iter().map(|fault| format_wrapped("    ", fault)).collect();
    format!("{}{faults}", format_wrapped("  ", &format!("{place}, {source}:")))
}

fn seconds(ms: Option<i64>) -> String {
    match ms {
        Some(ms) => format!("{:.1} s", TimeDelta::milliseconds(ms).as_seconds_f64()),
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_without_a_price_is_not_free() {
        let variant = |name: &str, micros, answers_without_price| VariantReport {
            variant: name.to_owned(),
            agent: name.to_owned(),
            totals: Totals { answers: 2, micros, answers_without_price, ..Totals::default() },
            before: None,
        };
        let text = format_variants(&[variant("now", 12_450, 0), variant("next", 0, 2)]);
        assert!(text.contains("no price") && text.contains("for models of next."), "{text}");
        assert_eq!(format_variants(&[variant("now", 0, 0)]).lines().count(), 2);
    }
}
