//! The definition of a metric: name, type, labels and meaning, written once for `/metrics` and for
//! `docs/reference/metrics.md`.

use metrics::{describe_counter, describe_gauge, describe_histogram};

/// A metric by the conventions of Prometheus: counters end in `_total`, times in `_seconds`, sizes in `_bytes`.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    pub name: &'static str,
    pub kind: Kind,
    /// Names of its labels. A label has one meaning in all metrics.
    pub labels: &'static [&'static str],
    /// Sentences for the `# HELP` line.
    pub help: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Metric {
    pub const fn counter(
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { name, kind: Kind::Counter, labels, help }
    }

    pub const fn gauge(
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { name, kind: Kind::Gauge, labels, help }
    }

    pub const fn histogram(
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { name, kind: Kind::Histogram, labels, help }
    }

    /// Gives the recorder the text of the `# HELP` line.
    pub fn describe(&self) {
        match self.kind {
            Kind::Counter => describe_counter!(self.name, self.help),
            Kind::Gauge => describe_gauge!(self.name, self.help),
            Kind::Histogram => describe_histogram!(self.name, self.help),
        }
    }
}

impl Kind {
    /// Returns the type as Prometheus calls it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}
