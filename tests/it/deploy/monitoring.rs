//! Alerts and dashboard: their series exist, and the alerts fire when they should.

use std::collections::BTreeSet;

use dalsegno::{metric::Kind, metric_catalogue};
use serde_json::Value;

use super::{
    page::Page,
    yaml::{documents, root, text},
};
use crate::{
    app::{TestDatabase, eventually, get},
    service::Service,
};

/// A series that an expression reads: `name{outcome="dead"}`.
#[derive(Debug)]
pub struct Selector {
    pub name: String,
    labels: Vec<(String, String)>,
}

impl Selector {
    /// Returns the selectors of an expression. `{outcome=~"failed|exhausted"}` is two; other patterns are left out.
    fn all(expression: &str) -> Vec<Self> {
        let mut found = Vec::new();
        for (at, name) in names(expression) {
            let rest = &expression[at + name.len()..];
            let labels = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
            let labels = labels.map_or("", |(labels, _)| labels);
            let mut variants = vec![Vec::new()];
            for label in labels.split(',').filter(|label| !label.contains('!')) {
                let Some((label, value)) = label.split_once('=') else { continue };
                let values = value.trim_start_matches('~').trim_matches('"');
                let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-|".contains(c);
                if !values.chars().all(is_plain) {
                    continue;
                }
                let mut longer = Vec::new();
                for labels in &variants {
                    for value in values.split('|') {
                        let mut labels: Vec<_> = Vec::clone(labels);
                        labels.push((label.trim().to_owned(), value.to_owned()));
                        longer.push(labels);
                    }
                }
                variants = longer;
            }
            found.extend(variants.into_iter().map(|labels| Self { name: name.clone(), labels }));
        }
        found
    }

    pub fn is_in(&self, page: &Page) -> bool {
        page.has(&self.name, &self.labels)
    }
}

/// Returns the metrics of an expression, each with its position.
fn names(expression: &str) -> Vec<(usize, String)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(length) = expression[at..].find(|c| !is_part(c)) {
        found.push((at, expression[at..at + length].to_owned()));
        at += length + 1;
    }
    found.push((at, expression[at..].to_owned()));
    let is_metric = |name: &str| name.starts_with("dalsegno_") || name.starts_with("process_");
    found.retain(|(_, name)| is_metric(name));
    found
}

/// Returns the expressions of the alerts and of the dashboard.
fn expressions() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&text("deploy/monitoring/dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let shown: Vec<_> = targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect();
    let alerts = rules().into_iter().map(|rule| rule["expr"].as_str().unwrap().to_owned());
    alerts.chain(shown).collect()
}

/// Returns the series that the alerts and the dashboard read.
pub fn selectors() -> Vec<Selector> {
    expressions().iter().flat_map(|expression| Selector::all(expression)).collect()
}

#[test]
fn expressions_are_read_with_their_labels() {
    let text = |expression: &str| {
        let selectors = Selector::all(expression).into_iter();
        let line = |Selector { name, labels }| {
            let labels: Vec<_> = labels.iter().map(|(a, b)| format!("{a}={b}")).collect();
            format!("{name} {}", labels.join(","))
        };
        selectors.map(line).collect::<Vec<_>>()
    };
    let sum = r#"sum(rate(dalsegno_a{x="1",y=~"b|c",z=~"5..",w!~"d"}[5m])) / process_open_fds > 2"#;
    assert_eq!(text(sum), ["dalsegno_a x=1,y=b", "dalsegno_a x=1,y=c", "process_open_fds "]);
    assert_eq!(text("absent(dalsegno_b)"), ["dalsegno_b "]);
}

#[test]
fn alerts_and_dashboard_read_metrics_that_exist() {
    let all = metric_catalogue::all();
    let samples: BTreeSet<String> = all
        .iter()
        .flat_map(|metric| match metric.kind {
            Kind::Histogram => vec![format!("{}_bucket", metric.name)],
            _ => vec![metric.name.to_owned()],
        })
        .collect();
    let selectors = selectors();
    assert!(selectors.len() > 30, "{}", selectors.len());
    for Selector { name, labels } in &selectors {
        assert!(samples.contains(name), "{name}");
        let metric = all.iter().find(|it| name.trim_end_matches("_bucket") == it.name).unwrap();
        for (label, _) in labels {
            assert!(metric.labels.contains(&label.as_str()), "{name} has no label {label}");
        }
    }
    for rule in rules() {
        assert!(rule["annotations"]["action"].is_string(), "{rule}");
    }
}

