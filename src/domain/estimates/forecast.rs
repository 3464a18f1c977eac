//! The range of a turn's charge, from the size of its first call and from earlier turns.
//!
//! Each earlier turn is taken as an example of the next one: so many calls, so much growth from call to call, so long an answer. The
//! bounds are quantiles over these examples. While there are few of them, an assumption widens the range.

use super::{Charge, ChargeRange, PartEstimate, TurnPart};
use crate::domain::{prices::Price, usage::Tokens};

/// Earlier turns from which on nothing is assumed: with fewer, even their whole range holds too few of the next turns.
pub const TURNS_WANTED: usize = 20;
/// Share of the examples below and above the bounds.
const TAIL: f64 = 0.04;
/// Error of a calibrated size, and of one for a model that has not counted a call yet.
const CALIBRATED: (f64, f64) = (0.9, 1.1);
const COLD: (f64, f64) = (0.5, 2.0);

/// An earlier turn, as far as it tells about the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarlierTurn {
    /// Calls in the ledger.
    pub calls: i64,
    /// Counted input of the first call.
    pub first_tokens: i64,
    /// Input of all calls, with cached tokens.
    pub input_tokens: i64,
    pub cached_tokens: i64,
    pub output_tokens: i64,
    pub cost_micros: i64,
}

/// Assumed bounds where there are few earlier turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assumption {
    pub output_tokens: i64,
    pub max_output_tokens: i64,
    pub max_calls: i64,
    /// Growth from call to call at most.
    pub max_growth_tokens: i64,
}

/// Converts tokens into a cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Pricing {
    pub price: Price,
    pub factor: f64,
}

/// The size of a turn's first call in one way.
#[derive(Debug, Clone, PartialEq)]
pub struct WaySize {
    pub first_tokens: i64,
    /// False if the model has not counted a call yet.
    pub is_calibrated: bool,
    /// Tokens at the beginning of the first call that are probably cached.
    pub cached_tokens: i64,
    /// Tokens of its parts, in the order in which they are sent. Scaled to `first_tokens`.
    pub parts: Vec<(TurnPart, i64)>,
    /// The call for a summary, if one is made first.
    pub compaction: Option<CompactionSize>,
}

/// The size of the call for a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionSize {
    pub calls: i64,
    pub input_tokens: i64,
    pub output_tokens: i64,
    pub max_output_tokens: i64,
}

/// Everything about the next turn besides the size of its first call.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    pub earlier: Vec<EarlierTurn>,
    pub assumption: Assumption,
    /// True if the provider keeps a prompt cache and bills it. Each call then continues the cached one before it, and the ledger has one
    /// line for all calls of a turn.
    pub caches: bool,
    pub pricing: Option<Pricing>,
}

/// An example of the next turn: calls, growth over all calls, and output.
#[derive(Debug, Clone, Copy)]
struct Example {
    calls: f64,
    growth_tokens: i64,
    output_tokens: i64,
}

#[derive(Clone, Copy)]
enum Bound {
    Low,
    Likely,
    High,
}

impl Forecast {
    /// Computes the range of the charge.
    pub fn charge(&self, size: &WaySize) -> ChargeRange {
        let [low, likely, high] =
            [Bound::Low, Bound::Likely, Bound::High].map(|bound| self.bound(size, bound));
        ChargeRange { low, likely, high }
    }

    /// Returns the likely growth of the input from one call to the next.
    pub fn growth_tokens(&self) -> i64 {
        let several = self.earlier.iter().filter(|turn| turn.calls > 1);
        let growth = several.map(|turn| {
            // The k-th call has grown k - 1 times.
            let steps = turn.calls * (turn.calls - 1) / 2;
            self.example(turn).growth_tokens / steps.max(1)
        });
        median(growth.collect()).unwrap_or(0)
    }

    /// Computes the tokens and the likely cost of each part.
    pub fn parts(&self, size: &WaySize) -> Vec<PartEstimate> {
        let (least, most) = size.margins();
        let mut cached = size.cached_tokens;
        let mut parts = Vec::new();
        if let Some(compaction) = size.compaction {
            parts.push(self.compaction_part(&compaction));
        }
        let scaled = scale(&size.parts, size.first_tokens);
        parts.extend(scaled.into_iter().filter(|(_, tokens)| *tokens > 0).map(|(part, tokens)| {
            let read = cached.min(tokens);
            cached -= read;
            let (low, high) = (times(tokens, least), times(tokens, most));
            let cost_micros = self.cost(tokens, read, 0);
            PartEstimate { part, low, likely: tokens, high, cost_micros }
        }));
        parts.push(self.further_part(size));
        parts.push(self.answer_part());
        parts.retain(|part| part.high > 0);
        parts
    }

