//! A cost report as comma-separated values, as RFC 4180 describes.

use super::{CostLine, CostReport, Costs, Dimension};
use crate::domain::{
    amount::format_money,
    csv::{escape_formula, line},
};

const COUNTS: [&str; 9] = [
    "calls",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_creation_tokens",
    "cost",
    "cost_micros",
    "currency",
    "calls_without_price",
];

impl CostReport {
    /// Formats the lines with amounts in units and millionths of the currency, and all counts. Names of campaigns stand beside their ids.
    pub fn to_csv(&self) -> String {
        let of = |dimension: Dimension| match dimension {
            Dimension::Campaign => vec!["campaign".to_owned(), "campaign_name".to_owned()],
            other => vec![other.as_str().to_owned()],
        };
        let head = self.dimensions().flat_map(of);
        let head = head.chain(COUNTS.map(str::to_owned)).collect();
        let rows = std::iter::once(head).chain(self.lines.iter().map(|line| self.cells(line)));
        let rows = rows.chain(self.named_others().map(|line| self.cells(&line)));
        rows.map(|cells: Vec<String>| line(cells.iter()) + "\r\n").collect()
    }

    fn cells(&self, line: &CostLine) -> Vec<String> {
        let Costs {
            calls,
            cost_micros,
            input_tokens,
            output_tokens,
            cache_read_tokens,
            cache_creation_tokens,
            calls_without_price,
        } = line.costs;
        let counts = [calls, input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens];
        let values = [&line.value, &line.second].into_iter().zip(self.dimensions());
        let values = values.flat_map(|(value, dimension)| {
            let value = value.clone().unwrap_or_default();
            match dimension {
                Dimension::Campaign => vec![value.clone(), self.campaign_name(&value)],
                _ => vec![value],
            }
        });
        let counts = counts.iter().map(i64::to_string);
        let amounts = [
            format_money(cost_micros),
            cost_micros.to_string(),
            escape_formula(&self.currency).into_owned(),
            calls_without_price.to_string(),
        ];
        let values = values.map(|value| escape_formula(&value).into_owned());
        values.chain(counts).chain(amounts).collect()
    }
}

impl CostReport {
    /// Returns the name of a campaign; empty if it has been erased.
    fn campaign_name(&self, id: &str) -> String {
        let name = id.parse().ok().and_then(|id| self.campaign_names.get(&id));
        name.cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use crate::domain::costs::{CostLine, CostReport, Costs, Dimension};

    #[test]
    fn csv_quotes_what_it_must() {
        let costs = Costs {
            calls: 2,
            cost_micros: 1_250_000,
            input_tokens: 7,
            calls_without_price: 1,
            ..Costs::default()
        };
        let report = CostReport {
            by: Dimension::Agent,
            and: Some(Dimension::User),
            currency: "EUR".to_owned(),
            time_zone: "UTC".to_owned(),
            since: None,
            until: None,
            lines: vec![CostLine { value: Some("a \"b\", c".to_owned()), second: None, costs }],
            others: vec![CostLine { value: Some("writer".to_owned()), second: None, costs }],
            n_others: 4,
            total: costs,
            campaign_names: std::collections::HashMap::new(),
        };
        let csv = report.to_csv();
        let lines: Vec<&str> = csv.split("\r\n").collect();
        assert!(lines[0].starts_with("agent,user,calls,input_tokens,"), "{csv}");
        assert_eq!(lines[1], "\"a \"\"b\"\", c\",,2,7,0,0,0,1.25,1250000,EUR,1");
        assert_eq!(lines[2], "writer,(4 others),2,7,0,0,0,1.25,1250000,EUR,1");
        let id = uuid::Uuid::from_u128(7);
        let named = CostReport {
            by: Dimension::Campaign,
            and: None,
            lines: vec![CostLine { value: Some(id.to_string()), second: None, costs }],
            campaign_names: [(id, "Harbour series".to_owned())].into(),
            ..report
        };
        let of_campaign = named.to_csv();
        assert!(of_campaign.starts_with("campaign,campaign_name,calls,"), "{of_campaign}");
        assert!(of_campaign.contains(&format!("{id},Harbour series,2,")), "{of_campaign}");
        assert_eq!(lines.len(), 4, "each line ends with CR LF");
        let line = CostLine { value: Some("=1+2".to_owned()), second: None, costs };
        let formula = CostReport {
            by: Dimension::User,
            and: None,
            lines: vec![line],
            others: Vec::new(),
            ..named
        };
        assert!(formula.to_csv().contains("\n'=1+2,2,7,0,0,0,1.25,1250000,EUR,1\r"));
    }
}
