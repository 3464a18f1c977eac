//! The metrics of turns.

use metrics::{Unit, counter, describe_counter, describe_histogram, histogram};

pub const DURATION: &str = "dalsegno_turn_duration_seconds";
pub const FIRST_BYTE: &str = "dalsegno_turn_first_byte_seconds";
pub const TOKENS: &str = "dalsegno_tokens_total";
pub const COST: &str = "dalsegno_cost_micros_total";
pub const TOOLS: &str = "dalsegno_turn_tool_duration_seconds";

/// Labels of outcomes: every fate of a turn.
const OUTCOMES: [&str; 8] =
    ["done", "cancelled", "given_back", "again", "put_off", "failed", "no_room", "lease_lost"];

pub fn describe() {
    describe_histogram!(DURATION, Unit::Seconds, "Calls of turns, by provider and result.");
    describe_histogram!(
        FIRST_BYTE,
        Unit::Seconds,
        "From the call to the first of its answer, by provider."
    );
    describe_counter!(
        TOKENS,
        "Tokens that turns have used in this process, by type and the model that was asked for."
    );
    describe_counter!(COST, "What they cost, in millionths of the currency of [prices].");
    describe_histogram!(
        TOOLS,
        Unit::Seconds,
        "Calls of tools between the calls of a turn, by tool and result."
    );
}

/// Starts the metrics of these models at 0, each with its provider. An alert on a counter that appears with its first
/// event misses that event.
pub fn begin(models: impl IntoIterator<Item = (&'static str, String)>) {
    for (provider, model) in models {
        begin_model(provider, &model);
    }
}

/// Starts the metrics of a model that an agent's file names. The file may be newer than the process.
pub fn begin_model(provider: &str, model: &str) {
    let provider = provider.to_owned();
    drop(histogram!(FIRST_BYTE, "provider" => provider.clone()));
    for outcome in OUTCOMES {
        drop(histogram!(DURATION, "provider" => provider.clone(), "outcome" => outcome));
    }
    let labels = [("provider", provider), ("model", model.to_owned())];
    counter!(COST, &labels).increment(0);
    for kind in ["input", "output", "cache_read", "cache_creation"] {
        counter!(TOKENS, &tokens_labels(&labels, kind)).increment(0);
    }
}

pub fn tokens_labels(
    labels: &[(&'static str, String); 2],
    kind: &str,
) -> [(&'static str, String); 3] {
    let [provider, model] = labels.clone();
    [provider, model, ("type", kind.to_owned())]
}
