//! The metrics of turns.

use metrics::{counter, histogram};

use crate::{domain::agents::Provider, metric::Metric};

pub const DURATION: Metric = Metric::histogram(
    "dalsegno_turn_duration_seconds",
    &["provider", "outcome"],
    "Time in seconds that turns spent in calls to the provider and in tools: done, corrected and mismatched (the \
     answer does not match the result schema; it is corrected, or the task fails), cancelled, failed, retried, snoozed, context_full (the call did not fit into the window), given_back (the worker shuts down), lease_lost.",
);
pub const FIRST_BYTE: Metric = Metric::histogram(
    "dalsegno_turn_first_byte_seconds",
    &["provider"],
    "Time in seconds from a call to the first byte of its answer.",
);
pub const TOKENS: Metric = Metric::counter(
    "dalsegno_tokens_total",
    &["provider", "model", "type"],
    "Tokens that the turns of this process used: input, output, cache_read, cache_creation.",
);
/// The recorder holds it in millionths; `telemetry::IN_MILLIONTHS` has its name.
pub const COST: Metric = Metric::counter(
    "dalsegno_cost_currency_total",
    &["provider", "model"],
    "Cost of the turns of this process, in units of the currency in which [prices] is written, such as dollars.",
);
pub const TOOLS: Metric = Metric::histogram(
    "dalsegno_turn_tool_duration_seconds",
    &["tool", "outcome"],
    "Duration in seconds of the tool calls that the service makes for a turn: done, failed, timed_out, unreadable (the arguments \
     are not an object), repeated (made too often), too_many (too many in one answer).",
);

/// All metrics of turns.
pub const METRICS: [Metric; 5] = [DURATION, FIRST_BYTE, TOOLS, TOKENS, COST];

/// Every fate of a turn.
const OUTCOMES: [&str; 10] = [
    "done",
    "corrected",
    "mismatched",
    "cancelled",
    "given_back",
    "retried",
    "snoozed",
    "failed",
    "context_full",
    "lease_lost",
];

pub fn describe() {
    METRICS.iter().for_each(Metric::describe);
}

/// Starts the metrics of these models at 0, each with its provider. An alert on a counter that appears with its first
/// event misses that event.
pub fn begin(models: impl IntoIterator<Item = (Provider, String)>) {
    for (provider, model) in models {
        begin_model(provider.as_str(), &model);
    }
}

/// Starts the metrics of a model that an agent's file names. The file may be newer than the process.
pub fn begin_model(provider: &str, model: &str) {
    let provider = provider.to_owned();
    drop(histogram!(FIRST_BYTE.name, "provider" => provider.clone()));
    for outcome in OUTCOMES {
        drop(histogram!(DURATION.name, "provider" => provider.clone(), "outcome" => outcome));
    }
    let labels = [("provider", provider), ("model", model.to_owned())];
    counter!(COST.name, &labels).increment(0);
    for kind in ["input", "output", "cache_read", "cache_creation"] {
        counter!(TOKENS.name, &tokens_labels(&labels, kind)).increment(0);
    }
}

pub fn tokens_labels(
    labels: &[(&'static str, String); 2],
    kind: &str,
) -> [(&'static str, String); 3] {
    let [provider, model] = labels.clone();
    [provider, model, ("type", kind.to_owned())]
}
