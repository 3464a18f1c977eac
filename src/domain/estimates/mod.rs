//! Estimates: the tokens and the cost of a conversation's next turn, before a provider is called.
//!
//! The input of the first call is known: the turn's own code drafts it. The number of calls, and the lengths of results and answers, are
//! those of earlier turns. `forecast` computes the range from both.

mod forecast;

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use self::forecast::{
    Assumption, CompactionSize, EarlierTurn, Forecast, Pricing, TURNS_WANTED, WaySize,
};

/// The tokens and the cost of the next turn of a conversation, in each way in which it could begin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Estimate {
    pub campaign_id: Uuid,
    pub agent: String,
    pub instance: String,
    /// The session that the turn would continue. Null: it would open a new one.
    pub session_id: Option<Uuid>,
    /// Number of the turn.
    pub turn: i32,
    pub provider: String,
    pub model: String,
    /// The label of all costs. Nothing is converted.
    pub currency: String,
    /// The price of the costs. Null: it is unknown, and so are the costs.
    pub price: Option<EstimatePrice>,
    pub history: EstimateHistory,
    pub cache: PromptCache,
    /// All ways, also those that are not possible now.
    pub ways: Vec<WayEstimate>,
    pub notes: Vec<String>,
}

/// The price of an estimate, in millionths of the currency per million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EstimatePrice {
    pub origin: PriceOrigin,
    /// The model as the price list names it.
    pub model: String,
    pub input: i64,
    pub output: i64,
    pub cache_read: i64,
    pub cache_creation: i64,
    /// Source of a published price.
    pub source: Option<String>,
    /// Day on which that source was read.
    pub checked: Option<NaiveDate>,
    /// Charged costs of earlier turns in relation to the price. 1 for configured prices, which are charged exactly.
    pub factor: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PriceOrigin {
    /// `prices.models` of the configuration.
    Configured,
    /// The published price that is shipped with this version.
    Published,
    /// The charged costs of earlier turns. The prices of all Claude models stand in the same ratio to each other.
    Charged,
}

/// The earlier turns from which calls and lengths of answers were learnt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EstimateHistory {
    /// Earlier turns of the conversation on this model.
    pub conversation_turns: usize,
    /// Earlier turns of the agent in other conversations, on this model.
    pub agent_turns: usize,
    /// With fewer turns, an assumption widens the range.
    pub turns_wanted: usize,
    /// Length of an answer that is assumed because there are no earlier turns.
    pub assumed_output_tokens: Option<i64>,
}

/// The prompt cache of the provider, as far as the turn would read from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PromptCache {
    pub state: PromptCacheState,
    /// Tokens at the beginning of the resumed conversation that are probably still cached.
    pub tokens: i64,
    /// The moment at which the cache expires or has expired.
    pub until: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptCacheState {
    /// The provider bills no cached tokens at another price, or does not say when they expire.
    None,
    /// The conversation has no earlier turn on this provider.
    Empty,
    Valid,
    /// The conversation was idle for too long: everything is written to the cache again.
    Expired,
    /// The system part differs from that of the last turn, so nothing after it can be read.
    Changed,
}

/// A way in which the turn could begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Continues the session as it is.
    Resume,
    /// Summarises older messages first. The call for the summary is included.
    CompactFirst,
    /// Opens a new session: without a memory, or with what the turn takes over anyway.
    NewSession,
}

/// The estimate of one way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WayEstimate {
    pub way: Way,
    /// True for the way that the next turn takes by itself.
    pub is_next: bool,
    /// The reason why the way is not possible now. All numbers are then null.
    pub impossible: Option<String>,
    pub charge: Option<ChargeRange>,
    /// Likely input of each call of the turn.
    pub first_call_tokens: Option<i64>,
    /// Tokens by which the input of each further call is likely to grow.
    pub further_call_tokens: Option<i64>,
    /// The parts of the turn, in the order in which they are sent. Each range stands for itself: lows and highs do not add up to those of
    /// the turn.
    pub parts: Vec<PartEstimate>,
}

/// The range of the charge of a turn. At least nine of ten turns are expected in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ChargeRange {
    pub low: Charge,
    pub likely: Charge,
    pub high: Charge,
}

/// The charge of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Charge {
    pub calls: i64,
    /// Input of all calls, with the tokens that are read from a cache.
    pub input_tokens: i64,
    /// Of these, tokens that are read from a cache.
    pub cached_tokens: i64,
    pub output_tokens: i64,
    /// Null: the price is unknown.
    pub cost_micros: Option<i64>,
}

impl ChargeRange {
    pub const ZERO: Self = Self { low: Charge::ZERO, likely: Charge::ZERO, high: Charge::ZERO };

    /// The charge of something that cannot be estimated: a sum with it has no known cost.
    pub const UNKNOWN: Self =
        Self { low: Charge::UNKNOWN, likely: Charge::UNKNOWN, high: Charge::UNKNOWN };

    pub fn plus(self, other: Self) -> Self {
        Self {
            low: self.low.plus(other.low),
            likely: self.likely.plus(other.likely),
            high: self.high.plus(other.high),
        }
    }

    pub fn times(self, n: i64) -> Self {
        let Self { low, likely, high } = self;
        Self { low: low.times(n), likely: likely.times(n), high: high.times(n) }
    }
}

impl Charge {
    pub const ZERO: Self = Self {
        calls: 0,
        input_tokens: 0,
        cached_tokens: 0,
        output_tokens: 0,
        cost_micros: Some(0),
    };

    const UNKNOWN: Self = Self { cost_micros: None, ..Self::ZERO };

    /// Adds two charges. With one unknown cost, the sum is unknown.
    fn plus(self, other: Self) -> Self {
        let cost = self.cost_micros.zip(other.cost_micros);
        Self {
            calls: self.calls.saturating_add(other.calls),
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cost_micros: cost.map(|(one, other)| one.saturating_add(other)),
        }
    }

    fn times(self, n: i64) -> Self {
        Self {
            calls: self.calls.saturating_mul(n),
            input_tokens: self.input_tokens.saturating_mul(n),
            cached_tokens: self.cached_tokens.saturating_mul(n),
            output_tokens: self.output_tokens.saturating_mul(n),
            cost_micros: self.cost_micros.map(|cost| cost.saturating_mul(n)),
        }
    }
}

/// The tokens of a part of the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PartEstimate {
    pub part: TurnPart,
    pub low: i64,
    pub likely: i64,
    pub high: i64,
    /// Likely cost. Null: the price is unknown.
    pub cost_micros: Option<i64>,
}

/// A part of a turn, as far as its cost goes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TurnPart {
    /// The call for the summary, and the summary.
    Compaction,
    /// Instructions and tools that the program of the provider adds.
    Provider,
    Tools,
    /// Prompt of the agent, skills, brief, edicts, facts, roster.
    System,
    Summary,
    Messages,
    Posts,
    /// Statuses, blackboard, and results of other tasks.
    State,
    Prompt,
    /// Input of all calls after the first.
    FurtherCalls,
    Answer,
}

impl Charge {
    /// Returns input and output together.
    pub fn tokens(&self) -> i64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}
