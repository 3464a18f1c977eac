//! The page of `/metrics`: the metrics of the recorder and those of the process.

use metrics_exporter_prometheus::PrometheusHandle;

use super::process;

/// Counters that the recorder holds in millionths, because it counts in whole numbers. The page shows whole units.
pub const IN_MILLIONTHS: [&str; 1] = ["dalsegno_cost_currency_total"];

/// Access to the metrics of the process. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    pub(super) fn new(recorder: PrometheusHandle) -> Self {
        Self(recorder)
    }

    /// Returns the page in the text format of Prometheus.
    pub fn render(&self) -> String {
        let recorded = self.0.render();
        let mut page = String::with_capacity(recorded.len() + 2_048);
        for line in recorded.lines() {
            match in_units(line) {
                Some(line) => page.push_str(&line),
                None => page.push_str(line),
            }
            page.push('\n');
        }
        process::render(&mut page);
        page
    }
}

/// Returns the sample in whole units, if it is one of a counter in millionths.
fn in_units(line: &str) -> Option<String> {
    let (series, value) = line.rsplit_once(' ')?;
    let name = series.split('{').next()?;
    let millionths: u64 = IN_MILLIONTHS.contains(&name).then(|| value.parse().ok()).flatten()?;
    Some(format!("{series} {}", millionths as f64 / 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_is_shown_in_units_of_the_currency() {
        let series = r#"dalsegno_cost_currency_total{provider="claude",model="a b"}"#;
        for (millionths, units) in [("0", "0"), ("12500", "0.0125"), ("3000000", "3")] {
            let line = format!("{series} {millionths}");
            assert_eq!(in_units(&line), Some(format!("{series} {units}")));
        }
        for other in [
            "",
            "# TYPE dalsegno_cost_currency_total counter",
            "# HELP dalsegno_cost_currency_total Cost in 1",
            r#"dalsegno_tokens_total{model="dalsegno_cost_currency_total"} 7"#,
        ] {
            assert_eq!(in_units(other), None, "{other}");
        }
    }
}
