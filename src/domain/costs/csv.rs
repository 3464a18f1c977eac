//! A cost report as comma-separated values, as RFC 4180 describes.

use super::{CostLine, CostReport, Costs};

const COUNTS: [&str; 7] = [
    "calls",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_creation_tokens",
    "cost_micros",
    "currency",
];

impl CostReport {
    /// Formats the lines with amounts in millionths and all counts.
    pub fn to_csv(&self) -> String {
        let head = self.dimensions().map(|dimension| dimension.as_str().to_owned());
        let head = head.chain(COUNTS.map(str::to_owned)).collect();
        let rows = std::iter::once(head).chain(self.lines.iter().map(|line| self.cells(line)));
        rows.map(|cells: Vec<String>| {
            cells.iter().map(|cell| quote(cell)).collect::<Vec<_>>().join(",") + "\r\n"
        })
        .collect()
    }

    fn cells(&self, line: &CostLine) -> Vec<String> {
        let Costs {
            calls,
            cost_micros,
            input_tokens,
            output_tokens,
            cache_read_tokens,
            cache_creation_tokens,
        } = line.costs;
        let counts = [
            calls,
            input_tokens,
            output_tokens,
            cache_read_tokens,
            cache_creation_tokens,
            cost_micros,
        ];
        let values = [&line.value, &line.second].into_iter().take(self.dimensions().count());
        let values = values.map(|value| value.clone().unwrap_or_default());
        let counts = counts.iter().map(i64::to_string);
        values.chain(counts).chain([self.currency.clone()]).collect()
    }
}

fn quote(cell: &str) -> String {
    match cell.contains([',', '"', '\r', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::domain::costs::{CostLine, CostReport, Costs, Dimension};

    #[test]
    fn csv_quotes_what_it_must() {
        let costs = Costs { calls: 2, cost_micros: 1_250_000, input_tokens: 7, ..Costs::default() };
        let report = CostReport {
            by: Dimension::Agent,
            and: Some(Dimension::User),
            currency: "EUR".to_owned(),
            time_zone: "UTC".to_owned(),
            since: None,
            until: None,
            lines: vec![CostLine { value: Some("a \"b\", c".to_owned()), second: None, costs }],
            total: costs,
            campaign_names: std::collections::HashMap::new(),
        };
        let csv = report.to_csv();
        let lines: Vec<&str> = csv.split("\r\n").collect();
        assert!(lines[0].starts_with("agent,user,calls,input_tokens,"), "{csv}");
        assert_eq!(lines[1], "\"a \"\"b\"\", c\",,2,7,0,0,0,1250000,EUR");
        assert_eq!(lines.len(), 3, "each line ends with CR LF");
    }
}
