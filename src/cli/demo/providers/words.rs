//! Text output of the report, for terminals of 80 columns.

use super::report::{Answer, Report};
use crate::cli::{demo::words::paragraph_of, output::format_table};

const LINE_MAX_CHARS: usize = 78;

pub(super) fn report(report: &Report) -> String {
    let mut sections = vec![answers(report), calls(report)];
    sections.extend(example(report));
    sections.extend(report.left_out.as_deref().map(left_out));
    sections.push(checks(report));
    sections.push(end(report));
    format!("\n{}", sections.join("\n"))
}

/// Draws who answered: a line per agent, a column per round.
fn answers(report: &Report) -> String {
    let n_models = report.models.len();
    let width = report.models.iter().map(|model| model.provider.len()).max().unwrap_or(0).max(8);
    let line = |first: &str, cells: Vec<&str>| {
        let cells: String = cells.iter().map(|cell| format!("  {cell:<width$}")).collect();
        format!("  {first:<5}{cells}").trim_end().to_owned() + "\n"
    };
    let rounds: Vec<String> = (1..=n_models).map(|round| format!("ROUND {round}")).collect();
    let heads = rounds.iter().map(String::as_str).chain(["RETURN"]).collect();
    let mut text = "  The model that answered. From round 2 on, the model of the round before\n  has failed the call first.\n\n".to_owned();
    text.push_str(&line("AGENT", heads));
    for agent in report.answers.chunk_by(|a, b| a.agent == b.agent) {
        let cells = agent.iter().map(provider).collect();
        text.push_str(&line(agent[0].agent, cells));
    }
    text
}

fn provider(answer: &Answer) -> &str {
    let entry = answer.answered_by.as_deref().unwrap_or("no model");
    entry.split('/').next().unwrap_or(entry)
}

fn calls(report: &Report) -> String {
    let rows = report.models.iter().map(|model| {
        let number = |n: Option<usize>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
        [
            format!("  {}", model.entry),
            number(model.answered),
            number(model.failed),
            model.in_ledger.to_string(),
            model.failure.to_owned(),
        ]
    });
    format_table(&["  MODEL", "ANSWERED", "FAILED", "LEDGER", "FAILS WITH"], rows)
}

/// Quotes the answer that follows the most moves, and the reason for its model.
fn example(report: &Report) -> Option<String> {
    let n_models = report.models.len();
    let last = report.answers.iter().find(|answer| answer.round == n_models + 1)?;
    let moved = report.answers.iter().find(|answer| answer.round == 2)?;
    Some(format!(
        "{}{}",
        paragraph_of(
            LINE_MAX_CHARS,
            &format!(
                "The last answer of {}, by {}: \"{}\"",
                last.agent,
                provider(last),
                last.result.as_deref().unwrap_or_default()
            )
        ),
        paragraph_of(
            LINE_MAX_CHARS,
            &format!(
                "Why {} moved in round 2: {}",
                moved.agent,
                moved.because.as_deref().unwrap_or_default()
            )
        ),
    ))
}

fn left_out(reason: &str) -> String {
    paragraph_of(
        LINE_MAX_CHARS,
        &format!(
            "The Claude Code CLI took no part: {reason}. To see it here, too, install it (npm install -g @anthropic-ai/claude-code) or set \
             claude.program and claude.path, and run this again. It needs no credential: it calls a scripted server with a key that does not exist."
        ),
    )
}

fn checks(report: &Report) -> String {
    let lines = report.checks.iter().map(|check| {
        let mark = if check.holds { "✓" } else { "✗" };
        format!("  {mark} {} ({})\n", check.what, check.figures)
    });
    lines.collect()
}

fn end(report: &Report) -> String {
    let verdict = match report.ok {
        true => format!("All checks passed, after {:.0} s.", report.took_secs),
        false => "NOT all checks passed: please report the lines above.".to_owned(),
    };
    let honest = paragraph_of(
        LINE_MAX_CHARS,
        &format!(
            "{verdict} The answers were written by scripts: no model was called, and nothing left this machine. The database, the workers and \
             the folder of this demo are removed."
        ),
    );
    format!(
        "{honest}\n  next  docs/how-to/model-chains.md  several models for an agent\n        docs/how-to/endpoints.md     servers of your own\n"
    )
}
