//! Text output of estimates, for `task add --estimate` and `session estimate`.

use super::{
    output::{format_table, format_wrapped, format_wrapped_fields},
    session::serialised_name,
    turn::list::{format_cost, format_count},
    words::time,
};
use crate::{
    domain::{
        estimates::{
            ChargeRange, Estimate, EstimateHistory, EstimatePrice, PriceOrigin, PromptCache,
            PromptCacheState, WayEstimate,
        },
        text::count,
    },
    operations::FlowEstimate,
};

pub(super) fn format_estimate(estimate: &Estimate) -> String {
    let mut text = format_wrapped_fields(&fields(estimate));
    text.push_str(&format!("\n{}", format_ways(estimate)));
    for way in &estimate.ways {
        if let Some(why) = &way.impossible {
            let prefix = format!("{}: ", serialised_name(way.way));
            text.push_str(&format_wrapped(&prefix, &format!("not possible now: {why}")));
        }
    }
    let next = estimate.ways.iter().find(|way| way.is_next && way.charge.is_some());
    if let Some(next) = next {
        text.push_str(&format!("\nThe next turn ({}):\n", serialised_name(next.way)));
        text.push_str(&format_parts(next, &estimate.currency));
    }
    text
}

pub(super) fn format_flow_estimate(estimate: &FlowEstimate) -> String {
    let FlowEstimate { template, tasks, currency, charge, steps } = estimate;
    let cost = |micros: Option<i64>| micros.map_or_else(dash, format_cost);
    let row = |name: String, agent: String, n: i64, charge: Option<ChargeRange>| {
        let Some(ChargeRange { low, likely, high }) = charge else {
            return [name, agent, n.to_string(), dash(), dash(), dash(), dash(), dash()];
        };
        [
            name,
            agent,
            n.to_string(),
            format_count(likely.input_tokens),
            format_count(likely.output_tokens),
            cost(likely.cost_micros),
            cost(low.cost_micros),
            cost(high.cost_micros),
        ]
    };
    let steps = steps
        .iter()
        .map(|step| row(step.step.clone(), step.agent.clone(), step.tasks, step.charge));
    let sum = row("all".to_owned(), String::new(), *tasks, Some(*charge));
    let head = format!("COST ({currency})");
    let head = ["STEP", "AGENT", "TASKS", "IN", "OUT", &head, "LOW", "HIGH"];
    let mut text = format_table(&head, steps.chain([sum]));
    let note = format!(
        "An estimate of the flow {template}, which was not started. The results of earlier steps are unknown and not in it."
    );
    text.push_str(&format!("\n{}", format_wrapped("", &note)));
    text
}

fn fields(estimate: &Estimate) -> Vec<(&'static str, String)> {
    let Estimate { agent, instance, provider, model, price, history, cache, .. } = estimate;
    let session = match estimate.session_id {
        Some(id) => format!("{id}, turn {}", estimate.turn),
        None => "a new one".to_owned(),
    };
    let mut fields = vec![
        ("agent", format!("{agent}/{instance}")),
        ("session", session),
        ("model", format!("{model} on {provider}")),
        ("price", format_price(price.as_ref(), &estimate.currency)),
        ("history", format_history(history)),
    ];
    fields.extend(format_cache(cache).map(|cache| ("cache", cache)));
    fields.extend(estimate.notes.iter().map(|note| ("note", note.clone())));
    fields
}

fn format_price(price: Option<&EstimatePrice>, currency: &str) -> String {
    let Some(price) = price else {
        return "unknown: add the model to prices.models".to_owned();
    };
    let per_million = |micros: i64| format_cost((micros as f64 * price.factor) as i64);
    let EstimatePrice { input, output, cache_read, cache_creation, .. } = *price;
    if [input, output, cache_read, cache_creation] == [0; 4] {
        let source = price.source.as_deref().unwrap_or("configured");
        return format!("none: {source}");
    }
    let sums = format!(
        "{} {currency} per million tokens of input, {} of output, {} read from the cache, {} written to it",
        per_million(input),
        per_million(output),
        per_million(cache_read),
        per_million(cache_creation),
    );
    let origin = match (price.origin, &price.source, price.checked) {
        (PriceOrigin::Published, Some(source), Some(checked)) => {
            let factor = match price.factor {
                1.0 => String::new(),
                factor => format!("; earlier turns were charged {factor:.2} times the list price"),
            };
            format!("list price of {}, {source} ({checked}){factor}", price.model)
        }
        (PriceOrigin::Charged, ..) => "from the charges of earlier turns".to_owned(),
        _ => "from prices.models".to_owned(),
    };
    format!("{sums}; {origin}")
}

fn format_history(history: &EstimateHistory) -> String {
    let EstimateHistory { conversation_turns, agent_turns, turns_wanted, assumed_output_tokens } =
        *history;
    if let Some(assumed) = assumed_output_tokens {
        return format!("no earlier turns: an answer of {assumed} tokens is assumed");
    }
    let earlier = |n| count(n, "earlier turn", "earlier turns");
    let mut from = match (conversation_turns, agent_turns) {
        (own, 0) => format!("{} of this conversation", earlier(own)),
        (0, other) => format!("{} of the agent in other conversations", earlier(other)),
        (own, other) => format!("{} of this conversation and {other} of the agent", earlier(own)),
    };
    if conversation_turns + agent_turns < turns_wanted {
        from.push_str(", which are few: low and high allow for more");
    }
    from
}