    fn compaction_part(&self, compaction: &CompactionSize) -> PartEstimate {
        let [low, likely, high] = [Bound::Low, Bound::Likely, Bound::High]
            .map(|bound| compaction.charge(bound))
            .map(|(_, input, output)| input + output);
        let cost_micros = self.cost(compaction.input_tokens, 0, compaction.output_tokens);
        PartEstimate { part: TurnPart::Compaction, low, likely, high, cost_micros }
    }

    fn further_part(&self, size: &WaySize) -> PartEstimate {
        let further = |bound: Bound| {
            let base = size.first(bound);
            let all = self.examples(bound).into_iter();
            pick(all.map(|example| example.input(base) - base).collect(), bound)
        };
        let [low, likely, high] = [Bound::Low, Bound::Likely, Bound::High].map(further);
        let read = if self.caches { likely } else { self.cached_share(likely) };
        let cost_micros = self.cost(likely, read, 0);
        PartEstimate { part: TurnPart::FurtherCalls, low, likely, high, cost_micros }
    }

    fn answer_part(&self) -> PartEstimate {
        let output = |bound: Bound| {
            let all = self.examples(bound).into_iter();
            pick(all.map(|example| example.output_tokens).collect(), bound)
        };
        let [low, likely, high] = [Bound::Low, Bound::Likely, Bound::High].map(output);
        let cost_micros = self.cost(0, 0, likely);
        PartEstimate { part: TurnPart::Answer, low, likely, high, cost_micros }
    }

    fn bound(&self, size: &WaySize, bound: Bound) -> Charge {
        let base = size.first(bound);
        let charges: Vec<Charge> = self
            .examples(bound)
            .into_iter()
            .map(|example| self.charge_of(size, example, base, bound))
            .collect();
        let over = |value: fn(&Charge) -> i64| pick(charges.iter().map(value).collect(), bound);
        let cost = |charge: &Charge| charge.cost_micros.unwrap_or(0);
        Charge {
            calls: over(|charge| charge.calls),
            input_tokens: over(|charge| charge.input_tokens),
            cached_tokens: over(|charge| charge.cached_tokens),
            output_tokens: over(|charge| charge.output_tokens),
            cost_micros: self
                .pricing
                .as_ref()
                .map(|_| pick(charges.iter().map(cost).collect(), bound)),
        }
    }

    fn charge_of(&self, size: &WaySize, example: Example, base: i64, bound: Bound) -> Charge {
        let input = example.input(base);
        let cached = match (self.caches, bound) {
            // The provider may have dropped it early.
            (true, Bound::High) => (input - base - example.output_tokens).max(0),
            (true, _) => {
                let further = (input - base - example.output_tokens).max(0);
                size.cached_tokens.min(base) + further
            }
            (false, _) => self.cached_share(input),
        };
        let (calls, more_input, more_output) =
            size.compaction.map_or((0, 0, 0), |compaction| compaction.charge(bound));
        let output = example.output_tokens;
        let cost = self.cost(input, cached, output);
        let more_cost = self.cost(more_input, 0, more_output);
        Charge {
            calls: calls + example.calls.round() as i64,
            input_tokens: input + more_input,
            cached_tokens: cached,
            output_tokens: output + more_output,
            cost_micros: cost.zip(more_cost).map(|(cost, more)| cost.saturating_add(more)),
        }
    }

    /// Returns the examples for a bound.
    fn examples(&self, bound: Bound) -> Vec<Example> {
        let mut examples: Vec<Example> =
            self.earlier.iter().map(|turn| self.example(turn)).collect();
        let Assumption { output_tokens, max_output_tokens, max_calls, max_growth_tokens } =
            self.assumption;
        let one = |output_tokens| Example { calls: 1.0, growth_tokens: 0, output_tokens };
        let is_short = examples.len() < TURNS_WANTED;
        match bound {
            Bound::Low if is_short => examples.push(one(1)),
            Bound::Likely if examples.is_empty() => examples.push(one(output_tokens)),
            Bound::High if is_short => examples.push(Example {
                calls: max_calls as f64,
                growth_tokens: max_growth_tokens * max_calls * (max_calls - 1) / 2,
                output_tokens: max_output_tokens,
            }),
            _ => {}
        }
        examples
    }

