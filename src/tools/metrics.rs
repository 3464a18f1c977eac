//! Metrics of tool calls, for alerts.

use metrics::counter;

use super::{Refusal, catalogue};
use crate::{domain::search, metric::Metric};

const CALLS: Metric = Metric::counter(
    "dalsegno_tool_calls_total",
    &["tool", "outcome"],
    "Calls of the service's tools in this process: done, refused, denied (the caller does not have the tool), timed_out, failed.",
);
const OUTCOMES: [&str; 5] = ["done", "refused", "denied", "timed_out", "failed"];

/// All metrics of tools.
pub const METRICS: [Metric; 2] = [CALLS, search::SEARCHES];

/// Label of unknown names, which models make up: they must not create series.
const UNKNOWN: &str = "unknown";

/// Describes the metrics and starts each series at 0.
pub fn describe() {
    CALLS.describe();
    for tool in catalogue::all().map(|tool| tool.name).chain([UNKNOWN]) {
        for outcome in OUTCOMES {
            counter!(CALLS.name, "tool" => tool, "outcome" => outcome).increment(0);
        }
    }
    search::describe();
}

pub(super) fn count(name: &str, answered: &Result<String, Refusal>) {
    let tool = catalogue::find(name).map_or(UNKNOWN, |tool| tool.name);
    let outcome = answered.as_ref().map_or_else(Refusal::outcome, |_| "done");
    counter!(CALLS.name, "tool" => tool, "outcome" => outcome).increment(1);
}
