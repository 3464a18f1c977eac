//! `dalsegno cost`: sums of the ledger, as a table or as CSV, and its calls.

mod calls;

use clap::Args;
use serde::{
    Deserialize as _,
    de::{IntoDeserializer as _, value},
};

use self::calls::CallFlags;
use super::{
    Context, Exit, Failure,
    args::InCampaign,
    output::{Table, format_fields, format_wrapped, money_column},
    server::{Server, with_server},
    turn::list::format_count,
    words::time,
};
use crate::{
    clock::{Clock as _, SystemClock},
    domain::{
        costs::{CostLine, CostReport, Costs, Dimension},
        period_edge::{self, PeriodEdge},
        text::count,
        timestamp::parse_period,
    },
    operations::ReportCosts,
};

/// Head of the column that counts calls without a price.
const NO_PRICE: &str = "NO PRICE";

/// Adds up the costs of calls by day, campaign, agent, model, provider, purpose or user.
///
/// Each call of the ledger is in one line, so that the lines add up to the total. Amounts are in the currency of the price list and of
/// Claude Code; nothing is converted. Days begin at midnight of `scheduler.time_zone`.
#[derive(Debug, Args)]
pub(super) struct CostFlags {
    /// One or two of day, campaign, agent, model, provider, purpose and user: `--by day,agent`.
    #[arg(long, value_name = "DIMENSION", default_value = "day", value_delimiter = ',', value_parser = parse_dimension)]
    by: Vec<Dimension>,
    /// Only calls since this time: `yesterday`, `2026-11-01` for the begin of that day, `7d` for seven times 24 hours ago, or
    /// `2026-11-01T08:00:00Z`.
    #[arg(long, value_name = "TIME", value_parser = parse_edge)]
    since: Option<PeriodEdge>,
    /// Only calls before this time: `today` ends with yesterday.
    #[arg(long, value_name = "TIME", value_parser = parse_edge)]
    until: Option<PeriodEdge>,
    #[command(flatten)]
    campaign: InCampaign,
    /// Only the values of the last dimension with the highest costs, at most this many, and the sum of all others.
    #[arg(long, value_name = "N", conflicts_with = "calls")]
    top: Option<u32>,
    /// Prints comma-separated values, with amounts in units and in millionths of the currency, and all counts.
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    calls: CallFlags,
}

pub(super) async fn run(flags: &CostFlags, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| match flags.calls.calls {
        true => calls::list(flags, context, server).await,
        false => report(flags, context, server).await,
    })
    .await
}

async fn report(flags: &CostFlags, context: &Context, server: &Server) -> Result<Exit, Failure> {
    let (by, and) = match flags.by[..] {
        [by] => (by, None),
        [by, and] => (by, Some(and)),
        _ => {
            let words =
                "--by has more than two dimensions: give one or two, such as --by day,agent";
            return Err(Failure::new(Exit::Usage, anyhow::anyhow!(words)));
        }
    };
    let campaign_id = flags.campaign.id_if_given(context, server).await?;
    let (since, until) = (flags.since, flags.until);
    let report = ReportCosts {
        by,
        and,
        since,
        until,
        campaign_id,
        top: flags.top,
        ..ReportCosts::default()
    };
    let report = server.call(report).await?;
    match flags.csv || context.output.is_csv() {
        true => context.output.print_crlf_lines(&report.to_csv()),
        false => context.output.print_data(&report, || format_report(&report)),
    }
    Ok(Exit::Ok)
}

fn parse_edge(text: &str) -> Result<PeriodEdge, String> {
    match parse_period(text) {
        Ok(period) => Ok(PeriodEdge::At(SystemClock.now() - period)),
        Err(_) => text.parse().map_err(|error: period_edge::Error| {
            format!("{error}; or `7d` for seven times 24 hours ago")
        }),
    }
}

fn parse_dimension(text: &str) -> Result<Dimension, String> {
    let text: value::StrDeserializer<'_, value::Error> = text.into_deserializer();
    Dimension::deserialize(text).map_err(|error| error.to_string())
}

fn format_report(report: &CostReport) -> String {
    let CostReport { by, and, currency, time_zone, since, until, lines, total, .. } = report;
    let mut fields = Vec::new();
    if let Some(since) = since {
        fields.push(("since", format!("{} UTC", time(*since))));
    }
    if let Some(until) = until {
        fields.push(("until", format!("{} UTC", time(*until))));
    }
    if *by == Dimension::Day || *and == Some(Dimension::Day) {
        fields.push(("days", format!("of {time_zone}")));
    }
    let period = match fields.is_empty() {
        true => String::new(),
        false => format!("{}\n", format_fields(&fields)),
    };
    let money = format!("COST ({currency})");
    let costs = lines.iter().chain(&report.others).map(|line| line.costs).chain([*total]);
    let amounts = costs.filter(|costs| !costs.is_unpriced()).map(|costs| costs.cost_micros);
    let format_amount = money_column(amounts);
    let row = |[value, second]: [String; 2], costs: &Costs| {
        let sent = costs.input_tokens + costs.cache_creation_tokens;
        [
            value,
            second,
            costs.calls.to_string(),
            costs.calls_without_price.to_string(),
            format_count(sent),
            format_count(costs.cache_read_tokens),
            format_count(costs.output_tokens),
            match costs.is_unpriced() {
                true => "no price".to_owned(),
                false => format_amount(costs.cost_micros),
            },
        ]
    };
    let of_all = row(["total".to_owned(), String::new()], total);
    // Amounts without any price say so themselves.
    let is_partial = lines.iter().chain(&report.others).any(|line| line.costs.is_partly_unpriced());
    let hidden = if is_partial || total.is_partly_unpriced() { "" } else { NO_PRICE };
    let others: Vec<CostLine> = report.named_others().collect();
    let rows = lines.iter().chain(&others).map(|line| row(names(report, line), &line.costs));
    let rows = rows.chain([of_all]);
    let (first, second) = (title(*by), and.map(title).unwrap_or_default());
    let table = match and {
        Some(_) => {
            let head = [&*first, &*second, "CALLS", NO_PRICE, "IN", "CACHED", "OUT", &*money];
            Table::new(&head).hides(hidden).format(rows)
        }
        None => {
            let head = [&*first, "CALLS", NO_PRICE, "IN", "CACHED", "OUT", &*money];
            let without_second = |row: [String; 8]| {
                let [value, _, calls, unpriced, sent, cached, out, cost] = row;
                [value, calls, unpriced, sent, cached, out, cost]
            };
            Table::new(&head).hides(hidden).format(rows.map(without_second))
        }
    };
    format!("{period}{table}{}", format_unpriced(total.calls_without_price))
}