    fn example(&self, turn: &EarlierTurn) -> Example {
        let first = turn.first_tokens.max(1);
        let output_tokens = turn.output_tokens;
        if self.caches {
            let calls = (turn.input_tokens as f64 / first as f64).max(1.0);
            return Example { calls, growth_tokens: 0, output_tokens };
        }
        let calls = turn.calls.max(1);
        let growth_tokens = (turn.input_tokens - calls * first).max(0);
        Example { calls: calls as f64, growth_tokens, output_tokens }
    }

    /// Returns the tokens of an input that a provider without a prompt cache of known lifetime reads from a cache: as many as before.
    fn cached_share(&self, input_tokens: i64) -> i64 {
        let share = |turn: &EarlierTurn| turn.cached_tokens * 1000 / turn.input_tokens.max(1);
        let shares = self.earlier.iter().map(share).collect();
        input_tokens * median(shares).unwrap_or(0).min(1000) / 1000
    }

    fn cost(&self, input: i64, cached: i64, output: i64) -> Option<i64> {
        Some(self.pricing.as_ref()?.cost(self.caches, input, cached, output))
    }
}

impl Pricing {
    /// Computes a cost. What a provider with a prompt cache does not read from it, it writes to it.
    pub fn cost(&self, caches: bool, input: i64, cached: i64, output: i64) -> i64 {
        let uncached = Some((input - cached).max(0));
        let (input, cache_creation) = if caches { (None, uncached) } else { (uncached, None) };
        let tokens =
            Tokens { input, output: Some(output), cache_read: Some(cached), cache_creation };
        times(self.price.cost_micros(tokens), self.factor)
    }
}

impl Example {
    fn input(&self, base: i64) -> i64 {
        times(base, self.calls).saturating_add(self.growth_tokens)
    }
}

impl WaySize {
    fn margins(&self) -> (f64, f64) {
        if self.is_calibrated { CALIBRATED } else { COLD }
    }

    fn first(&self, bound: Bound) -> i64 {
        let (least, most) = self.margins();
        match bound {
            Bound::Low => times(self.first_tokens, least),
            Bound::Likely => self.first_tokens,
            Bound::High => times(self.first_tokens, most),
        }
    }
}

impl CompactionSize {
    /// Returns calls, input and output. A refused summary is asked for once more.
    fn charge(&self, bound: Bound) -> (i64, i64, i64) {
        let Self { calls, input_tokens, output_tokens, max_output_tokens } = *self;
        match bound {
            Bound::Low => (calls, times(input_tokens, CALIBRATED.0), 1),
            Bound::Likely => (calls, input_tokens, output_tokens),
            Bound::High => {
                (2 * calls, times(2 * input_tokens, CALIBRATED.1), 2 * max_output_tokens)
            }
        }
    }
}

/// Scales parts so that their sum is `total`. A rest that no part explains is the provider's.
fn scale(parts: &[(TurnPart, i64)], total: i64) -> Vec<(TurnPart, i64)> {
    let sum: i64 = parts.iter().map(|(_, tokens)| tokens).sum();
    if sum <= total {
        // Its program sends its own instructions and tools first.
        return [(TurnPart::Provider, total - sum)].into_iter().chain(parts.to_vec()).collect();
    }
    let share = total as f64 / sum.max(1) as f64;
    let mut scaled = parts.to_vec();
    scaled.iter_mut().for_each(|(_, tokens)| *tokens = times(*tokens, share));
    scaled
}

fn times(tokens: i64, factor: f64) -> i64 {
    (tokens as f64 * factor).round() as i64
}

fn median(mut values: Vec<i64>) -> Option<i64> {
    values.sort_unstable();
    values.get(values.len().checked_sub(1)? / 2).copied()
}