/// `sum by (outcome)` of a metric without this label has one unnamed sum.
#[test]
fn expressions_group_by_labels_that_their_metrics_have() {
    let all = metric_catalogue::all();
    let mut n_groups = 0;
    for expression in expressions() {
        for grouped in expression.split(" by (").skip(1) {
            let (labels, rest) = grouped.split_once(')').unwrap();
            let (_, name) = names(rest).swap_remove(0);
            let metric = all.iter().find(|it| name.trim_end_matches("_bucket") == it.name).unwrap();
            // Prometheus adds `instance` and `job`; `le` is that of buckets.
            let added = ["instance", "job", "le"];
            for label in labels.split(", ").filter(|label| !added.contains(label)) {
                assert!(metric.labels.contains(&label), "{name} has no label {label}");
                n_groups += 1;
            }
        }
    }
    assert!(n_groups > 10, "{n_groups}");
}

fn missing(page: &Page) -> Vec<String> {
    // Routes begin with their first request, and the reader of this page is one.
    let is_late = |name: &str| name.starts_with("dalsegno_http_request");
    let wanted = selectors().into_iter().filter(|wanted| !is_late(&wanted.name));
    wanted.filter(|wanted| !wanted.is_in(page)).map(|wanted| format!("{wanted:?}")).collect()
}

/// An alert misses an event if its series begins with that event.
#[tokio::test]
async fn a_fresh_service_and_fresh_workers_have_every_series_of_the_alerts() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let service = Service::start(folder, &[]).await;
    let all = eventually("the service shows every series", async || {
        let metrics = get(service.address, "/metrics").await.unwrap().body;
        missing(&Page::parse(&metrics)).is_empty().then_some(())
    });
    all.await;
    drop(service);

    let folder = tempfile::tempdir().unwrap();
    let no_slots = [("DALSEGNO_WORKER__TURNS_SLOTS", "0"), ("DALSEGNO_WORKER__UPKEEP_SLOTS", "0")];
    let _front = Service::start(folder.path(), &no_slots).await;
    let mut workers = Vec::new();
    for binary in [env!("CARGO_BIN_EXE_worker-turns"), env!("CARGO_BIN_EXE_worker-upkeep")] {
        let listen = ("DALSEGNO_WORKER__LISTEN", "127.0.0.1:0");
        let mut worker = Service::worker_of(binary, folder.path(), &[listen]).await;
        worker.listening().await;
        worker.ready().await;
        workers.push(worker);
    }
    eventually("the workers show every series", async || {
        let mut metrics = String::new();
        for worker in &workers {
            metrics += &get(worker.address, "/metrics").await.unwrap().body;
        }
        missing(&Page::parse(&metrics)).is_empty().then_some(())
    })
    .await;
}

fn rules() -> Vec<Value> {
    let alerts = documents(&root().join("deploy/monitoring/alerts.yaml")).swap_remove(0);
    alerts["groups"][0]["rules"].as_array().unwrap().clone()
}

#[test]
fn every_alert_links_its_section_of_the_incidents() {
    let page = text("docs/how-to/incidents.md");
    let rules = rules();
    for rule in &rules {
        let alert = rule["alert"].as_str().unwrap();
        let link = format!("docs/how-to/incidents.md#{}", alert.to_lowercase());
        assert_eq!(rule["annotations"]["runbook"], link.as_str(), "{alert}");
        let section =
            page.split("\n## ").find(|section| section.starts_with(&format!("{alert}\n")));
        let section = section.unwrap_or_else(|| panic!("{alert} has no section"));
        for part in ["**Meaning.**", "**Check.**", "**Action.**"] {
            assert!(section.contains(part), "{alert} has no {part}");
        }
        let severity = rule["labels"]["severity"].as_str().unwrap();
        let row = format!("| [{alert}](#{}) | {severity} |", alert.to_lowercase());
        assert!(page.contains(&row), "{alert} is not in the table, or with another severity");
    }
    assert_eq!(page.matches("\n## Dalsegno").count(), rules.len(), "sections of old alerts");
}

