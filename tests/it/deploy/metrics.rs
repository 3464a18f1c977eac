//! The metrics: their names and texts, and their reference.

use dalsegno::{
    metric::{Kind, Metric},
    metric_catalogue,
};

/// Words that are not those of the glossary, and those that hide the subject of a sentence.
const WORDS: [&str; 7] = ["whoever", "nobody", "somebody", "anybody", "purge", "login", "workflow"];
const BEGINNINGS: [&str; 5] = ["What ", "Whether ", "Who ", "When ", "How "];
/// Parts of names that mean a time.
const TIMES: [&str; 7] = ["age", "duration", "first_byte", "margin", "time", "timestamp", "wait"];

/// Returns what breaks the conventions of Prometheus, or of our texts.
fn complaints(metric: &Metric) -> Vec<String> {
    let (name, help) = (metric.name, metric.help);
    let mut complaints = Vec::new();
    let mut wants = |is_so: bool, rule: &str| {
        if !is_so {
            complaints.push(format!("{name}: {rule}: {help}"));
        }
    };
    let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    wants(
        is_plain(name) && (name.starts_with("dalsegno_") || name.starts_with("process_")),
        "the name is dalsegno_… or process_… in lower case",
    );
    wants(metric.labels.iter().all(|label| is_plain(label)), "labels are in lower case");
    let base = name.strip_suffix("_total");
    wants(
        base.is_some() == (metric.kind == Kind::Counter),
        "counters, and only they, end in _total",
    );
    let base = base.unwrap_or(name);
    let is_time = base.ends_with("_seconds");
    for unit in ["seconds", "bytes"] {
        let is_named = base.ends_with(&format!("_{unit}"));
        wants(is_named == help.contains(&format!("in {unit}")), "name and text have one unit");
    }
    let means_time = format!("{base}_");
    let means_time = TIMES.iter().any(|part| means_time.contains(&format!("_{part}_")));
    wants(!means_time || is_time, "times are in seconds");
    wants(metric.kind != Kind::Histogram || is_time, "histograms are of times");
    for unit in ["millis", "micros", "minutes", "hours", "kilo", "mega"] {
        wants(!name.contains(unit), "units are base units");
    }
    wants(help.ends_with('.'), "the text is a sentence");
    let words: Vec<_> = help.split(|c: char| !c.is_alphabetic()).map(str::to_lowercase).collect();
    let is_ruled_out = |word: &String| WORDS.contains(&word.as_str());
    wants(!words.iter().any(is_ruled_out), "a word is not one of ours");
    wants(!BEGINNINGS.iter().any(|word| help.starts_with(word)), "the text begins with its noun");
    complaints
}

#[test]
fn metrics_follow_the_conventions_of_prometheus() {
    let all = metric_catalogue::all();
    assert!(all.len() > 30, "{} metrics", all.len());
    let complaints: Vec<String> = all.iter().flat_map(complaints).collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
    let mut names: Vec<_> = all.iter().map(|metric| metric.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all.len(), "a name is defined twice");
}

#[test]
fn a_metric_against_the_conventions_is_found() {
    for metric in [
        Metric::counter("dalsegno_jobs", &[], "Jobs."),
        Metric::gauge("dalsegno_jobs_total", &[], "Jobs."),
        Metric::gauge("dalsegno_job_age", &[], "Age of a job."),
        Metric::gauge("dalsegno_job_age_seconds", &[], "Age of a job."),
        Metric::gauge("dalsegno_memory", &[], "Memory in bytes."),
        Metric::counter("dalsegno_cost_micros_total", &[], "Cost."),
        Metric::gauge("jobs", &[], "Jobs."),
        Metric::gauge("dalsegno_jobs", &["Queue"], "Jobs."),
        Metric::gauge("dalsegno_jobs", &[], "Jobs"),
        Metric::gauge("dalsegno_jobs", &[], "What runs."),
        Metric::gauge("dalsegno_jobs", &[], "Rows of the purge."),
    ] {
        assert_eq!(complaints(&metric).len(), 1, "{:?}", complaints(&metric));
    }
}