/// Returns the quantile of a bound. Empty lists have none.
fn pick(mut values: Vec<i64>, bound: Bound) -> i64 {
    values.sort_unstable();
    let last = values.len().saturating_sub(1) as f64;
    let at = match bound {
        Bound::Low => (last * TAIL).floor(),
        Bound::Likely => (last / 2.0).floor(),
        Bound::High => (last * (1.0 - TAIL)).ceil(),
    };
    values.get(at as usize).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price() -> Price {
        Price {
            provider: "claude".to_owned(),
            model: "m".to_owned(),
            input: 1_000_000,
            output: 5_000_000,
            cache_read: Some(100_000),
            cache_creation: Some(1_250_000),
            batch_percent: None,
        }
    }

    fn turn(calls: i64, first: i64, input: i64, output: i64) -> EarlierTurn {
        EarlierTurn {
            calls,
            first_tokens: first,
            input_tokens: input,
            cached_tokens: 0,
            output_tokens: output,
            cost_micros: 0,
        }
    }

    fn forecast(earlier: Vec<EarlierTurn>, caches: bool) -> Forecast {
        let assumption = Assumption {
            output_tokens: 400,
            max_output_tokens: 2000,
            max_calls: 4,
            max_growth_tokens: 500,
        };
        let pricing = Some(Pricing { price: price(), factor: 1.0 });
        Forecast { earlier, assumption, caches, pricing }
    }

    fn size(first_tokens: i64, cached_tokens: i64) -> WaySize {
        let parts =
            vec![(TurnPart::System, 300), (TurnPart::Messages, 500), (TurnPart::Prompt, 100)];
        WaySize { first_tokens, is_calibrated: true, cached_tokens, parts, compaction: None }
    }

    #[test]
    fn without_earlier_turns_the_assumption_is_the_range() {
        let ChargeRange { low, likely, high } = forecast(Vec::new(), false).charge(&size(1000, 0));
        assert_eq!((low.calls, low.input_tokens, low.output_tokens), (1, 900, 1));
        assert_eq!((likely.calls, likely.input_tokens, likely.output_tokens), (1, 1000, 400));
        // Four calls of 1,100 that grow by 500 each.
        assert_eq!((high.calls, high.input_tokens, high.output_tokens), (4, 7400, 2000));
        assert_eq!(likely.cost_micros, Some(1000 + 5 * 400));
    }

    #[test]
    fn enough_earlier_turns_replace_the_assumption() {
        let earlier: Vec<_> = (0..30).map(|n| turn(1, 800, 800, 100 + n)).collect();
        let ChargeRange { low, likely, high } = forecast(earlier, false).charge(&size(1000, 0));
        assert_eq!((low.output_tokens, likely.output_tokens, high.output_tokens), (101, 114, 128));
        assert_eq!((low.calls, high.calls, high.input_tokens), (1, 1, 1100));
    }

    #[test]
    fn further_calls_multiply_the_input_and_grow() {
        // Three calls of 800, 900 and 1,000.
        let forecast = forecast(vec![turn(3, 800, 2700, 90); 25], false);
        assert_eq!(forecast.growth_tokens(), 100);
        let likely = forecast.charge(&size(1000, 0)).likely;
        assert_eq!((likely.calls, likely.input_tokens), (3, 3300));
        let parts = forecast.parts(&size(1000, 0));
        let further = parts.iter().find(|it| it.part == TurnPart::FurtherCalls).unwrap();
        assert_eq!(further.likely, 2300);
        assert_eq!(parts.iter().map(|it| it.likely).sum::<i64>(), likely.tokens());
    }

    #[test]
    fn a_cached_beginning_is_read_and_the_rest_is_written() {
        let forecast = forecast(vec![turn(1, 800, 800, 100); 25], true);
        let ChargeRange { likely, high, .. } = forecast.charge(&size(1000, 600));
        assert_eq!(likely.cached_tokens, 600);
        assert_eq!(likely.cost_micros, Some(60 + 500 + 500));
        assert_eq!(high.cost_micros, Some(1375 + 500), "the cache may be gone");
        let costs: Vec<_> =
            forecast.parts(&size(1000, 600)).iter().map(|it| it.cost_micros).collect();
        // A hundred tokens of the provider, the system part and 200 tokens of the messages are read.
        assert_eq!(costs, [Some(10), Some(30), Some(20 + 375), Some(125), Some(500)]);
    }

    #[test]
    fn a_summary_is_charged_on_top() {
        let compaction = CompactionSize {
            calls: 1,
            input_tokens: 5000,
            output_tokens: 300,
            max_output_tokens: 800,
        };
        let size = WaySize { compaction: Some(compaction), ..size(1000, 0) };
        let forecast = forecast(vec![turn(1, 800, 800, 100); 25], false);
        let ChargeRange { low, likely, high } = forecast.charge(&size);
        assert_eq!((likely.calls, likely.input_tokens, likely.output_tokens), (2, 6000, 400));
        assert_eq!((low.input_tokens, high.input_tokens), (900 + 4500, 1100 + 11_000));
        assert_eq!(forecast.parts(&size)[0].likely, 5300);
    }

    #[test]
    fn parts_that_weigh_more_than_the_count_are_scaled_down() {
        let parts = forecast(Vec::new(), false).parts(&size(450, 0));
        let likely: Vec<_> = parts.iter().map(|it| (it.part, it.likely)).collect();
        assert_eq!(
            likely[..3],
            [(TurnPart::System, 150), (TurnPart::Messages, 250), (TurnPart::Prompt, 50)]
        );
    }
}
