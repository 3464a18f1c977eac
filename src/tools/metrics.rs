//! Metrics of tool calls, for alerts.

use metrics::{Unit, counter, describe_counter};

use super::{Refusal, catalogue};
use crate::domain::search;

const CALLS: &str = "dalsegno_tool_calls_total";
/// Label of unknown names, which models make up: they must not create series.
const UNKNOWN: &str = "unknown";

/// Describes the metrics and starts each series at 0.
pub fn describe() {
    let words = "Calls of tools of this process by tool and result: done, refused, denied, timeout, failed.";
    describe_counter!(CALLS, Unit::Count, words);
    for tool in catalogue::all().map(|tool| tool.name).chain([UNKNOWN]) {
        for result in ["done", "refused", "denied", "timeout", "failed"] {
            counter!(CALLS, "tool" => tool, "result" => result).increment(0);
        }
    }
    search::describe();
}

pub(super) fn count(name: &str, answered: &Result<String, Refusal>) {
    let tool = catalogue::find(name).map_or(UNKNOWN, |tool| tool.name);
    let result = answered.as_ref().map_or_else(Refusal::outcome, |_| "done");
    counter!(CALLS, "tool" => tool, "result" => result).increment(1);
}
