//! The page of `/metrics`, parsed.

use std::collections::{BTreeMap, BTreeSet};

/// The samples of one page.
#[derive(Debug, Default)]
pub struct Page {
    /// Type and help of each metric.
    pub metrics: BTreeMap<String, (String, String)>,
    pub samples: Vec<Sample>,
}

#[derive(Debug)]
pub struct Sample {
    /// With the suffix of a histogram's sample: `_bucket`, `_sum`, `_count`.
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub value: f64,
}

impl Page {
    pub fn parse(text: &str) -> Self {
        let mut page = Self::default();
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap();
                page.metrics.entry(name.to_owned()).or_default().1 = help.to_owned();
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                page.metrics.entry(name.to_owned()).or_default().0 = kind.to_owned();
            } else {
                page.samples.push(Sample::parse(line));
            }
        }
        page
    }

    /// Returns the samples of a metric, those of a histogram included.
    pub fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Sample> {
        let is_histogram = self.metrics.get(name).is_some_and(|(kind, _)| kind == "histogram");
        let suffixes: &[&str] = if is_histogram { &["_bucket", "_sum", "_count"] } else { &[""] };
        self.samples.iter().filter(move |sample| {
            let rest = sample.name.strip_prefix(name);
            rest.is_some_and(|rest| suffixes.contains(&rest))
        })
    }

    /// Returns true if there is a sample with this name and at least these labels.
    pub fn has(&self, name: &str, labels: &[(String, String)]) -> bool {
        self.samples.iter().any(|sample| {
            let has = |(label, value): &(String, String)| sample.labels.get(label) == Some(value);
            sample.name == name && labels.iter().all(has)
        })
    }

    /// Returns the value of the sample with exactly these labels.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let labels: BTreeMap<_, _> = labels
            .iter()
            .map(|(label, value)| ((*label).to_owned(), (*value).to_owned()))
            .collect();
        let sample = self.samples.iter().find(|it| it.name == name && it.labels == labels)?;
        Some(sample.value)
    }
}

impl Sample {
    /// Label values of the tests contain no quotes, commas or backslashes.
    fn parse(line: &str) -> Self {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let pairs = labels.strip_suffix('}').unwrap().split(',').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| {
            let (label, value) = pair.split_once('=').unwrap();
            (label.to_owned(), value.trim_matches('"').to_owned())
        });
        Self { name: name.to_owned(), labels: pairs.collect(), value: value.parse().unwrap() }
    }

    /// Returns the names of its labels, without that of buckets.
    pub fn label_names(&self) -> BTreeSet<&str> {
        self.labels.keys().map(String::as_str).filter(|label| *label != "le").collect()
    }
}