/// A condition that has to hold for hours is lost when processes or Prometheus restart.
#[test]
fn no_alert_needs_a_long_running_process() {
    for rule in rules() {
        let patience = rule["for"].as_str().unwrap_or("0m");
        let minutes: u64 = patience
            .strip_suffix('m')
            .and_then(|n| n.parse().ok())
            .unwrap_or_else(|| panic!("{rule}"));
        assert!(minutes <= 30, "{rule}");
    }
}

const LAST_CLEANUP: &str = "dalsegno_nightly_cleanup_last_success_timestamp_seconds";
const INSTALLED: &str = "dalsegno_installation_created_timestamp_seconds";

/// Evaluates the two alerts on the cleanup: no cleanup for too long, and none ever. One process publishes both gauges.
fn cleanup_alerts(metrics: &str, now: i64) -> (bool, bool) {
    let value = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} is missing")).parse::<f64>().unwrap()
    };
    let is_late = |since: f64| since > 0.0 && now as f64 - since > 26.0 * 3600.0;
    (is_late(value(LAST_CLEANUP)), value(LAST_CLEANUP) == 0.0 && is_late(value(INSTALLED)))
}

#[tokio::test]
async fn a_missing_cleanup_raises_an_alert_even_with_daily_restarts() {
    let expressions: Vec<String> =
        rules().iter().map(|rule| rule["expr"].as_str().unwrap().to_owned()).collect();
    for expression in [
        format!("time() - (max({LAST_CLEANUP}) > 0) > 26 * 3600"),
        format!("max({LAST_CLEANUP}) == 0 and time() - (max({INSTALLED}) > 0) > 26 * 3600"),
    ] {
        assert!(expressions.contains(&expression), "{expression} is not among {expressions:#?}");
    }

    let (database, folder) = (TestDatabase::migrated().await, tempfile::tempdir().unwrap());
    let pool = database.pool().await;
    let now = "select extract(epoch from now())::bigint";
    let now: i64 = sqlx::query_scalar(now).fetch_one(&pool).await.unwrap();
    let url = database.url();
    // The process runs no cleanup of its own during the test.
    let never = ("DALSEGNO_SCHEDULER__CLEANUP", "0 0 0 29 2 *");
    let environment = [("DATABASE_URL", url.as_str()), never];
    let starts = async |expected: (bool, bool)| {
        let service = Service::start(folder.path(), &environment).await;
        eventually("the gauges are reported", async || {
            let metrics = get(service.address, "/metrics").await.unwrap().body;
            let is_read = !metrics.contains(&format!("{INSTALLED} 0\n"));
            (is_read && cleanup_alerts(&metrics, now) == expected).then_some(())
        })
        .await;
    };
    starts((false, false)).await;
    let old = "update dalsegno.installation set created_at = now() - interval '27 hours'";
    sqlx::query(old).execute(&pool).await.unwrap();
    for _restart in 0..2 {
        starts((false, true)).await;
    }
    let ran = "insert into dalsegno.cleanup_runs (kind, job_id, lease, started_at, ended_at, outcome)
               values ('sessions', (select count(*) from dalsegno.cleanup_runs), 1, now() - $1::interval, now() - $1::interval, 'done')";
    let ran = async |since: &str| {
        sqlx::query(ran).bind(since).execute(&pool).await.unwrap();
    };
    ran("28 hours").await;
    starts((true, false)).await;
    ran("1 hour").await;
    starts((false, false)).await;
}

/// The process that publishes them may be the missing one.
#[test]
fn missing_workers_and_a_missing_scheduler_raise_alerts() {
    let alerts = text("deploy/monitoring/alerts.yaml");
    assert!(alerts.contains("max by (queue) (dalsegno_workers) == 0 or absent(dalsegno_workers)"));
    assert!(alerts.contains("or absent(dalsegno_scheduler_last_check_timestamp_seconds)"));
}
