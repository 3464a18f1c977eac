//! Text output of a list of turns: each fits a line of 80 columns.

use chrono::TimeDelta;

use crate::{
    cli::{
        output::{format_fields, format_table, short_id},
        words::format_duration,
    },
    domain::{
        agents::Catalogue,
        turns::{ListedTurn, Turn},
    },
};

pub(super) fn format_turns(turns: &[ListedTurn], catalogue: &Catalogue) -> String {
    let row = |ListedTurn { turn, is_unpriced, .. }: &ListedTurn| {
        [
            turn.number.to_string(),
            turn.state_word().to_owned(),
            short_id(turn.task_id),
            turn.calls.to_string(),
            format_count(turn.input_tokens + turn.cache_read_tokens + turn.cache_creation_tokens),
            format_count(turn.output_tokens),
            format_known_cost(turn.cost_micros, *is_unpriced),
            turn.started_at.format("%m-%d %H:%M").to_string(),
            duration(turn).map_or_else(|| "-".to_owned(), format_duration),
        ]
    };
    let head = ["TURN", "STATE", "TASK", "CALLS", "IN", "OUT", "COST", "BEGUN (UTC)", "TOOK"];
    let table = format_table(&head, turns.iter().map(row));
    match turns.first() {
        Some(listed) => format!("{}\n{table}", format_fields(&session_fields(listed, catalogue))),
        None => table,
    }
}

/// Returns the lines that all turns of a session have in common.
fn session_fields(listed: &ListedTurn, catalogue: &Catalogue) -> [(&'static str, String); 3] {
    [
        ("session", listed.turn.session_id.to_string()),
        ("agent", catalogue.format_name(&listed.agent, &listed.instance)),
        ("model", format!("{} on {}", listed.model, listed.provider)),
    ]
}

/// Returns the duration of a turn. `None`: it has not ended.
pub(super) fn duration(turn: &Turn) -> Option<TimeDelta> {
    turn.ended_at.map(|ended_at| ended_at - turn.started_at)
}

/// Formats a number of tokens in at most five characters: exact up to 99999.
pub(in crate::cli) fn format_count(n: i64) -> String {
    match n {
        ..100_000 => n.to_string(),
        100_000..1_000_000 => format!("{}k", n / 1_000),
        1_000_000..10_000_000 => format!("{}.{}M", n / 1_000_000, n % 1_000_000 / 100_000),
        _ => format!("{}M", n / 1_000_000),
    }
}

/// Cost of turns and calls without a price.
pub(in crate::cli) const NO_PRICE: &str = "no price";

/// Formats a cost, or says that it has no price.
pub(super) fn format_known_cost(micros: i64, is_unpriced: bool) -> String {
    if is_unpriced { NO_PRICE.to_owned() } else { format_cost(micros) }
}

/// Formats a cost in at most six characters, up to 999 units of the currency.
pub(in crate::cli) fn format_cost(micros: i64) -> String {
    match micros {
        ..1 => "0.00".to_owned(),
        1..100 => "<.0001".to_owned(),
        100..10_000_000 => {
            let rounded = (micros + 50) / 100;
            format!("{}.{:04}", rounded / 10_000, rounded % 10_000)
        }
        _ => {
            let rounded = micros.saturating_add(5_000) / 10_000;
            format!("{}.{:02}", rounded / 100, rounded % 100)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_list_are_short() {
        let counts = [99_999, 123_456, 1_290_000, 45_000_000].map(format_count);
        assert_eq!(counts, ["99999", "123k", "1.2M", "45M"]);
        let costs = [0, 99, 12_345, 16_989, 12_345_678].map(format_cost);
        assert_eq!(costs, ["0.00", "<.0001", "0.0123", "0.0170", "12.35"]);
        let next_digit = [999_999, 9_999_999, 999_999_999].map(format_cost);
        assert_eq!(next_digit, ["1.0000", "10.0000", "1000.00"]);
    }
}