fn format_cache(cache: &PromptCache) -> Option<String> {
    let until = cache.until.map(time).unwrap_or_default();
    Some(match cache.state {
        PromptCacheState::None => return None,
        PromptCacheState::Empty => "empty: the first call writes all of its input".to_owned(),
        PromptCacheState::Valid => {
            format!("about {} tokens until {until} UTC", cache.tokens)
        }
        PromptCacheState::Expired => {
            format!("expired at {until} UTC: the first call writes all of its input again")
        }
        PromptCacheState::Changed => {
            "the system part has changed since the last turn: the first call writes all of its input again"
                .to_owned()
        }
    })
}

fn format_ways(estimate: &Estimate) -> String {
    let cost = |micros: Option<i64>| micros.map_or_else(|| "-".to_owned(), format_cost);
    let head = format!("COST ({})", estimate.currency);
    let row = |way: &WayEstimate| {
        let name = format!("{}{}", serialised_name(way.way), if way.is_next { " *" } else { "" });
        let Some(ChargeRange { low, likely, high }) = way.charge else {
            return [name, dash(), dash(), dash(), dash(), dash(), dash(), dash()];
        };
        [
            name,
            likely.calls.to_string(),
            format_count(likely.input_tokens),
            format_count(likely.cached_tokens),
            format_count(likely.output_tokens),
            cost(likely.cost_micros),
            cost(low.cost_micros),
            cost(high.cost_micros),
        ]
    };
    let head = ["WAY", "CALLS", "IN", "CACHED", "OUT", &head, "LOW", "HIGH"];
    format_table(&head, estimate.ways.iter().map(row))
}

fn format_parts(way: &WayEstimate, currency: &str) -> String {
    let cost = |micros: Option<i64>| micros.map_or_else(|| "-".to_owned(), format_cost);
    let mut rows: Vec<[String; 5]> = way
        .parts
        .iter()
        .map(|it| {
            [
                serialised_name(it.part),
                format_count(it.low),
                format_count(it.likely),
                format_count(it.high),
                cost(it.cost_micros),
            ]
        })
        .collect();
    if let Some(ChargeRange { low, likely, high }) = way.charge {
        rows.push([
            "turn".to_owned(),
            format_count(low.tokens()),
            format_count(likely.tokens()),
            format_count(high.tokens()),
            cost(likely.cost_micros),
        ]);
    }
    let head = format!("COST ({currency})");
    format_table(&["PART", "LOW", "LIKELY", "HIGH", &head], rows.into_iter())
}

fn dash() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::domain::estimates::{Charge, PartEstimate, TurnPart, Way};

    fn estimate() -> Estimate {
        let charge = |tokens: i64| Charge {
            calls: 2,
            input_tokens: tokens,
            cached_tokens: tokens / 2,
            output_tokens: tokens / 10,
            cost_micros: Some(tokens * 4),
        };
        let charge = ChargeRange {
            low: charge(1_000_000),
            likely: charge(2_000_000),
            high: charge(9_000_000),
        };
        let part = PartEstimate {
            part: TurnPart::FurtherCalls,
            low: 0,
            likely: 1_000_000,
            high: 4_000_000,
            cost_micros: Some(123_456),
        };
        let way = |way, is_next| WayEstimate {
            way,
            is_next,
            impossible: None,
            charge: Some(charge),
            first_call_tokens: Some(1_000_000),
            further_call_tokens: Some(100),
            parts: vec![part],
        };
        let closed = WayEstimate {
            impossible: Some("there is nothing to compact: ".to_owned() + &"long ".repeat(20)),
            charge: None,
            ..way(Way::CompactFirst, false)
        };
        Estimate {
            campaign_id: Uuid::nil(),
            agent: "writer".to_owned(),
            instance: "main".to_owned(),
            session_id: Some(Uuid::nil()),
            turn: 5,
            provider: "claude".to_owned(),
            model: "claude-sonnet-5".to_owned(),
            currency: "USD".to_owned(),
            price: Some(EstimatePrice {
                origin: PriceOrigin::Published,
                model: "claude-sonnet-5".to_owned(),
                input: 2_000_000,
                output: 10_000_000,
                cache_read: 200_000,
                cache_creation: 2_500_000,
                source: Some("https://example.org/pricing".to_owned()),
                checked: "2026-11-25".parse().ok(),
                factor: 1.5,
            }),
            history: EstimateHistory {
                conversation_turns: 4,
                agent_turns: 3,
                turns_wanted: 20,
                assumed_output_tokens: None,
            },
            cache: PromptCache {
                state: PromptCacheState::Expired,
                tokens: 0,
                until: "2026-11-25T12:00:00Z".parse().ok(),
            },
            ways: vec![way(Way::Resume, true), closed, way(Way::NewSession, false)],
            notes: Vec::new(),
        }
    }

    #[test]
    fn an_estimate_fits_a_narrow_terminal_and_says_where_its_numbers_come_from() {
        let text = format_estimate(&estimate());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "3.0000 USD per million tokens of input",
            "charged 1.50 times the list price",
            "https://example.org/pricing (2026-11-25)",
            "4 earlier turns of this conversation and 3 of the agent, which are few",
            "expired at 2026-11-25 12:00:00 UTC",
            "resume * 2 2.0M 1.0M 200k 8.0000 4.0000 36.00",
            "compact first: not possible now: there is nothing to compact",
            "The next turn (resume):",
            "further calls 0 1.0M 4.0M 0.1235",
            "turn 1.1M 2.2M 9.9M 8.0000",
        ] {
            assert!(flat.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn an_assumption_and_an_unknown_price_are_named() {
        let history = EstimateHistory { assumed_output_tokens: Some(400), ..estimate().history };
        let unknown = Estimate { price: None, history, ..estimate() };
        let text = format_estimate(&unknown);
        assert!(text.contains("no earlier turns: an answer of 400 tokens is assumed"), "{text}");
        assert!(text.contains("unknown: add the model to prices.models"), "{text}");
    }
}
