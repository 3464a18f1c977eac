//! `dalsegno fidelity`: proofs that models saw the history of their conversations.

use clap::{Args, Subcommand, ValueEnum};

use super::{
    Context, Exit, Failure,
    args::InCampaign,
    output::{format_fields, format_table, format_wrapped, short_id},
    server::{Server, with_server},
    session::serialised_name,
    words::time,
};
use crate::{
    domain::{
        agents::Catalogue,
        compactions::RejectedAttempt,
        fidelity::{CheckedTurn, EstimateErrors, FidelityReport, RejectedSummaries, TurnCursor},
        text::count,
        turns::HistoryCheck,
    },
    operations::{ListCheckedTurns, ReportFidelity},
};

#[derive(Debug, Subcommand)]
pub(super) enum FidelityCommand {
    /// Reports how exactly the conversations of a campaign were continued.
    Report(Report),
    /// Lists the ended turns of a campaign, each with the proof that the model saw the history.
    Turns(Turns),
}

#[derive(Debug, Args)]
pub(super) struct Report {
    #[command(flatten)]
    campaign: InCampaign,
}

#[derive(Debug, Args)]
pub(super) struct Turns {
    #[command(flatten)]
    campaign: InCampaign,
    /// Only the turns with this proof.
    #[arg(long, value_enum, value_name = "PROOF")]
    history: Option<HistoryName>,
    /// Continues after this place: a list that stops early prints it.
    #[arg(long, value_name = "PLACE", value_parser = parse_place)]
    after: Option<TurnCursor>,
    /// Maximum number of turns, up to 1000.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1000))]
    limit: i64,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum HistoryName {
    Seen,
    NotSeen,
    NotProvable,
    NoHistory,
}

impl From<HistoryName> for HistoryCheck {
    fn from(name: HistoryName) -> Self {
        match name {
            HistoryName::Seen => Self::Seen,
            HistoryName::NotSeen => Self::NotSeen,
            HistoryName::NotProvable => Self::NotProvable,
            HistoryName::NoHistory => Self::NoHistory,
        }
    }
}

pub(super) async fn run(command: &FidelityCommand, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| run_on_server(command, context, server).await).await
}

async fn run_on_server(
    command: &FidelityCommand,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let output = context.output;
    match command {
        FidelityCommand::Report(given) => {
            let id = given.campaign.id(context, server).await?;
            let report = server.call(ReportFidelity { id }).await?;
            output.print_data(&report, || format_report(&report));
        }
        FidelityCommand::Turns(given) => {
            let id = given.campaign.id(context, server).await?;
            let page = |cursor: Option<String>, limit| ListCheckedTurns {
                id,
                history: given.history.map(HistoryCheck::from),
                cursor: cursor.map_or(given.after, |cursor| cursor.try_into().ok()),
                limit: Some(limit),
            };
            let turns = server.items(given.limit, page).await?;
            output.print_data(&turns, || format_turns(&turns, &context.catalogue()));
        }
    }
    Ok(Exit::Ok)
}

fn parse_place(text: &str) -> Result<TurnCursor, &'static str> {
    let place = TurnCursor::try_from(text.to_owned());
    place.map_err(|_| "expected SESSION_TURN, the place that a list prints if it stops early")
}

fn format_report(report: &FidelityReport) -> String {
    let FidelityReport { turns, estimates, summaries, lost_sessions, rejected, is_limited } =
        report;
    let mut text = format_fields(&[
        ("seen", format!("{}: the count proves that the model saw the history", turns.seen)),
        ("not seen", format!("{}: answered without the history", turns.not_seen)),
        ("not provable", format!("{}: the count fits both, or there is none", turns.not_provable)),
        ("no history", format!("{}: nothing came before the turn", turns.no_history)),
        (
            "not checked",
            format!("{}: without an answer, or of an earlier version", turns.not_checked),
        ),
        ("estimates", format_estimates(estimates)),
        (
            "summaries",
            format!(
                "{} applied ({} undone), {} failed; {} rejected",
                summaries.applied,
                summaries.undone,
                summaries.refused,
                count(summaries.rejected_attempts, "attempt", "attempts"),
            ),
        ),
        ("sessions", format!("{lost_sessions} lost by their provider and rebuilt")),
    ]);
    if *is_limited {
        text.push_str("\nThe numbers are those of the newest 10000 ended turns.\n");
    }
    if turns.not_seen > 0 {
        text.push_str("\nTurns without the history: dalsegno fidelity turns --history not_seen\n");
    }
    if !rejected.is_empty() {
        text.push_str("\nRejected summaries:\n");
        text.extend(rejected.iter().map(format_rejected));
    }
    text
}

fn format_estimates(estimates: &EstimateErrors) -> String {
    let EstimateErrors { counted_calls, smallest, median, largest } = *estimates;
    match (smallest, median, largest) {
        (Some(smallest), Some(median), Some(largest)) => format!(
            "{median:.2} times the provider's count ({smallest:.2} to {largest:.2}, {})",
            count(counted_calls, "call", "calls"),
        ),
        _ => "no call was counted".to_owned(),
    }
}

fn format_rejected(rejected: &RejectedSummaries) -> String {
    let RejectedSummaries { session_id, generation, turn, created_at, .. } = rejected;
    let end = match rejected.was_accepted_later {
        true if rejected.is_extract => {
            "no attempt was accepted: an extract without a model stands in"
        }
        true => "a later attempt was accepted",
        false => "no attempt was accepted",
    };
    let head = format!(
        "compaction {generation} of session {}, turn {turn}, {}: {end}",
        short_id(*session_id),
        time(*created_at),
    );
    let faults = rejected.attempts.iter().flat_map(format_attempt);
    std::iter::once(format_wrapped("", &head)).chain(faults).collect()
}

/// Formats the faults of a rejected summary.
pub(super) fn format_attempt(attempt: &RejectedAttempt) -> Vec<String> {
    let name = serialised_name(attempt.step);
    attempt.faults.iter().map(|fault| format_wrapped("  ", &format!("{name}: {fault}"))).collect()
}

fn format_turns(turns: &[CheckedTurn], catalogue: &Catalogue) -> String {
    let number = |tokens: Option<i64>| tokens.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let row = |checked: &CheckedTurn| {
        [
            short_id(checked.session_id),
            checked.turn.to_string(),
            catalogue.format_name(&checked.agent, &checked.instance),
            serialised_name(checked.state),
            checked.history_check.map_or_else(|| "-".to_owned(), serialised_name),
            number(checked.estimated_tokens),
            number(checked.counted_tokens),
        ]
    };
    let head = ["SESSION", "TURN", "AGENT", "STATE", "HISTORY", "ESTIMATED", "COUNTED"];
    format_table(&head, turns.iter().map(row))
}