fn format_unpriced(n: i64) -> String {
    let n = usize::try_from(n).unwrap_or(0);
    if n == 0 {
        return String::new();
    }
    let text = format!(
        "{} no price and {} as 0, also in budgets: `dalsegno doctor` names their models, those that are free, and an entry of `prices.models` for each other one",
        count(n, "call had", "calls had"),
        if n == 1 { "counts" } else { "count" },
    );
    format!("\n{}", format_wrapped("", &text))
}

/// Returns the values of a line: campaigns by their names, and a dash for none.
fn names(report: &CostReport, line: &CostLine) -> [String; 2] {
    let name = |value: &String| report.name_of(value).to_owned();
    [&line.value, &line.second].map(|value| value.as_ref().map_or("-".to_owned(), name))
}

fn title(dimension: Dimension) -> String {
    dimension.as_str().to_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> CostReport {
        let costs = Costs { calls: 2, cost_micros: 1_250_000, input_tokens: 7, ..Costs::default() };
        let line = CostLine { value: Some("a \"b\", c".to_owned()), second: None, costs };
        CostReport {
            by: Dimension::Agent,
            and: Some(Dimension::User),
            currency: "EUR".to_owned(),
            time_zone: "UTC".to_owned(),
            since: None,
            until: None,
            lines: vec![line],
            others: Vec::new(),
            n_others: 0,
            total: costs,
            campaign_names: std::collections::HashMap::new(),
        }
    }

    #[test]
    fn a_table_ends_with_the_total() {
        let text = format_report(&report());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("AGENT") && lines[0].ends_with("COST (EUR)"), "{text}");
        assert!(lines[2].starts_with("total") && lines[2].ends_with("1.25"), "{text}");
        let single = CostReport { and: None, ..report() };
        assert!(!format_report(&single).contains("USER"));
        let others = single.lines.clone();
        let with_others = format_report(&CostReport { others, n_others: 12, ..single });
        let line = with_others.lines().nth(2).unwrap();
        assert!(line.starts_with("(12 others)") && line.ends_with("1.25"), "{with_others}");
    }

    #[test]
    fn amounts_of_a_column_have_the_same_digits_and_their_points_line_up() {
        let line = |value: &str, cost_micros| CostLine {
            value: Some(value.to_owned()),
            second: None,
            costs: Costs { calls: 1, cost_micros, input_tokens: 1, ..Costs::default() },
        };
        let lines = vec![line("first", 12_262_390), line("second", 64_239), line("third", 0)];
        let total = Costs { calls: 3, cost_micros: 12_326_629, ..Costs::default() };
        let text = format_report(&CostReport { and: None, lines, total, ..report() });
        let ends: Vec<_> = text.lines().skip(1).map(|line| &line[line.len() - 9..]).collect();
        assert_eq!(ends, ["12.262390", " 0.064239", " 0.000000", "12.326629"], "{text}");
    }

    #[test]
    fn calls_without_a_price_are_told_apart_from_free_ones() {
        assert!(!format_report(&report()).contains("no price"));
        let costs = Costs { calls: 2, calls_without_price: 2, ..Costs::default() };
        let line = CostLine { value: Some("writer".to_owned()), second: None, costs };
        let text = format_report(&CostReport { lines: vec![line], total: costs, ..report() });
        assert_eq!(text.lines().filter(|line| line.ends_with("no price")).count(), 2, "{text}");
        assert!(text.contains("\n2 calls had no price and count as 0"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        assert!(!text.contains(NO_PRICE), "{text}");
        let costs = Costs { calls: 100, calls_without_price: 1, ..Costs::default() };
        let text = format_report(&CostReport { total: costs, ..report() });
        assert!(
            !text.contains("no price\n") && text.contains("\n1 call had no price and counts as 0"),
            "{text}"
        );
        let total = text.lines().find(|line| line.starts_with("total")).unwrap();
        let cells: Vec<_> = total.split_whitespace().collect();
        assert!(text.contains("CALLS  NO PRICE  IN") && cells[1..3] == ["100", "1"], "{text}");
    }

    #[test]
    fn an_unknown_dimension_names_the_known_ones() {
        assert_eq!(parse_dimension("purpose"), Ok(Dimension::Purpose));
        let error = parse_dimension("month").unwrap_err();
        assert!(error.contains("`month`") && error.contains("`day`"), "{error}");
    }
}
