//! Text output of the report.

use std::path::Path;

use super::{
    ending::DemoEnd,
    report::{Agent, Expiry, Fold, PostView, Report, Rescue},
    settings::kept_command,
};
use crate::{cli::output::format_table, settings::Environment};

const LINE_MAX_CHARS: usize = 96;
const POST_LINE_MAX_CHARS: usize = 76;

/// Describes the report, and what stays in the folder of the demo.
pub(super) fn report(
    report: &Report,
    ending: DemoEnd,
    folder: &Path,
    environment: &Environment,
) -> String {
    let mut sections = vec![board(&report.board), agents(&report.agents), rescue(&report.kill)];
    sections.extend(report.compactions.iter().map(fold));
    sections.extend(report.expiry.as_ref().map(expiry));
    sections.push(checks(report));
    sections.push(end(report, ending, folder, environment));
    format!("\n{}", sections.join("\n"))
}

fn board(posts: &[PostView]) -> String {
    let posts = posts.iter().map(|post| {
        let answers = post.answers.map(|seq| format!(", answers #{seq}")).unwrap_or_default();
        let head =
            format!("  #{:<2}  {} to {}{answers}", post.seq, post.sender, post.audience.join(", "));
        let lines = shortened(&post.text).into_iter().map(|line| format!("       {line}\n"));
        format!("{head}\n{}", lines.collect::<String>())
    });
    format!("  The board\n\n{}", posts.collect::<String>())
}

/// Returns the first line of a text after the "(Simulated" line, and its lines that mention an agent.
fn shortened(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with("(Simulated"));
    let first = lines.next().unwrap_or_default();
    let calls = lines.filter(|line| line.starts_with('@'));
    std::iter::once(first).chain(calls).map(cut).collect()
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(POST_LINE_MAX_CHARS) {
        Some((end, _)) => format!("{} ...", line[..end].trim_end()),
        None => line.to_owned(),
    }
}

fn agents(agents: &[Agent]) -> String {
    let rows = agents.iter().map(|agent| {
        let turns = match agent.interrupted_turns {
            0 => agent.turns.to_string(),
            n => format!("{} ({n} interrupted)", agent.turns),
        };
        [
            format!("  {}", agent.name),
            agent.tasks.to_string(),
            turns,
            agent.sessions.to_string(),
            agent.input_tokens.to_string(),
            agent.output_tokens.to_string(),
            agent.summary_tokens.to_string(),
        ]
    });
    format_table(
        &["  AGENT", "TASKS", "TURNS", "SESSIONS", "TOKENS IN", "OUT", "FOR SUMMARIES"],
        rows,
    )
}

fn rescue(kill: &Rescue) -> String {
    let number = |n: Option<i32>| n.map_or("none".to_owned(), |n| n.to_string());
    let after = kill.continued_after_secs.map_or("never".to_owned(), |secs| format!("{secs:.1} s"));
    paragraph(&format!(
        "The kill. Worker {} was killed with SIGKILL while it wrote part {}, of which {} bytes had arrived. Its turn {} \
         was ended as interrupted ({}), and worker {} wrote the part in turn {}, {after} after the kill. A lease lasts {} s \
         here and {} s by default; a rescue takes that much longer then.",
        kill.killed_pid,
        kill.part,
        kill.arrived_bytes,
        number(kill.interrupted_turn),
        kill.interrupted_because.as_deref().unwrap_or("unknown reason"),
        number(kill.continued_by_pid),
        number(kill.continued_in_turn),
        kill.lease_secs,
        kill.usual_lease_secs,
    ))
}

fn fold(fold: &Fold) -> String {
    paragraph(&format!(
        "A compaction (generation {}). The {}'s conversation grew towards its window: {} stands in for its first {} \
         messages, and {} tokens became {}. It has {} of {} planted identifiers and {} of {} pins word for word. \
         Summaries refused before it: {}.",
        fold.generation,
        fold.agent,
        writer(fold.rung.as_deref()),
        fold.folded_messages,
        fold.tokens_before,
        fold.tokens_after,
        fold.identifiers_kept,
        fold.identifiers,
        fold.pins_kept,
        fold.pins,
        fold.refused,
    ))
}

fn writer(rung: Option<&str>) -> &'static str {
    match rung {
        Some("extract") => "an extract without the model",
        _ => "a summary by the model",
    }
}

fn expiry(expiry: &Expiry) -> String {
    let summary = if expiry.inherited_summary { "a summary and " } else { "" };
    let notice = if expiry.notice_sent { "was" } else { "was NOT" };
    paragraph(&format!(
        "The expiry. Session {} was closed as {}. Its successor {} took {summary}{} messages along, and its first call \
         {notice} told that the conversation is restored, and what of it came along.",
        expiry.closed_session_id,
        expiry.closed_because.as_deref().unwrap_or("nothing"),
        expiry.successor_id,
        expiry.inherited_messages,
    ))
}

fn checks(report: &Report) -> String {
    let lines = report.checks.iter().map(|check| {
        let mark = if check.holds { "✓" } else { "✗" };
        format!("  {mark} {} ({})\n", check.what, check.figures)
    });
    lines.collect()
}

fn end(report: &Report, ending: DemoEnd, folder: &Path, environment: &Environment) -> String {
    let verdict = match report.ok {
        true => format!("All checks passed, after {:.0} s.", report.took_secs),
        false => "NOT all checks passed: please report the lines above.".to_owned(),
    };
    let honest = paragraph(&format!(
        "{verdict} The texts were written by a simulation: no model was called and nothing was charged. {}",
        match ending {
            DemoEnd::Open => "Its workers answer further tasks until Ctrl-C.",
            DemoEnd::Kept => "The database stays.",
            DemoEnd::Removed =>
                "The database, the workers and the folder of this demo are removed.",
        }
    ));
    let look = match ending {
        DemoEnd::Kept => {
            let command = kept_command(folder, environment);
            format!(
                "\n  look  {command} task ls\n        all commands work on it with this file; `dalsegno demo --open` adds a campaign\n\n  \
                 open  {command} serve\n        serves the console with this campaign; the simulation answers further tasks\n",
            )
        }
        DemoEnd::Open | DemoEnd::Removed => String::new(),
    };
    // `serve` alone would begin another database, with the agents of the project.
    if matches!(ending, DemoEnd::Kept) {
        return format!("{honest}{look}");
    }
    format!(
        "{honest}{look}\n  next  dalsegno serve            starts the service\n        dalsegno task add         gives an agent \
         something to do\n        dalsegno config template  says how to name a real model: agents.provider\n"
    )
}

fn paragraph(text: &str) -> String {
    paragraph_of(LINE_MAX_CHARS, text)
}

/// Wraps lines between words.
pub(super) fn paragraph_of(line_max_chars: usize, text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let is_full =
            |line: &String| line.chars().count() + 1 + word.chars().count() > line_max_chars;
        if lines.last().is_none_or(is_full) {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(if line.is_empty() { "  " } else { " " });
            line.push_str(word);
        }
    }
    lines.join("\n") + "\n"
}
