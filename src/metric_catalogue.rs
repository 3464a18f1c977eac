//! All metrics of Dalsegno: the list behind `dalsegno metrics` and `docs/reference/metrics.md`.

use serde::Serialize;

use crate::{http, jobs, metric::Metric, queue, scheduler, telemetry, tools, traces};

/// The meaning of each label. A label has one meaning in all metrics.
const LABELS: [(&str, &str); 14] = [
    ("kind", "the kind of a job, such as `run_turn`"),
    ("method", "the method of an HTTP request; `other` for methods that HTTP does not define"),
    (
        "model",
        "a model by its name in the agent file or the configuration, such as `sonnet`. Calls that Claude makes to other models count for the \
         model that was asked for; the ledger has the models as the provider names them",
    ),
    (
        "outcome",
        "the end of the thing that is counted; the values are in the description of the metric",
    ),
    ("owner", "the kind of owner of a budget: campaign, task, agent, user or day"),
    ("provider", "a provider of models, such as `claude`"),
    ("queue", "a queue, such as `turns`"),
    (
        "route",
        "the template of an HTTP route, such as `/v1/tasks/{id}`; `unmatched` for paths without a route",
    ),
    ("state", "the state of a job, by [States of a job](queue-states.md)"),
    ("status", "the status of an HTTP response"),
    ("table", "a table of the database"),
    ("tool", "a tool by its name; `unknown` for names that a model made up"),
    ("type", "the type of tokens"),
    ("version", "the version of the build"),
];

const HEAD: &str = "\
# Metrics

`dalsegno metrics` prints this from the code. The service has its metrics at `/metrics` of `http.listen`, a worker process at `/metrics` of
`worker.listen`. [Metrics and traces](telemetry.md) says how to use them.

| metric | type | labels | meaning |
|---|---|---|---|
";

/// A metric as `dalsegno metrics --json` prints it.
#[derive(Debug, Serialize)]
pub struct MetricLine {
    pub name: &'static str,
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

/// Lists all metrics, by component.
pub fn all() -> Vec<Metric> {
    let mut all = queue::METRICS.to_vec();
    all.extend(jobs::metrics());
    all.extend(scheduler::METRICS);
    all.extend(tools::METRICS);
    all.extend(http::METRICS);
    all.extend(traces::METRICS);
    all.extend(telemetry::metrics());
    all
}

/// Lists all metrics for output as JSON.
pub fn lines() -> Vec<MetricLine> {
    let line = |Metric { name, kind, labels, help }| MetricLine {
        name,
        kind: kind.as_str(),
        labels,
        help,
    };
    all().into_iter().map(line).collect()
}

/// Returns the document for people.
pub fn markdown() -> String {
    let mut text = String::from(HEAD);
    for Metric { name, kind, labels, help } in all() {
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        let (kind, labels) = (kind.as_str(), labels.join(", "));
        text.push_str(&format!("| `{name}` | {kind} | {labels} | {help} |\n"));
    }
    text.push_str("\n## Labels\n\n| label | meaning |\n|---|---|\n");
    for (label, meaning) in LABELS {
        text.push_str(&format!("| `{label}` | {meaning} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_label_has_one_meaning() {
        let used: BTreeSet<&str> = all().iter().flat_map(|metric| metric.labels).copied().collect();
        let explained: Vec<&str> = LABELS.iter().map(|(label, _)| *label).collect();
        assert_eq!(Vec::from_iter(used), explained);
    }

    #[test]
    fn counters_in_millionths_are_metrics() {
        for name in telemetry::IN_MILLIONTHS {
            assert!(all().iter().any(|metric| metric.name == name), "{name}");
        }
    }
}
